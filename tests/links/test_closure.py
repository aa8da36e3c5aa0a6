import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import GOLDEN, Rows, codes, fix_point, golden_codes, graphs
from oracles import closed_links

from tiebreak.links import graph as link_graph

CASE = GOLDEN["closure"]
EXPECTED = CASE["expected"]


def test_closure_gives_the_worked_numbers() -> None:
    links = golden_codes(CASE)
    closure = link_graph.close(CASE["n_tasks"], links)
    must, cannot = closed_links.closed_pairs(closure)
    assert closure.group.tolist() == EXPECTED["group"]
    assert np.column_stack([closure.left, closure.right]).tolist() == EXPECTED["cannot_groups"]
    assert must.tolist() == EXPECTED["closed_must"]
    assert cannot.tolist() == EXPECTED["closed_cannot"]
    assert [closure.n_must, closure.n_cannot] == EXPECTED["counts"]
    assert closure.conflicts.tolist() == []


def test_sums_give_the_worked_numbers() -> None:
    links, q, label = golden_codes(CASE), np.array(CASE["q"]), np.array(CASE["label"])
    closure = link_graph.close(CASE["n_tasks"], links)
    np.testing.assert_allclose(closed_links.field(q, closure), EXPECTED["field"], atol=1e-9)
    assert closed_links.link_term(q, closure) == pytest.approx(EXPECTED["link_term"], abs=1e-9)
    assert link_graph.violated(label, links).sum() == EXPECTED["violated_given"]
    counted = closure.count_violated(label, CASE["n_classes"])
    assert counted == EXPECTED["violated_closed"]


def test_a_cannot_link_inside_a_group_is_a_conflict() -> None:
    case = GOLDEN["conflicts"]
    links = golden_codes(case["conflict"])
    closure = link_graph.close(3, links)
    pairs = np.column_stack([links.left, links.right])[closure.conflicts]
    assert pairs.tolist() == case["expected"]["conflict_pairs"]
    odd = link_graph.close(4, golden_codes(case["odd_cycle"]))
    assert odd.conflicts.tolist() == case["expected"]["odd_cycle_conflicts"]


