"""Labels: one class per task, with its probability."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiebreak.errors import InputError
from tiebreak.frames import as_frame
from tiebreak.ids import Column, Ids
from tiebreak.kernels.layout import Codes, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One class per task: tasks[i] has class classes[label[i]] with probability[i].

    `probabilities` is (n_tasks, n_classes), or None where only the labels are known (a labels
    file without one column per class); `probability` is then what the file said, or None.
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
        """Return task, label, probability and, if asked, one column per class."""
        label = self.classes.take(self.label)
        return {"task": self.tasks.values, "label": label, **self.numbers(probabilities)}

    def numbers(self, probabilities: bool = False) -> dict[str, Floats]:
        """Return the columns of probabilities: that of the label and, if asked, one per class."""
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
