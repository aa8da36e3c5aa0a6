"""How unlikely are the unlikely events? Against exact probabilities."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from research.theory.crowds import draw
from scipy.stats import binom

from tiebreak.kernels import Floats
from tiebreak.research import theory

THRESHOLDS = (0.1, 0.3, 0.5)


def small(seed: int) -> theory.Assumptions:
    rng = np.random.default_rng(seed)
    crowd = draw(seed).crowd
    n_workers = int(rng.integers(1, 6))
    n_classes = min(crowd.n_classes, 3)
    rows = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes)) + 0.05
    prior = crowd.class_prior[:n_classes]
    return theory.Assumptions(
        class_prior=prior / prior.sum(),
        confusion=rows / rows.sum(axis=2, keepdims=True),
        n_tasks=1,
        response_rate=rng.uniform(0.3, 1.0, n_workers),
    )


def chance_of_little_evidence(
    crowd: theory.Assumptions, asked: tuple[int, ...], least: float
) -> Floats:
    """Exact chance, for each true class, that some wrong class is less than `least` behind."""
    log_confusion = np.log(crowd.confusion)
    n_classes = crowd.n_classes
    chance = np.zeros(n_classes)
    for answers in product(range(n_classes), repeat=len(asked)):
        scores = sum((log_confusion[m, :, c] for m, c in zip(asked, answers, strict=True)), 0.0)
        scores = np.broadcast_to(scores, n_classes)
        for truth in range(n_classes):
            lead = np.delete(scores[truth] - scores, truth).min()
            chance[truth] += (lead < least) * np.exp(scores[truth])
    return chance


def exact_failure(crowd: theory.Assumptions, threshold: float) -> float:
    """Enumerate who answers, each independently, and what."""
    n_workers = crowd.total_workers
    total = np.zeros(crowd.n_classes)
    for n in range(n_workers + 1):
        for asked in combinations(range(n_workers), n):
            present = np.isin(np.arange(n_workers), asked)
            rate = np.where(present, crowd.response_rate, 1 - crowd.response_rate).prod()
            least = threshold * crowd.evidence_per_task
            total += rate * chance_of_little_evidence(crowd, asked, least)
    return float(total.max())


@pytest.mark.parametrize("seed", range(40))
def test_evidence_fails_no_more_often_than_bounded(seed: int) -> None:
    crowd = small(seed)
    for threshold in THRESHOLDS:
        exact = exact_failure(crowd, threshold)
        assert exact <= theory.sharp.evidence_failure(crowd, threshold) + 1e-12
    assert (
        exact <= theory.plain.evidence_failure(crowd) + 1e-12
    )  # its threshold is the last, one half


@pytest.mark.parametrize("seed", range(40))
def test_a_fixed_number_of_workers_a_task_is_no_worse(seed: int) -> None:
    crowd = small(seed)
    for n in range(1, crowd.total_workers + 1):
        fixed = theory.with_responses_per_task(crowd, n)
        least = 0.3 * fixed.evidence_per_task
        teams = list(combinations(range(crowd.total_workers), n))
        chances = [chance_of_little_evidence(crowd, team, least) for team in teams]
        exact = np.mean(chances, axis=0).max()
        assert exact <= theory.sharp.evidence_failure(fixed, 0.3) + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_the_grid_of_thresholds_is_a_little_above_the_best(seed: int) -> None:
    crowd = draw(seed).crowd
    for threshold, rough in zip(
        THRESHOLDS, theory.sharp.evidence_failures(crowd, THRESHOLDS), strict=True
    ):
        exact = theory.sharp.evidence_failure(crowd, threshold)
        assert exact * (1 - 1e-9) <= rough <= 1.05 * exact


@pytest.mark.parametrize("rules", [theory.plain, theory.sharp])
def test_counts_stray_no_more_often_than_the_budget_allows(rules: theory.Plain) -> None:
    crowd = theory.Assumptions(
        class_prior=[0.7, 0.3],
        confusion=[[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]],
        n_tasks=2000,
        n_workers=[3, 2],
        response_rate=[0.9, 0.5],
    )
    budget = 0.2
    found = rules.deviations(crowd, budget)
    copies = crowd.n_workers[:, None]
    rates = crowd.response_rate[:, None] * crowd.class_prior

    def tails(probability: Floats, radius: Floats) -> Floats:
        n = crowd.n_tasks
        low = binom.cdf(np.ceil(n * (probability - radius)) - 1, n, probability)
        high = binom.sf(np.floor(n * (probability + radius)), n, probability)
        return np.asarray(low + high)

    classes = tails(crowd.class_prior, found.tasks).sum()
    answers = tails(rates[:, :, None] * crowd.confusion, found.answers).sum(axis=2)
    answered = tails(rates, found.answered)
    assert np.isfinite(found.answers).all()
    assert 0 < classes <= budget / 2
    assert 0 < ((answers + answered) * copies).sum() <= budget / 2


def test_plain_radii_are_unknown_where_there_are_too_few_tasks() -> None:
    crowd = theory.Assumptions(
        class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.1, 0.9]], n_tasks=100, n_workers=5
    )
    assert np.isfinite(theory.plain.deviations(crowd, 0.1).tasks).all()
    assert np.isinf(theory.plain.deviations(crowd, 0.1).answers).all()
    assert np.isinf(theory.plain.deviations(crowd, 1e-9).tasks).all()
    assert np.isfinite(theory.sharp.deviations(crowd, 0.1).answers).all()
