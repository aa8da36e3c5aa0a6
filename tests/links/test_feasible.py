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

from tiebreak.links import feasible
from tiebreak.links import graph as link_graph
from tiebreak.links.feasible import Feasibility, find_classes
from tiebreak.links.graph import Closure, between_groups

Bools = npt.NDArray[np.bool_]


def find(closure: Closure, allowed: Bools | int) -> Feasibility:
    """Find classes for the groups of a closure, each of so many or those that are allowed."""
    if isinstance(allowed, int):
        allowed = np.ones((closure.n_groups, allowed), dtype=bool)
    return find_classes(closure.left, closure.right, allowed)


def that_fit(closure: Closure, allowed: Bools) -> Labellings:
    """Return all ways to give classes to groups."""
    kept = that_keep(labellings(*allowed.shape), between_groups(closure))
    return kept[allowed[np.arange(closure.n_groups), kept].all(axis=1)]


def check_verdict(closure: Closure, allowed: Bools) -> None:
    """Compare what is found with all labellings."""
    found = find(closure, allowed)
    if found.group_class is not None:
        label = completed(found, closure, allowed)
        assert label.tolist() in that_fit(closure, allowed).tolist()
        return
    assert not len(that_fit(closure, allowed))
    assert found.blame is not None
    inside = np.isin(closure.left, found.blame) & np.isin(closure.right, found.blame)
    blamed = closure._replace(left=closure.left[inside], right=closure.right[inside])
    others = ~np.isin(np.arange(len(allowed)), found.blame)
    assert not len(that_fit(blamed, allowed | others[:, None]))


def completed(found: Feasibility, closure: Closure, allowed: Bools) -> npt.NDArray[np.int32]:
    """Give those who wait the first class that nobody around them has."""
    assert found.group_class is not None
    label = found.group_class.copy()
    near = link_graph.neighbours(closure.n_groups, closure.left, closure.right)
    for group in found.waiting:
        around = near.value[near.start[group] : near.start[group + 1]]
        taken = np.isin(np.arange(allowed.shape[1]), label[around])
        label[group] = (allowed[group] & ~taken).argmax()
        assert allowed[group, label[group]]
        assert not taken[label[group]]
    return label


def test_an_odd_cycle_needs_three_classes() -> None:
    case = GOLDEN["conflicts"]
    closure = link_graph.close(4, golden_codes(case["odd_cycle"]))
    two, three = (find(closure, k).blame is None for k in (2, 3))
    assert two == case["expected"]["feasible_2"]
    assert three == case["expected"]["feasible_3"]


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
    known = np.flatnonzero(rng.random(closure.n_groups) < share_known)
    allowed[known] = np.eye(n_classes, dtype=bool)[rng.integers(n_classes, size=len(known))]
    check_verdict(closure, allowed)


def test_a_clique_of_one_too_many_is_blamed_alone() -> None:
    clique = [(a, b, False) for a, b in itertools.combinations(range(10, 21), 2)]
    ring = [(i, (i + 1) % 10, False) for i in range(10)]
    closure = link_graph.close(21, codes([*clique, *ring, (0, 10, False)]))
    assert find(closure, 10).blame == list(range(10, 21))
    assert find(closure, 11).group_class is not None


def test_the_core_of_the_component_is_blamed() -> None:
    # Three pairs of twins, each apart from all but its twin: three classes suffice, no group waits.
    twins = [(a, b, False) for a, b in itertools.combinations(range(6), 2) if a // 2 != b // 2]
    clique = [(a, b, False) for a, b in itertools.combinations(range(6, 10), 2)]
    closure = link_graph.close(20, codes([*twins, *clique, (5, 6, False), (9, 15, False)]))
    assert find(closure, 3).blame == list(range(10))


def no_triangle_yet_four_classes() -> Rows:
    """Mycielski's graph of eleven tasks: no three are mutually apart, yet three classes fail."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    twins = [(5 + i, j) for i, j in ring] + [(5 + j, i) for i, j in ring]
    return [(a, b, False) for a, b in [*ring, *twins, *((10, 5 + i) for i in range(5))]]


def test_three_classes_fail_without_a_clique_of_four() -> None:
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    assert find(closure, 3).blame == list(range(11))
    assert find(closure, 4).group_class is not None


def test_what_is_not_decided_in_time_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    for name, limit in (("SECONDS", 0.0), ("LARGEST_CORE", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(feasible, name, limit)
            found = find(closure, 3)
        assert (found.group_class, found.blame) == (None, None)


def test_a_part_is_proved_infeasible_though_another_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feasible, "SECONDS", 0.0)  # greed alone, and what has no class at all
    closure = link_graph.close(12, codes(no_triangle_yet_four_classes()))
    allowed = np.ones((12, 3), dtype=bool)
    allowed[11] = False
    assert find(closure, allowed).blame == [11]


def test_what_greed_cannot_colour_the_program_can() -> None:
    # Crowns: four groups on either side, each apart from all opposite but its own; two classes
    # would do, but greed that goes by pairs needs four. Each crown has a known group hanging on.
    crown = [(a, 4 + b, False) for a in range(4) for b in range(4) if a != b] + [(0, 8, False)]
    rows = [(9 * c + a, 9 * c + b, must) for c in range(200) for a, b, must in crown]
    closure = link_graph.close(1800, codes(rows))
    allowed = np.ones((1800, 3), dtype=bool)
    allowed[8::9] = [False, True, False]
    found = find(closure, allowed)
    label = completed(found, closure, allowed)
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
    allowed = np.ones((n_groups, n_classes), dtype=bool)
    label = completed(find(closure, allowed), closure, allowed)
    assert not link_graph.violated(label, links).any()


def test_a_long_chain_waits_whatever_the_number_of_classes() -> None:
    chain = np.arange(20_000, dtype=np.int64)
    links = link_graph.distinct(chain[:-1], chain[1:], np.zeros(19_999, dtype=bool), None, None)
    closure = link_graph.close(20_000, links)
    for n_classes in (3, 100):
        allowed = np.ones((20_000, n_classes), dtype=bool)
        label = completed(find(closure, allowed), closure, allowed)
        assert not link_graph.violated(label, links).any()
