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
from tiebreak.links.graph import OPEN
from tiebreak.selection.adaptive import TaskState


@dataclass(frozen=True, slots=True, eq=False)
class OpenUnits:
    """The units whose class is not known, and the tasks whose class is."""

    task: Offsets  # (n_units,) one task that can be asked about, for each
    stake: Floats  # (n_units,) how many labels hang on it
    classes: Offsets  # (n_units, n_classes), likeliest first
    p: Floats  # (n_units, n_classes), in that order
    examples: tuple[Offsets, ...]  # by class: tasks known to be of it that can be shown
    example_q: Floats | None = None  # (n_classes, n_classes) what examples of each class are
    error: float = 0.0  # how often answers are wrong
    gain_for_others: Floats | None = None  # (n_units,) what a label of each puts right in others

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.p.shape[1])

    def is_only_example(self) -> Mask:
        """Say of each unit whether its task is the only one it could be compared with.

        Where answers may be wrong, an example stays open, and could be asked about again.
        """
        found = np.zeros(len(self), dtype=bool)
        for label, tasks in enumerate(self.examples):
            if len(tasks) == 1:
                found |= (self.task == tasks[0]) & (self.classes[:, 0] == label)
        if self.n_classes == 2:
            found &= sum(map(len, self.examples)) == 1
        return found

    def has_example(self) -> Mask:
        """Say of each class whether a task is known that answers "is it of this class?".

        With two classes an example of either does.
        """
        found = np.array([len(tasks) > 0 for tasks in self.examples], dtype=bool)
        return np.full_like(found, found.any()) if self.n_classes == 2 else found

    def example(self, at: int, label: int, rng: np.random.Generator) -> tuple[int, int]:
        """Draw an example of a class for a unit, with two classes of the other where it has none.

        A task is not compared with itself.
        """
        others = [tasks[tasks != self.task[at]] for tasks in self.examples]
        if not len(others[label]):
            label = 1 - label
        return int(rng.choice(others[label])), label

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
            gain_for_others=(
                None if self.gain_for_others is None else self.gain_for_others[others]
            ),
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
    p = np.take_along_axis(q, classes, axis=1)
    example_q = _beliefs_of(examples, state.q) if state.error > 0.0 else None
    more = None if state.gain_for_others is None else state.gain_for_others[chosen]
    return OpenUnits(chosen, stake, classes, p, examples, example_q, state.error, more)


def _beliefs_of(examples: Sequence[Offsets], q: Floats) -> Floats:
    """Return what is believed of the examples of each class, (n_classes, n_classes).

    With two classes an example of the other class will do, where one has none.
    """
    found = np.eye(q.shape[1])
    for k, tasks in enumerate(examples):
        if not len(tasks) and len(examples) == 2:
            tasks = examples[1 - k]
        if len(tasks):
            found[k] = q[tasks].mean(axis=0)
    return found
