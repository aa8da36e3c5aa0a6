"""Evidence: what answers of all kinds amount to, as the links, gold and responses of a fit.

One person is trusted: a label, or "yes, it is", is a known label, and "no, it is not" a cannot-link
to a task that is known to be of the class. Where answers may be wrong, they are weighed first
(`ask.people`), and what is then believed is known. For example, with classes cat, dog and bird:

    answer                 trusted              fallible
    a: cat (label)         gold a = cat         ann says cat of a; gold, if it is believed
    b: dog? yes (is)       gold b = dog         ann says dog of b
    c: cat? no             cannot c, a          ann denies cat of c; cannot, if it is believed
    d: cat? no, dog? no    gold d = bird        she denies both
    e = a (same)           must e, a            ann says cat of e
    f = g, nothing known   must f, g            must f, g, which may be wrong
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.ask.people import Weighed, weigh
from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.errors import GoldError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Links
from tiebreak.links.graph import OPEN
from tiebreak.selection.state import TaskState, task_state, tempered
from tiebreak.wording import Source

Denial = tuple[int, int, str]  # a task, a class that it is not of, and the person that said so
LEAST_BELIEF = 0.75  # in a class for it to count as known, where answers may be wrong
SURE = 0.9  # belief in a label, for a task to be shown as an example where answers may err: one
# answer that the crowd does not contradict is enough; comparisons are priced by the belief
SOURCE = Source("the answers")


class AnsweredJob(NamedTuple):
    """What a fit gets: the job, and what the answers add to it."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    weighed: Weighed | None = None  # what was said of single tasks, where it may be wrong
    n_loose: int = 0  # links between tasks of which nothing else was said


def trusted(job: Job, answers: Sequence[Event]) -> AnsweredJob:
    """Take answers as true; raise GoldError where two labels of a task differ."""
    label: dict[int, int] = {}
    for task, said in _labels_in_order(job, answers):
        if label.setdefault(task, said) != said:
            raise GoldError("labels-of-answers-differ", task=job.responses.tasks[task])
    return AnsweredJob(_with_votes(job, answers), _links(job, answers, label), _gold(job, label))


def fallible(
    job: Job, answers: Sequence[Event], own: Floats, error: float | None = None
) -> AnsweredJob:
    """Take answers as what may be wrong: weigh them, and take as known what is believed.

    Parameters
    ----------
    own
        (n_tasks, n_classes) by the responses of each task alone, scaled.
    error
        How often answers are wrong; None: it is learnt for each person.
    """
    by_hand = _by_hand(job, answers)
    given = {**job.given_labels(), **by_hand}
    gold = _gold(job, given) if by_hand else job.gold
    said = [event for event in answers if not (event.is_vote or event.is_by_hand)]
    crowd = _with_votes(job, answers)
    if not given and all(event.is_link for event in said):  # no class was named
        return AnsweredJob(crowd, _links(job, said, given), gold, None, len(said))
    if not said:
        return AnsweredJob(crowd, job.links, gold)
    known = np.zeros(len(own))
    if given:
        task = np.fromiter(given, dtype=np.int64)
        known[task] = 1.0
        own = own.copy()
        own[task] = np.eye(own.shape[1])[np.fromiter(given.values(), dtype=np.int64)]
    weighed = weigh(job, said, own, known, error)
    is_believed = weighed.is_named & (weighed.r.max(axis=1) >= LEAST_BELIEF)
    believed_label = weighed.r.argmax(axis=1)[is_believed]
    label = dict(zip(weighed.task[is_believed].tolist(), believed_label.tolist(), strict=True))
    label |= given
    # Known labels tell all that a link says where one of its ends has one.
    loose = [
        event
        for event in said
        if event.is_link
        and job.code[event.left or ""] not in label
        and job.code[event.right or ""] not in label
    ]
    links = _links(job, loose, label, _denied(job, said, weighed, label))
    return AnsweredJob(crowd, links, _gold(job, label), weighed, len(loose))


