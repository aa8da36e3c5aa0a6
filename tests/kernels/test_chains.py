"""Chains: forward-backward and the likeliest path against enumeration; numba against NumPy."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from tiebreak.kernels import compiled, numpy_chains, reference

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
NO = -np.inf


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw sequences of 1 to 4 rows, K = 3, with what may not follow and what is known."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 5, 3))])
    score = rng.normal(0, rng.choice([1.0, 6.0]), (start[-1], 3))
    step = rng.normal(0, 1.0, (3, 3)) - 1.0
    step[0, 2] = NO  # 2 goes on after 1 or 2 alone, and comes never first
    score[start[:-1], 2] = NO
    if rng.random() < 0.5:
        score[rng.integers(start[-1]), 2] = NO
    return score, start, step


def enumerated(score: np.ndarray, step: np.ndarray) -> tuple[Any, ...]:
    """Return q, Σ ξ, log Z and the best labelling of one sequence."""
    n, n_classes = score.shape
    every = list(product(range(n_classes), repeat=n))
    logs = np.array(
        [
            sum(score[t, y[t]] for t in range(n)) + sum(step[y[t], y[t + 1]] for t in range(n - 1))
            for y in every
        ]
    )
    total = logsumexp(logs)
    q, pairs = np.zeros(score.shape), np.zeros(step.shape)
    for y, weight in zip(every, np.exp(logs - total), strict=True):
        q[np.arange(n), y] += weight
        for t in range(n - 1):
            pairs[y[t], y[t + 1]] += weight
    return q, pairs, total, every[int(logs.argmax())]


@BACKENDS
@pytest.mark.parametrize("seed", range(60))
def test_sequences_are_inferred_as_by_enumeration(backend: Any, seed: int) -> None:
    score, start, step = drawn(seed)
    q = np.full(score.shape, np.nan)
    found = backend.forward_backward(score, start, step, q)
    pairs, value = np.zeros((3, 3)), 0.0
    for low, high in pairwise(start.tolist()):
        want, of_pairs, total, best = enumerated(score[low:high], step)
        pairs += of_pairs
        value += total - (want * np.where(want > 0, score[low:high], 0.0)).sum()
        assert np.abs(q[low:high] - want).max() < 1e-10
        path = backend.best_path(score, start, step)[low:high]
        assert tuple(path.tolist()) == best
    assert np.abs(found.pairs - pairs).max() < 1e-10
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.impossible == -1


@BACKENDS
def test_what_follows_a_row_is_its_backward_message(backend: Any) -> None:
    score, start, step = drawn(3)
    after = backend.after_each(score, start, step)
    for low, high in pairwise(start.tolist()):
        assert (after[high - 1] == 0.0).all()
        for t in range(low, high - 1):
            want = logsumexp(step + score[t + 1] + after[t + 1], axis=1)
            assert after[t] == pytest.approx(want, abs=1e-12)


@BACKENDS
def test_scores_far_apart_do_not_underflow(backend: Any) -> None:
    """O is certain first, and I certain next, which follows O with e^-900 by way of B."""
    score = np.array([[0.0, -900.0, NO], [-2000.0, -2000.0, 0.0]])
    step = np.array([[0.0, 0.0, NO], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    q = np.empty((2, 3))
    found = backend.forward_backward(score, np.array([0, 2]), step, q)
    assert found.impossible == -1
    assert q.round(9).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@BACKENDS
def test_a_sequence_without_a_possible_labelling_is_named(backend: Any) -> None:
    score = np.array([[0.0, 0.0, NO], [0.0, NO, NO], [NO, NO, 0.0]])
    step = np.array([[0.0, 0.0, NO], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    q = np.empty((3, 3))
    assert backend.forward_backward(score, np.array([0, 1, 3]), step, q).impossible == 1


@pytest.mark.parametrize("n_threads", [1, 2])
def test_compiled_sequences_are_those_of_numpy(n_threads: int) -> None:
    rng = np.random.default_rng(5)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 60, 900))])
    score, step = rng.normal(0, 2, (start[-1], 5)), rng.normal(0, 1, (5, 5))
    one, other = np.empty(score.shape), np.empty(score.shape)
    want = reference.forward_backward(score, start, step, one)
    found = compiled.forward_backward(score, start, step, other, n_threads=n_threads)
    assert np.abs(one - other).max() < 1e-12
    assert found.pairs == pytest.approx(want.pairs, rel=1e-10)
    assert found.value == pytest.approx(want.value, rel=1e-10)
    paths = (each.best_path(score, start, step) for each in (reference, compiled))
    assert np.array_equal(*paths)


def test_linked_sequences_take_turns_alike() -> None:
    rng = np.random.default_rng(6)
    start = np.arange(0, 41, 4)
    score, step = rng.normal(0, 1, (40, 3)), rng.normal(0, 1, (3, 3))
    other = np.array([(i + 4) % 40 for i in range(40)] + [(i - 4) % 40 for i in range(40)])
    order = np.argsort(np.tile(np.arange(40), 2), kind="stable")
    field = numpy_chains.Field(
        np.arange(0, 81, 2), other[order].astype(np.int32), rng.normal(0, 1, 80)
    )
    begin = rng.dirichlet(np.ones(3), 40)
    one, two = begin.copy(), begin.copy()
    want = reference.forward_backward(score, start, step, one, field)
    found = compiled.forward_backward(score, start, step, two, field)
    assert np.abs(one - two).max() < 1e-12
    assert found.value == pytest.approx(want.value, rel=1e-10)
    alone = begin.copy()
    reference.forward_backward(score, start, step, alone)
    assert np.abs(one - alone).max() > 0.01
