"""People: what several of them say, weighed by how often each errs.

A crowd errs together, so that its votes, added up, outweigh any one person. What people were asked
is weighed against the crowd's honest probabilities instead, by belief propagation over the tasks
that answers name [eq:asked-labels]:

    r_i(k) ∝ p_i(k) Π_s P(s | k) Π_e m_e(k)

p_i is what the responses of the task alone say, scaled for errors in common, and half of it spread
over all classes, since a crowd can be sure and wrong; s are labels that were
given to it, with P(s | k) = 1 − ε where s is right and ε / (K − 1) where not; m_e(k) is what "the
same as" or "different from" another task j says, by what is believed of j without this answer, c_j:

    same:  ε + (1 − 2 ε) c_j(k)        different:  1 − ε − (1 − 2 ε) c_j(k)

The error rate ε of a person follows from r, and r from the rates, in turn. With two classes every
comparison ties, and c_j holds the crowd's word on j only where somebody gave j a label: what the
crowd says of hundreds of tasks that were compared with one example must not add up, or a crowd that
is sure and wrong would rename the example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.kernels.layout import Floats, Mask, Offsets

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # answers that this counts for: evidence overrules it
TURNS = 30  # of messages and rates; they settle in fewer
RESERVE = 0.5  # of doubt in the crowd: where it is sure and wrong, people must not seem to err
LEAST = 1e-12  # of a belief


class PeopleSaid(NamedTuple):
    """Answers in codes: labels given to or denied of a task, and links between two."""

    who: Offsets  # (n,) place among the people
    task: Offsets  # (n,) place among the tasks that answers name
    other: Offsets  # (n,) the second task of a link, else the same task
    label: Offsets  # (n,) the class of a label, else -1
    is_yes: Mask  # (n,) whether it is, or they are the same

    @property
    def is_link(self) -> Mask:
        """Which of them are links."""
        return np.asarray(self.label < 0)


class Weighed(NamedTuple):
    """What answers amount to."""

    task: Offsets  # (n,) the tasks that they name, sorted
    r: Floats  # (n, n_classes) what to believe of them
    is_named: Mask  # (n,) which of them have a label, or are tied to one that has
    is_labelled: Mask  # (n,) which were given a label themselves
    rates: dict[str, float]  # by person: how often answers are wrong


def weigh(
    job: Job, answers: Sequence[Event], own: Floats, known: Floats, error: float | None
) -> Weighed:
    """Weigh answers against each other and against what the crowd says of each task.

    Parameters
    ----------
    answers
        Labels, yes or no, links; no votes.
    own
        (n_tasks, n_classes) by the responses of each task alone, scaled.
    known
        (n_tasks,) 1 where a label was given from the start: `own` has it then.
    error
        How often people err, where that is known; None: it is learnt.
    """
    task, people, said = _in_codes(job, answers)
    n_classes = job.responses.n_classes
    rate = np.full(len(people), SMALL_ERROR if error is None else max(error, LEAST))
    crowd = np.where(known[task, None] > 0.0, own[task], _with_reserve(own[task]))
    labelled = np.zeros(len(task), dtype=bool)
    labelled[said.task[~said.is_link & said.is_yes]] = True
    is_base = labelled | (known[task] > 0.0)
    is_heard = is_base | (n_classes > 2)
    every = np.log(np.maximum(crowd, LEAST))
    logs = np.where(is_heard[:, None], every, 0.0)
    messages = np.zeros((2, len(said.who), n_classes))  # to `task`, to `other`
    n_said = np.bincount(said.who, minlength=len(people))
    for _ in range(TURNS):
        total = _beliefs(logs, said, rate[said.who], messages)
        messages = _messages(total, said, rate[said.who], messages)
        total = _beliefs(logs, said, rate[said.who], messages)
        if error is None:
            wrong = _wrong(total, said, rate[said.who], messages)
            summed = np.bincount(said.who, wrong, minlength=len(people))
            rate = (STANDING * SMALL_ERROR + summed) / (STANDING + n_said)
    named = _tied(is_base, said, two_classes=n_classes == 2)
    rates = dict(zip(people, rate.tolist(), strict=True))
    r = _normalised(total + np.where(is_heard[:, None], 0.0, every))
    return Weighed(task, r, named, labelled, rates)


def _in_codes(job: Job, answers: Sequence[Event]) -> tuple[Offsets, list[str], PeopleSaid]:
    left = [job.code[event.left or ""] for event in answers]
    right = [job.code[event.right or event.left or ""] for event in answers]
    task = np.unique([*left, *right]).astype(np.int64)
    people = sorted({event.who for event in answers})
    label = [-1 if event.is_link else job.class_code[event.label or ""] for event in answers]
    is_yes = [event.kind not in ("no", "different") for event in answers]
    yes = np.array(is_yes, dtype=bool)
    classes = np.array(label, dtype=np.int64)
    if job.responses.n_classes == 2:  # "no, not a cat" names the other class
        is_other = ~yes & (classes >= 0)
        classes = np.where(is_other, 1 - classes, classes)
        yes = yes | is_other
    who = np.array([people.index(event.who) for event in answers], dtype=np.int64)
    said = PeopleSaid(who, np.searchsorted(task, left), np.searchsorted(task, right), classes, yes)
    return task, people, said


def _beliefs(logs: Floats, said: PeopleSaid, rate: Floats, messages: Floats) -> Floats:
    """Return log r of each task, up to a constant."""
    total = logs.copy()
    n_classes = logs.shape[1]
    at = np.flatnonzero(~said.is_link)
    right = 1.0 - rate[at]
    wrong = rate[at] / max(n_classes - 1, 1)
    every = np.repeat(np.where(said.is_yes[at], wrong, right)[:, None], n_classes, axis=1)
    every[np.arange(len(at)), said.label[at]] = np.where(said.is_yes[at], right, rate[at])
    np.add.at(total, said.task[at], np.log(np.maximum(every, LEAST)))
    links = np.flatnonzero(said.is_link)
    np.add.at(total, said.task[links], messages[0, links])
    np.add.at(total, said.other[links], messages[1, links])
    return total


def _messages(total: Floats, said: PeopleSaid, rate: Floats, before: Floats) -> Floats:
    """Return what each link says to its two ends, by what the other end is without it."""
    found = np.zeros_like(before)
    links = np.flatnonzero(said.is_link)
    ends = (said.task[links], said.other[links])
    for to, other in ((0, 1), (1, 0)):
        cavity = _normalised(total[ends[other]] - before[other, links])
        agrees = rate[links, None] + (1.0 - 2.0 * rate[links, None]) * cavity
        says = np.where(said.is_yes[links, None], agrees, 1.0 - agrees)
        found[to, links] = np.log(np.maximum(says, LEAST))
    return found


def _wrong(total: Floats, said: PeopleSaid, rate: Floats, messages: Floats) -> Floats:
    """Return how likely each answer is wrong."""
    r = _normalised(total)
    at = np.flatnonzero(~said.is_link)
    wrong = np.zeros(len(said.who))
    share = r[said.task[at], said.label[at]]
    wrong[at] = np.where(said.is_yes[at], 1.0 - share, share)
    links = np.flatnonzero(said.is_link)
    left = _normalised(total[said.task[links]] - messages[0, links])
    right = _normalised(total[said.other[links]] - messages[1, links])
    agree = (left * right).sum(axis=1)
    says = np.where(said.is_yes[links], agree, 1.0 - agree)
    errs = rate[links] * (1.0 - says)
    wrong[links] = errs / np.maximum(errs + (1.0 - rate[links]) * says, LEAST)
    return wrong


def _tied(named: Mask, said: PeopleSaid, *, two_classes: bool) -> Mask:
    """Return also the tasks that links tie to one that is named."""
    ties = np.flatnonzero(said.is_link & (said.is_yes | two_classes))
    found = named.copy()
    while True:
        more = found.copy()
        more[said.task[ties]] |= found[said.other[ties]]
        more[said.other[ties]] |= more[said.task[ties]]
        if (more == found).all():
            return found
        found = more


def _with_reserve(own: Floats) -> Floats:
    """Return probabilities of which a share is spread over all classes."""
    return np.asarray((1.0 - RESERVE) * own + RESERVE / own.shape[1])


def _normalised(logs: Floats) -> Floats:
    shifted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
