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

What several people said of the same two tasks is one such message (`Compared`). Messages are
damped, since those of a loop of contradictions would swing to and fro.

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
from scipy.sparse import csr_array

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.inference.calibration import DEPENDENCE
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.link_graph import components

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # answers, or tasks, that a prior counts for: evidence overrules it
TURNS = 100  # of messages and rates, at most
RESERVE = 0.5  # of doubt in the crowd on tasks that are asked about, before it is learnt
LEAST = 1e-12  # of a belief
SETTLED = 1e-10  # of a belief from turn to turn
DAMPING = 0.7  # of a message as it was: along loops, messages would swing to and fro for ever
DEPUTIES = 2  # tasks that are asked about, between two fits, to learn the class of one tied to them


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


class Compared(NamedTuple):
    """Two tasks that were compared, by one person or more: what is said of them is one thing.

    Taken apart, the answer of one person would reach the other task and come back as an echo along
    that of the next. For example, of a and b, with rates ε and ε':

        ann: same, bob: same         s = (1 − ε) (1 − ε')    d = ε ε'
        ann: same, bob: different    s = (1 − ε) ε'          d = ε (1 − ε')
    """

    left: Offsets  # (n_pairs,)
    right: Offsets  # (n_pairs,)
    link: Offsets  # (n_links,) place of each link among the answers
    of_link: Offsets  # (n_links,) its pair
    by_end: csr_array  # (n, 2 n_pairs) 1 where a message goes: those to `left` first

    def likelihoods(self, said: PeopleSaid, rate: Floats) -> tuple[Floats, Floats]:
        """Return s and d: how likely the answers are if the two are the same, or different."""
        right = np.log(np.maximum(1.0 - rate[self.link], LEAST))
        wrong = np.log(np.maximum(rate[self.link], LEAST))
        is_yes = said.is_yes[self.link]
        n_pairs = len(self.left)
        same = np.bincount(self.of_link, np.where(is_yes, right, wrong), minlength=n_pairs)
        differ = np.bincount(self.of_link, np.where(is_yes, wrong, right), minlength=n_pairs)
        most = np.maximum(same, differ)
        return np.exp(same - most), np.exp(differ - most)


class CrowdSaid(NamedTuple):
    """What the crowd says of the tasks that answers name."""

    own: Floats  # (n, n_classes) by the responses of each task alone, scaled
    is_given: Mask  # (n,) whose class was given from the start
    heard: Floats  # (n,) how much of it other tasks hear, along links

    def with_reserve(self, reserve: float) -> Floats:
        """Return probabilities of which a share is spread over all classes."""
        spread = (1.0 - reserve) * self.own + reserve / self.own.shape[1]
        return np.where(self.is_given[:, None], self.own, spread)

    def learnt_reserve(self, r: Floats, reserve: float) -> float:
        """Return how often the crowd told nothing, by what is believed of the tasks now.

        Of a task of class k it told nothing with probability (λ / K) / ((1 − λ) p(k) + λ / K).
        """
        share = reserve / self.own.shape[1] / np.maximum(self.with_reserve(reserve), LEAST)
        vain = (r * share).sum(axis=1)[~self.is_given]
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
    for_others: Floats  # (n,) what a label of each would put right in others

    def gain_for_others(self, n_tasks: int) -> Floats:
        """Return what a label of each task would put right in others, (n_tasks,)."""
        found = np.zeros(n_tasks)
        found[self.task] = self.for_others
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
    compared = _compared(said, len(task))
    r, rate, reserve = _settled(crowd, said, compared, len(people), error)
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
        _for_others(r, labelled, said, compared, rate),
    )


def _settled(
    crowd: CrowdSaid, said: PeopleSaid, pairs: Compared, n_people: int, error: float | None
) -> tuple[Floats, Floats, float]:
    """Find beliefs, rates of people and the reserve in turn, until they have settled."""
    rate = np.full(n_people, SMALL_ERROR if error is None else max(error, LEAST))
    next_reserve = RESERVE
    messages = np.zeros((2, len(pairs.left), crowd.own.shape[1]))  # to `left`, to `right`
    n_said = np.bincount(said.who, minlength=n_people)
    r = np.zeros_like(crowd.own)
    for _ in range(TURNS):
        before = r
        of_each = rate[said.who]
        reserve = next_reserve
        logs = np.log(np.maximum(crowd.with_reserve(reserve), LEAST))
        heard = crowd.heard[:, None] * logs
        given = heard + _by_labels(heard.shape, said, of_each)
        likely = pairs.likelihoods(said, of_each)
        messages = _messages(_with_messages(given, pairs, messages), pairs, likely, messages)
        total = _with_messages(given, pairs, messages)
        r = _normalised(total + logs - heard)
        next_reserve = crowd.learnt_reserve(r, reserve)
        if error is None:
            wrong = _wrong(total, said, pairs, likely, messages)
            summed = np.bincount(said.who, wrong, minlength=n_people)
            rate = (STANDING * SMALL_ERROR + summed) / (STANDING + n_said)
        if np.abs(r - before).max() < SETTLED:
            break
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


