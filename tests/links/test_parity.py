import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import GOLDEN, Rows, codes, golden_codes, graphs, labellings, that_keep

from tiebreak.links import graph as link_graph


def test_parity_gives_the_worked_numbers() -> None:
    case = GOLDEN["closure"]
    tied = link_graph.parity(case["n_tasks"], golden_codes(case))
    assert tied.root.tolist() == case["expected"]["root"]
    assert tied.parity.tolist() == case["expected"]["parity"]
    assert not link_graph.violated(tied.parity, golden_codes(case)).any()


@given(graphs())
def test_parity_says_what_all_labellings_of_two_classes_say(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    tied = link_graph.parity(n_tasks, links)
    kept = that_keep(labellings(n_tasks, 2), links)
    assert (len(kept) == 0) == link_graph.violated(tied.parity, links).any()
    assert (kept == kept[:, tied.root] ^ tied.parity).all()
    assert len(kept) in (0, 2 ** len(set(tied.root.tolist())))
    component = link_graph.components(n_tasks, links.left, links.right)
    assert tied.root.tolist() == [component.tolist().index(c) for c in component]


@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.booleans())
def test_components_are_those_that_members_pass_on(n: int, seed: int, is_chain: bool) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    left, right = (
        (order[:-1], order[1:]) if is_chain else rng.integers(0, n, (2, rng.integers(0, 60)))
    )
    smallest = np.arange(n)
    for _ in range(n):
        least = np.minimum(smallest[left], smallest[right])
        np.minimum.at(smallest, left, least)
        np.minimum.at(smallest, right, least)
    _, numbered = np.unique(smallest, return_inverse=True)
    assert link_graph.components(n, left, right).tolist() == numbered.tolist()


@given(graphs())
def test_links_that_parity_keeps_can_all_hold(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    tied = link_graph.parity(n_tasks, links)
    broken = link_graph.violated(tied.parity, links)
    assert not links.must[broken].any()
    kept = links.keep(~broken)
    assert len(that_keep(labellings(n_tasks, 2), kept))
    assert (link_graph.parity(n_tasks, kept).root == tied.root).all()


def test_links_with_a_weight_do_not_tie_tasks() -> None:
    left, right = np.array([[0, 1, 0], [1, 2, 2]])
    weight = np.array([np.nan, np.nan, 1.0])
    links = link_graph.distinct(left, right, np.zeros(3, dtype=bool), weight, None)
    tied = link_graph.parity(4, links)
    assert tied.parity.tolist() == [0, 1, 0, 0]
    assert tied.root.tolist() == [0, 0, 0, 3]
