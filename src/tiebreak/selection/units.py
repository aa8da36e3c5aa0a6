"""Units: what a question of any kind is about, a task or a group of tasks that are tied.

An answer about one task of a group is an answer about all of them. An example with three classes:
tasks 0 = 1 = 4 are tied, 2 is known to be of class 1, and q has, for the two open units,

    unit  task  stake  classes  p
    0     0     3      0 2 1    .5 .4 .1     any of 0, 1 and 4 can be asked about
    1     3     1      1 0 2    .9 .1 .0     "same as 2?" asks whether it is of class 1
"""

from __future__ import annotations

from dataclasses import dataclass

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
        others = np.arange(len(self)) != at
        examples = list(self.examples)
        examples[int(self.classes[at, 0])] = self.task[at : at + 1]
        return OpenUnits(
            self.task[others],
            self.stake[others],
            self.classes[others],
            self.p[others],
            tuple(examples),
        )


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
    return OpenUnits(chosen, stake, classes, np.take_along_axis(q, classes, axis=1), examples)
