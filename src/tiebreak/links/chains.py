"""Chains of links: what they imply for two tasks, and which chain proves it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from tiebreak.links.graph import LinkCodes


class ChainStep(NamedTuple):
    """A link walked along, from one task to another."""

    start: int
    end: int
    must: bool
    origin: int  # where the link comes from: its place among links, or the id of an answer


_State = tuple[int, bool]  # a task, and whether it has the class of the task where the walk began


class Chains:
    """Links as a graph that grows by one link at a time.

    Along must-links the class stays the same. A cannot-link leads to another class. With two
    classes a second one leads back; with more it leads to a class that nothing is known of, so
    that no walk goes on there.

    >>> chains = Chains(two_classes=False)
    >>> chains.add(0, 1, must=True)
    >>> chains.add(1, 2, must=False)
    >>> chains.implied(0, 2), chains.implied(0, 3)
    (False, None)
    """

    def __init__(self, *, two_classes: bool) -> None:
        self._two_classes = two_classes
        self._near: dict[int, list[ChainStep]] = {}

    @classmethod
    def along(cls, links: LinkCodes, *, two_classes: bool) -> Chains:
        """Build from links; the origin of a step is the place of its link."""
        chains = cls(two_classes=two_classes)
        columns = zip(links.left.tolist(), links.right.tolist(), links.must.tolist(), strict=True)
        for place, (left, right, must) in enumerate(columns):
            chains.add(left, right, must=must, origin=place)
        return chains

    def add(self, left: int, right: int, *, must: bool, origin: int = 0) -> None:
        """Add a link between two tasks."""
        self._near.setdefault(left, []).append(ChainStep(left, right, must, origin))
        self._near.setdefault(right, []).append(ChainStep(right, left, must, origin))

    def implied(self, left: int, right: int) -> bool | None:
        """Return whether links make two tasks the same class (True), different, or neither."""
        for same in (True, False):
            if left == right or self.shortest(left, right, same=same):
                return same
        return None

    def shortest(
        self, left: int, right: int, *, same: bool, without: int | None = None
    ) -> list[ChainStep]:
        """Return a shortest chain that makes two tasks the same class, or different; or none.

        `without` is the origin of a link not to walk along.
        """
        if left not in self._near or right not in self._near:
            return []
        begin = (left, True)
        goal = (right, same)
        came_by: dict[_State, ChainStep] = {}
        waiting = deque([begin])
        while waiting and goal not in came_by:
            state = waiting.popleft()
            for step, reached in self._onward(state):
                if reached not in came_by and reached != begin and step.origin != without:
                    came_by[reached] = step
                    waiting.append(reached)
        return self._walk_back(came_by, begin, goal) if goal in came_by else []

    def odd_cycle(self, task: int) -> list[ChainStep]:
        """Return a cycle with an odd number of cannot-links, or none; for two classes.

        It begins at its smallest task and goes on to the smaller one of that task's neighbours.
        A chain by which a task differs from itself has an odd number of cannot-links, and the first
        part of it that comes back to where it was is a cycle. `task` may be any task that links
        join to the cycle.
        """
        walk = self.shortest(task, task, same=False)
        first_visit: dict[int, int] = {}
        for place, step in enumerate(walk):
            first_visit.setdefault(step.start, place)
            if step.end in first_visit:
                return _from_smallest(walk[first_visit[step.end] : place + 1])
        return []

    def _onward(self, state: _State) -> Iterable[tuple[ChainStep, _State]]:
        task, same = state
        for step in self._near[task]:
            if step.must:
                yield step, (step.end, same)
            elif same or self._two_classes:
                yield step, (step.end, not same)

    @staticmethod
    def _walk_back(
        came_by: dict[_State, ChainStep], begin: _State, goal: _State
    ) -> list[ChainStep]:
        steps: list[ChainStep] = []
        state = goal
        while state != begin:
            step = came_by[state]
            steps.append(step)
            state = (step.start, state[1] == step.must)
        return steps[::-1]


def _from_smallest(cycle: list[ChainStep]) -> list[ChainStep]:
    starts = [step.start for step in cycle]
    smallest = starts.index(min(starts))
    cycle = cycle[smallest:] + cycle[:smallest]
    if cycle[-1].start < cycle[0].end:
        return [step._replace(start=step.end, end=step.start) for step in reversed(cycle)]
    return cycle
