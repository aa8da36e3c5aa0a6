"""What an answer is worth: golden numbers, and what a simulated answer really does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import gains

from tiebreak.selection import value

GOLDEN = Path(__file__).parent.parent / "golden" / "selection.json"
GAIN: dict[str, Any] = json.loads(GOLDEN.read_text())["link_gain"]


def probabilities(seed: int, n_classes: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.7))


seeds, classes = st.integers(0, 10_000), st.integers(2, 6)


@pytest.mark.parametrize("place", [0, 1])
def test_gain_of_a_link_is_the_golden_one(place: int) -> None:
    q, other, error = np.array(GAIN["qi"]), np.array(GAIN["qj"]), GAIN["eps"][place]
    both = ((q, other), (other, q))
    gain = sum(value.link_gain(*pair, error) for pair in both)
    clearer = sum(gains.entropy_gain(*pair, error) for pair in both)
    assert gain == pytest.approx(GAIN["error"][place], abs=1e-9)
    assert clearer == pytest.approx(GAIN["entropy"][place], abs=1e-9)


def test_two_tasks_in_doubt_tell_nothing() -> None:
    half = np.array([0.5, 0.5])
    assert value.link_gain(half, half) == GAIN["uncertain_pair_error"]


@given(seeds, seeds, classes, st.sampled_from([0.0, 0.1]))
def test_gain_of_a_link_is_what_bayes_rule_gives(a: int, b: int, k: int, error: float) -> None:
    q, other = probabilities(a, k), probabilities(b + 20_000, k)
    joint = np.outer(q, other)
    same = np.eye(k) * (1 - error) + (1 - np.eye(k)) * error
    after = (joint * same).sum(axis=1).max() + (joint * (1 - same)).sum(axis=1).max()
    assert value.link_gain(q, other, error) == pytest.approx(after - q.max(), abs=1e-12)
    assert value.link_gain(q, other, error) >= -1e-12


@given(seeds, classes)
def test_a_vote_is_worth_between_nothing_and_a_label(seed: int, k: int) -> None:
    q = probabilities(seed, k)
    spammer, expert = np.full((k, k), 1.0 / k), np.eye(k)
    assert value.vote_gain(q, spammer) == pytest.approx(0.0, abs=1e-12)
    assert value.vote_gain(q, expert) == pytest.approx(1.0 - float(q.max()), abs=1e-12)


def settled_by_hand(q: np.ndarray, m: int) -> float:
    """Ask m classes by falling probability until one is right: labels put right a question."""
    order = np.sort(q)[::-1]
    n_asked = sum(1.0 - order[:j].sum() for j in range(m))
    return float((order[1 : m + 1].sum()) / n_asked)


@given(seeds, classes)
def test_settling_takes_the_best_number_of_classes(seed: int, k: int) -> None:
    q = probabilities(seed, k)
    best = max(settled_by_hand(q, m) for m in range(1, k))
    assert value.settling_gain(q[None])[0] == pytest.approx(best, abs=1e-12)


@given(seeds, classes, st.floats(0.0, 0.4))
def test_an_answer_that_may_be_wrong_gains_what_bayes_rule_gives(
    seed: int, n_classes: int, error: float
) -> None:
    p = np.sort(probabilities(seed, n_classes))[::-1]
    confusion = np.full((n_classes, n_classes), error / (n_classes - 1))
    np.fill_diagonal(confusion, 1.0 - error)
    joint = p[:, None] * confusion
    gain = joint.max(axis=0).sum() - p.max()
    assert value.answer_gain(p, error) == pytest.approx(gain, abs=1e-12)
    assert value.answer_gain(p, 0.0) == pytest.approx(1.0 - float(p.max()), abs=1e-12)
