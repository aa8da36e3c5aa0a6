import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from links.graphs import (
    GOLDEN,
    Rows,
    cannot_graphs,
    codes,
    golden_codes,
    graphs,
    labellings,
    that_keep,
)

from tiebreak.links import graph as link_graph
from tiebreak.links.graph import KnownGroups


def learn(n_tasks: int, rows: Rows, gold: dict[int, int], n_classes: int) -> KnownGroups:
    closure = link_graph.close(n_tasks, codes(rows))
    task = np.array(list(gold), dtype=np.int32)
    return link_graph.propagate(closure, task, np.array(list(gold.values()), np.int32), n_classes)


def test_equal_labels_on_groups_apart_conflict() -> None:
    case = GOLDEN["conflicts"]
    closure = link_graph.close(4, golden_codes(case["odd_cycle"]))
    one, same = np.array([0, 1], dtype=np.int32), np.array([2, 2], dtype=np.int32)
    found = link_graph.propagate(closure, one, same, 3)
    assert [list(conflict) for conflict in found.conflicts] == case["expected"]["label_conflict"]


def test_two_classes_in_one_group_conflict() -> None:
    for n_classes in (2, 3):
        found = learn(4, [(0, 1, True), (1, 3, True)], {3: 0, 2: 0, 0: 1}, n_classes)
        assert found.conflicts == [("must", 0, 3)]
        assert found.group_class.tolist() == [1, 0]


def test_a_chain_of_two_classes_that_does_not_fit_conflicts() -> None:
    chain = [(0, 1, False), (1, 2, False), (2, 3, False)]
    assert learn(4, chain, {0: 0, 3: 0}, 2).conflicts == [("chain", 0, 3)]
    assert learn(4, chain, {0: 0, 3: 1}, 2).group_class.tolist() == [0, 1, 0, 1]
    assert learn(4, chain, {0: 0, 1: 0}, 2).conflicts == [("cannot", 0, 1)]  # and not twice


def test_a_group_without_a_class_left_conflicts() -> None:
    star = [(3, 0, False), (3, 1, False), (3, 2, False)]
    found = learn(4, star, {0: 0, 1: 1, 2: 2}, 3)
    assert found.conflicts == [("none", 3)]
    assert learn(4, star, {0: 0, 1: 1, 2: 2}, 4).group_class.tolist() == [0, 1, 2, 3]


def test_implied_classes_imply_further_ones() -> None:
    strip = [(i, j, False) for i in range(9) for j in (i + 1, i + 2) if j < 9]
    found = learn(9, strip, {0: 2, 1: 0}, 3)
    assert found.group_class.tolist() == [2, 0, 1, 2, 0, 1, 2, 0, 1]
    assert found.conflicts == []


def test_two_groups_told_the_same_class_at_once_conflict() -> None:
    # Both 2 and 3 have only class 2 left, and are apart.
    rows = [(a, b, False) for a in (0, 1) for b in (2, 3)] + [(2, 3, False)]
    assert learn(4, rows, {0: 0, 1: 1}, 3).conflicts == [("none", 2), ("none", 3)]


def test_a_single_class_is_implied_for_all() -> None:
    assert learn(3, [(0, 1, True)], {}, 1).group_class.tolist() == [0, 0]
    assert learn(2, [(0, 1, False)], {}, 1).conflicts == [("none", 0), ("none", 1)]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@given(
    graph=st.one_of(graphs(6), cannot_graphs(6)),
    gold=st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=4),
)
def test_what_is_implied_holds_in_every_labelling(
    n_classes: int, graph: tuple[int, Rows], gold: dict[int, int]
) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    kept = that_keep(labellings(n_tasks, n_classes), links)
    assume(len(kept))
    gold = {task: label % n_classes for task, label in gold.items() if task < n_tasks}
    kept = kept[(kept[:, list(gold)] == list(gold.values())).all(axis=1)]
    found = learn(n_tasks, rows, gold, n_classes)
    if not len(kept):
        assert found.conflicts or n_classes > 2  # for two classes nothing is missed
        return
    assert found.conflicts == []
    group = link_graph.close(n_tasks, links).group
    implied = found.group_class[group]
    assert ((kept == implied) | (implied < 0)).all()
    if n_classes == 2:  # and whatever is the same in all labellings of a tied task is found
        tied = link_graph.parity(n_tasks, links)
        told = np.isin(tied.root, tied.root[list(gold)])
        assert (implied[told] >= 0).all()
