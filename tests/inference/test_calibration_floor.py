"""With many classes a known label that the crowd did not foresee still says how sure to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.data import GoldCodes
from tiebreak.inference import calibration
from tiebreak.kernels import Codes, Floats, softmax

N_KNOWN = 60
RESPONSES = 90.0


def test_wrong_labels_of_many_classes_say_how_sure_scores_may_be() -> None:
    losses = [_loss_over_best(21, seed) for seed in range(5)]
    assert np.mean(losses) < 1.05


def _loss_over_best(n_classes: int, seed: int) -> float:
    """Of each task one class is far ahead, and three times in ten another one is true."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=1_000).astype(np.int32)
    ahead = np.where(rng.random(1_000) < 0.3, rng.integers(n_classes, size=1_000), truth)
    scores = rng.normal(0.0, 20.0, (1_000, n_classes))
    scores[np.arange(1_000), ahead] += 280.0
    known = np.arange(N_KNOWN, dtype=np.int32)
    n_responses = np.full(1_000, RESPONSES)
    evidence = calibration.Evidence(None, np.empty(0), GoldCodes(known, truth[known]))
    found = calibration.fit(scores[known], n_responses[known], evidence, 0.5)
    best = min(_loss(scores, truth, np.full(1_000, s)) for s in np.geomspace(1e-3, 0.1, 200))
    return _loss(scores, truth, found.scale(n_responses)) / best


def _loss(scores: Floats, truth: Codes, scale: Floats) -> float:
    share = softmax(scale[:, None] * scores)[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(share, 1e-4)).mean())


def test_two_classes_have_the_floor_of_a_wrong_label() -> None:
    assert calibration.least_share(2) == calibration.TRUSTED_ERROR
    assert calibration.least_share(1) == calibration.TRUSTED_ERROR


@pytest.mark.parametrize(("gold_weight", "is_sample"), [(1, False), ("auto", True)])
@pytest.mark.parametrize("n_known", [3, 60])
def test_labels_that_were_asked_for_are_no_sample(
    gold_weight: Any, is_sample: bool, n_known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions fit with `gold_weight=1`: a wrong label there is the other one of two near."""
    crowd = tb.simulate.crowd(300, 12, 6, responses_per_task=4, random_state=1)
    known = dict(list(crowd.gold.to_dict().items())[:n_known])
    floors = []
    least_share = calibration.least_share

    def noted(n_classes: int) -> float:
        floors.append(least_share(n_classes))
        return floors[-1]

    monkeypatch.setattr(calibration, "least_share", noted)
    tb.VariationalBayes(gold_weight=gold_weight).fit(crowd.responses, gold=known)
    assert floors == [0.002 if is_sample else 0.01]
