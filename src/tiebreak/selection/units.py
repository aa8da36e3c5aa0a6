"""Units: what a question of any kind is about, a task or a group of tasks that are tied.

An answer about one task of a group is an answer about all of them. An example with three classes:
tasks 0 = 1 = 4 are tied, 2 is known to be of class 1, and q has, for the two open units,

    unit  task  stake  classes  p
    0     0     3      0 2 1    .5 .4 .1     any of 0, 1 and 4 can be asked about
    1     3     1      1 0 2    .9 .1 .0     "same as 2?" asks whether it is of class 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.link_graph import OPEN
from tiebreak.selection.adaptive import TaskState


@dataclass(frozen=True, slots=True, eq=False)
class OpenUnits:
    """The units whose class is not known, and the tasks whose class is."""

    task: Offsets  # (n_units,) one task that can be asked about, for each
    stake: Floats  # (n_units,) how many labels hang on it
    classes: Offsets  # (n_units, n_classes), likeliest first
    p: Floats  # (n_units, n_classes), in that order
    examples: tuple[Offsets, ...]  # by class: tasks known to be of it that can be shown
    needs_sure_examples: bool = False

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.p.shape[1])

    def has_example(self) -> Mask:
        """Say of each class whether a task is known that answers "is it of this class?".

        With two classes an example of either does.
        """
        found = np.array([len(tasks) > 0 for tasks in self.examples], dtype=bool)
        return np.full_like(found, found.any()) if self.n_classes == 2 else found

    def example(self, label: int, rng: np.random.Generator) -> tuple[int, int]:
        """Draw an example of a class, with two classes of the other where it has none."""
        if not len(self.examples[label]):
            label = 1 - label
        return int(rng.choice(self.examples[label])), label

    def with_example(self, at: int) -> OpenUnits:
        """Return the other units, with the task of this one as an example of its likeliest class.

        For two classes, where its label is asked for first: an example of either class will do.
        """
        examples = list(self.examples)
        label = int(self.classes[at, 0])
        examples[label] = np.append(examples[label], self.task[at])
        return replace(self.without([at]), examples=tuple(examples))

    def without(self, places: Sequence[int]) -> OpenUnits:
        """Return the other units."""
        others = np.setdiff1d(np.arange(len(self)), places)
        return replace(
            self,
            task=self.task[others],
            stake=self.stake[others],
            classes=self.classes[others],
            p=self.p[others],
        )

    def surest(self) -> list[int]:
        """Return, for each class that lacks an example and that two units or more may be, one.

        It is the surest: where a person and the crowd agree on it, hardly anything speaks against.
        """
        found = []
        for label in np.flatnonzero(~self.has_example()).tolist():
            members = np.flatnonzero(self.classes[:, 0] == label)
            if len(members) >= 2:
                found.append(int(members[np.argmax(self.p[members, 0])]))
        return found


def open_units(state: TaskState) -> OpenUnits:
    """Find the units that can be asked about."""
    task = np.flatnonzero(state.among)
    n_classes = state.q.shape[1]
    known = state.known[task]
    example = state.example[task]
    examples = tuple(task[example == k] for k in range(n_classes))
    open_task = task[known == OPEN]
    _, first = np.unique(state.settled.unit()[open_task], return_index=True)
    chosen = open_task[first]
    q = state.q[chosen]
    classes = np.argsort(-q, axis=1, kind="stable")
    stake = np.asarray(state.settled.at_stake()[chosen], dtype=np.float64)
    p = np.take_along_axis(q, classes, axis=1)
    return OpenUnits(chosen, stake, classes, p, examples, state.needs_sure_examples)
