"""What chains of links imply, against all labellings of a few tasks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import Rows, codes, graphs

from tiebreak.links.chains import Chains
from tiebreak.links.graph import parity, violated

N_TASKS = 5
ENDS = st.tuples(st.integers(0, N_TASKS - 1), st.integers(0, N_TASKS - 1)).filter(
    lambda ends: ends[0] != ends[1]
)


@pytest.mark.parametrize("n_classes", [2, N_TASKS])  # with as many classes as tasks none runs out
@given(true=st.lists(st.integers(0, 4), min_size=N_TASKS, max_size=N_TASKS), ends=st.lists(ENDS))
def test_implied_is_what_every_labelling_says(
    n_classes: int, true: list[int], ends: list[tuple[int, int]]
) -> None:
    links = [(a, b, true[a] % n_classes == true[b] % n_classes) for a, b in ends]
    chains = Chains(two_classes=n_classes == 2)
    for a, b, must in links:
        chains.add(a, b, must=must)
    fitting = [
        labels
        for labels in itertools.product(range(n_classes), repeat=N_TASKS)
        if all((labels[a] == labels[b]) == must for a, b, must in links)
    ]
    for a, b in itertools.combinations(range(N_TASKS), 2):
        said = {labels[a] == labels[b] for labels in fitting}
        assert chains.implied(a, b) == (said.pop() if len(said) == 1 else None)


@given(ends=st.lists(ENDS, min_size=1), must=st.lists(st.booleans(), min_size=30, max_size=30))
def test_a_chain_leads_from_one_task_to_the_other(
    ends: list[tuple[int, int]], must: list[bool]
) -> None:
    """Also where links contradict each other."""
    chains = Chains(two_classes=False)
    for number, (a, b) in enumerate(ends, start=1):
        chains.add(a, b, must=must[number % 30], origin=number)
    for a, b in itertools.permutations(range(N_TASKS), 2):
        for same in (True, False):
            steps = chains.shortest(a, b, same=same)
            if steps:
                stops = [a, *(step.end for step in steps)]
                assert stops[:-1] == [step.start for step in steps]
                assert stops[-1] == b
                assert sum(not step.must for step in steps) == (0 if same else 1)
                assert all({s.start, s.end} == set(ends[s.origin - 1]) for s in steps)
            without = chains.shortest(a, b, same=same, without=1)
            assert all(step.origin != 1 for step in without)


@given(graphs())
def test_a_chain_is_as_short_as_can_be(graph: tuple[int, Rows]) -> None:
    """Of all chains of must-links from task 0, counted step by step."""
    n_tasks, rows = graph
    links = codes([row for row in rows if row[2]])
    chains = Chains.along(links, two_classes=False)
    ends = set(zip(links.left.tolist(), links.right.tolist(), strict=True))
    n_steps = {0: 0}
    for distance in range(1, n_tasks):
        reached = {b for a, b in ends | {(b, a) for a, b in ends} if a in n_steps}
        n_steps |= dict.fromkeys(reached - set(n_steps), distance)
    for goal in range(1, n_tasks):
        assert len(chains.shortest(0, goal, same=True)) == n_steps.get(goal, 0)


@given(graphs())
def test_an_odd_cycle_is_a_cycle_with_an_odd_number_of_cannot_links(
    graph: tuple[int, Rows],
) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    tied = parity(n_tasks, links)
    chains = Chains.along(links, two_classes=True)
    contradicts = set(tied.root[links.left[violated(tied.parity, links)]].tolist())
    for task in range(n_tasks):
        cycle = chains.odd_cycle(task)
        assert bool(cycle) == (tied.root[task] in contradicts)
        if not cycle:
            continue
        starts = [step.start for step in cycle]
        assert starts[0] == min(starts)
        assert len(set(starts)) == len(starts)
        assert [step.end for step in cycle] == [*starts[1:], starts[0]]
        for step in cycle:
            ends = {int(links.left[step.origin]), int(links.right[step.origin])}
            assert ends == {step.start, step.end}
            assert links.must[step.origin] == step.must
        assert sum(not step.must for step in cycle) % 2 == 1
