"""The subject of a report: a fitted model, what is known beside it, and how much is shown."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.ids import Ids
from tiebreak.inference.estimator import Estimator
from tiebreak.markup import clip
from tiebreak.plots.calibration_curve import ToScore
from tiebreak.plots.drawings import LONGEST_ID
from tiebreak.responses import Responses

MOST_SAMPLED = 20_000  # tasks that agreement and shared errors are measured on
LONGEST_TEXT = 400  # characters of a task's text


class Sentence(NamedTuple):
    """A sentence in plain words; `is_fine` is False where somebody should look."""

    text: str
    is_fine: bool = True


class Limits(NamedTuple):
    """The most rows of each list."""

    tasks: int = 40
    texts: int = LONGEST_TEXT  # characters
    votes: int = 12  # names of workers beside a task
    classes: int = 30
    workers: int = 40
    matrices: int = 6
    correlated: int = 12
    links: int = 25
    questions: int = 10

    def halved(self) -> Limits:
        """Return half of each, for a report that came out too large."""
        return Limits(*(max(limit // 2, 1) for limit in self))


class Subject(NamedTuple):
    """What sections measure."""

    model: Estimator
    source: str  # what the responses are called
    to_score: ToScore | None
    texts: Mapping[int, str]  # by code of task
    sample: Responses
    limits: Limits

    def text(self, task: int) -> str | None:
        """Return the text of a task, cut to a length that can be read."""
        found = self.texts.get(task)
        return None if found is None else clip(found, self.limits.texts)


def name(value: Hashable | None) -> str:
    """Return an id as the report writes it."""
    return clip(value, LONGEST_ID)


def sampled(responses: Responses, most: int = MOST_SAMPLED) -> Responses:
    """Return the responses to so many tasks, drawn at random; all, where there are no more.

    >>> rows = [("a", "ann", "x"), ("b", "ann", "y"), ("c", "bob", "x")]
    >>> sampled(Responses.from_rows(rows), 2).n_tasks
    2
    """
    if responses.n_tasks <= most:
        return responses
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(responses.n_tasks, most, replace=False))
    n_each = np.diff(responses.start)[chosen]
    start = np.concatenate([[0], np.cumsum(n_each)])
    place = np.arange(start[-1]) + np.repeat(responses.start[chosen] - start[:-1], n_each)
    return replace(
        responses,
        start=start,
        code=responses.code[place],
        tasks=Ids(responses.tasks.take(chosen)),
        weight=None if responses.weight is None else responses.weight[place],
    )


def known(value: float | None) -> float | None:
    """Return a number that JSON can hold; nan is not known."""
    return None if value is None or not np.isfinite(value) else float(value)


def rows_of(found: Any) -> list[dict[str, Any]]:
    """Return named tuples as dictionaries."""
    return [each._asdict() for each in found]
