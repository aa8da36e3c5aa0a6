"""Simulated crowds: the errors that variational Bayes makes lie below the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from oracles import dense_vb
from oracles.dense_vb import Posterior
from theory.crowds import draw_data

from tiebreak import link_graph, theory
from tiebreak.ids import Ids
from tiebreak.inference import dirichlet, vb
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.mean_field import MeanField, given_groups
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels import reference
from tiebreak.kernels.layout import Floats
from tiebreak.link_graph import LinkCodes
from tiebreak.responses import Responses

N_TRIALS = 10
N_SWEEPS = 3


class Errors(NamedTuple):
    """The largest errors after a sweep."""

    labels: float
    linked: float
    class_prior: float
    confusion: float


def assumed(n_workers: int, n_tasks: int = 20_000) -> theory.Assumptions:
    return theory.Assumptions(
        class_prior=[0.5, 0.5],
        confusion=[[0.9, 0.1], [0.12, 0.88]],
        n_tasks=n_tasks,
        n_workers=n_workers,
        failure_probability=0.1,
        start=theory.AssumedStart(
            class_prior_error=0.02,
            confusion_error=0.015,
            label_error=0.05,
            class_prior_total=n_tasks,
            confusion_total=2000,
        ),
    )


def responses_of(answers: Floats) -> Responses:
    task, worker, label = (part.astype(np.int32) for part in np.nonzero(answers))
    tasks, workers, classes = (Ids(range(size)) for size in answers.shape)
    return Responses.from_codes(task, worker, label, tasks, workers, classes)


def problem_of(answers: Floats, linked: np.ndarray | None = None) -> vb.Problem:
    crowd = responses_of(answers)
    return vb.Problem(
        vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, linked)),
        ClassPrior(np.ones(crowd.n_classes)),
        ConfusionMatrices(
            dirichlet.confusion_prior("diagonal", crowd.workers, crowd.n_classes), crowd.n_workers
        ),
        reference,
    )


def errors_of(
    crowd: theory.Assumptions, truth: np.ndarray, q: Floats, beliefs: vb.Beliefs, linked: np.ndarray
) -> Errors:
    posterior = Posterior(beliefs.alpha, beliefs.beta.transpose(0, 2, 1))
    label = np.abs(q - np.eye(crowd.n_classes)[truth]).max(axis=1)
    return Errors(
        labels=float(np.delete(label, linked).max()),
        linked=float(label[linked].max(initial=0.0)),
        class_prior=float(np.abs(posterior.class_prior - crowd.class_prior).max()),
        confusion=float(np.abs(posterior.confusion - crowd.confusion[0]).max()),
    )


def random_links(truth: np.ndarray, n: int, rng: np.random.Generator) -> LinkCodes:
    """Link n pairs of different tasks, none twice, by what is true."""
    pairs = np.unique(np.sort(rng.integers(len(truth), size=(2 * n, 2)), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] < pairs[:, 1]])[:n].astype(np.int32)
    left, right = np.ascontiguousarray(pairs.T)
    return LinkCodes(left, right, truth[left] == truth[right], None, None, np.arange(n))


def run_vb(
    crowd: theory.Assumptions, seed: int, n_links: int = 0, strength: float = 0.0
) -> Iterator[tuple[list[Errors], theory.LinkedTasks | None]]:
    """Start from hard majority votes, as the assumptions ask for a good start."""
    rng = np.random.default_rng(seed)
    truth, answers = draw_data(crowd, rng)
    start = np.eye(crowd.n_classes)[answers.sum(axis=1).argmax(axis=1)]
    links = random_links(truth, n_links, rng)
    linked = np.unique(np.concatenate([links.left, links.right]))
    problem = problem_of(answers, linked if n_links else None)
    kinds = None
    if n_links:
        groups = given_groups(links)
        model = MeanField(groups, strength, problem.tasks.role, reference, "parallel")
        problem = problem._replace(links=model)
        kinds = theory.LinkedTasks.from_pairs(
            links.left, links.right, links.must, truth, n_classes=2, strength=strength
        )
    check_start(crowd, truth, start, vb.implied_beliefs(problem, start))
    seen: list[Errors] = []
    for n_sweeps in range(1, N_SWEEPS + 1):
        run = vb.ascend(problem, start, tol=0.0, max_iter=n_sweeps)
        seen.append(errors_of(crowd, truth, run.q, run.beliefs, linked))
    yield seen, kinds


def check_start(
    crowd: theory.Assumptions, truth: np.ndarray, q: Floats, beliefs: vb.Beliefs
) -> None:
    """The theorem builds on a start; see that this one is as good as assumed."""
    nobody = np.empty(0, dtype=np.int64)
    found = errors_of(crowd, truth, q, beliefs, nobody)
    start = crowd.start
    assert found.labels <= start.label_error
    assert found.class_prior <= start.class_prior_error
    assert found.confusion <= start.confusion_error
    assert beliefs.alpha.sum() >= (start.class_prior_total or 0)
    assert beliefs.beta.sum(axis=1).min() >= (start.confusion_total or 0)


def holds(found: theory.Bounds, seen: list[Errors]) -> bool:
    linked = found.linked_label_error
    bound = np.column_stack(
        [
            found.label_error,
            np.ones(N_SWEEPS) if linked is None else linked,
            found.class_prior_error,
            found.confusion_error,
        ]
    )
    return bool((np.array(seen) <= bound).all())


def test_errors_stay_below_the_sharp_bounds() -> None:
    crowd = assumed(n_workers=60)
    found = theory.bounds(crowd, n_iter=N_SWEEPS, threshold=0.3)
    assert not found.vacuous
    assert max(found.confusion_error.max(), found.class_prior_error.max()) < 0.07
    held = [holds(found, seen) for seed in range(N_TRIALS) for seen, _ in run_vb(crowd, seed)]
    assert len(held) == N_TRIALS
    assert np.mean(held) >= 1 - crowd.failure_probability


def test_errors_of_linked_tasks_stay_below_the_sharp_bounds() -> None:
    crowd = assumed(n_workers=55)
    held = []
    for seed in range(3):
        for seen, links in run_vb(crowd, seed, n_links=3000, strength=2.0):
            found = theory.bounds(crowd, links=links, n_iter=N_SWEEPS, threshold=0.3)
            assert found.linked_label_error is not None
            assert found.linked_label_error[-1] < found.label_error[-1] < 1
            held.append(holds(found, seen))
    assert np.mean(held) >= 1 - crowd.failure_probability


@pytest.mark.parametrize("seed", range(3))
def test_the_package_and_the_dense_oracle_agree(seed: int) -> None:
    crowd = assumed(n_workers=7, n_tasks=300)
    truth, answers = draw_data(crowd, np.random.default_rng(seed))
    links = random_links(truth, 40, np.random.default_rng(seed))
    q = answers.mean(axis=1)
    linked = np.unique(np.concatenate([links.left, links.right]))
    problem = problem_of(answers, linked)
    model = MeanField(
        given_groups(links),
        2.0,
        problem.tasks.role,
        reference,
        "parallel",
    )
    run = vb.ascend(problem._replace(links=model), q, tol=0.0, max_iter=N_SWEEPS)
    weight = np.zeros((crowd.n_tasks, crowd.n_tasks))
    sign = np.where(links.must, 1.0, -1.0)
    weight[links.left, links.right] = weight[links.right, links.left] = sign
    prior = np.ones(2), crowd.confusion_counts
    posterior = dense_vb.count(answers, q, *prior)
    for _ in range(N_SWEEPS):
        q = dense_vb.label(answers, posterior, 2.0 * weight @ q)
        posterior = dense_vb.count(answers, q, *prior)
    np.testing.assert_allclose(run.q, q, atol=1e-10)
    np.testing.assert_allclose(run.beliefs.beta.transpose(0, 2, 1), posterior.beta, atol=1e-8)
    assert link_graph.violated(run.q.argmax(axis=1).astype(np.int32), links).sum() < 20
