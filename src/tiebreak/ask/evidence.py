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

from tiebreak import ids
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.ask.people import Weighed, weigh
from tiebreak.errors import GoldError
from tiebreak.gold import Gold
from tiebreak.ids import Ids
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.wording import Source

LEAST_BELIEF = 0.75  # in a class for it to count as known, where answers may be wrong
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
    label = known_labels(job, answers)
    return AnsweredJob(with_votes(job, answers), _links(job, answers, label), _gold(job, label))


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
    crowd = with_votes(job, answers)
    if not given and all(event.is_link for event in said):  # no class was named
        return AnsweredJob(crowd, _links(job, said, given), gold, None, len(said))
    known = np.zeros(len(own))
    if given:
        task = np.fromiter(given, dtype=np.int64)
        known[task] = 1.0
        own = own.copy()
        own[task] = np.eye(own.shape[1])[np.fromiter(given.values(), dtype=np.int64)]
    if not said:
        return AnsweredJob(crowd, job.links, gold)
    weighed = weigh(job, said, own, known, error)
    label = {**believed_labels(weighed), **given}
    loose = [event for event in said if event.is_link and not _is_used(job, event, label)]
    denied = _denied(job, said, weighed, label)
    links = _links(job, loose, label, denied)
    return AnsweredJob(crowd, links, _gold(job, label), weighed, len(loose))


def believed_labels(weighed: Weighed) -> dict[int, int]:
    """Return the class of each task that was named and whose class is believed."""
    label = weighed.r.argmax(axis=1)
    is_believed = weighed.is_named & (weighed.r.max(axis=1) >= LEAST_BELIEF)
    place = np.flatnonzero(is_believed)
    return dict(zip(weighed.task[place].tolist(), label[place].tolist(), strict=True))


def _is_used(job: Job, event: Event, label: Mapping[int, int]) -> bool:
    """Say whether known labels tell all that a link says: one of its ends at least has one."""
    return job.code[event.left or ""] in label or job.code[event.right or ""] in label


def _denied(
    job: Job, answers: Sequence[Event], weighed: Weighed, label: Mapping[int, int]
) -> list[Denial]:
    """Return the classes that tasks are not of, as far as that is believed.

    Of a task of which all classes were denied, the likeliest one is left.
    """
    place = {task: at for at, task in enumerate(weighed.task.tolist())}
    found: dict[tuple[int, int], Denial] = {}
    for each in _denials(job, answers, label):
        is_believed = weighed.r[place[each.task], each.label] < 0.5
        if is_believed and each.task not in label:
            found.setdefault((each.task, each.label), each)
    n_denied = Counter(task for task, _ in found)
    return [
        each
        for (task, denied), each in found.items()
        if n_denied[task] < job.responses.n_classes
        or denied != int(weighed.r[place[task]].argmax())
    ]


def _denials(job: Job, answers: Sequence[Event], label: Mapping[int, int]) -> Iterator[Denial]:
    """Yield each "no", and each "different" of two tasks of which one has a known class."""
    for event in answers:
        left = job.code[event.left or ""]
        if event.kind == "no":
            yield Denial(event, left, job.class_code[event.label or ""])
        elif event.kind == "different":
            right = job.code[event.right or ""]
            if (left in label) != (right in label):
                task, example = (left, right) if right in label else (right, left)
                yield Denial(event, task, label[example])


class Denial(NamedTuple):
    """That a task is not of a class, in codes, and who said so."""

    event: Event
    task: int
    label: int


def known_labels(job: Job, answers: Sequence[Event]) -> dict[int, int]:
    """Return the class of each task that gold and answers tell, in codes.

    Raises GoldError where two of them differ.
    """
    label: dict[int, int] = {}
    for task, said in _labels_in_order(job, answers):
        if label.setdefault(task, said) != said:
            raise GoldError(f"Task {job.responses.tasks[task]!r} was given two different labels.")
    return label


def agreed_labels(job: Job, answers: Sequence[Event]) -> tuple[dict[int, int], int]:
    """Return the class of each task that is told without dissent, and how many are not."""
    said: dict[int, set[int]] = {}
    for task, label in _labels_in_order(job, answers):
        said.setdefault(task, set()).add(label)
    said.update({task: {label} for task, label in _by_hand(job, answers).items()})
    agreed = {task: next(iter(labels)) for task, labels in said.items() if len(labels) == 1}
    return agreed, len(said) - len(agreed)


def _labels_in_order(job: Job, answers: Sequence[Event]) -> Iterator[tuple[int, int]]:
    """Yield the labels that gold and answers give; of all classes but one struck, the last."""
    yield from job.given_labels().items()
    struck: dict[int, set[int]] = {}
    for event in answers:
        task = job.code[event.left or ""]
        label = _label_of(job, event)
        if event.kind == "no" and label is None:
            struck.setdefault(task, set()).add(job.class_code[event.label or ""])
            left = set(range(job.responses.n_classes)) - struck[task]
            label = left.pop() if len(left) == 1 else None
        if label is not None and not event.is_vote:
            yield task, label


def struck_classes(job: Job, answers: Sequence[Event]) -> list[tuple[int, int]]:
    """Return (task, class) of every "no, it is not": the class is left out of what is likely."""
    return [
        (job.code[event.left or ""], job.class_code[event.label or ""])
        for event in answers
        if event.kind == "no"
    ]


def with_votes(job: Job, answers: Sequence[Event]) -> Responses:
    """Return the responses and the votes among the answers, as more responses of these workers."""
    votes = [event for event in answers if event.is_vote]
    if not votes:
        return job.responses
    crowd = job.responses
    names = [event.who for event in votes]
    workers = _with_workers(crowd.workers, names)
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
    job: Job,
    answers: Sequence[Event],
    label: Mapping[int, int],
    denied: Sequence[Denial] = (),
) -> Links | None:
    """Return the links that were given, those that were answered, and what was denied."""
    said = answered_links(job, answers, label, denied)
    if not len(said):
        return job.links
    return said if job.links is None else job.links + said


def answered_links(
    job: Job,
    answers: Sequence[Event],
    label: Mapping[int, int],
    denied: Sequence[Denial] = (),
) -> Links:
    """Return answers as links; each says who gave it.

    That a task is not of a class becomes a cannot-link to the first task that is known to be of it;
    where none is, it waits until there is one.
    """
    example: dict[int, int] = {}
    for task, known in label.items():
        example.setdefault(known, task)
    ends: list[tuple[int, int, bool, str]] = []
    for event in answers:
        left = job.code[event.left or ""]
        if event.is_link:
            ends.append((left, job.code[event.right or ""], event.kind == "same", event.who))
        elif event.kind == "no" and job.responses.n_classes > 2:
            denied = [*denied, Denial(event, left, job.class_code[event.label or ""])]
    for each in denied:
        other = example.get(each.label)
        if other is not None and each.task not in label:
            ends.append((each.task, other, False, each.event.who))
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
