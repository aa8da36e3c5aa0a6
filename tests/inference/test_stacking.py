"""Stacking: weights of methods are the posterior mean, whatever their number and that of gold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from tiebreak.inference import stacking


def _methods(n_known: int, skills: list[float], seed: int = 0) -> tuple[Any, Any]:
    """Make methods whose probabilities lean towards the label, one more than the other."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n_known).astype(np.int32)
    scores = [2.0 * skill * np.eye(3)[label] + rng.normal(size=(n_known, 3)) for skill in skills]
    q = np.exp(np.stack(scores))
    return q / q.sum(axis=2, keepdims=True), label


@pytest.mark.parametrize("n_known", [3, 30, 300])
def test_the_weights_of_two_methods_are_the_integral(n_known: int) -> None:
    predicted, label = _methods(n_known, [0.5, 0.7])
    prior = np.array([2.0, 0.5])

    def log_likelihood(first: float) -> float:
        scores = np.tensordot([first, 1.0 - first], np.log(predicted), axes=1)
        own = scores[np.arange(n_known), label]
        return float((own - np.logaddexp.reduce(scores, axis=1)).sum())

    top = max(log_likelihood(first) for first in np.linspace(0.0, 1.0, 201))

    def posterior(root: float) -> float:
        """Substitute 1 − first = root², which takes away the pole of the prior at first = 1."""
        first = 1.0 - root**2
        return float(2.0 * first * np.exp(log_likelihood(first) - top))

    norm = quad(posterior, 0.0, 1.0, limit=400)[0]
    exact = quad(lambda root: (1.0 - root**2) * posterior(root), 0.0, 1.0, limit=400)[0] / norm
    found = stacking.weigh(predicted, label, prior)
    assert found.sum() == pytest.approx(1.0)
    assert found[0] == pytest.approx(exact, abs=0.025)


def test_with_nothing_to_tell_methods_apart_the_prior_stays() -> None:
    predicted, label = _methods(50, [0.5])
    same = np.concatenate([predicted] * 4)
    prior = np.array([2.0, 1.0, 0.5, 0.5])
    np.testing.assert_allclose(stacking.weigh(same, label, prior), prior / 4.0, atol=0.02)


def test_much_gold_gives_all_weight_to_what_foretells() -> None:
    """Also where draws of the prior hardly ever come near: with five methods and 1,000 tasks."""
    predicted, label = _methods(1000, [0.0, 1.5, 0.0, 0.0, 0.0], seed=1)
    found = stacking.weigh(predicted, label, np.array([2.0, 0.5, 0.5, 0.5, 0.5]))
    assert found[1] > 0.9
    more = np.tile(predicted, (1, 30, 1))
    again = stacking.weigh(more, np.tile(label, 30), np.array([2.0, 0.5, 0.5, 0.5, 0.5]))
    assert again[1] > 0.9


def test_renaming_methods_renames_the_weights() -> None:
    predicted, label = _methods(80, [0.3, 0.9, 0.6], seed=2)
    prior = np.array([2.0, 1.0, 0.5])
    found = stacking.weigh(predicted, label, prior)
    order = np.array([2, 0, 1])
    again = stacking.weigh(predicted[order], label, prior[order])
    np.testing.assert_allclose(again, found[order], atol=0.03)
    np.testing.assert_array_equal(found, stacking.weigh(predicted, label, prior))


def test_a_method_that_rules_out_what_is_true_costs_so_much_and_no_more() -> None:
    """One task that a method is sure of, and wrong, does not end it."""
    predicted, label = _methods(60, [0.3, 1.5], seed=3)
    predicted[1, 0] = np.eye(3)[(label[0] + 1) % 3]
    found = stacking.weigh(predicted, label, np.array([2.0, 0.5]))
    assert np.isfinite(found).all()
    assert found[1] > 0.5
