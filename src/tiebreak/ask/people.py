"""People: what several of them say, weighed by how often each errs.

A crowd errs together, so that its votes, added up, outweigh any one person. What people were asked
is weighed against the crowd's honest probabilities instead, by belief propagation over the tasks
that answers name [eq:asked-labels]:

    r_i(k) ∝ p_i(k) Π_s P(s | k) Π_e m_e(k)

p_i is what the responses of the task alone say, scaled for errors in common, and a share λ of it
spread over all classes: a crowd can be sure and wrong, and questions are asked where it is. s are
labels that were given to it, with P(s | k) = 1 − ε where s is right and ε / (K − 1) where not;
m_e(k) is what "the same as" or "different from" another task j says, by what is believed of j
without this answer, c_j:

    same:  ε + (1 − 2 ε) c_j(k)        different:  1 − ε − (1 − 2 ε) c_j(k)

The error rate ε of a person and λ follow from r, and r from these, in turn. Where people mostly say
what the crowd's probabilities lead to expect, λ is small, and who contradicts a sure crowd is
believed to err; where they contradict it together, λ is large. With two classes every comparison
ties, and the crowd's word on n tasks that nobody gave a label, which are tied to one example, goes
along links as that of n / (1 + ρ (n − 1)): a crowd that errs together must not rename the example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.inference.calibration import DEPENDENCE
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.link_graph import components

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # answers, or tasks, that a prior counts for: evidence overrules it
TURNS = 30  # of messages and rates; they settle in fewer
RESERVE = 0.5  # of doubt in the crowd on tasks that are asked about, before it is learnt
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


class CrowdSaid(NamedTuple):
    """What the crowd says of the tasks that answers name."""

    own: Floats  # (n, n_classes) by the responses of each task alone, scaled
    is_told: Mask  # (n,) whose class was given from the start
    heard: Floats  # (n,) how much of it other tasks hear, along links

    def with_reserve(self, reserve: float) -> Floats:
        """Return probabilities of which a share is spread over all classes."""
        spread = (1.0 - reserve) * self.own + reserve / self.own.shape[1]
        return np.where(self.is_told[:, None], self.own, spread)

    def learnt_reserve(self, r: Floats, reserve: float) -> float:
        """Return how often the crowd told nothing, by what is believed of the tasks now.

        Of a task of class k it told nothing with probability (λ / K) / ((1 − λ) p(k) + λ / K).
        """
        share = reserve / self.own.shape[1] / np.maximum(self.with_reserve(reserve), LEAST)
        vain = (r * share).sum(axis=1)[~self.is_told]
        return float((STANDING * RESERVE + vain.sum()) / (STANDING + len(vain)))


class Weighed(NamedTuple):
    """What answers amount to."""

    task: Offsets  # (n,) the tasks that they name, sorted
    r: Floats  # (n, n_classes) what to believe of them
    is_named: Mask  # (n,) which of them have a label, or are tied to one that has
    is_labelled: Mask  # (n,) which were given a label themselves
    rates: dict[str, float]  # by person: how often answers are wrong
    error: float  # how often an answer is wrong, over all of them
    reserve: float  # how often what the crowd says of such tasks tells nothing
    n_hanging: Floats  # (n,) how many tasks without a label were compared with each that has one

    def hanging(self, n_tasks: int) -> Floats:
        """Return how many labels hang on each task as an example, (n_tasks,)."""
        found = np.zeros(n_tasks)
        found[self.task] = self.n_hanging
        return found


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
    labelled = np.zeros(len(task), dtype=bool)
    labelled[said.task[~said.is_link & said.is_yes]] = True
    is_base = labelled | (known[task] > 0.0)
    heard = np.ones(len(task))
    if n_classes == 2:
        heard = np.where(is_base, 1.0, _share_heard(said, ~is_base))
    crowd = CrowdSaid(own[task], known[task] > 0.0, heard)
    r, rate, reserve = _settled(crowd, said, len(people), error)
    named = _tied(is_base, said, two_classes=n_classes == 2)
    n_said = np.bincount(said.who, minlength=len(people))
    return Weighed(
        task,
        r,
        named,
        labelled,
        dict(zip(people, rate.tolist(), strict=True)),
        float(rate @ n_said / n_said.sum()),
        reserve,
        _n_hanging(labelled, said),
    )


def _settled(
    crowd: CrowdSaid, said: PeopleSaid, n_people: int, error: float | None
) -> tuple[Floats, Floats, float]:
    """Find beliefs, rates of people and the reserve in turn, until they have settled."""
    rate = np.full(n_people, SMALL_ERROR if error is None else max(error, LEAST))
    next_reserve = RESERVE
    messages = np.zeros((2, len(said.who), crowd.own.shape[1]))  # to `task`, to `other`
    n_said = np.bincount(said.who, minlength=n_people)
    for _ in range(TURNS):
        of_each = rate[said.who]
        reserve = next_reserve
        logs = np.log(np.maximum(crowd.with_reserve(reserve), LEAST))
        heard = crowd.heard[:, None] * logs
        messages = _messages(_beliefs(heard, said, of_each, messages), said, of_each, messages)
        total = _beliefs(heard, said, of_each, messages)
        r = _normalised(total + logs - heard)
        next_reserve = crowd.learnt_reserve(r, reserve)
        if error is None:
            wrong = _wrong(total, said, of_each, messages)
            summed = np.bincount(said.who, wrong, minlength=n_people)
            rate = (STANDING * SMALL_ERROR + summed) / (STANDING + n_said)
    return r, rate, reserve


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


def _share_heard(said: PeopleSaid, is_counted: Mask) -> Floats:
    """Return how much of the crowd's word on each task others hear, where all that is linked ties.

    The crowd errs together, so that n tasks say what n / (1 + ρ (n − 1)) would: [eq:design-effect].
    """
    links = said.is_link
    group = components(len(is_counted), said.task[links], said.other[links])
    n_others = np.bincount(group, weights=is_counted)[group] - 1.0
    return np.asarray(1.0 / (1.0 + DEPENDENCE * np.maximum(n_others, 0.0)))


def _n_hanging(is_labelled: Mask, said: PeopleSaid) -> Floats:
    """Count, for each task that was given a label, those without one that were compared with it."""
    found = np.zeros(len(is_labelled))
    left = said.task[said.is_link]
    right = said.other[said.is_link]
    for example, task in ((left, right), (right, left)):
        hangs = is_labelled[example] & ~is_labelled[task]
        np.add.at(found, example[hangs], 1.0)
    return found


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


def _normalised(logs: Floats) -> Floats:
    shifted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
