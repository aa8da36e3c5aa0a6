"""Worked numbers, to their tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden.link_models import InTaskOrder
from golden.vectors import close, crowd, link_codes, problem, vector
from oracles import enumeration
from oracles.bound import bound_terms
from oracles.dawid_skene import objective as likelihood_of

import tiebreak as tb
from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks import mean_field
from tiebreak.inference.tasks.mean_field import MeanField
from tiebreak.kernels import compiled, reference
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats
from tiebreak.links import graph as link_graph

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
ORDERS = {"sequential": "in-turn", "parallel": "parallel", "adaptive": "damped"}


def vb_start(name: str = "vb_diag") -> Floats:
    return np.array(vector(name)[1]["q"])


def gold_of(labels: dict[str, int]) -> GoldCodes:
    return GoldCodes(
        np.array([int(task) for task in labels], dtype=np.int32),
        np.array(list(labels.values()), dtype=np.int32),
    )


def known(problem: vb.Problem, gold: GoldCodes | None, linked: Any = None) -> vb.Problem:
    role = vb.roles(problem.tasks.n_tasks, gold, linked)
    return problem._replace(tasks=problem.tasks._replace(role=role))


def test_majority_vote() -> None:
    _, expected = vector("mv")
    q = vb.majority(problem("tiny3").tasks, 3)
    close(q, expected["q"])
    assert q.argmax(axis=1).tolist() == expected["y"]


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", ["ds", "ds_smooth"])
def test_dawid_skene(name: str, backend: str) -> None:
    given, expected = vector(name)
    responses = crowd(given["dataset"])
    options: dict[str, Any] = {"smoothing": given["smooth"], "tol": 0.0, "backend": backend}
    fits = [
        tb.DawidSkene(max_iter=n_iter, **options).fit(responses)
        for n_iter in range(1, given["n_iter"] + 1)
    ]
    last = fits[-1]
    close(last.probabilities_, expected["q"])
    close(last.class_prior_, expected["pi"])
    close(last.confusion_, expected["gamma"])
    for fit, likelihood in zip(fits, expected["loglik"][1:], strict=True):
        close(likelihood_of(responses, fit.class_prior_, fit.confusion_), likelihood)
        bound = fit.bounds_[-1]
        assert (
            bound
            <= likelihood_of(responses, fit.class_prior_, fit.confusion_, smoothing=given["smooth"])
            + 1e-9
        )
        assert fit.bounds_ == last.bounds_[: len(fit.bounds_)]


@BACKENDS
@pytest.mark.parametrize("name", ["vb_diag", "vb_uniform", "vb_binary"])
def test_variational_bayes_and_every_term_of_its_bound(name: str, backend: Any) -> None:
    given, expected = vector(name)
    task = problem(given["dataset"], given["prior"], backend)
    run = vb.ascend(task, vb.majority(task.tasks, task.n_classes), tol=0, max_iter=given["n_iter"])
    close(run.q, expected["q"])
    close(run.beliefs.alpha, expected["alpha"])
    close(run.beliefs.beta.transpose(0, 2, 1), expected["beta"])
    close(np.array(run.bounds), expected["elbo_trace"])
    terms, wanted = bound_terms(task, run.q, run.beliefs), expected["elbo_terms"]
    keys = ("E_ln_p_y", "E_ln_p_resp", "E_ln_p_pi", "E_ln_p_gamma", "H_y", "H_pi", "H_gamma")
    close(np.array(terms), [wanted[key] for key in keys])
    close(terms.total, wanted["total"])


def test_bound_after_two_hundred_sweeps() -> None:
    given, expected = vector("evidence_bound")
    task = problem(given["dataset"], given["prior"])
    run = vb.ascend(task, vb.majority(task.tasks, task.n_classes), tol=0.0, max_iter=200)
    close(run.bounds[-1], expected["elbo"])
    responses = crowd(given["dataset"])
    rows = list(
        zip(
            responses.task_of_each(),
            responses.worker_of_each(),
            responses.label_of_each(),
            strict=True,
        )
    )
    prior = np.repeat(task.workers.prior.transpose(0, 2, 1), responses.n_workers, axis=0)
    posterior, evidence = enumeration.marginals(
        lambda y: enumeration.log_joint(y, rows, task.states.prior, prior),
        responses.n_tasks,
        responses.n_classes,
    )
    close(evidence, expected["log_evidence"])
    close(posterior, expected["exact_posterior"])


@BACKENDS
def test_known_labels(backend: Any) -> None:
    given, expected = vector("vb_lc")
    gold = gold_of(given["labels"])
    task = known(problem(given["dataset"], given["prior"], backend), gold)
    run = vb.ascend(task, clamp(vb_start(), gold), tol=0.0, max_iter=given["n_iter"])
    close(run.q, expected["q"])
    close(run.beliefs.alpha, expected["alpha"])
    close(np.array(run.bounds), expected["elbo_trace"])


@BACKENDS
@pytest.mark.parametrize(
    "name",
    ["ilc_parallel", "ilc_sequential", "ilc_sequential_eta5", "ilc_adaptive", "ilc_with_labels"],
)
def test_links_by_mean_field(name: str, backend: Any) -> None:
    given, expected = vector(name)
    gold = gold_of(given["labels"]) if "labels" in given else None
    task = problem(given["dataset"], given["prior"], backend)
    groups = mean_field.closed_groups(link_graph.imply(link_codes(given["ml"], given["cl"]), 3))
    task = known(task, gold, groups.task)
    schedule = ORDERS[given["schedule"]]
    model = InTaskOrder(groups, given["eta"], task.tasks.role, backend, schedule)
    start = clamp(vb_start(), gold)
    run = vb.ascend(task._replace(links=model), start, tol=0.0, max_iter=given["n_iter"])
    close(run.q, expected["q"])
    close(np.array(run.bounds), expected["elbo_trace"])
    if "link" in expected:
        close(backend.link_term(run.q, groups), expected["link"])
        close(run.beliefs.alpha, expected["alpha"])


def objective(u: Floats, q: Floats, model: MeanField) -> float:
    return float((u * q).sum() + model.value(q))


def test_simultaneous_updates_swing_between_two_states() -> None:
    given, expected = vector("jacobi_two_cycle")
    u = np.array(given["u"])
    groups = mean_field.closed_groups(link_graph.imply(link_codes([], given["cl"]), 3))
    role = vb.roles(2, None, groups.task)
    model = MeanField(groups, given["eta"], role, reference, "parallel")
    q = softmax(u)
    objectives = [objective(u, q, model)]
    for step in expected["q_class0_per_step"]:
        model.update(q, u)
        close(q[:, 0], step)
        objectives.append(objective(u, q, model))
    close(np.array(objectives), expected["objective"])


@BACKENDS
def test_updates_in_turn_settle_where_simultaneous_ones_swing(backend: Any) -> None:
    given, expected = vector("jacobi_two_cycle")
    u = np.array(given["u"])
    groups = mean_field.closed_groups(link_graph.imply(link_codes([], given["cl"]), 3))
    role = vb.roles(2, None, groups.task)
    model = InTaskOrder(groups, given["eta"], role, backend)
    q = softmax(u)
    while model.update(q, u).change > 1e-14:
        pass
    close(q, expected["sequential_fixed_point"])


@BACKENDS
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_order_of_turns_decides_at_a_large_strength(order: list[int], backend: Any) -> None:
    given, expected = vector("must_link_order")
    u = np.array(given["u"])
    groups = mean_field.closed_groups(link_graph.imply(link_codes(given["ml"], []), 3))
    q = softmax(u)
    turns = np.array(order)
    while backend.update_in_turn(q, u, groups, given["eta"], turns) > 1e-14:
        pass
    close(q, expected["sequential_" + "".join(map(str, order))])


def test_most_doubtful_task_first_takes_the_right_order() -> None:
    given, expected = vector("must_link_order")
    u = np.array(given["u"])
    groups = mean_field.closed_groups(link_graph.imply(link_codes(given["ml"], []), 3))
    model = MeanField(groups, given["eta"], vb.roles(2, None, groups.task), reference)
    q = softmax(u)
    for _ in range(3):
        model.update(q, u)
    close(q, expected["sequential_10"])


def test_grid_keeps_the_smallest_strength_that_breaks_fewest_links() -> None:
    given, expected = vector("eta_grid")
    links = link_codes(given["ml"], given["cl"])
    task = problem(given["dataset"], given["prior"])
    groups = mean_field.closed_groups(link_graph.imply(links, 3))
    task = known(task, None, groups.task)
    closed_counts = []

    def ascent(strength: float, start: Floats) -> vb.Run:
        model = InTaskOrder(groups, strength, task.tasks.role, reference)
        run = vb.ascend(task._replace(links=model), start, tol=0.0, max_iter=given["n_iter"])
        closed = link_graph.close(6, links)
        label = run.q.argmax(axis=1).astype(np.int32)
        closed_counts.append(closed.count_violated(label, 3))
        return run

    run, strength, points = mean_field.choose_strength(ascent, vb_start(), links, warm=False)
    assert [point.strength for point in points] == given["grid"]
    assert [point.violated for point in points] == expected["nv_given"]
    assert closed_counts == expected["nv_closed"]
    assert strength == expected["eta"]
    assert run.q.argmax(axis=1).tolist() == expected["y"]
