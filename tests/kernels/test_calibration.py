"""The likelihood of a calibration: NumPy against plain loops, compiled against NumPy."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import calibration
from tiebreak.inference.calibration import Evidence
from tiebreak.kernels import compiled, reference
from tiebreak.kernels.layout import CalibrationData
from tiebreak.links.graph import LinkCodes


def some_evidence(
    n_classes: int, seed: int, *, links: bool = True, gold: bool = True
) -> tuple[np.ndarray, np.ndarray, Evidence]:
    """Draw scores, numbers of responses, links and gold; some tasks have no response."""
    rng = np.random.default_rng(seed)
    n = 60
    scores = rng.normal(size=(n, n_classes)) * rng.choice([1.0, 8.0, 300.0])
    n_responses = rng.integers(0, 12, n).astype(float)
    left = rng.integers(0, n - 1, 40).astype(np.int32)
    right = (left + rng.integers(1, n - left)).astype(np.int32)
    must = rng.random(40) < 0.5
    codes = LinkCodes(left, right, must, None, None, np.arange(40))
    known = rng.permutation(n)[:25].astype(np.int32)
    labels = GoldCodes(known, rng.integers(0, n_classes, 25).astype(np.int32))
    error = rng.choice([0.01, 0.2], 40) if links else np.empty(0)
    evidence = Evidence(codes if links else None, error, labels if gold else None)
    return scores, n_responses, evidence


def by_loops(data: CalibrationData, dependence: float, multiplier: float) -> float:
    shares = []
    for gaps, others in zip(data.gaps.tolist(), data.others.tolist(), strict=True):
        exponentials = [exp(multiplier / (1.0 + dependence * others) * gap) for gap in gaps]
        shares.append([each / sum(exponentials) for each in exponentials])
    total = 0.0
    for i, j, must, error in zip(*data[2:6], strict=True):
        same = sum(a * b for a, b in zip(shares[i], shares[j], strict=True))
        says = same if must else 1.0 - same
        total += log((1.0 - error) * says + error * (1.0 - says))
    for i, label in zip(data.known, data.label, strict=True):
        total += log(max(shares[i][label], data.floor))
    return total


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 10, 17])
@pytest.mark.parametrize(("links", "gold"), [(True, True), (True, False), (False, True)])
def test_both_backends_have_the_likelihood_of_plain_loops(
    n_classes: int, links: bool, gold: bool
) -> None:
    for seed in range(5):
        data = calibration._data_of(*some_evidence(n_classes, seed, links=links, gold=gold))
        for dependence, multiplier in ((0.35, 1.0), (0.001, 3.0), (0.99, 0.05)):
            expected = by_loops(data, dependence, multiplier)
            for backend in (reference, compiled):
                found = backend.calibration_log_likelihood(data, dependence, multiplier)
                assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_both_backends_find_the_same_calibration(n_classes: int) -> None:
    for seed in range(5):
        scores, n_responses, evidence = some_evidence(n_classes, seed)
        found = [
            calibration.fit(scores, n_responses, evidence, 0.35, backend)
            for backend in (reference, compiled)
        ]
        assert found[0][:2] == pytest.approx(found[1][:2], rel=1e-12)
        assert found[0] == pytest.approx(found[1], rel=1e-7)  # spreads are differences of costs


@pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
def test_an_impossible_class_has_no_share(backend: object) -> None:
    scores = np.array([[0.0, -np.inf], [-1.0, 2.0]])
    known = GoldCodes(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    data = calibration._data_of(scores, np.ones(2), Evidence(None, np.empty(0), known))
    found = backend.calibration_log_likelihood(data, 0.35, 1.0)  # type: ignore[attr-defined]
    assert found == pytest.approx(-np.log1p(np.exp(-3.0)), rel=1e-12)
