"""Walks: what chains of links imply for two tasks, and which chain says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple


class Step(NamedTuple):
    """A link walked along, from one task (a code) to another."""

    start: int
    end: int
    must: bool
    origin: int  # id of the answer; 0 for a link, or a known label, that was given


Place = tuple[int, bool]  # a task, and whether a task of the same class as the start stands there


class Walks:
    """Links as a graph that grows by one link at a time.

    Along must-links the class stays the same. A cannot-link leads to another class; with two
    classes a second one leads back, with more it leads to a class that nothing is known of, so
    that no walk goes on there.

    >>> walks = Walks(n_classes=3)
    >>> walks.add(0, 1, must=True)
    >>> walks.add(1, 2, must=False)
    >>> walks.implied(0, 2), walks.implied(0, 3)
    (False, None)
    """

    def __init__(self, n_classes: int) -> None:
        self._leads_back = n_classes == 2
        self._near: dict[int, list[Step]] = {}

    def add(self, left: int, right: int, *, must: bool, origin: int = 0) -> None:
        """Add a link between two tasks."""
        self._near.setdefault(left, []).append(Step(left, right, must, origin))
        self._near.setdefault(right, []).append(Step(right, left, must, origin))

    def implied(self, left: int, right: int) -> bool | None:
        """Return whether links make two tasks the same class (True), different, or neither."""
        for same in (True, False):
            if left == right or self.chain(left, right, same=same):
                return same
        return None

    def chain(self, left: int, right: int, *, same: bool, without: int | None = None) -> list[Step]:
        """Return a shortest chain that makes two tasks the same class, or different; or none.

        `without` is the id of an answer not to walk along.
        """
        if left not in self._near or right not in self._near:
            return []
        begin, goal = (left, True), (right, same)
        came_by: dict[Place, Step] = {}
        waiting = deque([begin])
        while waiting and goal not in came_by:
            place = waiting.popleft()
            for step, reached in self._onward(place):
                if reached not in came_by and reached != begin and step.origin != without:
                    came_by[reached] = step
                    waiting.append(reached)
        return self._walk_back(came_by, begin, goal) if goal in came_by else []

    def _onward(self, place: Place) -> Iterable[tuple[Step, Place]]:
        task, same = place
        for step in self._near[task]:
            if step.must:
                yield step, (step.end, same)
            elif same or self._leads_back:
                yield step, (step.end, not same)

    @staticmethod
    def _walk_back(came_by: dict[Place, Step], begin: Place, goal: Place) -> list[Step]:
        steps: list[Step] = []
        place = goal
        while place != begin:
            step = came_by[place]
            steps.append(step)
            place = step.start, place[1] == step.must
        return steps[::-1]
