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

What several people said of the same two tasks is one such message. Messages are
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
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links.graph import components

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # answers, or tasks, that a prior counts for: evidence overrules it
TURNS = 100  # of messages and rates, at most
RESERVE = 0.5  # of doubt in the crowd on tasks that are asked about, before it is learnt
LEAST = 1e-12  # of a belief
SETTLED = 1e-10  # of a belief from turn to turn
DAMPING = 0.7  # of a message as it was: along loops, messages would swing to and fro for ever
DEPUTIES = 2  # tasks that are asked about, between two fits, to learn the class of one tied to them


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
    said = _Said(job, answers, own, known)
    r, rate, reserve = said.settle(error)
    n_said = np.bincount(said.who, minlength=len(said.people))
    return Weighed(
        said.tasks,
        r,
        said.tied_to(said.is_base),
        said.is_labelled,
        dict(zip(said.people, rate.tolist(), strict=True)),
        float(rate @ n_said / n_said.sum()),
        reserve,
        said.for_others(r, rate),
    )


class _Said:
    """Answers in codes, and the pairs of tasks that they compare.

    n tasks are named by m answers: `who`, `task`, `other` (the second task of a link), `label` (-1
    for a link) and `is_yes` are (m,). Two tasks that were compared are one pair, by one person or
    more. Taken apart, the answer of one person would reach the other task and come back as an echo
    along that of the next. For example, of a and b, with rates ε and ε':

        ann: same, bob: same         s = (1 − ε) (1 − ε')    d = ε ε'
        ann: same, bob: different    s = (1 − ε) ε'          d = ε (1 − ε')
    """

    def __init__(self, job: Job, answers: Sequence[Event], own: Floats, known: Floats) -> None:
        left = [job.code[event.left or ""] for event in answers]
        right = [job.code[event.right or event.left or ""] for event in answers]
        label = [-1 if event.is_link else job.class_code[event.label or ""] for event in answers]
        self.people = sorted({event.who for event in answers})
        self.who = np.array([self.people.index(event.who) for event in answers], dtype=np.int64)
        self.tasks = np.unique([*left, *right]).astype(np.int64)
        self.task = np.searchsorted(self.tasks, left)
        self.other = np.searchsorted(self.tasks, right)
        self.label = np.array(label, dtype=np.int64)
        self.is_yes = np.array([event.kind not in ("no", "different") for event in answers])
        self.is_binary = job.responses.n_classes == 2
        if self.is_binary:  # "no, not a cat" names the other class
            is_other = ~self.is_yes & (self.label >= 0)
            self.label = np.where(is_other, 1 - self.label, self.label)
            self.is_yes = self.is_yes | is_other
        is_link = self.label < 0
        self.link = np.flatnonzero(is_link)
        self.named = np.flatnonzero(~is_link)  # answers that name a class

        n = len(self.tasks)
        ends = np.sort(np.stack([self.task[is_link], self.other[is_link]]), axis=0)
        (self.left, self.right), pair = np.unique(ends, axis=1, return_inverse=True)
        self.pair = pair.reshape(-1)  # of each link
        to = np.concatenate([self.left, self.right])
        self.by_end = csr_array((np.ones(len(to)), (to, np.arange(len(to)))), (n, len(to)))

        self.own = own[self.tasks]
        self.is_given = known[self.tasks] > 0.0
        self.is_labelled = np.zeros(n, dtype=bool)
        self.is_labelled[self.task[~is_link & self.is_yes]] = True
        self.is_base = self.is_labelled | self.is_given
        self.heard = self._share_heard() if self.is_binary else np.ones(n)

    def settle(self, error: float | None) -> tuple[Floats, Floats, float]:
        """Find beliefs, rates of people and the reserve in turn, until they have settled."""
        n_people = len(self.people)
        n_said = np.bincount(self.who, minlength=n_people)
        rate = np.full(n_people, SMALL_ERROR if error is None else max(error, LEAST))
        reserve = next_reserve = RESERVE
        messages = np.zeros((2, len(self.left), self.own.shape[1]))  # to `left`, to `right`
        r = np.zeros_like(self.own)
        for _ in range(TURNS):
            before = r
            reserve = next_reserve
            logs = np.log(np.maximum(self._with_reserve(reserve), LEAST))
            heard = self.heard[:, None] * logs
            given = heard + self._by_labels(rate[self.who])
            likely = self._likelihoods(rate[self.who])
            messages = self._messages(self._total(given, messages), likely, messages)
            total = self._total(given, messages)
            r = softmax(total + logs - heard)
            next_reserve = self._learnt_reserve(r, reserve)
            if error is None:
                wrong = self._wrong(total, likely, messages)
                summed = np.bincount(self.who, wrong, minlength=n_people)
                rate = (STANDING * SMALL_ERROR + summed) / (STANDING + n_said)
            if np.abs(r - before).max() < SETTLED:
                break
        return r, rate, reserve

    def tied_to(self, named: Mask) -> Mask:
        """Return also the tasks that links tie to one that is named."""
        ties = self.link[self.is_yes[self.link] | self.is_binary]
        pairs = np.stack([self.task[ties], self.other[ties]])
        group = components(len(named), *pairs)
        return np.asarray(np.isin(group, group[named]))

    def for_others(self, r: Floats, rate: Floats) -> Floats:
        """Return what a label of each task would put right in tasks that hang on an example.

        All that was compared with an example and has no label hangs on it, with all doubt in it.
        The people that named the example cannot be asked again: a label of a task that is tied to
        it tells nearly as much, and a few of these are asked, those that are believed most. For
        example, 40 tasks hang on a, which is believed with .98: its label may put .8 right, that of
        b, "the same as a", .77.
        """
        same, differ = self._likelihoods(rate[self.who])
        tie = (same - differ) / (same + differ)
        if self.is_binary:  # "different" tells the class as well
            tie = np.abs(tie)
        doubt = 1.0 - r.max(axis=1)
        example = np.concatenate([self.left, self.right])
        task = np.concatenate([self.right, self.left])
        hangs = self.is_labelled[example] & ~self.is_labelled[task]
        found = np.bincount(example[hangs], minlength=len(r)) * doubt
        told = np.where(hangs, np.tile(tie, 2) * found[example], 0.0)
        for at in np.flatnonzero(found).tolist():
            tied = np.flatnonzero((told > 0.0) & (example == at))
            best = tied[np.lexsort((doubt[task[tied]], -told[tied]))[:DEPUTIES]]
            found[task[best]] = np.maximum(found[task[best]], told[best])
        return np.asarray(found)

    def _share_heard(self) -> Floats:
        """Return how much of the crowd's word on each task goes along links, [eq:design-effect].

        The crowd errs together, so that n tasks say what n / (1 + ρ (n − 1)) would.
        """
        group = components(len(self.tasks), self.task[self.link], self.other[self.link])
        n_others = np.bincount(group, weights=~self.is_base)[group] - 1.0
        shared = 1.0 / (1.0 + DEPENDENCE * np.maximum(n_others, 0.0))
        return np.where(self.is_base, 1.0, shared)

    def _with_reserve(self, reserve: float) -> Floats:
        """Return the crowd's probabilities, of which a share is spread over all classes."""
        spread = (1.0 - reserve) * self.own + reserve / self.own.shape[1]
        return np.where(self.is_given[:, None], self.own, spread)

    def _learnt_reserve(self, r: Floats, reserve: float) -> float:
        """Return how often the crowd told nothing, by what is believed of the tasks now.

        Of a task of class k it told nothing with probability (λ / K) / ((1 − λ) p(k) + λ / K).
        """
        share = reserve / self.own.shape[1] / np.maximum(self._with_reserve(reserve), LEAST)
        vain = (r * share).sum(axis=1)[~self.is_given]
        return float((STANDING * RESERVE + vain.sum()) / (STANDING + len(vain)))

    def _by_labels(self, rate: Floats) -> Floats:
        """Return log Π P(s | k) of each task: labels that were given to it, or denied."""
        total = np.zeros_like(self.own)
        n_classes = total.shape[1]
        at = self.named
        is_yes = self.is_yes[at]
        right = 1.0 - rate[at]
        wrong = rate[at] / max(n_classes - 1, 1)
        every = np.repeat(np.where(is_yes, wrong, right)[:, None], n_classes, axis=1)
        every[np.arange(len(at)), self.label[at]] = np.where(is_yes, right, rate[at])
        np.add.at(total, self.task[at], np.log(np.maximum(every, LEAST)))
        return total

    def _likelihoods(self, rate: Floats) -> tuple[Floats, Floats]:
        """Return s and d of each pair: its answers where the two are the same, or different."""
        right = np.log(np.maximum(1.0 - rate[self.link], LEAST))
        wrong = np.log(np.maximum(rate[self.link], LEAST))
        is_yes = self.is_yes[self.link]
        n_pairs = len(self.left)
        same = np.bincount(self.pair, np.where(is_yes, right, wrong), minlength=n_pairs)
        differ = np.bincount(self.pair, np.where(is_yes, wrong, right), minlength=n_pairs)
        most = np.maximum(same, differ)
        return np.exp(same - most), np.exp(differ - most)

    def _total(self, given: Floats, messages: Floats) -> Floats:
        """Return log r of each task, up to a constant."""
        return np.asarray(given + self.by_end @ messages.reshape(-1, given.shape[1]))

    def _without(self, total: Floats, messages: Floats) -> tuple[Floats, Floats]:
        """Return what is believed of `left` and `right` without what each pair says to them."""
        left = softmax(total[self.left] - messages[0])
        return left, softmax(total[self.right] - messages[1])

    def _messages(self, total: Floats, likely: tuple[Floats, Floats], before: Floats) -> Floats:
        """Return what each pair says to its two ends, by what the other end is without it."""
        same, differ = (each[:, None] for each in likely)
        left, right = self._without(total, before)
        new = np.log(np.maximum(differ + (same - differ) * np.stack([right, left]), LEAST))
        new -= new.max(axis=2, keepdims=True)
        return np.asarray(DAMPING * before + (1.0 - DAMPING) * new)

    def _wrong(self, total: Floats, likely: tuple[Floats, Floats], messages: Floats) -> Floats:
        """Return how likely each answer is wrong."""
        share = softmax(total)[self.task[self.named], self.label[self.named]]
        wrong = np.zeros(len(self.who))
        wrong[self.named] = np.where(self.is_yes[self.named], 1.0 - share, share)
        left, right = self._without(total, messages)
        agree = (left * right).sum(axis=1)
        same = agree * likely[0]
        differ = (1.0 - agree) * likely[1]
        is_same = (same / np.maximum(same + differ, LEAST))[self.pair]
        wrong[self.link] = np.where(self.is_yes[self.link], 1.0 - is_same, is_same)
        return wrong
