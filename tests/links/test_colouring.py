import itertools
from typing import Any

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

from tiebreak.links import graph as link_graph
from tiebreak.links.graph import colouring
from tiebreak.links.graph.closure import Closure, between_groups


def that_fit(
    closure: Closure,
    n_classes: int,
    allowed: npt.NDArray[np.bool_] | None = None,
    known: npt.NDArray[np.int32] | None = None,
) -> Labellings:
    """Return all ways to give classes to groups."""
    kept = that_keep(labellings(closure.n_groups, n_classes), between_groups(closure))
    if allowed is not None:
        kept = kept[allowed[np.arange(closure.n_groups), kept].all(axis=1)]
    if known is not None:
        kept = kept[((kept == known) | (known < 0)).all(axis=1)]
    return kept


def only(closure: Closure, groups: list[int]) -> Closure:
    """Keep the pairs among these groups."""
    inside = np.isin(closure.left, groups) & np.isin(closure.right, groups)
    return closure._replace(left=closure.left[inside], right=closure.right[inside])


def allowed_of(groups: list[int], allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Allow all classes to all but these groups."""
    return np.asarray(allowed | ~np.isin(np.arange(len(allowed)), groups)[:, None])


def test_an_odd_cycle_needs_three_classes() -> None:
    case = GOLDEN["conflicts"]
    closure = link_graph.close(4, golden_codes(case["odd_cycle"]))
    two, three = (colouring.feasibility(closure, k).verdict for k in (2, 3))
    assert (two == "feasible") == case["expected"]["feasible_2"]
    assert (three == "feasible") == case["expected"]["feasible_3"]


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
@given(graph=st.one_of(cannot_graphs(6), graphs(6)))
def test_the_verdict_is_that_of_all_labellings(n_classes: int, graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    closure = link_graph.close(n_tasks, codes(rows))
    found = colouring.feasibility(closure, n_classes)
    ways = that_fit(closure, n_classes)
    assert found.verdict == ("feasible" if len(ways) else "infeasible")
    if found.group_class is not None:
        assert found.group_class.tolist() in ways.tolist()
        assert found.blame is None
    else:
        assert found.blame is not None
        assert not len(that_fit(only(closure, found.blame), n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@given(graph=cannot_graphs(6), seed=st.integers(0, 2**32 - 1), share=st.floats(0.3, 1.0))
def test_the_verdict_respects_the_classes_allowed(
    n_classes: int, graph: tuple[int, Rows], seed: int, share: float
) -> None:
    closure = link_graph.close(graph[0], codes(graph[1]))
    rng = np.random.default_rng(seed)
    allowed = rng.random((closure.n_groups, n_classes)) < share
    found = colouring.feasibility(closure, n_classes, allowed=allowed)
    ways = that_fit(closure, n_classes, allowed)
    assert found.verdict == ("feasible" if len(ways) else "infeasible")
    if found.group_class is not None:
        assert found.group_class.tolist() in ways.tolist()
    else:
        assert found.blame is not None
        elsewhere = allowed_of(found.blame, allowed)
        assert not len(that_fit(only(closure, found.blame), n_classes, elsewhere))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("some_forbidden", [False, True])
@given(graph=cannot_graphs(6), seed=st.integers(0, 2**32 - 1), share=st.floats(0.0, 1.0))
def test_the_verdict_respects_known_classes(
    some_forbidden: bool, n_classes: int, graph: tuple[int, Rows], seed: int, share: float
) -> None:
    closure = link_graph.close(graph[0], codes(graph[1]))
    rng = np.random.default_rng(seed)
    any_class = rng.integers(n_classes, size=closure.n_groups)
    known = np.where(rng.random(closure.n_groups) < share, any_class, -1).astype(np.int32)
    allowed = rng.random((closure.n_groups, n_classes)) < 0.9 if some_forbidden else None
    found = colouring.feasibility(closure, n_classes, allowed=allowed, known=known)
    ways = that_fit(closure, n_classes, allowed, known)
    assert found.verdict == ("feasible" if len(ways) else "infeasible")
    if found.group_class is not None:
        assert found.group_class.tolist() in ways.tolist()
    elif allowed is None:  # else a group alone may be to blame
        assert found.blame
        assert set(found.blame) <= set(closure.left.tolist() + closure.right.tolist())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_groups_without_a_cannot_link_are_not_looked_at(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    for name in ("_two_classes", "_clash"):
        look = getattr(colouring, name)

        def watch(closure: Closure, *rest: Any, look: Any = look) -> Any:
            sizes.append(closure.n_groups)
            return look(closure, *rest)

        monkeypatch.setattr(colouring, name, watch)
    closure = link_graph.close(1000, codes([(400, 700, False), (700, 900, False)]))
    found = colouring.feasibility(closure, n_classes)
    assert sizes == [3]
    assert found.group_class is not None
    assert len(found.group_class) == 1000
    assert found.group_class[700] not in found.group_class[[400, 900]]


def test_a_clique_of_one_too_many_is_blamed_alone() -> None:
    clique = [(a, b, False) for a, b in itertools.combinations(range(10, 21), 2)]
    ring = [(i, (i + 1) % 10, False) for i in range(10)]
    closure = link_graph.close(21, codes([*clique, *ring, (0, 10, False)]))
    found = colouring.feasibility(closure, 10)
    assert found.blame == list(range(10, 21))
    assert colouring.feasibility(closure, 11).verdict == "feasible"


def test_the_core_of_the_component_is_blamed() -> None:
    # Three pairs of twins, each apart from all but its twin: three classes suffice, no group waits.
    twins = [(a, b, False) for a, b in itertools.combinations(range(6), 2) if a // 2 != b // 2]
    clique = [(a, b, False) for a, b in itertools.combinations(range(6, 10), 2)]
    closure = link_graph.close(20, codes([*twins, *clique, (5, 6, False), (9, 15, False)]))
    assert colouring.feasibility(closure, 3).blame == list(range(10))


def no_triangle_yet_four_classes() -> Rows:
    """Mycielski's graph of eleven tasks: no three are mutually apart, yet three classes fail."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    twins = [(5 + i, j) for i, j in ring] + [(5 + j, i) for i, j in ring]
    return [(a, b, False) for a, b in [*ring, *twins, *((10, 5 + i) for i in range(5))]]


def test_three_classes_fail_without_a_clique_of_four() -> None:
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    assert colouring.feasibility(closure, 3).blame == list(range(11))
    assert colouring.feasibility(closure, 4).verdict == "feasible"


def test_what_is_not_decided_in_time_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colouring, "SECONDS", 0.0)
    closure = link_graph.close(11, codes(no_triangle_yet_four_classes()))
    found = colouring.feasibility(closure, 3)
    assert (found.verdict, found.group_class, found.blame) == ("unknown", None, None)