def _denied(
    job: Job, answers: Sequence[Event], weighed: Weighed, label: Mapping[int, int]
) -> list[Denial]:
    """Return the classes that tasks are not of, as far as that is believed.

    Each "no" denies one, and each "different" of two tasks of which one has a known class. Of a
    task of which all classes were denied, the likeliest one is left.
    """
    place = {task: at for at, task in enumerate(weighed.task.tolist())}
    found: dict[tuple[int, int], Denial] = {}
    for event in answers:
        task = job.code[event.left or ""]
        if event.kind == "no":
            denied = job.class_code[event.label or ""]
        elif event.kind == "different":
            other = job.code[event.right or ""]
            if (task in label) == (other in label):
                continue
            task, other = (task, other) if other in label else (other, task)
            denied = label[other]
        else:
            continue
        if task not in label and weighed.r[place[task], denied] < 0.5:
            found.setdefault((task, denied), (task, denied, event.who))
    n_denied = Counter(task for task, _ in found)
    return [
        each
        for (task, denied), each in found.items()
        if n_denied[task] < job.responses.n_classes
        or denied != int(weighed.r[place[task]].argmax())
    ]


def agreed_labels(job: Job, answers: Sequence[Event]) -> tuple[dict[int, int], int]:
    """Return the class of each task on which all labels agree, and how many tasks have several."""
    said: dict[int, set[int]] = {}
    for task, label in _labels_in_order(job, answers):
        said.setdefault(task, set()).add(label)
    said.update({task: {label} for task, label in _by_hand(job, answers).items()})
    agreed = {task: next(iter(labels)) for task, labels in said.items() if len(labels) == 1}
    return agreed, len(said) - len(agreed)


def _labels_in_order(job: Job, answers: Sequence[Event]) -> Iterator[tuple[int, int]]:
    """Yield the labels that gold and answers give; the last class where the others are denied."""
    yield from job.given_labels().items()
    n_classes = job.responses.n_classes
    denied: dict[int, set[int]] = {}
    for event in answers:
        if event.is_vote or event.kind not in ("label", "yes", "no"):
            continue
        task = job.code[event.left or ""]
        label = job.class_code[event.label or ""]
        if event.kind == "no" and n_classes == 2:
            label = 1 - label
        elif event.kind == "no":
            denied.setdefault(task, set()).add(label)
            left = set(range(n_classes)) - denied[task]
            if len(left) != 1:
                continue
            label = left.pop()
        yield task, label


def _with_votes(job: Job, answers: Sequence[Event]) -> Responses:
    """Return the responses and the votes among the answers, as more responses of these workers."""
    votes = [event for event in answers if event.is_vote]
    if not votes:
        return job.responses
    crowd = job.responses
    names = [event.who for event in votes]
    new = [name for name in dict.fromkeys(names) if crowd.workers.codes([name])[0] < 0]
    workers = Ids((*crowd.workers, *new)) if new else crowd.workers
    weight = None if crowd.weight is None else np.r_[crowd.weight, np.ones(len(votes))]
    label = [job.class_code[event.label or ""] for event in votes]
    made = Responses.from_codes(
        np.r_[crowd.task_of_each(), _codes([job.code[event.left or ""] for event in votes])],
        np.r_[crowd.worker_of_each(), workers.codes(names)],
        np.r_[crowd.label_of_each(), _codes(label)],
        crowd.tasks,
        workers,
        crowd.classes,
        weight=weight,
    )
    return replace(made, frame=crowd.frame, is_class_ordered=crowd.is_class_ordered)


def _by_hand(job: Job, answers: Sequence[Event]) -> dict[int, int]:
    """Return the labels that were set as known; the last of each task counts."""
    return {
        job.code[event.left or ""]: job.class_code[event.label or ""]
        for event in answers
        if event.is_by_hand and event.kind == "label"
    }


def _gold(job: Job, label: Mapping[int, int]) -> Gold | None:
    if not label:
        return None
    task = np.fromiter(label, dtype=np.int32, count=len(label))
    codes = np.fromiter(label.values(), dtype=np.int32, count=len(label))
    tasks = Ids(job.responses.tasks.take(task))
    return Gold(tasks, codes, job.responses.classes, np.arange(len(codes)), SOURCE)


