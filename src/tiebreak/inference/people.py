"""People: what several of them say, weighed by how often each errs.

A crowd errs together, so that its votes, added up, outweigh any one person. What people were asked
is weighed against the crowd's calibrated probabilities instead, by belief propagation over the
tasks that answers name [eq:asked-labels]:

    r_i(k) ∝ p_i(k) Π_s P(s | k) Π_e m_e(k)

p_i is what the responses of the task alone say, scaled for errors in common, and a share λ of it
spread over all classes: a crowd can be sure and wrong, and questions are asked where it is. s are
labels that were given to it, with P(s | k) = 1 − ε where s is right and ε / (K − 1) where not;
m_e(k) is what "the same as" or "different from" another task j says, by what is believed of j
without this answer, c_j:

    same:  ε + (1 − 2 ε) c_j(k)        different:  1 − ε − (1 − 2 ε) c_j(k)

What several people said of the same two tasks is one such message. Messages are
damped, since those of a loop of contradictions would oscillate.

The error rate ε of a person and λ follow from r, and r from these, in turn. Where people mostly say
what the crowd's probabilities lead to expect, λ is small, and who contradicts a sure crowd is
believed to err; where they contradict it together, λ is large. With two classes every comparison
ties, and the crowd's word on n tasks that nobody gave a label, which are tied to one example, goes
along links as that of n / (1 + ρ (n − 1)): a crowd that errs together must not rename the example.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from tiebreak.inference.calibration import DEPENDENCE
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links.graph import components

SMALL_ERROR = 0.02  # of answers, before it is learnt how often they are wrong
STANDING = 20.0  # answers, or tasks, that a prior counts for: evidence overrules it
TURNS = 100  # of messages and rates, at most
RESERVE = 0.5  # of doubt in the crowd on tasks that are asked about, before it is learnt
LEAST = 1e-12  # of a belief
CONVERGED = 1e-10  # change of a belief from turn to turn
DAMPING = 0.7  # of a message as it was: along loops, messages would oscillate
DEPUTIES = 2  # tasks that are asked about, between two fits, to learn the class of one tied to them


@dataclass(frozen=True, eq=False)
class Said:
    """Answers of people, in codes."""

    people: list[str]
    who: Offsets  # (m,) which of them gave each answer
    task: Offsets  # (m,)
    other: Offsets  # (m,) the second task of a link, -1 where a class was named or denied
    label: Offsets  # (m,) that class, -1 for a link
    is_yes: Mask  # (m,) not "different", not "no"


@dataclass(frozen=True, eq=False)
class Weighed:
    """What answers amount to."""

    task: Offsets  # (n,) the tasks that they name, sorted
    r: Floats  # (n, n_classes) what to believe of them
    is_named: Mask  # (n,) which of them have a label, or are tied to one that has
    is_labelled: Mask  # (n,) which were given a label themselves
    rates: dict[str, float]  # by person: how often answers are wrong
    error: float  # how often an answer is wrong, over all of them
    reserve: float  # how often what the crowd says of such tasks tells nothing
    for_others: Floats  # (n,) what a label of each would correct in others


def weigh(given: Said, own: Floats, known: Floats, error: float | None) -> Weighed:
    """Weigh answers against each other and against what the crowd says of each task.

    Beliefs, the rates of people and the reserve are found in turn, until they have converged.

    Parameters
    ----------
    own
        (n_tasks, n_classes) by the responses of each task alone, scaled.
    known
        (n_tasks,) 1 where a label was given from the start: `own` has it then.
    error
        How often people err, where that is known; None: it is learnt.
    """
    n_classes = own.shape[1]
    said = _Pairs(given, known, n_classes)
    own = own[said.tasks]
    n_people = len(given.people)
    n_said = np.bincount(said.who, minlength=n_people)
    rate = np.full(n_people, SMALL_ERROR if error is None else max(error, LEAST))
    reserve = next_reserve = RESERVE
    messages = np.zeros((2, len(said.left), n_classes))  # to `left`, to `right`
    r = np.zeros_like(own)
    for _ in range(TURNS):
        before, reserve = r, next_reserve
        spread = (1.0 - reserve) * own + reserve / n_classes
        crowd = np.where(said.is_given[:, None], own, spread)
        logs = np.log(np.maximum(crowd, LEAST))
        heard = said.heard[:, None] * logs
        alone = heard + said.by_labels(rate, n_classes)
        same, differ = said.likelihoods(rate)

        # What each pair says to its two ends, by what the other end is without it.
        total = alone + said.by_end @ messages.reshape(-1, n_classes)
        left, right = said.ends_without(messages, total)
        tied = differ[:, None] + (same - differ)[:, None] * np.stack([right, left])
        new = np.log(np.maximum(tied, LEAST))
        messages = DAMPING * messages + (1.0 - DAMPING) * (new - new.max(axis=2, keepdims=True))
        total = alone + said.by_end @ messages.reshape(-1, n_classes)
        r = softmax(total + logs - heard)

        # Of a task of class k the crowd says nothing with probability (λ / K) / p(k) as spread.
        vain = (r * (reserve / n_classes) / np.maximum(crowd, LEAST)).sum(axis=1)[~said.is_given]
        next_reserve = float((STANDING * RESERVE + vain.sum()) / (STANDING + len(vain)))
        if error is None:
            wrong = np.zeros(len(said.who))
            wrong[said.named] = 1.0 - (softmax(total)[said.task[said.named]] * said.agrees).sum(1)
            left, right = said.ends_without(messages, total)
            is_one = (left * right).sum(axis=1)
            together = is_one * same + (1.0 - is_one) * differ
            is_same = (is_one * same / np.maximum(together, LEAST))[said.pair]
            wrong[said.link] = np.where(said.is_yes[said.link], 1.0 - is_same, is_same)
            summed = np.bincount(said.who, wrong, minlength=n_people)
            rate = (STANDING * SMALL_ERROR + summed) / (STANDING + n_said)
        if np.abs(r - before).max() < CONVERGED:
            break
    return Weighed(
        said.tasks,
        r,
        said.tied_to_a_label(),
        said.is_labelled,
        dict(zip(given.people, rate.tolist(), strict=True)),
        float(rate @ n_said / n_said.sum()),
        reserve,
        said.gain_for_others(r, rate),
    )


class _Pairs:
    """The n tasks that answers name, and the pairs of them that are compared.

    Two tasks that were compared are one pair, by one person or more. Taken apart, the answer of one
    person would reach the other task and come back as an echo along that of the next. For example,
    of a and b, with rates ε and ε':

        ann: same, bob: same         s = (1 − ε) (1 − ε')    d = ε ε'
        ann: same, bob: different    s = (1 − ε) ε'          d = ε (1 − ε')
    """

    def __init__(self, said: Said, known: Floats, n_classes: int) -> None:
        is_link = said.other >= 0
        self.who = said.who
        self.tasks = np.unique(np.concatenate([said.task, said.other[is_link]]))
        self.task = np.searchsorted(self.tasks, said.task)
        other = np.searchsorted(self.tasks, np.where(is_link, said.other, said.task))
        label, self.is_yes = said.label, said.is_yes
        self.is_binary = n_classes == 2
        if self.is_binary:  # "no, not a cat" names the other class
            is_other = ~self.is_yes & ~is_link
            label = np.where(is_other, 1 - label, label)
            self.is_yes = self.is_yes | is_other
        self.link = np.flatnonzero(is_link)
        self.named = np.flatnonzero(~is_link)  # answers that name a class
        is_label = label[self.named, None] == np.arange(n_classes)
        self.agrees = is_label == self.is_yes[self.named, None]  # (n_named, n_classes)

        n = len(self.tasks)
        ends = np.sort(np.stack([self.task, other])[:, is_link], axis=0)
        (self.left, self.right), pair = np.unique(ends, axis=1, return_inverse=True)
        self.pair = pair.reshape(-1)  # of each link
        to = np.concatenate([self.left, self.right])
        self.by_end = csr_array((np.ones(len(to)), (to, np.arange(len(to)))), (n, len(to)))

        self.is_given = known[self.tasks] > 0.0
        self.is_labelled = np.zeros(n, dtype=bool)
        self.is_labelled[self.task[~is_link & self.is_yes]] = True
        # The crowd errs together, so that n tasks tell each other along links what
        # n / (1 + ρ (n − 1)), the design effect, would.
        self.heard = np.ones(n)
        if self.is_binary:
            is_base = self.is_labelled | self.is_given
            group = components(n, self.left, self.right)
            n_others = np.maximum(np.bincount(group, weights=~is_base)[group] - 1.0, 0.0)
            self.heard = np.where(is_base, 1.0, 1.0 / (1.0 + DEPENDENCE * n_others))

    def by_labels(self, rate: Floats, n_classes: int) -> Floats:
        """Return log Π P(s | k) of each task: labels that were given to it, or denied."""
        error = rate[self.who[self.named]]
        n_wrong = np.where(self.is_yes[self.named], n_classes - 1, 1)  # classes to err to
        chance = np.where(self.agrees, (1.0 - error)[:, None], (error / n_wrong)[:, None])
        total = np.zeros((len(self.tasks), n_classes))
        np.add.at(total, self.task[self.named], np.log(np.maximum(chance, LEAST)))
        return total

    def likelihoods(self, rate: Floats) -> tuple[Floats, Floats]:
        """Return s and d of each pair: its answers where the two are the same, or different."""
        error = rate[self.who[self.link]]
        right, wrong = (np.log(np.maximum(each, LEAST)) for each in (1.0 - error, error))
        is_yes = self.is_yes[self.link]
        n_pairs = len(self.left)
        same = np.bincount(self.pair, np.where(is_yes, right, wrong), minlength=n_pairs)
        differ = np.bincount(self.pair, np.where(is_yes, wrong, right), minlength=n_pairs)
        most = np.maximum(same, differ)
        return np.exp(same - most), np.exp(differ - most)

    def ends_without(self, messages: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Return what is believed of `left` and `right` without what each pair says to them."""
        left = softmax(total[self.left] - messages[0])
        return left, softmax(total[self.right] - messages[1])

    def tied_to_a_label(self) -> Mask:
        """Return the tasks that have a label, or that links tie to one that has."""
        is_tie = self.is_yes[self.link] | self.is_binary
        tied = np.unique(self.pair[is_tie])
        group = components(len(self.tasks), self.left[tied], self.right[tied])
        return np.asarray(np.isin(group, group[self.is_labelled | self.is_given]))

    def gain_for_others(self, r: Floats, rate: Floats) -> Floats:
        """Return what a label of each task would correct in tasks that depend on an example.

        All that was compared with an example and has no label depends on it, with all doubt in it.
        The people that named the example cannot be asked again: a label of a task that is tied to
        it tells nearly as much, and a few of these are asked, those that are believed most. For
        example, 40 tasks depend on a, which is believed with .98: its label may correct .8, that of
        b, "the same as a", .77.
        """
        same, differ = self.likelihoods(rate)
        tie = (same - differ) / (same + differ)
        if self.is_binary:  # "different" tells the class as well
            tie = np.abs(tie)
        doubt = 1.0 - r.max(axis=1)
        example = np.concatenate([self.left, self.right])
        task = np.concatenate([self.right, self.left])
        depends = self.is_labelled[example] & ~self.is_labelled[task]
        found = np.bincount(example[depends], minlength=len(r)) * doubt
        from_tied = np.where(depends, np.tile(tie, 2) * found[example], 0.0)
        for at in np.flatnonzero(found).tolist():
            tied = np.flatnonzero((from_tied > 0.0) & (example == at))
            best = tied[np.lexsort((doubt[task[tied]], -from_tied[tied]))[:DEPUTIES]]
            found[task[best]] = np.maximum(found[task[best]], from_tied[best])
        return np.asarray(found)
