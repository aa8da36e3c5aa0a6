"""Beliefs: what answers leave in doubt, when the next questions are chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiebreak.ask.evidence import likeliest_labels, struck_classes
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.inference import VariationalBayes
from tiebreak.inference.calibration import Calibration
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.link_graph import OPEN
from tiebreak.selection.adaptive import TaskState
from tiebreak.selection.asking import task_state, tempered

LEAST_BELIEF = 0.9  # in its label, for a task that can be shown as an example where answers may err


def believed(
    job: Job, model: VariationalBayes, answers: Sequence[Event], *, is_soft: bool
) -> Floats:
    """Return the probabilities to choose questions by.

    The votes of a crowd are scaled down, since its members err together. What people were asked is
    not part of that: their answers count in full. A class that somebody said no to is left out,
    where no link says so yet.
    """
    q = tempered(model)
    if is_soft:
        q = _with_full_answers(job, model, q)
    if not is_soft and job.responses.n_classes > 2:
        q = _without_struck(job, q, answers)
    return q


def _without_struck(job: Job, q: Floats, answers: Sequence[Event]) -> Floats:
    """Leave out classes that somebody said no to; a task that would have none left stays."""
    struck = struck_classes(job, answers)
    if not struck:
        return q
    task, label = np.array(struck).T
    without = q.copy()
    without[task, label] = 0.0
    total = without.sum(axis=1, keepdims=True)
    has_some = total > 0.0
    return np.where(has_some, without / np.where(has_some, total, 1.0), q)


def _with_full_answers(job: Job, model: VariationalBayes, q: Floats) -> Floats:
    """Give back to the answers of people what the scaling of votes took from them."""
    crowd = model.responses_
    n_workers = job.responses.n_workers
    worker = crowd.worker_of_each()
    asked = np.flatnonzero(worker >= n_workers)
    if not len(asked):
        return q
    task = crowd.task_of_each()[asked]
    log_answer = np.log(
        np.maximum(model.confusion_[worker[asked], :, crowd.label_of_each()[asked]], 1e-12)
    )
    calibration = model.calibration_ or Calibration()
    scale = calibration.scale(np.diff(crowd.start).astype(np.float64))
    logs = np.log(np.maximum(q, np.finfo(np.float64).tiny))
    np.add.at(logs, task, np.maximum(1.0 - scale[task], 0.0)[:, None] * log_answer)
    logs -= logs.max(axis=1, keepdims=True)
    found = np.exp(logs)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def state_of(
    job: Job, model: VariationalBayes, q: Floats, answers: Sequence[Event], *, is_soft: bool
) -> TaskState:
    """Return what is known of the tasks, answers included."""
    state = task_state(model, job.among)._replace(q=q)
    return state._replace(example=_examples(job, q, answers, state.known)) if is_soft else state


def _examples(job: Job, q: Floats, answers: Sequence[Event], known: Codes) -> Codes:
    """Return the class that each task can be shown as an example of: labelled, and believed."""
    example = known.copy()
    for task, label in likeliest_labels(job, answers).items():
        if example[task] == OPEN and q[task, label] >= LEAST_BELIEF:
            example[task] = label
    return example
