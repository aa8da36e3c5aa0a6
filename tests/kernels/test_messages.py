"""Compiled messages against the reference, however far apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tiebreak.kernels import compiled, reference
from tiebreak.kernels import network as networks
from tiebreak.kernels.network import Network, network, tree_spans


def hub_and_random(n_nodes: int, n_edges: int, rng: np.random.Generator) -> Network:
    """Tie one node to all others, and more pairs at random."""
    pairs = rng.integers(0, n_nodes, (n_edges, 2))
    hub = np.stack([np.full(n_nodes - 1, 5), np.delete(np.arange(n_nodes), 5)], axis=1)
    pairs = np.sort(np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], hub]), axis=1)
    left, right = np.unique(pairs, axis=0).astype(np.int32).T
    return network(n_nodes, left.copy(), right.copy())


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("spread", [1.0, 400.0])  # far apart, sums of the others underflow
@pytest.mark.parametrize("n_kinds", [1, 5])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 8, 9, 11])
def test_compiled_messages_equal_the_reference(
    n_classes: int, n_kinds: int, spread: float, down: bool, damping: float
) -> None:
    rng = np.random.default_rng(0)
    n_nodes = 300
    net = hub_and_random(n_nodes, 300, rng)
    scores = rng.normal(0.0, spread, (n_nodes, n_classes))
    kinds = np.array([-np.inf, -2.0, 1.5, 20.0, 650.0] if n_classes > 2 else [-9.0, 1.5, 650.0])
    coupling = rng.choice(kinds[:n_kinds], len(net.other) // 2)
    results = []
    for backend in (reference, compiled):
        messages, belief = np.ones((len(net.other), n_classes)), np.full_like(scores, 0.5)
        fixed = scores, net, coupling, messages, belief, (0, n_nodes), damping
        for way in (down, not down):  # the second pass starts far from uniform
            found = backend.pass_messages(*fixed, down=way)
        results.append((messages, belief, *found))
    for expected, other in zip(*results, strict=True):
        scale = 1.0 + np.abs(np.asarray(expected)).max()
        assert np.abs(np.asarray(other) - np.asarray(expected)).max() < 1e-11 * scale


@pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
def test_beliefs_of_a_tree_are_exact_however_far_apart_scores_are(backend: Any) -> None:
    """Two nodes that must differ, both of which want the first class by more than e^700."""
    pair = network(2, np.array([0], np.int32), np.array([1], np.int32))
    scores = np.array([[0.0, -1_000.0, -1_001.0], [0.0, -1_002.0, -1_200.0]])
    messages, belief = np.ones((2, 3)), np.full((2, 3), 1 / 3)
    fixed = scores, pair, np.array([-np.inf]), messages, belief, (0, 2), 0.0
    backend.pass_messages(*fixed, down=False, update_beliefs=False)
    _, log_partition = backend.pass_messages(*fixed, down=True)
    joint = scores[0][:, None] + scores[1][None, :]
    np.fill_diagonal(joint, -np.inf)
    norm = np.logaddexp.reduce(joint.ravel())
    share = np.exp(joint - norm)
    assert np.abs(belief - [share.sum(axis=1), share.sum(axis=0)]).max() < 1e-12
    assert abs(log_partition - norm) < 1e-9
    equal = backend.agreement(scores, pair, np.array([-np.inf]), messages)
    assert equal.tolist() == [0.0]


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
        messages = np.ones((len(net.other), n_classes))
        belief = np.full_like(scores, 1.0 / n_classes)
        fixed = scores, net, coupling, messages, belief, (0, 50), 0.0
        found = backend.pass_messages(*fixed, down=False, update_beliefs=update_beliefs)
        assert (belief == 1.0 / n_classes).all() == (not update_beliefs)
        assert (found == (0.0, 0.0)) == (not update_beliefs)
        sent.append(messages)
    assert np.array_equal(sent[0], sent[1])


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
