"""Gold: tasks whose class is known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, MAPPING, checks
from tiebreak.data import messages  # noqa: F401  # registered
from tiebreak.data.ids import MISSING, Column, Ids, encode, fold
from tiebreak.errors import GoldError, note
from tiebreak.kernels.layout import Codes, Offsets
from tiebreak.wording import NOWHERE, Source

SHOWN = 3  # tasks named in a message


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
    """One row per known task: tasks[i] has class classes[label[i]].

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
            raise GoldError("unequal-gold", n_tasks=len(task), n_labels=len(label))
        label_code, classes = encode(label)
        task_code, tasks = encode(task)
        nameless = np.flatnonzero(task_code == MISSING)
        if len(nameless):
            raise GoldError("no-task-in-gold", where=source.where(int(nameless[0])))
        rows = np.flatnonzero(label_code != MISSING)
        if len(rows) < len(label_code):
            note("empty-gold", n=len(label_code) - len(rows))
        task_code = task_code[rows]
        label_code = label_code[rows]
        _, first, task_of_row = np.unique(task_code, return_index=True, return_inverse=True)
        differs = np.flatnonzero(label_code != label_code[first][task_of_row])
        if len(differs):
            later = int(differs[0])
            given = [
                (classes[int(label_code[row])], source.where(int(rows[row])))
                for row in (int(first[task_of_row[later]]), later)
            ]
            raise GoldError("gold-known-twice", task=tasks[int(task_code[later])], given=given)
        first.sort()
        return cls(tasks.take(task_code[first]), label_code[first], classes, rows[first], source)

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
        new_code, merged = encode([known.get(fold(name), name) for name in self.classes])
        return replace(self, label=new_code[self.label], classes=merged)

    def to_dict(self) -> dict[Hashable, Hashable]:
        """Return a mapping of task to label."""
        return dict(zip(self.tasks, self.classes.take(self.label), strict=True))

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write task and label to a file, by its name CSV, TSV, JSON or Parquet."""
        from tiebreak.tables import write_table

        columns = {"task": self.tasks.values, "label": self.classes.take(self.label).values}
        write_table(target, columns, format=format)

    def on(self, tasks: Ids, classes: Ids) -> GoldCodes:
        """Translate into the codes of a crowd that has these tasks and classes.

        Raises GoldError where a task is unknown; every class must be among `classes`.
        """
        code = tasks.codes(self.tasks)
        unknown = np.flatnonzero(code == MISSING)
        if len(unknown):
            shown = [(self.tasks[i], self.source.where(int(self.row[i]))) for i in unknown[:SHOWN]]
            raise GoldError("unknown-gold", n=len(unknown), shown=shown)
        return GoldCodes(code, classes.codes(self.classes)[self.label])


def note_unused_classes(unused: Sequence[Hashable], used: Ids) -> None:
    """Report classes that only gold names, and the first that is a class in another form."""
    known = {fold(name): name for name in used}
    alike = next(((name, known[fold(name)]) for name in unused if fold(name) in known), None)
    note("classes-of-gold", names=list(unused), alike=alike)