def test_a_part_is_proved_infeasible_though_another_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = colouring._solve

    def slow(problem: Any, part: Any, budget: int) -> colouring.Feasibility:
        large = len(part) > 4
        return colouring.Feasibility("unknown") if large else solve(problem, part, budget)

    monkeypatch.setattr(colouring, "_solve", slow)
    clique = [(a, b, False) for a, b in itertools.combinations(range(11, 15), 2)]
    closure = link_graph.close(15, codes([*no_triangle_yet_four_classes(), *clique]))
    found = colouring.feasibility(closure, 3)
    assert (found.verdict, found.blame) == ("infeasible", [11, 12, 13, 14])


def test_what_greed_cannot_colour_the_search_can() -> None:
    # Crowns: four groups on either side, each apart from all opposite but its own; two classes
    # would do, but greed that goes by pairs needs four. Each crown has a known group hanging on.
    crown = [(a, 4 + b, False) for a in range(4) for b in range(4) if a != b] + [(0, 8, False)]
    rows = [(9 * c + a, 9 * c + b, must) for c in range(200) for a, b, must in crown]
    links = codes(rows)
    closure = link_graph.close(1800, links)
    known = np.where(np.arange(1800) % 9 == 8, 1, -1).astype(np.int32)
    assert colouring.feasibility(closure, 3, known=known, budget=0).verdict == "unknown"
    found = colouring.feasibility(closure, 3, known=known)
    assert found.group_class is not None
    assert not link_graph.violated(found.group_class, links).any()
    assert (found.group_class[8::9] == 1).all()
    assert set(found.group_class.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("n_classes", [3, 5, 8])
def test_large_sparse_graphs_get_a_witness(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    n_groups = 2_000
    left, right = rng.integers(n_groups, size=(2, n_groups * (n_classes - 1) // 2))
    apart = left != right
    links = link_graph.distinct(
        left[apart], right[apart], np.zeros(apart.sum(), dtype=bool), None, None
    )
    closure = link_graph.close(n_groups, links)
    found = colouring.feasibility(closure, n_classes)
    assert found.group_class is not None
    assert not link_graph.violated(found.group_class, links).any()
    assert found.group_class.max() < n_classes


def test_a_long_chain_gets_a_witness_whatever_the_number_of_classes() -> None:
    chain = np.arange(20_000, dtype=np.int64)
    links = link_graph.distinct(chain[:-1], chain[1:], np.zeros(19_999, dtype=bool), None, None)
    closure = link_graph.close(20_000, links)
    for n_classes in (2, 3, 10**6):
        found = colouring.feasibility(closure, n_classes)
        assert found.group_class is not None
        assert not link_graph.violated(found.group_class, links).any()
