"""The subject of a report: a fitted model, what is known beside it, and how much is shown."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.ids import Ids
from tiebreak.inference.estimator import Estimator
from tiebreak.juries import AgreementReport, agreement_report
from tiebreak.juries.known import responses_on
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.markup import clip
from tiebreak.plots.calibration_curve import ToScore
from tiebreak.plots.drawings import LONGEST_ID
from tiebreak.responses import Responses

N_RESAMPLES = 400  # of tasks, for the interval of α
MOST_SAMPLED = 20_000  # tasks that agreement and shared errors are measured on
LONGEST_TEXT = 400  # characters of a task's text
BINS = 20  # of a histogram


LOOK = "Look"
FINE = "Fine"
NEXT = "Next"
SIGNS = (LOOK, FINE, NEXT)  # in this order at the top of the report


class Sentence(NamedTuple):
    """A sentence in plain words: something to look at, something fine, or what to do next."""

    text: str
    sign: str = FINE


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


class JudgedSystems(NamedTuple):
    """Which model made the answer that each task is about, and the class that accepts it."""

    systems: Mapping[Hashable, str]
    accepts: Hashable


class Subject(NamedTuple):
    """What sections measure."""

    model: Estimator
    source: str  # what the responses are called
    to_score: ToScore | None
    texts: Mapping[int, str]  # by code of task
    sample: Estimator  # the model on some tasks, where there are very many
    agreement: AgreementReport | None  # of the sample; None: no task has two responses
    limits: Limits
    judged: JudgedSystems | None = None

    def text(self, task: int) -> str | None:
        """Return the text of a task, cut to a length that can be read."""
        found = self.texts.get(task)
        return None if found is None else clip(found, self.limits.texts)


def name(value: Hashable | None) -> str:
    """Return an id as the report writes it."""
    return clip(value, LONGEST_ID)


def agreement_of(responses: Responses) -> AgreementReport | None:
    """Measure how far workers agree; None where no task has two responses, or one class only."""
    if responses.n_classes < 2 or not (np.diff(responses.start) >= 2).any():
        return None
    return agreement_report(responses, n_resamples=N_RESAMPLES)


def sampled(model: Estimator) -> Estimator:
    """Return the model on `MOST_SAMPLED` tasks, drawn at random; itself, where there are less."""
    n_tasks = len(model.tasks_)
    if n_tasks <= MOST_SAMPLED:
        return model
    chosen = np.random.default_rng(0).choice(n_tasks, MOST_SAMPLED, replace=False)
    return restricted(model, np.sort(chosen))


def restricted(model: Estimator, chosen: Offsets) -> Estimator:
    """Return a fitted model as it is on some tasks, by sorted codes; what it learnt is shared.

    Links and gold stay whole: where they matter, their tasks must be among the chosen ones.

    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "x"), ("b", "ann", "y"), ("c", "bob", "x")]
    >>> list(restricted(tb.VariationalBayes().fit(votes), np.array([0, 2])).tasks_)
    ['a', 'c']
    """
    view = copy.copy(model)
    labels = model.labels_
    view.responses_ = _of_tasks(model.responses_, chosen)
    view.tasks_ = view.responses_.tasks
    view.probabilities_ = model.probabilities_[chosen]
    view.labels_ = replace(
        labels,
        tasks=view.tasks_,
        label=labels.label[chosen],
        probability=None if labels.probability is None else labels.probability[chosen],
        probabilities=view.probabilities_,
    )
    return view


def _of_tasks(responses: Responses, chosen: Offsets) -> Responses:
    """Return the responses to these tasks."""
    place, _ = responses_on(responses, chosen)
    return replace(
        responses,
        start=np.concatenate([[0], np.cumsum(np.diff(responses.start)[chosen])]),
        code=responses.code[place],
        tasks=Ids(responses.tasks.take(chosen)),
        weight=None if responses.weight is None else responses.weight[place],
    )


def known(value: float | None) -> float | None:
    """Return a number that JSON can hold; nan is not known."""
    return None if value is None or not np.isfinite(value) else float(value)


def histogram(shares: Floats) -> dict[str, list[Any]]:
    """Count shares in bins of equal width from 0 to 1."""
    bin_of = np.minimum((BINS * shares).astype(np.int64), BINS - 1)
    return {
        "edges": [round(k / BINS, 4) for k in range(BINS + 1)],
        "counts": np.bincount(bin_of, minlength=BINS).tolist(),
    }
