"""The likelihood of a calibration, against plain loops."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from tiebreak.data import GoldCodes
from tiebreak.inference import calibration
from tiebreak.links import graph


def some_evidence(
    n_classes: int, seed: int, *, links: bool = True, gold: bool = True
) -> tuple[np.ndarray, np.ndarray, calibration.Evidence]:
    """Draw scores, numbers of responses, links and gold; some tasks have no response."""
    rng = np.random.default_rng(seed)
    n = 60
    scores = rng.normal(size=(n, n_classes)) * rng.choice([1.0, 8.0, 300.0])
    n_responses = rng.integers(0, 12, n).astype(float)
    left = rng.integers(0, n - 1, 40).astype(np.int32)
    right = (left + rng.integers(1, n - left)).astype(np.int32)
    must = rng.random(40) < 0.5
    codes = graph.LinkCodes(left, right, must, None, None, np.arange(40))
    known = rng.permutation(n)[:25].astype(np.int32)
    labels = GoldCodes(known, rng.integers(0, n_classes, 25).astype(np.int32))
    error = rng.choice([0.01, 0.2], 40) if links else np.empty(0)
    evidence = calibration.Evidence(codes if links else None, error, labels if gold else None)
    return scores, n_responses, evidence


def by_loops(
    scores: np.ndarray,
    n_responses: np.ndarray,
    evidence: calibration.Evidence,
    dependence: float,
    multiplier: float,
) -> float:
    shares = []
    for row, n in zip(scores.tolist(), n_responses.tolist(), strict=True):
        scale = multiplier / (1.0 + dependence * max(n - 1.0, 0.0))
        exponentials = [exp(scale * (score - max(row))) for score in row]
        shares.append([each / sum(exponentials) for each in exponentials])
    total = 0.0
    links = evidence.links
    if links is not None:
        for i, j, must, error in zip(
            links.left, links.right, links.must, evidence.error, strict=True
        ):
            same = sum(a * b for a, b in zip(shares[i], shares[j], strict=True))
            says = same if must else 1.0 - same
            total += log((1.0 - error) * says + error * (1.0 - says))
    if evidence.gold is not None:
        for i, label in zip(evidence.gold.task, evidence.gold.label, strict=True):
            total += log(max(shares[i][label], calibration.least_share(scores.shape[1])))
    return total


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 10, 17])
@pytest.mark.parametrize(("links", "gold"), [(True, True), (True, False), (False, True)])
def test_the_likelihood_is_that_of_plain_loops(n_classes: int, links: bool, gold: bool) -> None:
    for seed in range(5):
        given = some_evidence(n_classes, seed, links=links, gold=gold)
        for dependence, multiplier in ((0.35, 1.0), (0.001, 3.0), (0.99, 0.05)):
            found = calibration.log_likelihood_of(*given)(dependence, multiplier)
            expected = by_loops(*given, dependence, multiplier)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_an_impossible_class_has_no_share() -> None:
    scores = np.array([[0.0, -np.inf], [-1.0, 2.0]])
    known = GoldCodes(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    evidence = calibration.Evidence(None, np.empty(0), known)
    found = calibration.log_likelihood_of(scores, np.ones(2), evidence)(0.35, 1.0)
    assert found == pytest.approx(-np.log1p(np.exp(-3.0)), rel=1e-12)