def _compared(said: PeopleSaid, n: int) -> Compared:
    link = np.flatnonzero(said.is_link)
    ends = np.sort(np.stack([said.task[link], said.other[link]]), axis=0)
    (left, right), of_link = np.unique(ends, axis=1, return_inverse=True)
    to = np.concatenate([left, right])
    by_end = csr_array((np.ones(len(to)), (to, np.arange(len(to)))), (n, len(to)))
    return Compared(left, right, link, of_link.reshape(-1), by_end)


def _by_labels(shape: tuple[int, ...], said: PeopleSaid, rate: Floats) -> Floats:
    """Return log Π P(s | k) of each task: labels that were given to it, or denied."""
    total = np.zeros(shape)
    n_classes = shape[1]
    at = np.flatnonzero(~said.is_link)
    right = 1.0 - rate[at]
    wrong = rate[at] / max(n_classes - 1, 1)
    every = np.repeat(np.where(said.is_yes[at], wrong, right)[:, None], n_classes, axis=1)
    every[np.arange(len(at)), said.label[at]] = np.where(said.is_yes[at], right, rate[at])
    np.add.at(total, said.task[at], np.log(np.maximum(every, LEAST)))
    return total


def _with_messages(given: Floats, pairs: Compared, messages: Floats) -> Floats:
    """Return log r of each task, up to a constant."""
    return np.asarray(given + pairs.by_end @ messages.reshape(-1, given.shape[1]))


def _messages(
    total: Floats, pairs: Compared, likely: tuple[Floats, Floats], before: Floats
) -> Floats:
    """Return what each pair says to its two ends, by what the other end is without it."""
    same, differ = (each[:, None] for each in likely)
    right = _normalised(total[pairs.right] - before[1])
    left = _normalised(total[pairs.left] - before[0])
    new = np.log(np.maximum(differ + (same - differ) * np.stack([right, left]), LEAST))
    new -= new.max(axis=2, keepdims=True)
    return np.asarray(DAMPING * before + (1.0 - DAMPING) * new)


def _wrong(
    total: Floats,
    said: PeopleSaid,
    pairs: Compared,
    likely: tuple[Floats, Floats],
    messages: Floats,
) -> Floats:
    """Return how likely each answer is wrong."""
    r = _normalised(total)
    at = np.flatnonzero(~said.is_link)
    wrong = np.zeros(len(said.who))
    share = r[said.task[at], said.label[at]]
    wrong[at] = np.where(said.is_yes[at], 1.0 - share, share)
    left = _normalised(total[pairs.left] - messages[0])
    right = _normalised(total[pairs.right] - messages[1])
    agree = (left * right).sum(axis=1)
    same = agree * likely[0]
    differ = (1.0 - agree) * likely[1]
    is_same = (same / np.maximum(same + differ, LEAST))[pairs.of_link]
    wrong[pairs.link] = np.where(said.is_yes[pairs.link], 1.0 - is_same, is_same)
    return wrong


def _share_heard(said: PeopleSaid, is_counted: Mask) -> Floats:
    """Return how much of the crowd's word on each task others hear, where all that is linked ties.

    The crowd errs together, so that n tasks say what n / (1 + ρ (n − 1)) would: [eq:design-effect].
    """
    links = said.is_link
    group = components(len(is_counted), said.task[links], said.other[links])
    n_others = np.bincount(group, weights=is_counted)[group] - 1.0
    return np.asarray(1.0 / (1.0 + DEPENDENCE * np.maximum(n_others, 0.0)))


def _for_others(
    r: Floats, is_labelled: Mask, said: PeopleSaid, pairs: Compared, rate: Floats
) -> Floats:
    """Return what a label of each task would put right in tasks that hang on an example.

    All that was compared with an example and has no label hangs on it, with all doubt in it. Who
    named the example cannot be asked again: a label of a task that is tied to it tells nearly as
    much, and a few of these are asked, those that are believed most. For example, 40 tasks hang on
    a, which is believed with .98: its label may put .8 right, that of b, "the same as a", .77.
    """
    same, differ = pairs.likelihoods(said, rate[said.who])
    tie = (same - differ) / (same + differ)
    if r.shape[1] == 2:  # "different" tells the class as well
        tie = np.abs(tie)
    doubt = 1.0 - r.max(axis=1)
    example = np.concatenate([pairs.left, pairs.right])
    task = np.concatenate([pairs.right, pairs.left])
    hangs = is_labelled[example] & ~is_labelled[task]
    found = np.bincount(example[hangs], minlength=len(r)) * doubt
    told = np.where(hangs, np.tile(tie, 2) * found[example], 0.0)
    for at in np.flatnonzero(found).tolist():
        tied = np.flatnonzero((told > 0.0) & (example == at))
        best = tied[np.lexsort((doubt[task[tied]], -told[tied]))[:DEPUTIES]]
        found[task[best]] = np.maximum(found[task[best]], told[best])
    return np.asarray(found)


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
