"""Joint inference of linked tasks equals enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration

from tiebreak.gold import GoldCodes
from tiebreak.inference import merging
from tiebreak.inference.exact_links import ExactLinks
from tiebreak.kernels import compiled, reference
from tiebreak.link_graph import LinkCodes

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])


def link_codes(rows: list[tuple[int, int, bool, float]]) -> LinkCodes:
    ends = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
    return LinkCodes(
        ends.min(axis=1),
        ends.max(axis=1),
        np.array([row[2] for row in rows], dtype=bool),
        np.array([row[3] for row in rows], dtype=np.float64),
        None,
        np.arange(len(rows)),
    )


def exact(
    links: LinkCodes, n_tasks: int, n_classes: int, gold: GoldCodes | None, backend: Any
) -> ExactLinks:
    log_odds, hard = merging.log_odds_of(links, None)
    merged = merging.merge(links, hard, n_tasks, n_classes, gold)
    soft = merging.soft_links(links, ~hard, merged)
    return ExactLinks(merged, soft, log_odds[~hard], n_classes, backend)


def score_of(u: np.ndarray, links: LinkCodes, gold: dict[int, int]) -> Any:
    log_odds, _ = merging.log_odds_of(links, None)
    triples = list(zip(links.left.tolist(), links.right.tolist(), links.must, log_odds, strict=True))

    def score(y: tuple[int, ...]) -> float:
        if any(y[i] != k for i, k in gold.items()):
            return -np.inf
        total = sum(u[i, k] for i, k in enumerate(y))
        for i, j, must, weight in triples:
            agree = y[i] == y[j]
            if np.isinf(weight):
                total += 0.0 if agree == must else -np.inf
            elif agree:
                total += weight
        return float(total)

    return score


@st.composite
def linked_scores(draw: st.DrawFn) -> tuple[np.ndarray, LinkCodes, dict[int, int]]:
    n_classes = draw(st.integers(2, 4))
    n_tasks = draw(st.integers(2, 6 if n_classes < 4 else 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = rng.integers(0, n_classes, n_tasks)
    ends = st.tuples(st.integers(0, n_tasks - 1), st.integers(0, n_tasks - 1))
    pairs = {(min(p), max(p)) for p in draw(st.lists(ends, min_size=1, max_size=9)) if p[0] != p[1]}
    rows = []
    for i, j in sorted(pairs):
        if rng.random() < 0.5:  # hard links tell the truth, so that some labelling exists
            rows.append((i, j, bool(truth[i] == truth[j]), np.nan))
        else:
            rows.append((i, j, bool(rng.random() < 0.5), rng.uniform(0.1, 4.0)))
    gold = {int(i): int(truth[i]) for i in np.flatnonzero(rng.random(n_tasks) < 0.2)}
    scale = draw(st.sampled_from([1.0, 5.0]))
    return rng.normal(0, scale, (n_tasks, n_classes)), link_codes(rows), gold


@BACKENDS
@settings(max_examples=150, deadline=None)
@given(linked_scores())
def test_marginals_and_log_partition_equal_enumeration(
    backend: Any, drawn: tuple[np.ndarray, LinkCodes, dict[int, int]]
) -> None:
    u, links, gold = drawn
    if not links.n_links:
        return
    n_tasks, n_classes = u.shape
    codes = GoldCodes(np.array(list(gold), np.int32), np.array(list(gold.values()), np.int32))
    model = exact(links, n_tasks, n_classes, codes, backend)
    q = np.full(u.shape, 1.0 / n_classes)
    known = model.merged.known()
    q[known.task] = 0.0
    q[known.task, known.label] = 1.0
    model.update(q, u)
    want, log_total = enumeration.marginals(score_of(u, links, gold), n_tasks, n_classes)
    linked = model.merged.task
    assert np.abs(q[linked] - want[linked]).max() < 1e-9
    free = np.setdiff1d(np.arange(n_tasks), linked)
    outside = sum(
        u[i, gold[int(i)]] if int(i) in gold else np.logaddexp.reduce(u[i]) for i in free
    )
    inside = u[known.task, known.label].sum() if len(known.task) else 0.0
    assert model.last_value is not None
    found = model.last_value + (q[model.task] * u[model.task]).sum() + outside + inside
    assert found == pytest.approx(log_total, abs=1e-9)


@BACKENDS
@settings(max_examples=60, deadline=None)
@given(linked_scores())
def test_agreement_of_soft_links_equals_enumeration(
    backend: Any, drawn: tuple[np.ndarray, LinkCodes, dict[int, int]]
) -> None:
    u, links, gold = drawn
    if not links.n_links:
        return
    n_tasks, n_classes = u.shape
    codes = GoldCodes(np.array(list(gold), np.int32), np.array(list(gold.values()), np.int32))
    model = exact(links, n_tasks, n_classes, codes, backend)
    model.update(np.full(u.shape, 1.0 / n_classes), u)
    score = score_of(u, links, gold)
    every = list(enumeration.labellings(n_tasks, n_classes, {}))
    weight = np.exp(np.array([score(y) for y in every]) - enumeration.log_total(score, iter(every)))
    soft = np.flatnonzero(~links.is_hard)
    pairs = zip(links.left[soft], links.right[soft], strict=True)
    want = [sum(w for y, w in zip(every, weight, strict=True) if y[i] == y[j]) for i, j in pairs]
    assert np.abs(model.agreement() - np.array(want)).max(initial=0.0) < 1e-9
