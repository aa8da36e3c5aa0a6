"""Methods of tiebreak that are told more than who said what: a scale, sequences, items of pairs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb

BETWEEN = "|"  # parts of a task: prompt, if any, first and second item


class OnScale:
    """An estimator that is told that classes have an order."""

    def __init__(self, name: str, scale: str) -> None:
        self.name, self.scale = name, scale

    def __repr__(self) -> str:
        return f"{self.name}-scale"

    def fit(self, crowd: tb.Responses, gold: Any = None) -> Any:
        estimator = tb.Auto if self.name == "auto" else tb.VariationalBayes
        return estimator(scale=self.scale).fit(crowd, gold=gold)


class InSequence:
    """VariationalBayes that is told which tasks follow each other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return "vb-sequences"

    def fit(self, crowd: tb.Responses, gold: Any = None) -> tb.VariationalBayes:
        return tb.VariationalBayes().fit(crowd, gold=gold, sequences=self.path)


class OfItems:
    """BradleyTerry: a verdict is expected by the strengths of both items, on any prompt."""

    def __repr__(self) -> str:
        return "bradley-terry"

    def fit(self, crowd: tb.Responses, gold: Any = None) -> OfItems:
        parts = [str(task).split(BETWEEN) for task in crowd.tasks]
        said = zip(crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each(), strict=True)
        rows = [
            (*parts[i][-2:], crowd.classes[int(label)], crowd.workers[int(j)], parts[i][0])
            for i, j, label in said
        ]
        has_prompt = len(parts[0]) > 2
        model = tb.BradleyTerry().fit([row if has_prompt else row[:4] for row in rows])
        first, second = ([part[at] for part in parts] for at in (-2, -1))
        order = [("first", "second", "tie").index(name) for name in crowd.classes]
        self.probabilities_ = np.ascontiguousarray(model.predict(first, second)[:, order])
        return self


def told(about: dict[str, Any]) -> list[Any]:
    """Return the methods that can use what sets.toml says of a set."""
    found: list[Any] = []
    if "scale" in about:
        found += [OnScale("vb", about["scale"]), OnScale("auto", about["scale"])]
    if "sequences" in about:
        found.append(InSequence(Path(os.path.expandvars(about["folder"]), about["sequences"])))
    if about.get("group") == "pairs":
        found.append(OfItems())
    return found
