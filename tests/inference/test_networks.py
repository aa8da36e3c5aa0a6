"""Networks: neighbours against enumeration on trees, and what they do for labels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import LinkError, OptionError
from tiebreak.kernels import compiled, reference

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]


def laid_out(edges: list[tuple[int, int]], n: int) -> tuple[Any, ...]:
    ends = np.array([a for a, _ in edges] + [b for _, b in edges])
    others = np.array([b for _, b in edges] + [a for a, _ in edges])
    order = np.argsort(ends, kind="stable")
    slot = np.empty(len(order), np.int64)
    slot[order] = np.arange(len(order))
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    mate = slot[(order + len(edges)) % (2 * len(edges))]
    return start, others[order].astype(np.int32), mate


@BACKENDS
@pytest.mark.parametrize("seed", range(5))
def test_messages_are_exact_on_trees(backend: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, weight = rng.normal(0, 1, (5, 3)), rng.uniform(0.2, 2.0, (3, 3))
    weight += weight.T
    start, other, mate = laid_out(TREE, 5)
    messages, belief = np.full((8, 3), 1 / 3), np.full((5, 3), 1 / 3)
    for _ in range(12):
        backend.pass_along(score, (start, other, mate), weight, messages, belief, 0.0)
    counts = backend.count_neighbours((start, other, mate), weight, messages, belief)
    want, pairs, total = np.zeros((5, 3)), np.zeros((3, 3)), 0.0
    for y in product(range(3), repeat=5):
        p = np.exp(sum(score[i, k] for i, k in enumerate(y)))
        p *= np.prod([weight[y[a], y[b]] for a, b in TREE])
        total += p
        want[np.arange(5), y] += p
        for a, b in TREE:
            pairs[y[a], y[b]] += p / 2
            pairs[y[b], y[a]] += p / 2
    assert belief == pytest.approx(want / total, abs=1e-10)
    assert counts == pytest.approx(pairs / total, abs=1e-10)


def crowd(shift: int, seed: int = 0) -> tuple[np.ndarray, tb.Responses, tb.Links]:
    """Draw tasks whose neighbours are of the next class but `shift`, with one response each."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=400)
    edges = [
        (i, int(j))
        for i in range(400)
        for j in rng.choice(np.flatnonzero(truth == (truth[i] + shift) % 4), 3)
        if i != j
    ]
    rows = [
        (i, f"w{rng.integers(6)}", int(truth[i] if rng.random() < 0.6 else rng.integers(4)))
        for i in range(400)
    ]
    links = tb.Links.from_rows([(i, j, "near") for i, j in edges])
    return truth, tb.Responses.from_rows(rows), links


@pytest.mark.parametrize("shift", [0, 1])
def test_neighbours_help_whether_they_are_alike_or_not(shift: int) -> None:
    truth, responses, links = crowd(shift)

    def accuracy(model: Any) -> float:
        return float(np.mean([model.labels_[i].label == truth[i] for i in range(400)]))

    model = tb.VariationalBayes().fit(responses, links=links)
    assert accuracy(model) > accuracy(tb.VariationalBayes().fit(responses)) + 0.1
    assert model.neighbours_ is not None
    assert model.neighbours_ == pytest.approx(model.neighbours_.T)
    assert model.neighbours_.sum() == pytest.approx(1.0)
    most = model.neighbours_.argmax(axis=1)
    assert (np.abs(most - np.arange(4)) % 4 != 0).all() == bool(shift)
    known = {i: int(truth[i]) for i in range(0, 400, 5)}
    with_gold = tb.VariationalBayes().fit(responses, links=links, gold=known)
    assert all(with_gold.labels_[i].label == k for i, k in known.items())


def test_edges_are_refused_where_they_cannot_be() -> None:
    _, responses, links = crowd(0)
    with pytest.raises(LinkError) as error:
        tb.Auto().fit(responses, links=links)
    assert error.value.code == "near-elsewhere"
    with pytest.raises(LinkError) as error:
        tb.Links.from_rows([("a", "b", "near"), ("b", "c", "must")])
    assert error.value.code == "near-beside-others"
    sequences = tb.Sequences.from_columns([0, 1], ["s", "s"])
    with pytest.raises(OptionError) as other:
        tb.VariationalBayes().fit(responses, links=links, sequences=sequences)
    assert other.value.code == "network-beside-others"
    model = tb.VariationalBayes().fit(responses, links=links)
    model.update([(0, "w9", 1)])
    assert model.network_ is not None
    assert len(model.network_) == len(links)
