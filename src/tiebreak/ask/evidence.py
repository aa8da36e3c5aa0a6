"""Evidence: what answers of all kinds amount to, as the links, gold and responses of a fit.

One person is trusted: a label, or "yes, it is", is a known label. Where answers may be wrong, they
are responses of a worker of high standing, whose error rate is learnt like that of any other.
"No, it is not" is a cannot-link to a task that is known to be of the class. For example, with
classes cat, dog and bird:

    answer              trusted                     fallible
    a: cat (label)      gold a = cat                ann (asked) says cat of a
    b: dog? yes (is)    gold b = dog                ann (asked) says dog of b
    c: cat? no          cannot c, a                 cannot c, a, by ann
    d: cat? no, dog? no, bird is left: gold d = bird    two cannot-links
    e = a (same)        must e, a                   must e, a, by ann
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tiebreak import ids
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.errors import GoldError
from tiebreak.gold import Gold
from tiebreak.ids import Ids
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.source import Source

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # pseudo-answers to tasks of each class that say so; evidence overrules them
SOURCE = Source("the answers")


class AnsweredJob(NamedTuple):
    """What a fit gets: the job, and what the answers add to it."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    people: Mapping[str, Floats]  # workers who stand for people, with the prior of each


def trusted(job: Job, answers: Sequence[Event]) -> AnsweredJob:
    """Take answers as true; raise GoldError where two labels of a task differ."""
    label = known_labels(job, answers)
    links = _links(job, answers, label)
    votes = [event for event in answers if event.is_vote]
    return AnsweredJob(with_votes(job, votes), links, _gold(job, label), {})


def fallible(job: Job, answers: Sequence[Event], error: float | None) -> AnsweredJob:
    """Take answers as responses and links that may be wrong, so often before more is known."""
    said = [event for event in answers if event.is_vote or _label_of(job, event) is not None]
    people = sorted({event.who for event in said if not event.is_vote})
    prior = person_prior(job.responses.n_classes, SMALL_ERROR if error is None else error)
    standing_for = {who: f"{who} (asked)" for who in people}
    label = {} if job.gold is None else _given(job)
    label = {**likeliest_labels(job, answers), **label}
    return AnsweredJob(
        with_votes(job, said, standing_for),
        _links(job, answers, label),
        job.gold,
        dict.fromkeys(standing_for.values(), prior),
    )


def person_prior(n_classes: int, error: float) -> Floats:
    """Return pseudo-answers, [truth, answer], of a person who errs so often.

    >>> person_prior(3, 0.02).round(2).tolist()[0]
    [19.6, 0.2, 0.2]
    """
    rate = min(max(error, 1e-6), 0.5)
    table = np.full((n_classes, n_classes), STANDING * rate / max(n_classes - 1, 1))
    np.fill_diagonal(table, STANDING * (1.0 - rate))
    return table


def known_labels(job: Job, answers: Sequence[Event]) -> dict[int, int]:
    """Return the class of each task that gold and answers tell, in codes.

    Raises GoldError where two of them differ.
    """
    label = {} if job.gold is None else _given(job)
    struck: dict[int, set[int]] = {}
    for event in answers:
        task = job.code[event.left or ""]
        said = _label_of(job, event)
        if event.kind == "no" and said is None:
            struck.setdefault(task, set()).add(job.class_code[event.label or ""])
            left = set(range(job.responses.n_classes)) - struck[task]
            said = left.pop() if len(left) == 1 else None
        if event.is_vote or said is None:
            continue
        if label.setdefault(task, said) != said:
            raise GoldError(f"Task {job.responses.tasks[task]!r} was given two different labels.")
    return label


def likeliest_labels(job: Job, answers: Sequence[Event]) -> dict[int, int]:
    """Return the class that most answers give to each task, the earlier one on ties."""
    counts: dict[int, dict[int, int]] = {}
    for event in answers:
        said = _label_of(job, event)
        if said is not None:
            of_task = counts.setdefault(job.code[event.left or ""], {})
            of_task[said] = of_task.get(said, 0) + 1
    return {task: max(of_task, key=of_task.__getitem__) for task, of_task in counts.items()}