def _links(
    job: Job, answers: Sequence[Event], label: Mapping[int, int], denied: Sequence[Denial] = ()
) -> Links | None:
    """Return the links that were given, those that were answered, and what was denied."""
    said = answered_links(job, answers, label, denied)
    if not len(said):
        return job.links
    return said if job.links is None else job.links + said


def answered_links(
    job: Job, answers: Sequence[Event], label: Mapping[int, int], denied: Sequence[Denial] = ()
) -> Links:
    """Return answers as links; each says who gave it.

    That a task is not of a class becomes a cannot-link to the first task that is known to be of it;
    where none is, it waits until there is one.
    """
    example: dict[int, int] = {}
    for task, known in label.items():
        example.setdefault(known, task)
    ends: list[tuple[int, int, bool, str]] = []
    denied = list(denied)
    for event in answers:
        left = job.code[event.left or ""]
        if event.is_link:
            ends.append((left, job.code[event.right or ""], event.kind == "same", event.who))
        elif event.kind == "no" and job.responses.n_classes > 2:
            denied.append((left, job.class_code[event.label or ""], event.who))
    for task, unlike, by in denied:
        if unlike in example and task not in label:
            ends.append((task, example[unlike], False, by))
    left_of, right_of, must, says = zip(*ends, strict=True) if ends else ((), (), (), ())
    who, sources = ids.encode(list(says))
    return Links(
        _codes(left_of),
        _codes(right_of),
        np.array(must, dtype=bool),
        job.responses.tasks,
        np.arange(len(ends)),
        who=who,
        sources=sources,
        source=SOURCE,
        frame=job.responses.frame,
    )


def _codes(values: Sequence[int]) -> Codes:
    return np.array(values, dtype=np.int32)


def believed(job: Job, model: Estimator, given: AnsweredJob, answers: Sequence[Event]) -> Floats:
    """Return the probabilities to choose questions by.

    Where answers may be wrong, what was said of a task is as sure as it was found to be. A class
    that somebody denied is left out, where no link says so yet; a task that would have none left
    stays as it is.
    """
    q = tempered(model)
    if given.weighed is not None:
        q = q.copy()
        q[given.weighed.task] = given.weighed.r
        return q
    denied = [event for event in answers if event.kind == "no"]
    if job.responses.n_classes == 2 or not denied:
        return q
    without = q.copy()
    without[
        [job.code[event.left or ""] for event in denied],
        [job.class_code[event.label or ""] for event in denied],
    ] = 0.0
    total = without.sum(axis=1, keepdims=True)
    has_some = total > 0.0
    return np.where(has_some, without / np.where(has_some, total, 1.0), q)


def state_of(job: Job, model: Estimator, q: Floats, given: AnsweredJob) -> TaskState:
    """Return what is known of the tasks, answers included.

    Where answers may be wrong, a task stays open to a second question, and serves as an example
    where its label is believed. What was only compared with another example is none, or errors
    would add up along a chain.
    """
    state = task_state(model, job.among)._replace(q=q)
    weighed = given.weighed
    if weighed is None:
        return state
    known = np.full(len(q), OPEN, dtype=np.int32)
    for task, label in job.given_labels().items():
        known[task] = label
    example = known.copy()
    label = weighed.r.argmax(axis=1)
    is_shown = weighed.is_labelled & (known[weighed.task] == OPEN)
    is_shown &= q[weighed.task, label] >= SURE
    example[weighed.task[is_shown]] = label[is_shown]
    # What is believed is known to the fit, but ties nothing for good: each task stands for itself.
    settled = state.settled
    if settled.asked is None:
        settled = replace(settled, asked=np.empty(0, dtype=np.int64))
    return state._replace(
        settled=settled,
        known=known,
        example=example,
        error=weighed.error,
        gain_for_others=weighed.gain_for_others(len(q)),
    )
