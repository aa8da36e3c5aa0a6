import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import (
    GOLDEN,
    Labellings,
    Rows,
    cannot_graphs,
    codes,
    golden_codes,
    graphs,
    labellings,
    that_keep,
)

from tiebreak.links import factors
from tiebreak.links import graph as link_graph
from tiebreak.links.feasible import find_classes, keeps_apart, smallest_blame
from tiebreak.links.graph import Closure, between_groups

Bools = npt.NDArray[np.bool_]


def blame_of(closure: Closure, allowed: Bools | int) -> list[int]:
    """Return groups of a closure that cannot have classes together, of so many or those allowed."""
    if isinstance(allowed, int):
        allowed = np.ones((closure.n_groups, allowed), dtype=bool)
    return smallest_blame(closure.left, closure.right, allowed)


def has_classes(closure: Closure, allowed: Bools) -> bool:
    """Say whether classes are found that keep all groups apart."""
    scores = np.where(allowed, 0.0, -np.inf)
    label = find_classes(closure.left, closure.right, scores)
    return keeps_apart(closure.left, closure.right, allowed, label)


def that_fit(closure: Closure, allowed: Bools) -> Labellings:
    """Return all ways to give classes to groups."""
    kept = that_keep(labellings(*allowed.shape), between_groups(closure))
    return kept[allowed[np.arange(closure.n_groups), kept].all(axis=1)]


def check_verdict(closure: Closure, allowed: Bools) -> None:
    """Compare what is found with all labellings."""
    blame = blame_of(closure, allowed)
    assert has_classes(closure, allowed) == bool(len(that_fit(closure, allowed)))
    if has_classes(closure, allowed):
        assert not blame
        return
    inside = np.isin(closure.left, blame) & np.isin(closure.right, blame)
    blamed = closure._replace(left=closure.left[inside], right=closure.right[inside])
    others = ~np.isin(np.arange(len(allowed)), blame)
    assert not len(that_fit(blamed, allowed | others[:, None]))


def test_an_odd_cycle_needs_three_classes() -> None:
    case = GOLDEN["conflicts"]
    closure = link_graph.close(4, golden_codes(case["odd_cycle"]))
    assert (not blame_of(closure, 2)) == case["expected"]["feasible_2"]
    assert (not blame_of(closure, 3)) == case["expected"]["feasible_3"]


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
@given(graph=st.one_of(cannot_graphs(6), graphs(6)))
def test_the_verdict_is_that_of_all_labellings(n_classes: int, graph: tuple[int, Rows]) -> None:
    closure = link_graph.close(graph[0], codes(graph[1]))
    check_verdict(closure, np.ones((closure.n_groups, n_classes), dtype=bool))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@given(
    graph=cannot_graphs(6),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.3, 1.0),
    share_known=st.floats(0.0, 1.0),
)
def test_the_verdict_respects_the_classes_allowed(
    n_classes: int, graph: tuple[int, Rows], seed: int, share: float, share_known: float
) -> None:
    closure = link_graph.close(graph[0], codes(graph[1]))
    rng = np.random.default_rng(seed)
    allowed = rng.random((closure.n_groups, n_classes)) < share
    allowed[~allowed.any(axis=1)] = True
    known = np.flatnonzero(rng.random(closure.n_groups) < share_known)
    allowed[known] = np.eye(n_classes, dtype=bool)[rng.integers(n_classes, size=len(known))]
    check_verdict(closure, allowed)


def test_a_clique_of_one_too_many_is_blamed_alone() -> None:
    clique = [(a, b, False) for a, b in itertools.combinations(range(10, 21), 2)]
    ring = [(i, (i + 1) % 10, False) for i in range(10)]
    closure = link_graph.close(21, codes([*clique, *ring, (0, 10, False)]))
    assert blame_of(closure, 10) == list(range(10, 21))
    assert not blame_of(closure, 11)


def test_what_can_be_spared_is_not_blamed() -> None:
    # Three pairs of twins, each apart from all but its twin: three classes suffice, no group waits.
    twins = [(a, b, False) for a, b in itertools.combinations(range(6), 2) if a // 2 != b // 2]
    clique = [(a, b, False) for a, b in itertools.combinations(range(6, 10), 2)]
    closure = link_graph.close(20, codes([*twins, *clique, (5, 6, False), (9, 15, False)]))
    assert blame_of(closure, 3) == [6, 7, 8, 9]


def no_triangle_yet_four_classes() -> Rows:
    """Mycielski's graph of eleven tasks: no three are mutually apart, yet three classes fail."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    twins = [(5 + i, j) for i, j in ring] + [(5 + j, i) for i, j in ring]
    return [(a, b, False) for a, b in [*ring, *twins, *((10, 5 + i) for i in range(5))]]


def test_three_classes_fail_without_a_clique_of_four() -> None:
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    assert blame_of(closure, 3) == list(range(11))
    assert not blame_of(closure, 4)


def test_what_is_not_decided_in_time_is_blamed_on_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    monkeypatch.setattr(factors, "LARGEST_TABLE", 1)
    assert blame_of(closure, 3) == list(range(11))
    monkeypatch.setattr(factors, "LARGEST_PROGRAM", 1)
    assert not blame_of(closure, 3)


def test_what_greed_cannot_colour_the_program_can() -> None:
    # Crowns: four groups on either side, each apart from all opposite but its own; two classes
    # would do, but greed that goes by pairs needs four. Each crown has a known group hanging on.
    crown = [(a, 4 + b, False) for a in range(4) for b in range(4) if a != b] + [(0, 8, False)]
    rows = [(9 * c + a, 9 * c + b, must) for c in range(200) for a, b, must in crown]
    closure = link_graph.close(1800, codes(rows))
    allowed = np.ones((1800, 3), dtype=bool)
    allowed[8::9] = [False, True, False]
    label = find_classes(closure.left, closure.right, np.where(allowed, 0.0, -np.inf))
    assert not link_graph.violated(label, codes(rows)).any()
    assert (label[8::9] == 1).all()


@pytest.mark.parametrize("n_classes", [3, 5, 8])
def test_large_sparse_graphs_get_classes(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    n_groups = 2_000
    left, right = rng.integers(n_groups, size=(2, n_groups * (n_classes - 1) // 2))
    apart = left != right
    links = link_graph.distinct(
        left[apart], right[apart], np.zeros(apart.sum(), dtype=bool), None, None
    )
    closure = link_graph.close(n_groups, links)
    assert has_classes(closure, np.ones((n_groups, n_classes), dtype=bool))


def test_a_long_chain_waits_whatever_the_number_of_classes() -> None:
    chain = np.arange(20_000, dtype=np.int64)
    links = link_graph.distinct(chain[:-1], chain[1:], np.zeros(19_999, dtype=bool), None, None)
    closure = link_graph.close(20_000, links)
    for n_classes in (3, 100):
        assert has_classes(closure, np.ones((20_000, n_classes), dtype=bool))
