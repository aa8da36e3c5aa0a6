"""Draws of classes: the compiled kernels draw what the reference draws, and counts stay right."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.kernels.compiled import gibbs as compiled
from tiebreak.kernels.draws import PRIOR, Blocks, Couplings, DrawCounts, DrawNodes
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.reference import gibbs as reference

N_NODES = 12
N_WORKERS = 4


def random_nodes(rng: np.random.Generator, n_classes: int) -> DrawNodes:
    """Nodes with repeated workers, several priors, weights and, of two classes, flips."""
    start = [0]
    code: list[int] = []
    weight: list[float] = []
    in_turn = []
    for _ in range(N_NODES):
        given = rng.integers(0, N_WORKERS * n_classes, size=rng.integers(0, 5)).tolist()
        n_priors = int(rng.integers(0, 3))
        code += given + [PRIOR] * n_priors
        weight += rng.choice([1.0, 1.0, 0.5], len(given)).tolist() + [1.0] * n_priors
        workers = {each // n_classes for each in given}
        in_turn.append(len(workers) < len(given) or n_priors > 1)
        start.append(len(code))
    flip = rng.integers(0, 2, len(code)) if n_classes == 2 else np.zeros(len(code))
    return DrawNodes(
        np.array(start, dtype=np.int64),
        np.array(code, dtype=np.int32),
        flip.astype(np.int8),
        np.array(weight),
        np.array(in_turn),
    )


def random_couplings(rng: np.random.Generator) -> Couplings:
    left = rng.integers(0, N_NODES, 8)
    right = (left + rng.integers(1, N_NODES, 8)) % N_NODES
    log_odds = rng.normal(size=8)
    node = np.concatenate([left, right])
    order = np.argsort(node, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=N_NODES))])
    other = np.concatenate([right, left])[order].astype(np.int32)
    return Couplings(start, other, np.concatenate([log_odds, log_odds])[order])


def counts_of(nodes: DrawNodes, state: Codes, n_classes: int) -> DrawCounts:
    of_code = np.ones((N_WORKERS * n_classes, n_classes))
    by_worker = of_code.reshape(N_WORKERS, n_classes, n_classes).sum(axis=1)
    counts = DrawCounts(np.ones(n_classes), of_code, by_worker)
    for node, k in enumerate(state):
        reference.add_node(nodes, counts, node, int(k), 1.0)
    return counts


@pytest.mark.parametrize("seed", range(12))
def test_compiled_draws_are_those_of_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 3
    nodes = random_nodes(rng, n_classes)
    couplings = random_couplings(rng)
    blocks = Blocks(
        np.array([0, 1, 3, 6, 7, 8, 10, 11, 12]), rng.permutation(N_NODES).astype(np.int32)
    )
    found: list[tuple[Codes, Floats, DrawCounts]] = []
    for kernels in (reference, compiled):
        state = np.zeros(N_NODES, dtype=np.int32)
        counts = counts_of(nodes, state, n_classes)
        marginal = np.zeros((N_NODES, n_classes))
        same = np.random.default_rng(seed)
        for _ in range(4):
            uniform = same.random(blocks.n_blocks)
            kernels.draw_blocks(nodes, couplings, blocks, counts, state, uniform, marginal)
        found.append((state, marginal, counts))
    (state, marginal, counts), (other_state, other_marginal, other_counts) = found
    assert (state == other_state).all()
    assert np.allclose(marginal, other_marginal)
    assert np.allclose(marginal.sum(axis=1), 4.0)
    for one, other in zip(counts, other_counts, strict=True):
        assert np.allclose(one, other)
    for one, other in zip(counts, counts_of(nodes, state, n_classes), strict=True):
        assert np.allclose(one, other)  # what was added was taken away again


def test_a_forbidden_class_is_never_drawn() -> None:
    nodes = DrawNodes(
        np.array([0, 1, 2]),
        np.full(2, PRIOR, dtype=np.int32),
        np.zeros(2, dtype=np.int8),
        np.ones(2),
        np.zeros(2, dtype=bool),
    )
    never = np.full(2, -np.inf)
    couplings = Couplings(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), never)
    for blocks in (
        Blocks(np.array([0, 2]), np.array([0, 1], dtype=np.int32)),
        Blocks(np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32)),
    ):
        for kernels in (reference, compiled):
            rng = np.random.default_rng(0)
            state = np.array([0, 1], dtype=np.int32)
            counts = counts_of(nodes, state, 3)
            marginal = np.zeros((2, 3))
            for _ in range(50):
                uniform = rng.random(blocks.n_blocks)
                kernels.draw_blocks(nodes, couplings, blocks, counts, state, uniform, marginal)
                assert state[0] != state[1]
