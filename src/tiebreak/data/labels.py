"""Labels: one class per task, with its probability."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import FLAG, TEXT, checks, optional
from tiebreak.data import messages  # noqa: F401  # registered
from tiebreak.data.frames import as_frame, as_html, as_text
from tiebreak.data.ids import MISSING, Column, Ids
from tiebreak.errors import InputError
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.layout import Codes, Floats

SHOWN = 10  # rows
TAIL = 0.05  # of an interval of 90 %
SCORES = ("score", "score_low", "score_high")


class Label(NamedTuple):
    """The label of one task."""

    task: Hashable
    label: Hashable
    probability: float | None


class Scores(NamedTuple):
    """Where tasks lie on a scale."""

    mean: Floats  # (n_tasks,) expected
    low: Floats  # the level below which lie 5 % …
    high: Floats  # … and 95 %

    @classmethod
    def of(cls, probabilities: Floats, values: Floats) -> Scores:
        """Return the expected number of each task, and its interval of 90 %.

        >>> Scores.of(np.array([[0.04, 0.9, 0.06]]), np.array([1.0, 2.0, 3.0]))
        Scores(mean=array([2.02]), low=array([2.]), high=array([3.]))
        """
        below = np.cumsum(probabilities, axis=1)
        low, high = (
            values[np.minimum((below < share).sum(axis=1), len(values) - 1)]
            for share in (TAIL, 1.0 - TAIL)
        )
        return cls(probabilities @ values, low, high)

    def take(self, at: npt.NDArray[Any]) -> Scores:
        """Return those of some tasks."""
        return Scores(*(each[at] for each in self))


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One class per task: tasks[i] has class classes[label[i]] with probability[i].

    `probabilities` is (n_tasks, n_classes), or None where only the labels are known (a labels
    file without one column per class); `probability` is then what the file said, or None.
    `scores` is where tasks lie on a scale, or None where classes are none.
    """

    tasks: Ids
    classes: Ids
    label: Codes
    probability: Floats | None = None
    probabilities: Floats | None = None
    frame: str = field(default="pyarrow", repr=False)
    scores: Scores | None = field(default=None, repr=False)

    @classmethod
    def from_probabilities(
        cls,
        tasks: Ids,
        classes: Ids,
        probabilities: Floats,
        *,
        label: Codes | None = None,
        top: Floats | None = None,
        frame: str = "pyarrow",
        values: Floats | None = None,
    ) -> Labels:
        """Take the likeliest class of each task (the first on ties), or the label given.

        `top` is the probability of that label, where it is known already; `values` the number of
        each class, where classes are a scale.
        """
        if label is None:
            label, _ = likeliest(probabilities)
        if top is None:
            top = np.take_along_axis(probabilities, label[:, None].astype(np.int64), axis=1)[:, 0]
        scores = None if values is None else Scores.of(probabilities, values)
        return cls(tasks, classes, label, top, probabilities, frame, scores)

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        """Show the first rows.

        >>> q = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> Labels.from_probabilities(Ids(["a", "b"]), Ids(["cat", "dog"]), q)
        Labels(2 tasks, 2 classes)
        task  label  probability
        a     cat    0.9000
        b     dog    0.8000
        """
        title, header, rows = self._shown()
        if not rows:
            return title
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"{title}\n{as_text(header, rows)}{more}"

    def _repr_html_(self) -> str:
        return as_html(*self._shown())

    def _shown(self) -> tuple[str, tuple[str, ...], list[tuple[Any, ...]]]:
        """Return title, header and first rows; without probabilities where there are none."""
        title = f"Labels({len(self):,} tasks, {len(self.classes):,} classes)"
        n_columns = 3 if self.probability is not None else 2
        rows = [self._row(i)[:n_columns] for i in range(min(SHOWN, len(self)))]
        return title, Label._fields[:n_columns], rows

    def __getitem__(self, task: Hashable) -> Label:
        """Return the label of a task.

        >>> q = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> Labels.from_probabilities(Ids(["a", "b"]), Ids(["cat", "dog"]), q)["b"]
        Label(task='b', label='dog', probability=0.8)
        """
        at = int(self.tasks.codes([task])[0])
        if at == MISSING:
            raise KeyError(f"There is no task {task!r} among {len(self):,} labels.")
        return self._row(at)

    def _row(self, i: int) -> Label:
        probability = None if self.probability is None else float(self.probability[i])
        return Label(self.tasks[i], self.classes[int(self.label[i])], probability)

    def __iter__(self) -> Iterator[Label]:
        """Yield task, label and probability of each task."""
        stated = [None] * len(self) if self.probability is None else self.probability.tolist()
        return map(Label, self.tasks, self.classes.take(self.label), stated)

    def best(self) -> dict[Hashable, Hashable]:
        """Return a mapping of task to label.

        >>> q = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> Labels.from_probabilities(Ids(["a", "b"]), Ids(["cat", "dog"]), q).best()
        {'a': 'cat', 'b': 'dog'}
        """
        return dict(zip(self.tasks, self.classes.take(self.label), strict=True))

    def columns(self, *, probabilities: bool = False) -> dict[str, Column]:
        """Return task, label, probability and, if asked, one column per class."""
        label = self.classes.take(self.label)
        return {"task": self.tasks.values, "label": label.values, **self.numbers(probabilities)}

    def numbers(self, probabilities: bool = False) -> dict[str, Floats]:
        """Return the columns of probabilities: that of the label and, if asked, one per class.

        Labels on a scale have their score, and where it lies with 90 %, too.
        """
        columns: dict[str, Floats] = {}
        if self.probability is not None:
            columns["probability"] = self.probability
        if self.scores is not None:
            columns |= dict(zip(SCORES, self.scores, strict=True))
        if probabilities:
            if self.probabilities is None:
                raise InputError("no-probabilities")
            for k, name in enumerate(self.classes):
                columns[f"probability_{name}"] = self.probabilities[:, k]
        return columns

    def write(self, target: Any, **options: Any) -> None:
        """Write task, label and probability to a file, by its name CSV, TSV, JSON or Parquet.

        `probabilities` adds one column per class, `vote` the code of the class of most votes of
        each task; `format` overrules what the name says. "-" is the standard output.
        """
        from tiebreak.tables import write_labels

        write_labels(target, self, **options)

    @checks(frame=optional(TEXT), probabilities=FLAG)
    def to_frame(self, frame: str | None = None, *, probabilities: bool = False) -> Any:
        """Return task, label, probability as a table.

        `frame` is "pandas", "polars" or "pyarrow"; not given: the caller's kind, else pyarrow.
        """
        return as_frame(self.columns(probabilities=probabilities), frame or self.frame)

    def to_series(self) -> Any:
        """Return the labels as a pandas series with tasks as its index.

        >>> q = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> Labels.from_probabilities(Ids(["a", "b"]), Ids(["cat", "dog"]), q).to_series()["b"]
        'dog'
        """
        return self.to_frame("pandas").set_index("task")["label"]
