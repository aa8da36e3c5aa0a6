"""Beliefs: what answers leave in doubt, when the next questions are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tiebreak.ask.evidence import AnsweredJob, struck_classes
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.link_graph import OPEN
from tiebreak.selection.adaptive import TaskState
from tiebreak.selection.asking import task_state, tempered

SURE = 0.9  # belief in a label, for a task to be shown as an example where answers may err: one
# answer that the crowd does not contradict is enough; comparisons are priced by the belief


def believed(
    job: Job, model: VariationalBayes, given: AnsweredJob, answers: Sequence[Event]
) -> Floats:
    """Return the probabilities to choose questions by.

    Where answers may be wrong, what was said of a task is as sure as it was found to be. A class
    that somebody denied is left out, where no link says so yet.
    """
    q = tempered(model)
    if given.weighed is not None:
        q = q.copy()
        q[given.weighed.task] = given.weighed.r
        return q
    if job.responses.n_classes > 2:
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


def state_of(job: Job, model: VariationalBayes, q: Floats, given: AnsweredJob) -> TaskState:
    """Return what is known of the tasks, answers included.

    Where answers may be wrong, a task stays open to a second question, and serves as an example
    where its label is believed.
    """
    state = task_state(model, job.among)._replace(q=q)
    if given.weighed is None:
        return state
    known = np.full(len(q), OPEN, dtype=np.int32)
    for task, label in job.given_labels().items():
        known[task] = label
    # What is believed is known to the fit, but ties nothing for good: each task stands for itself.
    settled = state.settled
    if settled.asked is None:
        settled = replace(settled, asked=np.empty(0, dtype=np.int64))
    return state._replace(
        settled=settled,
        known=known,
        example=_examples(q, given, known),
        error=given.weighed.error,
        gain_for_others=given.weighed.gain_for_others(len(q)),
    )


def _examples(q: Floats, given: AnsweredJob, known: Codes) -> Codes:
    """Return the class that each task can be shown as an example of: named, and believed.

    What was only compared with another example is none, or errors would add up along a chain.
    """
    example = known.copy()
    if given.weighed is not None:
        label = given.weighed.r.argmax(axis=1)
        for place in np.flatnonzero(given.weighed.is_labelled).tolist():
            task = int(given.weighed.task[place])
            if example[task] == OPEN and q[task, label[place]] >= SURE:
                example[task] = label[place]
    return example