def struck_classes(job: Job, answers: Sequence[Event]) -> list[tuple[int, int]]:
    """Return (task, class) of every "no, it is not": the class is left out of what is likely."""
    return [
        (job.code[event.left or ""], job.class_code[event.label or ""])
        for event in answers
        if event.kind == "no"
    ]


def with_votes(
    job: Job, said: Sequence[Event], standing_for: Mapping[str, str] | None = None
) -> Responses:
    """Return the responses and, as more of them, what was said of single tasks."""
    if not said:
        return job.responses
    crowd = job.responses
    names = standing_for or {}
    worker_names = [event.who if event.is_vote else names[event.who] for event in said]
    workers = _with_workers(crowd.workers, worker_names)
    task = np.array([job.code[event.left or ""] for event in said], dtype=np.int32)
    label = np.array([_label_of(job, event) for event in said], dtype=np.int32)
    weight = None if crowd.weight is None else np.r_[crowd.weight, np.ones(len(said))]
    made = Responses.from_codes(
        np.r_[crowd.task_of_each(), task],
        np.r_[crowd.worker_of_each(), workers.codes(worker_names)],
        np.r_[crowd.label_of_each(), label],
        crowd.tasks,
        workers,
        crowd.classes,
        weight=weight,
    )
    return replace(made, frame=crowd.frame, is_class_ordered=crowd.is_class_ordered)


def _with_workers(workers: Ids, names: Sequence[str]) -> Ids:
    new = [name for name in dict.fromkeys(names) if workers.codes([name])[0] < 0]
    return Ids((*workers, *new)) if new else workers


def _label_of(job: Job, event: Event) -> int | None:
    """Return the class that an answer gives to its task, if it gives one."""
    if event.kind not in ("label", "yes", "no"):
        return None
    label = job.class_code[event.label or ""]
    if event.kind == "no":
        return 1 - label if job.responses.n_classes == 2 else None
    return label


def _given(job: Job) -> dict[int, int]:
    assert job.gold is not None
    gold = job.gold.on(job.responses.tasks, job.responses.classes)
    return dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))


def _gold(job: Job, label: Mapping[int, int]) -> Gold | None:
    if not label:
        return None
    task = np.fromiter(label, dtype=np.int32, count=len(label))
    codes = np.fromiter(label.values(), dtype=np.int32, count=len(label))
    tasks = Ids(job.responses.tasks.take(task))
    return Gold(tasks, codes, job.responses.classes, np.arange(len(codes)), SOURCE)


def _links(job: Job, answers: Sequence[Event], label: Mapping[int, int]) -> Links | None:
    """Return the links that were given, those that were answered, and "no" as links."""
    said = answered_links(job, answers, label)
    if not len(said):
        return job.links
    return said if job.links is None else job.links + said


def answered_links(job: Job, answers: Sequence[Event], label: Mapping[int, int]) -> Links:
    """Return answers as links; each says who gave it.

    "No, it is not" becomes a cannot-link to the first task that is known to be of the class; where
    none is, it waits until there is one.
    """
    example: dict[int, int] = {}
    for task, known in label.items():
        example.setdefault(known, task)
    ends: list[tuple[int, int, bool, str]] = []
    for event in answers:
        left = job.code[event.left or ""]
        if event.is_link:
            ends.append((left, job.code[event.right or ""], event.kind == "same", event.who))
        elif event.kind == "no" and job.responses.n_classes > 2 and left not in label:
            other = example.get(job.class_code[event.label or ""])
            if other is not None:
                ends.append((left, other, False, event.who))
    return _as_links(job, ends)


def _as_links(job: Job, ends: Sequence[tuple[int, int, bool, str]]) -> Links:
    who, sources = ids.encode([each[3] for each in ends])
    return Links(
        _codes([each[0] for each in ends]),
        _codes([each[1] for each in ends]),
        np.array([each[2] for each in ends], dtype=bool),
        job.responses.tasks,
        np.arange(len(ends)),
        who=who,
        sources=sources,
        source=SOURCE,
        frame=job.responses.frame,
    )


def _codes(values: Sequence[int]) -> Codes:
    return np.array(values, dtype=np.int32)
