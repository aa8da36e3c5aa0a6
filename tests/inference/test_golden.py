"""Worked numbers, to their tolerance."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from golden.vectors import close, crowd, link_codes, problem, vector
from oracles import enumeration
from oracles.bound import bound_terms
from oracles.dawid_skene import objective as likelihood_of

import tiebreak as tb
from tiebreak.data import GoldCodes
from tiebreak.inference import FitState, Known, OwnRows, Problem, Stopping, climb
from tiebreak.inference.tasks import mean_field
from tiebreak.inference.tasks.mean_field import MeanField, with_mean_field
from tiebreak.kernels import Floats, Offsets, compiled, majority, reference, softmax
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import LinkCodes

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
ORDERS = {"sequential": "in-turn", "parallel": "parallel", "adaptive": "damped"}


def vb_start(name: str = "vb_diag") -> Floats:
    return np.array(vector(name)[1]["q"])


def gold_of(labels: dict[str, int]) -> GoldCodes:
    return GoldCodes(
        np.array([int(task) for task in labels], dtype=np.int32),
        np.array(list(labels.values()), dtype=np.int32),
    )


class InTaskOrder(MeanField):
    """Mean field whose tasks take turns by their number, not by margin."""

    def turns(self, q: Floats) -> Offsets:
        assert self.own is not None
        by_task = np.argsort(self.own.at[self.groups.task], kind="stable")
        return np.asarray(by_task[self.waits[self.groups.task[by_task]]])


def pulled(
    plain: Problem, links: LinkCodes, strength: float, schedule: str = "in-turn", gold: Any = None
) -> tuple[Problem, Known]:
    """Return the problem with links by mean field, whose tasks take turns by number."""
    implied = link_graph.imply(links, 3)  # of gold nothing follows
    options = tb.MeanFieldOptions(schedule=schedule)
    task, _ = with_mean_field(plain, implied, options)
    known = Known.of(gold)
    task = known.on(task) if gold is None else known.on(plain)._replace(tasks=task.tasks)
    tasks: Any = task.tasks
    fields = {each.name: getattr(tasks, each.name) for each in dataclasses.fields(tasks)}
    fields |= {"strength": strength, "waits": ~np.isin(tasks.own.at, known.task)}
    return task._replace(tasks=InTaskOrder(**fields)), known


def mean_field_of(u: Floats, must: Any, cannot: Any, kind: type[MeanField], **more: Any) -> Any:
    """Return mean field of these links between tasks 0, 1, … with scores u."""
    groups = mean_field.closed_groups(link_graph.imply(link_codes(must, cannot), 3))
    at = groups.task
    given = problem("tiny3")
    own = OwnRows(at, given.rows)
    waits = np.ones(len(at), dtype=bool)
    backend = more.pop("backend", reference)
    fields = {"groups": groups, "waits": waits, "backend": backend, **more}
    return kind(given.tasks.shares, own, **fields)


def test_majority_vote() -> None:
    _, expected = vector("mv")
    q = majority(problem("tiny3").rows, 3)
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
    state = climb(task, FitState(q=task.votes()), Stopping(0.0, given["n_iter"]))
    alpha, beta = state.parameters
    close(state.q, expected["q"])
    close(alpha, expected["alpha"])
    close(beta.transpose(0, 2, 1), expected["beta"])
    close(np.array(state.bounds), expected["elbo_trace"])
    terms, wanted = bound_terms(task, state.q, state.parameters), expected["elbo_terms"]
    keys = ("E_ln_p_y", "E_ln_p_resp", "E_ln_p_pi", "E_ln_p_gamma", "H_y", "H_pi", "H_gamma")
    close(np.array(terms), [wanted[key] for key in keys])
    close(terms.total, wanted["total"])


def test_bound_after_two_hundred_sweeps() -> None:
    given, expected = vector("evidence_bound")
    task = problem(given["dataset"], given["prior"])
    state = climb(task, FitState(q=task.votes()), Stopping(0.0, 200))
    close(state.bounds[-1], expected["elbo"])
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
        lambda y: enumeration.log_joint(y, rows, task.tasks.shares.prior, prior),
        responses.n_tasks,
        responses.n_classes,
    )
    close(evidence, expected["log_evidence"])
    close(posterior, expected["exact_posterior"])


@BACKENDS
def test_known_labels(backend: Any) -> None:
    given, expected = vector("vb_lc")
    known = Known.of(gold_of(given["labels"]))
    task = known.on(problem(given["dataset"], given["prior"], backend))
    state = climb(task, FitState(q=known.clamp(vb_start())), Stopping(0.0, given["n_iter"]))
    close(state.q, expected["q"])
    close(state.parameters[0], expected["alpha"])
    close(np.array(state.bounds), expected["elbo_trace"])


@BACKENDS
@pytest.mark.parametrize(
    "name",
    ["ilc_parallel", "ilc_sequential", "ilc_sequential_eta5", "ilc_adaptive", "ilc_with_labels"],
)
def test_links_by_mean_field(name: str, backend: Any) -> None:
    given, expected = vector(name)
    gold = gold_of(given["labels"]) if "labels" in given else None
    plain = problem(given["dataset"], given["prior"], backend)
    links = link_codes(given["ml"], given["cl"])
    task, known = pulled(plain, links, given["eta"], ORDERS[given["schedule"]], gold)
    state = climb(task, FitState(q=known.clamp(vb_start())), Stopping(0.0, given["n_iter"]))
    close(state.q, expected["q"])
    close(np.array(state.bounds), expected["elbo_trace"])
    if "link" in expected:
        tasks: Any = task.tasks
        close(backend.link_term(state.q[tasks.own.at], tasks.groups), expected["link"])
        close(state.parameters[0], expected["alpha"])


def objective(u: Floats, q: Floats, model: MeanField) -> float:
    return float((u * q).sum() + model.value(q))


def test_simultaneous_updates_swing_between_two_states() -> None:
    given, expected = vector("jacobi_two_cycle")
    u = np.array(given["u"])
    options = {"strength": given["eta"], "schedule": "parallel"}
    model = mean_field_of(u, [], given["cl"], MeanField, **options)
    q = softmax(u)
    objectives = [objective(u, q, model)]
    memory = None
    for step in expected["q_class0_per_step"]:
        found = model.infer((), u, q, memory)
        q, memory = found.q, found.memory
        close(q[:, 0], step)
        objectives.append(objective(u, q, model))
    close(np.array(objectives), expected["objective"])


@BACKENDS
def test_updates_in_turn_settle_where_simultaneous_ones_swing(backend: Any) -> None:
    given, expected = vector("jacobi_two_cycle")
    u = np.array(given["u"])
    options = {"strength": given["eta"], "backend": backend}
    model = mean_field_of(u, [], given["cl"], InTaskOrder, **options)
    q, change = softmax(u), 1.0
    while change > 1e-14:
        found = model.infer((), u, q, None).q
        change, q = np.abs(found - q).max(), found
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
    model = mean_field_of(u, given["ml"], [], MeanField, strength=given["eta"])
    q = softmax(u)
    for _ in range(3):
        q = model.infer((), u, q, None).q
    close(q, expected["sequential_10"])


def test_grid_keeps_the_smallest_strength_that_breaks_fewest_links() -> None:
    given, expected = vector("eta_grid")
    links = link_codes(given["ml"], given["cl"])
    plain = problem(given["dataset"], given["prior"])
    closed_counts = []

    def ascent(strength: float, start: Floats) -> FitState:
        task, _ = pulled(plain, links, strength)
        state = climb(task, FitState(q=start), Stopping(0.0, given["n_iter"]))
        label = state.q.argmax(axis=1).astype(np.int32)
        closed_counts.append(link_graph.close(6, links).count_violated(label, 3))
        return state

    state, strength, points = mean_field.choose_strength(ascent, vb_start(), links, warm=False)
    assert [point.strength for point in points] == given["grid"]
    assert [point.violated for point in points] == expected["nv_given"]
    assert closed_counts == expected["nv_closed"]
    assert strength == expected["eta"]
    assert state.q.argmax(axis=1).tolist() == expected["y"]
