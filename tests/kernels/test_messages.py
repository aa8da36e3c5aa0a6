"""Compiled messages against the reference, in turn and in parts, however far apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tiebreak.kernels import compiled, reference
from tiebreak.kernels import network as networks
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.network import SMALLEST_MESSAGE, Network, network, parts, tree_spans


def hub_and_random(n_nodes: int, n_edges: int, rng: np.random.Generator) -> Network:
    """Tie one node to all others, and more pairs at random."""
    pairs = rng.integers(0, n_nodes, (n_edges, 2))
    hub = np.stack([np.full(n_nodes - 1, 5), np.delete(np.arange(n_nodes), 5)], axis=1)
    pairs = np.sort(np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], hub]), axis=1)
    left, right = np.unique(pairs, axis=0).astype(np.int32).T
    return network(n_nodes, left.copy(), right.copy())


def passes(
    net: Network, scores: Floats, coupling: Floats, in_parts: bool, down: bool
) -> list[tuple[Floats, Floats, float, float]]:
    rng = np.random.default_rng(1)
    start = -rng.random((len(net.other), scores.shape[1]))
    start -= start.max(axis=1, keepdims=True)
    results, cut = [], parts(net, 0, scores.shape[1])
    for backend in (reference, compiled):
        messages, belief = start.copy(), np.full_like(scores, 1.0 / scores.shape[1])
        fixed = scores, net, coupling, messages, belief
        if in_parts:
            messages[:] = np.exp(start)
            for way in (down, not down):  # the second pass starts far from uniform
                found = backend.pass_in_parts(*fixed, cut, 0.3, down=way)
        else:
            found = backend.pass_messages(*fixed, (0, len(scores)), 0.3, down=down)
        results.append((messages, belief, *found))
    return results


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("spread", [1.0, 400.0])  # far apart, sums of the others underflow
@pytest.mark.parametrize("n_kinds", [1, 5])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 8, 9, 11])
def test_compiled_messages_equal_the_reference(
    n_classes: int, n_kinds: int, spread: float, down: bool, in_parts: bool
) -> None:
    rng = np.random.default_rng(0)
    n_nodes = 300
    net = hub_and_random(n_nodes, 300, rng)
    scores = rng.normal(0.0, spread, (n_nodes, n_classes))
    kinds = np.array([-np.inf, -2.0, 1.5, 20.0, 650.0] if n_classes > 2 else [-9.0, 1.5, 650.0])
    coupling = rng.choice(kinds[:n_kinds], len(net.other) // 2)
    one, other = passes(net, scores, coupling, in_parts, down)
    for found, expected in zip(other, one, strict=True):
        scale = 1.0 + np.abs(np.asarray(expected)).max()
        assert np.abs(np.asarray(found) - np.asarray(expected)).max() < 1e-12 * scale


@pytest.mark.parametrize("n_classes", [2, 5, 11])
def test_compiled_expected_scores_equal_the_reference(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    belief, scores = rng.dirichlet(np.ones(n_classes), 120), rng.normal(size=(120, n_classes))
    one, other = (each.expected_score(belief, scores) for each in (compiled, reference))
    assert abs(one - other) < 1e-9


def test_an_impossible_class_adds_nothing_to_the_expected_score() -> None:
    scores, belief = np.array([[-np.inf, -1.0]]), np.array([[0.0, 1.0]])
    assert compiled.expected_score(belief, scores) == -1.0


@pytest.mark.parametrize("backend", [reference, compiled])
@pytest.mark.parametrize("n_classes", [3, 11])
def test_messages_alone_are_the_same_without_beliefs(n_classes: int, backend: Any) -> None:
    rng = np.random.default_rng(0)
    net = hub_and_random(50, 30, rng)
    scores, coupling = rng.normal(size=(50, n_classes)), np.full(len(net.other) // 2, -1.0)
    sent = []
    for update_beliefs in (False, True):
        messages = np.zeros((len(net.other), n_classes))
        belief = np.full_like(scores, 1.0 / n_classes)
        fixed = scores, net, coupling, messages, belief, (0, 50), 0.0
        found = backend.pass_messages(*fixed, down=False, update_beliefs=update_beliefs)
        assert (belief == 1.0 / n_classes).all() == (not update_beliefs)
        assert (found == (0.0, 0.0)) == (not update_beliefs)
        sent.append(messages)
    assert np.array_equal(sent[0], sent[1])


def test_messages_to_other_parts_wait_in_the_outbox() -> None:
    net = hub_and_random(200, 100, np.random.default_rng(3))
    cut = parts(net, 40, 4)
    part = np.searchsorted(cut.edges[1:], np.arange(200), side="right")
    owner = np.repeat(np.arange(200), np.diff(net.start))
    assert net.later[7] - net.start[7] == (net.other[net.start[7] : net.start[8]] < 7).sum()
    ways = set()
    for e in np.flatnonzero((owner >= 40) & (net.other >= 40)):
        way = int(np.sign(part[net.other[e]] - part[owner[e]]))
        targets = {1: cut.down, -1: cut.up}.get(way)
        at = cut.target_slot[e]
        assert net.mate[e] == (at if targets is None else targets[-1 - at])
        ways.add(way)
    assert ways == {-1, 0, 1}


def test_messages_in_parts_have_the_same_bits_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    net = hub_and_random(2_000, 4_000, rng)
    scores, coupling = rng.normal(0.0, 3.0, (2_000, 4)), np.full(len(net.other) // 2, -np.inf)
    results = []
    for n_threads in (1, 2):
        messages, belief = np.ones((len(net.other), 4)), np.full((2_000, 4), 0.25)
        for down in (True, False, True):
            fixed = scores, net, coupling, messages, belief, parts(net, 0, 4), 0.3
            found = compiled.pass_in_parts(*fixed, down=down, n_threads=n_threads)
        results.append((messages, belief, *found))
    for one, two in zip(*results, strict=True):
        assert np.array_equal(one, two)


def test_both_ways_of_passing_settle_at_the_same_beliefs() -> None:
    rng = np.random.default_rng(2)
    pairs = np.unique(np.sort(rng.integers(0, 200, (150, 2)), axis=1), axis=0).astype(np.int32)
    left, right = pairs[pairs[:, 0] != pairs[:, 1]].T
    net = network(200, left.copy(), right.copy())
    scores, coupling = rng.normal(0.0, 2.0, (200, 4)), np.full(len(left), -np.inf)
    one, two = np.full((200, 4), 0.25), np.full((200, 4), 0.25)
    cut = parts(net, 0, 4)
    logs, shares = np.zeros((len(net.other), 4)), np.ones((len(net.other), 4))
    for turn in range(400):
        fixed, down = (scores, net, coupling), turn % 2 == 0
        _, found = compiled.pass_messages(*fixed, logs, one, (0, 200), 0.3, down=down)
        change, value = compiled.pass_in_parts(*fixed, shares, two, cut, 0.3, down=down)
        value += compiled.expected_score(two, scores)
    assert change < 1e-13
    assert np.abs(one - two).max() < 1e-12
    assert np.abs(np.maximum(np.exp(logs), SMALLEST_MESSAGE) - shares).max() < 1e-12
    assert abs(found - value) < 1e-9


def test_trees_are_cut_between_components(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "TREE_NODES_PER_CHUNK", 10)
    nodes = np.arange(100, dtype=np.int32)
    left = nodes[nodes % 7 != 6][:-1]  # chains of seven nodes; the last two nodes are one more
    net = network(100, left, left + 1)
    spans = tree_spans(net, 100)
    assert len(spans) > 5
    assert spans[0][0] == 0
    assert spans[-1][1] == 100
    assert all(one[1] == two[0] for one, two in pairwise(spans))
    assert all(low % 7 == 0 for low, _ in spans)
    assert tree_spans(network(0, left[:0], left[:0]), 0) == []


def test_no_nodes_change_nothing() -> None:
    none, zero = np.empty((0, 3)), np.empty(0, dtype=np.int32)
    net = network(0, zero, zero)
    coupling = np.empty(0)
    found = compiled.pass_messages(none, net, coupling, none, none, (0, 0), 0.0, down=True)
    assert found == (0.0, 0.0)
    assert compiled.expected_score(none, none) == 0.0