@given(graphs())
def test_closure_is_the_fix_point_of_the_two_rules(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    closure = link_graph.close(n_tasks, codes(rows))
    must, cannot = fix_point(n_tasks, rows)
    closed_must, closed_cannot = closed_links.closed_pairs(closure)
    assert {tuple(pair) for pair in closed_must.tolist()} == must
    assert {tuple(pair) for pair in closed_cannot.tolist()} == cannot - must
    assert (closure.n_must, closure.n_cannot) == (len(must), len(cannot - must))
    given_cannot = {(min(a, b), max(a, b)) for a, b, is_must in rows if not is_must}
    assert len(closure.conflicts) == len(given_cannot & must)


@given(graphs(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_sums_over_groups_equal_sums_over_pairs(
    graph: tuple[int, Rows], n_classes: int, seed: int
) -> None:
    n_tasks, rows = graph
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(n_classes), size=n_tasks)
    label = rng.integers(n_classes, size=n_tasks)
    closure = link_graph.close(n_tasks, codes(rows))
    must, cannot = closed_links.closed_pairs(closure)
    sign = np.zeros((n_tasks, n_tasks))
    for pairs, w in ((must, 1.0), (cannot, -1.0)):
        sign[pairs[:, 0], pairs[:, 1]] = sign[pairs[:, 1], pairs[:, 0]] = w
    broken = (label[must[:, 0]] != label[must[:, 1]]).sum()
    broken += (label[cannot[:, 0]] == label[cannot[:, 1]]).sum()
    np.testing.assert_allclose(closed_links.field(q, closure), sign @ q, atol=1e-12)
    term = (q * (sign @ q)).sum() / 2.0
    assert closed_links.link_term(q, closure) == pytest.approx(term, abs=1e-12)
    assert closure.count_violated(label, n_classes) == broken


def test_counts_do_not_overflow() -> None:
    n_tasks = 200_000
    rows = np.arange(1, n_tasks // 2, dtype=np.int64)
    links = link_graph.LinkCodes(
        np.concatenate([np.zeros_like(rows), np.full_like(rows, n_tasks // 2), [0]]).astype("i4"),
        np.concatenate([rows, rows + n_tasks // 2, [n_tasks // 2]]).astype(np.int32),
        np.arange(2 * len(rows) + 1) < 2 * len(rows),
        None,
        None,
        np.arange(2 * len(rows) + 1),
    )
    closure = link_graph.close(n_tasks, links)
    half = n_tasks // 2
    assert (closure.n_must, closure.n_cannot) == (half * (half - 1), half * half)
    label = np.zeros(n_tasks, dtype=np.int32)
    assert closure.count_violated(label, 2) == half * half


@given(graphs(), st.randoms(use_true_random=False))
def test_order_and_direction_of_links_do_not_matter(
    graph: tuple[int, Rows], rng: random.Random
) -> None:
    _, rows = graph
    other = [(b, a, must) if rng.random() < 0.5 else (a, b, must) for a, b, must in rows]
    rng.shuffle(other)
    first, second = codes(rows), codes(other)
    for name in ("left", "right", "must"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    assert (first.left < first.right).all()
    assert len({(*pair,) for pair in zip(first.left, first.right, first.must, strict=True)}) == (
        first.n_links
    )


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 10.0)), min_size=1, max_size=9))
def test_weights_of_one_pair_are_added_with_their_signs(answers: list[tuple[bool, float]]) -> None:
    def merged(answers: list[tuple[bool, float]]) -> link_graph.LinkCodes:
        ends = np.zeros(len(answers), dtype=np.int64)
        must, weight = (np.array(column) for column in zip(*answers, strict=True))
        return link_graph.distinct(ends + 1, ends, must, weight, None)

    links, backwards = merged(answers), merged(answers[::-1])
    total = sum(weight if must else -weight for must, weight in answers)
    assert links.weight is not None
    assert backwards.weight is not None
    assert links.weight.tolist() == backwards.weight.tolist()  # to the last bit
    assert links.weight[0] == pytest.approx(abs(total), abs=1e-9)
    assert links.must[0] == (total > 0.0) or links.weight[0] < 1e-9


def test_links_of_different_sources_stay_apart() -> None:
    ends = np.zeros(3, dtype=np.int64)
    who = np.array([0, 1, 0], dtype=np.int32)
    links = link_graph.distinct(ends, ends + 1, np.ones(3, dtype=bool), None, who)
    assert links.who is not None
    assert links.who.tolist() == [0, 1]
    assert links.row.tolist() == [0, 1]


def test_links_with_a_weight_are_not_closed() -> None:
    left, right = np.array([[0, 1, 0], [1, 2, 2]])
    weight = np.array([np.nan, 2.0, 3.0])
    links = link_graph.distinct(left, right, np.array([True, True, False]), weight, None)
    closure = link_graph.close(3, links)
    assert closure.group.tolist() == [0, 0, 1]
    assert (len(closure.left), len(closure.conflicts)) == (0, 0)


def test_no_task_and_no_link_close_to_nothing() -> None:
    closure = link_graph.close(0, codes([]))
    assert (closure.n_groups, closure.n_must, closure.n_cannot) == (0, 0, 0)


@pytest.mark.parametrize("n_codes", [1, 50, 100_000])  # close together, or far apart
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 60))
def test_codes_are_found_once_and_in_their_places(n_codes: int, seed: int, n: int) -> None:
    values = np.random.default_rng(seed).integers(0, n_codes, n)
    found, place = np.unique(values, return_inverse=True)
    assert np.array_equal(link_graph.each_once(values), found)
    assert np.array_equal(link_graph.places_in(found, values), place)
