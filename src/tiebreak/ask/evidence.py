"""Evidence: what answers of all kinds amount to, as the links, gold and responses of a fit.

One person is trusted: a label, or "yes, it is", is a known label, and "no, it is not" a cannot-link
to a task that is known to be of the class. Where answers may be wrong, they are weighed first
(`inference.people`), and what is then believed is known. For example, with classes cat, dog, bird:

    answer                 trusted              fallible
    a: cat (label)         gold a = cat         ann says cat of a; gold, if it is believed
    b: dog? yes (is)       gold b = dog         ann says dog of b
    c: cat? no             cannot c, a          ann denies cat of c; cannot, if it is believed
    d: cat? no, dog? no    gold d = bird        she denies both
    e = a (same)           must e, a            ann says cat of e
    f = g, nothing known   must f, g            must f, g, which may be wrong
    which is cat? h        gold h = cat, cannot cat, i …     a constraint that may be wrong
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, spelled_out
from tiebreak.data import MISSING, Gold, Ids, Responses, ids
from tiebreak.estimators.base import Estimator
from tiebreak.inference.people import SMALL_ERROR, Said, Weighed, weigh
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Constraints, Links
from tiebreak.links.graph import OPEN
from tiebreak.selection.state import TaskState, task_state, tempered
from tiebreak.wording import Source

LinkRate = float | str | None  # how links are read: never wrong, a rate, or "learn"
Labels = dict[int, int]  # the class of a task, in codes
Denial = tuple[int, int, str]  # a task, a class that it is not of, and the person that said so

LEAST_ERROR = 1e-3  # of a person: nobody is taken to be surer
LEAST_BELIEF = 0.75  # in a class for it to count as known, where answers may be wrong
SURE = 0.9  # belief in a label, for a task to be shown as an example where answers may err: one
# answer that the crowd does not contradict is enough; comparisons are priced by the belief
SOURCE = Source("the answers")


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What a fit gets: the job, and what the answers add to it."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    link_error: LinkRate = None
    is_soft: bool = False  # answers count as fallible, so that none follows for sure from others
    weighed: Weighed | None = None  # what was said of single tasks, where it may be wrong
    constraints: Constraints | None = None


def trusted(job: Job, answers: Sequence[Event]) -> FitInputs | None:
    """Take answers as true; None where two labels of a task differ."""
    answers = tuple(spelled_out(answers))
    label: Labels = {}
    for task, said in _labels_in_order(job, answers):
        if label.setdefault(task, said) != said:
            return None
    links = _with_given(job, answered_links(job, answers, label))
    crowd, gold = _with_votes(job, answers), _gold(job, label)
    return FitInputs(crowd, links, gold, constraints=job.constraints)


def fallible(
    job: Job, answers: Sequence[Event], own: Floats, link_error: LinkRate = None
) -> FitInputs:
    """Take answers as what may be wrong: weigh them, and take as known what is believed.

    Parameters
    ----------
    own
        (n_tasks, n_classes) by the responses of each task alone, scaled.
    link_error
        How often answers are wrong, as the caller says; None: it is learnt for each person.
    """
    by_hand = _by_hand(job, answers)
    label = {**job.given_labels(), **by_hand}
    of_groups = [event for event in answers if event.question == "which"]
    answers = [event for event in answers if event.question != "which"]
    said = [event for event in answers if not (event.is_vote or event.is_by_hand)]
    crowd = _with_votes(job, answers)
    gold = _gold(job, label) if by_hand else job.gold
    rate = link_error if isinstance(link_error, int | float) else None
    names_no_class = not label and all(event.is_link for event in said)
    if not said or names_no_class:
        links = _with_given(job, answered_links(job, said, label))
        reading = _reading(job, link_error, len(said))
        rules = _with_groups(job, of_groups, {}, rate)
        return FitInputs(crowd, links, gold, reading, is_soft=True, constraints=rules)

    known = np.zeros(len(own))
    if label:
        task = np.fromiter(label, dtype=np.int64)
        known[task] = 1.0
        own = own.copy()
        own[task] = np.eye(own.shape[1])[np.fromiter(label.values(), dtype=np.int64)]
    weighed = weigh(as_said(job, said), own, known, rate)
    is_believed = weighed.is_named & (weighed.r.max(axis=1) >= LEAST_BELIEF)
    believed_label = weighed.r.argmax(axis=1)[is_believed]
    believed = dict(zip(weighed.task[is_believed].tolist(), believed_label.tolist(), strict=True))
    label = believed | label
    # Known labels tell all that a link says where one of its ends has one.
    ends = [(event, job.codes(event)) for event in said if event.is_link]
    loose = [event for event, (left, right, _) in ends if left not in label and right not in label]
    links = _with_given(job, answered_links(job, loose, label, _denied(job, said, weighed, label)))
    reading = _reading(job, link_error, len(loose), is_weighed=True)
    gold, rules = _gold(job, label), _with_groups(job, of_groups, weighed.rates, rate)
    given = crowd, links, gold, reading
    return FitInputs(*given, is_soft=True, weighed=weighed, constraints=rules)


def _with_groups(
    job: Job, answers: Sequence[Event], rates: Mapping[str, float], rate: float | None
) -> Constraints | None:
    """Return the constraints of the job and what was said of groups, as sure as each person is."""
    made = []
    for event in answers:
        wrong = rates.get(event.who, SMALL_ERROR) if rate is None else rate
        wrong = min(max(wrong, LEAST_ERROR), 0.5)
        label = job.class_name(event.label)
        named = event.members if event.kind == "none" else (event.left,)
        tasks = [job.name(each) for each in named if each is not None]
        count = "0" if event.kind == "none" else "1"
        weight = float(np.log((1.0 - wrong) / wrong))
        said = {"tasks": tasks, "label": label, "count": count, "weight": weight, "who": event.who}
        made.append(said)
    found = Constraints.from_records(made) if made else None
    if found is None or job.constraints is None:
        return job.constraints if found is None else found
    return job.constraints + found


def as_said(job: Job, answers: Sequence[Event]) -> Said:
    people = sorted({event.who for event in answers})
    who = np.array([people.index(event.who) for event in answers], dtype=np.int64)
    task, other, label = np.array([job.codes(event) for event in answers], dtype=np.int64).T
    is_yes = np.array([event.kind not in ("no", "different") for event in answers])
    return Said(people, who, task, other, np.where(other >= 0, MISSING, label), is_yes)


def _reading(job: Job, link_error: LinkRate, n_loose: int, *, is_weighed: bool = False) -> LinkRate:
    """Return how links are read where answers may err: as the caller says, or by what there is.

    Links that say what was denied hold: they were weighed. Others may be wrong. Weights rule
    out that rates are estimated, and so does much that was weighed: links are then asked about
    tasks in doubt, of which the crowd would deny true ones.
    """
    if link_error is not None:
        return link_error
    if job.links is not None and job.links.weight is not None:
        return SMALL_ERROR
    if not is_weighed:
        return "learn"
    return SMALL_ERROR if n_loose or job.links is not None else None


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
        task, other, denied = job.codes(event)
        if event.kind == "different" and (task in label) != (other in label):
            task, other = (task, other) if other in label else (other, task)
            denied = label[other]
        elif event.kind != "no":
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


def agreed_labels(job: Job, answers: Sequence[Event]) -> tuple[Labels, int]:
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
    open_classes: dict[int, set[int]] = {}
    for event in spelled_out(answers):
        task, _, label = job.codes(event)
        if event.is_vote or event.is_link or not event.is_evidence:
            continue
        if event.kind == "no" and job.responses.n_classes == 2:
            yield task, 1 - label
        elif event.kind == "no":
            left = open_classes.setdefault(task, set(range(job.responses.n_classes)))
            left.discard(label)
            if len(left) == 1:
                yield task, next(iter(left))
        else:
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
    task, _, label = np.array([job.codes(event) for event in votes], dtype=np.int32).T
    made = Responses.from_codes(
        np.r_[crowd.task_of_each(), task],
        np.r_[crowd.worker_of_each(), workers.codes(names)],
        np.r_[crowd.label_of_each(), label],
        crowd.tasks,
        workers,
        crowd.classes,
        weight=weight,
    )
    return replace(made, frame=crowd.frame, is_class_ordered=crowd.is_class_ordered)


def _by_hand(job: Job, answers: Sequence[Event]) -> Labels:
    """Return the labels that were set as known; the last of each task counts."""
    set_so = (job.codes(e) for e in answers if e.is_by_hand and e.kind == "label")
    return {task: label for task, _, label in set_so}


def _gold(job: Job, label: Mapping[int, int]) -> Gold | None:
    if not label:
        return None
    task = np.fromiter(label, dtype=np.int32, count=len(label))
    codes = np.fromiter(label.values(), dtype=np.int32, count=len(label))
    tasks = job.responses.tasks.take(task)
    return Gold(tasks, codes, job.responses.classes, np.arange(len(codes)), SOURCE)


def _with_given(job: Job, said: Links) -> Links | None:
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
    for event in spelled_out(answers):
        left, right, said = job.codes(event)
        if event.is_link:
            ends.append((left, right, event.kind == "same", event.who))
        elif event.kind == "no" and job.responses.n_classes > 2:
            denied.append((left, said, event.who))
    for task, unlike, by in denied:
        if unlike in example and task not in label:
            ends.append((task, example[unlike], False, by))
    left_of, right_of, must, says = zip(*ends, strict=True) if ends else ((), (), (), ())
    who, sources = ids.encode(list(says))
    return Links(
        np.array(left_of, dtype=np.int32),
        np.array(right_of, dtype=np.int32),
        np.array(must, dtype=bool),
        job.responses.tasks,
        np.arange(len(ends)),
        who=who,
        sources=sources,
        source=SOURCE,
        frame=job.responses.frame,
    )


def believed(
    job: Job, model: Estimator, weighed: Weighed | None, answers: Sequence[Event]
) -> Floats:
    """Return the probabilities to choose questions by.

    Where answers may be wrong, what was said of a task is as sure as it was found to be. A class
    that somebody denied is left out, where no link says so yet; a task that would have none left
    stays as it is.
    """
    q = tempered(model)
    if weighed is not None:
        q = q.copy()
        q[weighed.task] = weighed.r
        return q
    denied = [job.codes(event) for event in spelled_out(answers) if event.kind == "no"]
    if job.responses.n_classes == 2 or not denied:
        return q
    task, _, label = np.array(denied).T
    without = q.copy()
    without[task, label] = 0.0
    total = without.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, without / np.where(total > 0.0, total, 1.0), q)


def state_of(job: Job, model: Estimator, q: Floats, weighed: Weighed | None) -> TaskState:
    """Return what is known of the tasks, answers included.

    Where answers may be wrong, a task stays open to a second question, and serves as an example
    where its label is believed. What was only compared with another example is none, or errors
    would add up along a chain.
    """
    state = replace(task_state(model, job.among), q=q)
    if weighed is None:
        return state
    known = np.full(len(q), OPEN, dtype=np.int32)
    for task, label in job.given_labels().items():
        known[task] = label
    example = known.copy()
    labels: Codes = weighed.r.argmax(axis=1)
    is_shown = weighed.is_labelled & (known[weighed.task] == OPEN)
    is_shown &= q[weighed.task, labels] >= SURE
    example[weighed.task[is_shown]] = labels[is_shown]
    gain_for_others = np.zeros(len(q))
    gain_for_others[weighed.task] = weighed.for_others
    return replace(
        state,
        # What is believed is known to the fit, but ties nothing for good: each task stands alone.
        asked=np.empty(0, dtype=np.int64) if state.asked is None else state.asked,
        known=known,
        example=example,
        error=weighed.error,
        gain_for_others=gain_for_others,
    )
