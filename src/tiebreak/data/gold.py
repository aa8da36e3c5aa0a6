"""Gold: tasks whose class is known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, MAPPING, checks
from tiebreak.data import ids
from tiebreak.data.ids import MISSING, Column, Ids, fold
from tiebreak.errors import GoldError, note
from tiebreak.kernels.layout import Codes, Offsets
from tiebreak.wording import NOWHERE, Source, agreeing, counted


class GoldCodes(NamedTuple):
    """Known labels in the codes of a crowd: task[g] has class label[g]."""

    task: Codes
    label: Codes

    def among(self, tasks: npt.NDArray[Any]) -> GoldCodes:
        """Return the labels of `tasks`, which are sorted, each task numbered by its place there.

        >>> known = GoldCodes(np.array([2, 5, 9]), np.array([0, 1, 0])).among(np.array([1, 5, 9]))
        >>> known.task.tolist(), known.label.tolist()
        ([1, 2], [1, 0])
        """
        at = np.isin(self.task, tasks)
        place = np.searchsorted(tasks, self.task[at])
        return GoldCodes(place.astype(np.int32), self.label[at])


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """One row per known task: tasks[g] has class classes[label[g]].

    >>> Gold.from_dict({"a": "cat", "b": "dog"})
    Gold(2 tasks, 2 classes)
    """

    tasks: Ids
    label: Codes
    classes: Ids
    row: Offsets = field(repr=False)  # the row of the source each came from
    source: Source = field(default=NOWHERE, repr=False)

    @classmethod
    @checks(task=COLUMN, label=COLUMN)
    def from_columns(cls, task: Column, label: Column, *, source: Source = NOWHERE) -> Gold:
        """Build from two columns of equal length; rows with an empty label are not known."""
        if len(task) != len(label):
            raise GoldError(f"task and label must be equally long; got {len(task)}, {len(label)}.")
        label_code, classes = ids.encode(label)
        task_code, tasks = ids.encode(task)
        known = label_code != MISSING
        without_task = np.flatnonzero(task_code == MISSING)
        if len(without_task):
            place = source.where(int(without_task[0]))
            raise GoldError(f"A row has no task id ({place}). Fill it in or remove the row.")
        if not known.all():
            n = int(np.count_nonzero(~known))
            rows_of_gold = f"{counted(n, 'row')} of gold {agreeing(n, 'have')}"
            note(f"{rows_of_gold} an empty label: not known.")
        rows = np.flatnonzero(known)
        first = _one_label_each(task_code[rows], label_code[rows], rows, (tasks, classes), source)
        kept = rows[first]
        return cls(Ids(tasks.take(task_code[kept])), label_code[kept], classes, kept, source)

    @classmethod
    @checks(labels=MAPPING)
    def from_dict(cls, labels: Mapping[Any, Any]) -> Gold:
        """Build from a mapping of task to label."""
        return cls.from_columns(list(labels), list(labels.values()))

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return f"Gold({len(self):,} tasks, {len(self.classes):,} classes)"

    def with_labels_like(self, classes: Ids) -> Gold:
        """Return gold whose labels are those of `classes` that they fold to, where there is one.

        >>> Gold.from_dict({"a": "CAT"}).with_labels_like(Ids(["cat"])).to_dict()
        {'a': 'cat'}
        """
        known = {fold(name): name for name in classes}
        names = [known.get(fold(name), name) for name in self.classes]
        merged = list(dict.fromkeys(names))
        new_code = np.array([merged.index(name) for name in names], dtype=np.int32)
        label = new_code[self.label] if len(names) else self.label
        return replace(self, label=label, classes=Ids(merged))

    def to_dict(self) -> dict[Hashable, Hashable]:
        """Return a mapping of task to label."""
        return dict(zip(self.tasks, Ids(self.classes.take(self.label)), strict=True))

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write task and label to a file, by its name CSV, TSV, JSON or Parquet."""
        from tiebreak.tables import write_gold

        write_gold(target, self, format=format)

    def on(self, tasks: Ids, classes: Ids) -> GoldCodes:
        """Translate into the codes of a crowd that has these tasks and classes.

        Raises GoldError where a task is unknown; every class must be among `classes`.
        """
        code = tasks.codes(self.tasks)
        unknown = np.flatnonzero(code == MISSING)
        if len(unknown):
            shown = "; ".join(
                f"{self.tasks[int(g)]!r} ({self.source.where(int(self.row[g]))})"
                for g in unknown[:3]
            )
            n = len(unknown)
            raise GoldError(
                f"{counted(n, 'task')} of gold {agreeing(n, 'are')} not among the responses: "
                f"{shown}.\nCorrect these ids, remove the rows, or list tasks without responses "
                "with tasks=."
            )
        return GoldCodes(code, classes.codes(self.classes)[self.label])


def _one_label_each(
    task: Codes,
    label: Codes,
    rows: Offsets,
    of: tuple[Ids, Ids],
    source: Source,
) -> Offsets:
    """Return the first row of each task; a task with two different labels is an error."""
    tasks, classes = of
    _, first, inverse = np.unique(task, return_index=True, return_inverse=True)
    differs = np.flatnonzero(label != label[first][inverse])
    if len(differs):
        later = int(differs[0])
        earlier = int(first[inverse[later]])
        raise GoldError(
            f"Task {tasks[int(task[later])]!r} is known twice with different labels: "
            f"{classes[int(label[earlier])]!r} ({source.where(int(rows[earlier]))}) and "
            f"{classes[int(label[later])]!r} ({source.where(int(rows[later]))}). Keep one of them."
        )
    return np.sort(first)


def note_unused_classes(unused: Sequence[Hashable], used: Ids) -> None:
    """Say which classes only gold names, and which of them are a class in another form."""
    names = ", ".join(str(name) for name in unused)
    words = [f"No worker used {names}, which gold names: added to the classes."]
    known = {ids.fold(name): name for name in used}
    other = next((name for name in unused if ids.fold(name) in known), None)
    if other is not None:
        meant = known[ids.fold(other)]
        words.append(
            f"{other!r} and {meant!r} {ids.difference([other, meant])}: write them alike, or join "
            "them with fold_labels=True (gold.with_labels_like(responses.classes))."
        )
    note(" ".join(words))
