"""Simulated crowds: the errors that variational Bayes makes lie below the bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from oracles import dense_vb
from research.theory.crowds import draw_data

import tiebreak as tb
from tiebreak.kernels import Floats
from tiebreak.research import theory

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


def fit_of(
    answers: Floats, start: Floats, n_sweeps: int, links: Any = None, strength: float = 0.0
) -> tb.VariationalBayes:
    """Fit by sweeps over all tasks at once, as the theorems have it."""
    task, worker, label = np.nonzero(answers)
    tasks, workers, classes = (range(size) for size in answers.shape)
    rows = tb.Responses.from_columns(
        task.tolist(), worker.tolist(), label.tolist(), tasks=list(tasks), classes=list(classes)
    )
    order = rows.workers.codes(list(workers))
    assert order.tolist() == list(workers)  # of first appearance: everybody answers task 0
    options = tb.MeanFieldOptions(strength=strength, schedule="parallel", closure=False)
    model = tb.VariationalBayes(
        init=start, tol=0, max_iter=n_sweeps, link_options=options, calibrate="none"
    )
    return model.fit(rows, links=links)


def random_links(truth: np.ndarray, n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Link n pairs of different tasks, none twice, by what is true."""
    pairs = np.unique(np.sort(rng.integers(len(truth), size=(2 * n, 2)), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] < pairs[:, 1]])[:n]
    left, right = np.ascontiguousarray(pairs.T)
    return left, right, truth[left] == truth[right]


def links_of(pairs: tuple[Any, ...]) -> tb.Links:
    left, right, must = pairs
    return tb.Links.from_columns(left.tolist(), right.tolist(), must, sampling="pairs")


def run_vb(
    crowd: theory.Assumptions, seed: int, n_links: int = 0, strength: float = 0.0
) -> tuple[list[Errors], theory.LinkedTasks | None]:
    """Start from hard majority votes, as the assumptions ask for a good start."""
    rng = np.random.default_rng(seed)
    truth, answers = draw_data(crowd, rng)
    start = np.eye(crowd.n_classes)[answers.sum(axis=1).argmax(axis=1)]
    pairs = random_links(truth, n_links, rng)
    linked = np.unique(np.concatenate(pairs[:2]))
    check_start(crowd, truth, start, answers)
    kinds = links = None
    if n_links:
        links = links_of(pairs)
        kinds = theory.LinkedTasks.from_pairs(
            pairs[0], pairs[1], pairs[2], truth, n_classes=2, strength=strength
        )
    seen = []
    for n_sweeps in range(1, N_SWEEPS + 1):
        model = fit_of(answers, start, n_sweeps, links, strength)
        label = np.abs(model.probabilities_ - np.eye(crowd.n_classes)[truth]).max(axis=1)
        seen.append(
            Errors(
                labels=float(np.delete(label, linked).max()),
                linked=float(label[linked].max(initial=0.0)),
                class_prior=float(np.abs(model.class_prior_ - crowd.class_prior).max()),
                confusion=float(np.abs(model.confusion_ - crowd.confusion[0]).max()),
            )
        )
    return seen, kinds


def check_start(crowd: theory.Assumptions, truth: np.ndarray, q: Floats, answers: Floats) -> None:
    """The theorem builds on a start; see that this one is as good as assumed."""
    prior = crowd.class_prior_counts, crowd.confusion_counts
    posterior = dense_vb.count(answers, q, *prior)
    start = crowd.start
    assert np.abs(q - np.eye(crowd.n_classes)[truth]).max(axis=1).max() <= start.label_error
    assert np.abs(posterior.class_prior - crowd.class_prior).max() <= start.class_prior_error
    assert np.abs(posterior.confusion - crowd.confusion[0]).max() <= start.confusion_error
    assert posterior.alpha.sum() >= (start.class_prior_total or 0)
    assert posterior.beta.sum(axis=2).min() >= (start.confusion_total or 0)


def holds(found: theory.Bounds, seen: list[Errors]) -> bool:
    columns = (found.label_error, found.linked_label_error)
    bound = np.column_stack([*columns, found.class_prior_error, found.confusion_error])
    return bool((np.array(seen) <= bound).all())


def test_errors_stay_below_the_sharp_bounds() -> None:
    crowd = assumed(n_workers=60)
    found = theory.bounds(crowd, n_iter=N_SWEEPS, threshold=0.3)
    assert not found.vacuous
    assert max(found.confusion_error.max(), found.class_prior_error.max()) < 0.07
    held = [holds(found, run_vb(crowd, seed)[0]) for seed in range(N_TRIALS)]
    assert len(held) == N_TRIALS
    assert np.mean(held) >= 1 - crowd.failure_probability


def test_errors_of_linked_tasks_stay_below_the_sharp_bounds() -> None:
    crowd = assumed(n_workers=55)
    held = []
    for seed in range(3):
        seen, links = run_vb(crowd, seed, n_links=3000, strength=2.0)
        found = theory.bounds(crowd, links=links, n_iter=N_SWEEPS, threshold=0.3)
        assert found.linked_label_error[-1] < found.label_error[-1] < 1
        held.append(holds(found, seen))
    assert np.mean(held) >= 1 - crowd.failure_probability


@pytest.mark.parametrize("seed", range(3))
def test_the_package_and_the_dense_oracle_agree(seed: int) -> None:
    crowd = assumed(n_workers=7, n_tasks=300)
    truth, answers = draw_data(crowd, np.random.default_rng(seed))
    pairs = random_links(truth, 40, np.random.default_rng(seed))
    q = answers.mean(axis=1)
    fitted = fit_of(answers, q, N_SWEEPS, links_of(pairs), strength=2.0)
    left, right, must = pairs
    weight = np.zeros((crowd.n_tasks, crowd.n_tasks))
    weight[left, right] = weight[right, left] = np.where(must, 1.0, -1.0)
    prior = np.ones(2), crowd.confusion_counts
    posterior = dense_vb.count(answers, q, *prior)
    for _ in range(N_SWEEPS):
        q = dense_vb.label(answers, posterior, 2.0 * weight @ q)
        posterior = dense_vb.count(answers, q, *prior)
    np.testing.assert_allclose(fitted.probabilities_, q, atol=1e-10)
    np.testing.assert_allclose(fitted.confusion_, posterior.confusion, atol=1e-10)
    labels = q.argmax(axis=1)
    assert np.count_nonzero((labels[left] == labels[right]) != must) < 20
