"""Which pairs to ask about: margins, successive draws, pairs that never repeat."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from tiebreak.errors import OptionError
from tiebreak.selection import draws as selection

GOLDEN = Path(__file__).parent.parent / "golden" / "selection.json"
BVSB: dict[str, Any] = json.loads(GOLDEN.read_text())["bvsb"]
WEIGHT = 1.0 - selection.margins(BVSB["q"])


def exact_inclusion(weight: np.ndarray, n: int) -> np.ndarray:
    """Add up the probability of every order of n successive draws."""
    inside = np.zeros(len(weight))
    for order in permutations(range(len(weight)), n):
        left, probability = float(weight.sum()), 1.0
        for place in order:
            probability *= weight[place] / left
            left -= weight[place]
        inside[list(order)] += probability
    return inside


def drawn_pairs(pairs: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in pairs.T.tolist()]


def test_margins_are_the_golden_ones() -> None:
    assert selection.margins(BVSB["q"]) == pytest.approx(BVSB["margins"], abs=1e-9)


def test_first_draws_have_the_golden_probabilities() -> None:
    assert WEIGHT / WEIGHT.sum() == pytest.approx(BVSB["p_uncertain"], abs=1e-9)
    assert exact_inclusion(WEIGHT, 2) == pytest.approx(BVSB["inclusion_2_draws"], abs=1e-9)


def test_successive_draws_include_each_task_as_often_as_they_should() -> None:
    rng = np.random.default_rng(0)
    n_draws = 20_000
    inside = np.zeros(len(WEIGHT))
    for _ in range(n_draws):
        inside[selection.draw_in_order(WEIGHT, 2, rng)] += 1.0 / n_draws
    assert inside == pytest.approx(BVSB["inclusion_2_draws"], abs=0.013)  # four standard errors


def test_doubtful_tasks_and_their_partners_are_drawn_by_margin() -> None:
    rng = np.random.default_rng(1)
    n_draws = 6_000
    drawn = [
        drawn_pairs(selection.bvsb_pairs(BVSB["q"], 1, random_state=rng)) for _ in range(n_draws)
    ]
    asked = np.bincount([pairs[0][0] for pairs in drawn], minlength=4) / n_draws
    assert asked == pytest.approx(BVSB["p_uncertain"], abs=0.026)
    of_doubtful = [pairs[0][1] for pairs in drawn if pairs[0][0] == 2]  # its own margin is 0
    partners = np.bincount(of_doubtful, minlength=4) / len(of_doubtful)
    assert partners == pytest.approx(BVSB["p_partner"], abs=0.04)


def test_tasks_without_weight_come_last_and_are_drawn_all_the_same() -> None:
    weight = np.array([0.0, 3.0, 0.0, 1.0])
    for seed in range(20):
        order = selection.draw_in_order(weight, 4, np.random.default_rng(seed))
        assert set(order[:2].tolist()) == {1, 3}
        assert sorted(order.tolist()) == [0, 1, 2, 3]


@given(st.integers(2, 9), st.integers(2, 4), st.integers(0, 30), st.integers(0, 99))
def test_no_pair_is_drawn_twice_or_joins_a_task_to_itself(
    n_tasks: int, n_classes: int, n: int, seed: int
) -> None:
    q = np.random.default_rng(seed).dirichlet(np.ones(n_classes), n_tasks)
    pairs = drawn_pairs(selection.bvsb_pairs(q, n, random_state=seed))
    assert len(pairs) <= n
    assert all(left != right for left, right in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)


def test_as_many_pairs_as_asked_for_where_partners_do_not_divide_them() -> None:
    q = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    assert selection.bvsb_pairs(q, 11, random_state=0).shape == (2, 11)


@given(st.integers(0, 12), st.integers(0, 99))
def test_random_pairs_are_different_and_as_many_as_there_are(n: int, seed: int) -> None:
    pairs = drawn_pairs(selection.random_pairs(5, n, random_state=seed))
    assert len(set(pairs)) == len(pairs) == min(n, 10)
    assert all(0 <= left < right < 5 for left, right in pairs)


def test_all_random_pairs_are_equally_likely() -> None:
    rng = np.random.default_rng(2)
    n_draws = 6_000
    drawn = [drawn_pairs(selection.random_pairs(4, 1, random_state=rng))[0] for _ in range(n_draws)]
    shares = [drawn.count(pair) / n_draws for pair in sorted(set(drawn))]
    assert shares == pytest.approx([1 / 6] * 6, abs=0.02)


def test_wrong_numbers_are_refused() -> None:
    with refused(OptionError, "margin-shape"):
        selection.margins([[1.0], [1.0]])
