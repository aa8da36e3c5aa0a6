"""What chains of links imply, against all labellings of a few tasks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.ask.walks import Walks

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
    walks = Walks(n_classes)
    for a, b, must in links:
        walks.add(a, b, must=must)
    fitting = [
        labels
        for labels in itertools.product(range(n_classes), repeat=N_TASKS)
        if all((labels[a] == labels[b]) == must for a, b, must in links)
    ]
    for a, b in itertools.combinations(range(N_TASKS), 2):
        said = {labels[a] == labels[b] for labels in fitting}
        assert walks.implied(a, b) == (said.pop() if len(said) == 1 else None)


@given(ends=st.lists(ENDS, min_size=1), must=st.lists(st.booleans(), min_size=30, max_size=30))
def test_a_chain_leads_from_one_task_to_the_other(
    ends: list[tuple[int, int]], must: list[bool]
) -> None:
    """Also where links contradict each other."""
    walks = Walks(n_classes=3)
    for number, (a, b) in enumerate(ends, start=1):
        walks.add(a, b, must=must[number % 30], origin=number)
    for a, b in itertools.permutations(range(N_TASKS), 2):
        for same in (True, False):
            steps = walks.chain(a, b, same=same)
            if steps:
                stops = [a, *(step.end for step in steps)]
                assert stops[:-1] == [step.start for step in steps]
                assert stops[-1] == b
                assert sum(not step.must for step in steps) == (0 if same else 1)
                assert all({s.start, s.end} == set(ends[s.origin - 1]) for s in steps)
            without = walks.chain(a, b, same=same, without=1)
            assert all(step.origin != 1 for step in without)
