"""What follows from links and known labels, against all labellings of a few tasks."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from links.graphs import Rows, cannot_graphs, codes, graphs, labellings, that_keep

import tiebreak as tb
from tiebreak import VariationalBayes
from tiebreak.data import GoldCodes
from tiebreak.links.graph import (
    DIFFERENT,
    OPEN,
    SAME,
    Implications,
    LinkCodes,
    close,
    imply,
    parity,
)
from tiebreak.options import ExactLinkOptions, LinkOptions, MeanFieldOptions

CODES = np.array([3, 5, 8, 9, 20, 21, 22], dtype=np.int32)  # of the tasks of a small graph

Known = dict[int, int]
KNOWN = st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=3)


def implications(rows: Rows, known: Known, n_classes: int) -> tuple[LinkCodes, Implications]:
    """Find what follows for tasks that have the codes of `CODES`."""
    links = codes(rows)
    coded = links._replace(left=CODES[links.left], right=CODES[links.right])
    task = CODES[np.array(list(known), dtype=np.int64)]
    label = np.array(list(known.values()), dtype=np.int32)
    return coded, imply(coded, n_classes, gold=GoldCodes(task, label))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@given(graph=graphs(6), known=KNOWN)
def test_implied_holds_in_every_labelling(
    n_classes: int, graph: tuple[int, Rows], known: Known
) -> None:
    n_tasks, rows = graph
    known = {task: label % n_classes for task, label in known.items() if task < n_tasks}
    kept = that_keep(labellings(n_tasks, n_classes), codes(rows))
    kept = kept[(kept[:, list(known)] == list(known.values())).all(axis=1)]
    assume(len(kept))
    _, found = implications(rows, known, n_classes)
    linked = set(itertools.chain.from_iterable(row[:2] for row in rows))
    for a, b in itertools.product(range(n_tasks), repeat=2):
        (said,) = found.implied(CODES[[a]], CODES[[b]]).tolist()
        possible = set((kept[:, a] == kept[:, b]).tolist())
        assert said == OPEN or possible == {said == SAME}
        if n_classes != 3 and {a, b} <= linked and not known:  # and nothing is missed
            assert (said == OPEN) == (len(possible) == 2)
    task, label = found.known_labels()
    at = np.searchsorted(CODES, task)
    assert (kept[:, at] == label).all()


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
@given(graph=graphs(6) | cannot_graphs(6), known=KNOWN | st.just({}))
def test_links_that_surely_hold_have_a_labelling(
    n_classes: int, graph: tuple[int, Rows], known: Known
) -> None:
    n_tasks, rows = graph
    linked = set(itertools.chain.from_iterable(row[:2] for row in rows))
    known = {task: label % n_classes for task, label in known.items() if task in linked}
    kept = that_keep(labellings(n_tasks, n_classes), codes(rows))
    kept = kept[(kept[:, list(known)] == list(known.values())).all(axis=1)]
    links, found = implications(rows, known, n_classes)
    found = found if known else imply(links, n_classes)
    if found.surely_hold():
        assert len(kept)
    elif n_classes == 2:  # where nothing is too hard to tell
        assert not len(kept)


@pytest.mark.parametrize("n_classes", [2, 3])
@given(graph=graphs(6))
def test_why_is_a_chain_that_proves_it(n_classes: int, graph: tuple[int, Rows]) -> None:
    """Also where links contradict each other."""
    links, found = implications(graph[1], {}, n_classes)
    for a, b in itertools.permutations(found.task.tolist(), 2):
        said = found.implied(np.array([a]), np.array([b]))[0]
        for same in (True, False):
            steps = found.why(a, b, same=same)
            if said == (SAME if same else DIFFERENT) and not len(found.odd):
                assert steps or len(found.closure.conflicts)
            if not steps:
                continue
            stops = [a, *(step.end for step in steps)]
            assert stops == [*(step.start for step in steps), b]
            n_cannot = sum(not step.must for step in steps)
            assert n_cannot % 2 == (not same) if n_classes == 2 else n_cannot == (not same)
            for step in steps:
                ends = {int(links.left[step.origin]), int(links.right[step.origin])}
                assert ends == {step.start, step.end}
                assert links.must[step.origin] == step.must


@given(graph=graphs(6))
def test_an_odd_cycle_says_why_two_classes_are_too_few(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    _, found = implications(rows, {}, 2)
    possible = len(that_keep(labellings(n_tasks, 2), codes(rows))) > 0
    assert possible == (len(found.odd) == 0 and len(found.closure.conflicts) == 0)
    if len(found.odd):
        cycle = found.why_odd()
        assert sum(not step.must for step in cycle) % 2 == 1
        assert cycle[0].start == cycle[-1].end


def test_links_that_may_be_wrong_imply_nothing() -> None:
    links = codes([(0, 1, True), (1, 2, False)])
    found = imply(links, 3, firm=np.zeros(2, dtype=bool))
    assert found.task.tolist() == [0, 1, 2]
    assert found.implied(np.array([0, 1]), np.array([1, 2])).tolist() == [OPEN, OPEN]
    weighted = links._replace(weight=np.array([np.nan, 2.0]))
    pairs = imply(weighted, 3).implied(np.array([0, 1]), np.array([1, 2]))
    assert pairs.tolist() == [SAME, OPEN]


def test_what_follows_survives_new_codes() -> None:
    found = imply(codes([(1, 4, True), (4, 6, False)]), 3)
    row = np.array([0, 1, 0, 0, 2, 0, 3], dtype=np.int32)  # tasks without links share a row
    again = found.renumbered(row)
    assert again.task.tolist() == [1, 2, 3]
    assert again.implied(np.array([1, 2]), np.array([2, 3])).tolist() == [SAME, DIFFERENT]


def count_calls(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of a function under every name that a module of the package has for it."""
    counts: Counter[str] = Counter()

    def counted(*args: Any, **options: Any) -> Any:
        counts["calls"] += 1
        return function(*args, **options)

    for name, module in list(sys.modules.items()):
        if name.startswith("tiebreak") and getattr(module, function.__name__, None) is function:
            monkeypatch.setattr(module, function.__name__, counted)
    return counts


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "how", [ExactLinkOptions(), MeanFieldOptions(), ExactLinkOptions(error=0.1)]
)
def test_what_follows_from_links_is_found_once_per_fit(
    how: LinkOptions, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = tb.simulate.crowd(60, 5, n_classes, random_state=0)
    truth = crowd.gold.to_dict()
    tasks = list(truth)
    pairs = list(zip(tasks[10::2], tasks[11::2], strict=False))  # no group of three: one start
    links = tb.Links.from_pairs(
        must=[pair for pair in pairs if truth[pair[0]] == truth[pair[1]]],
        cannot=[pair for pair in pairs if truth[pair[0]] != truth[pair[1]]],
    )
    gold = dict(list(truth.items())[:5])
    closed = count_calls(close, monkeypatch)
    tied = count_calls(parity, monkeypatch)
    VariationalBayes(link_options=how).fit(crowd.responses, links=links, gold=gold)
    assert closed["calls"] == 1
    # Links that may be wrong are tied once more, to see whether they make groups of three.
    assert tied["calls"] == (n_classes == 2) * (1 + how.is_soft)
