"""Labels: one class per task, with its probability."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.errors import InputError
from tiebreak.ids import Codes, Column, Ids, is_arrow

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One class per task: tasks[i] has class classes[label[i]] with probability[i].

    `probabilities` is (n_tasks, n_classes), or None where only the labels are known (a labels
    file without one column a class); `probability` is then what the file said, or None.
    """

    tasks: Ids
    classes: Ids
    label: Codes
    probability: Floats | None = None
    probabilities: Floats | None = None
    frame: str = field(default="pyarrow", repr=False)

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
    ) -> Labels:
        """Take the likeliest class of each task (the first on ties), or the label given.

        `top` is the probability of that label, where it is known already.
        """
        if label is None:
            label = probabilities.argmax(axis=1).astype(np.int32)
        if top is None:
            top = np.take_along_axis(probabilities, label[:, None].astype(np.int64), axis=1)[:, 0]
        return cls(tasks, classes, label, top, probabilities, frame)

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return f"Labels({len(self):,} tasks, {len(self.classes):,} classes)"

    def best(self) -> dict[Hashable, Hashable]:
        """Return a mapping of task to label.

        >>> q = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> Labels.from_probabilities(Ids("ab"), Ids(["cat", "dog"]), q).best()
        {'a': 'cat', 'b': 'dog'}
        """
        return dict(zip(self.tasks, Ids(self.classes.take(self.label)), strict=True))

    def columns(self, *, probabilities: bool = False) -> dict[str, Column]:
        """Return task, label, probability and, if asked, one column a class."""
        label = self.classes.take(self.label)
        return {"task": self.tasks.values, "label": label, **self.numbers(probabilities)}

    def numbers(self, probabilities: bool = False) -> dict[str, Floats]:
        """Return the columns of probabilities: that of the label and, if asked, one a class."""
        columns: dict[str, Floats] = {}
        if self.probability is not None:
            columns["probability"] = self.probability
        if probabilities:
            if self.probabilities is None:
                raise InputError("These labels carry no probability for every class.")
            for k, name in enumerate(self.classes):
                columns[f"probability_{name}"] = self.probabilities[:, k]
        return columns

    def to_frame(self, *, probabilities: bool = False) -> Any:
        """Return task, label, probability as the caller's kind of table, else pyarrow."""
        return as_frame(self.columns(probabilities=probabilities), self.frame)


def as_frame(columns: dict[str, Column], frame: str) -> Any:
    """Make a table of the caller's kind from columns."""
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame({name: _for_pandas(column) for name, column in columns.items()})
    import pyarrow as pa

    table = pa.table({name: _for_arrow(name, column) for name, column in columns.items()})
    if frame == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _for_pandas(column: Column) -> Any:
    return column.to_pandas() if is_arrow(column) else column


def _for_arrow(name: str, column: Sequence[Any]) -> Any:
    import pyarrow as pa

    try:
        return column if is_arrow(column) else pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InputError(
            f"Column {name!r} holds values that no table column can hold together. "
            "Use .best() for a dictionary of task to label."
        ) from None
