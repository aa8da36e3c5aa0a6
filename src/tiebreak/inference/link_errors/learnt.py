"""Links that may be wrong: how often each source errs, learnt with everything else.

Every link is an answer to "are these two the same class?". A source says "different" of tasks that
are the same with one probability, and "same" of tasks that differ with another; each has a Beta
prior. Only given links count: what follows from two answers is not a third.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, psi

from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.kernels.layout import Codes, Floats, Mask, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper

# Rows of `Rates`: what the two tasks of a link really are.
SAME = 0
DIFFERENT = 1


class Answers(NamedTuple):
    """Links as answers: what was said, and by which source."""

    must: Mask  # (n_links,) the answer was "same"
    source: Codes  # (n_links,)
    n_sources: int
    duplicate: Mask | None = None  # (n_links,) "these are copies of one task"; None: never said

    @property
    def one_rate(self) -> Mask:
        """Which sources give links of one kind only, (n_sources,): they have one rate, not two.

        No answer of theirs could show the other rate, and it would run away.
        """
        n_must = np.bincount(self.source[self.must], minlength=self.n_sources)
        n_all = np.bincount(self.source, minlength=self.n_sources)
        return np.asarray((n_must == 0) | (n_must == n_all))


class Rates(NamedTuple):
    """Beta(wrong, right) distributions of error rates, per source."""

    wrong: Floats  # (2, n_sources): row SAME on tasks that are the same, row DIFFERENT on others
    right: Floats

    @property
    def mean(self) -> Floats:
        """The expected error rates, in the shape of `wrong`."""
        return np.asarray(self.wrong / (self.wrong + self.right))


def prior_rates(n_sources: int, wrong: float, right: float) -> Rates:
    """Return the same Beta(wrong, right) for every rate."""
    shape = (2, n_sources)
    return Rates(np.full(shape, wrong), np.full(shape, right))


def learn_rates(prior: Rates, answers: Answers, agree: Floats) -> Rates:
    """Add expected wrong and right answers to the prior: [eq:link-errors].

    One source said "same" of a pair that is the same with probability 0.9, and "different" of one
    that is with 0.2. It was wrong on 0.2 and right on 0.9 same pairs, wrong on 0.1 and right on
    0.8 different ones.

    >>> answers = Answers(np.array([True, False]), np.array([0, 0], np.int32), 1)
    >>> rates = learn_rates(prior_rates(1, 1.0, 9.0), answers, np.array([0.9, 0.2]))
    >>> rates.wrong[:, 0].round(1).tolist(), rates.right[:, 0].round(1).tolist()
    ([1.2, 1.1], [9.9, 9.8])

    A source whose links are all of one kind has one rate: both rows hold the sum.
    """

    def total(weight: Floats, chosen: Mask) -> Floats:
        weights = np.where(chosen, weight, 0.0)
        sums = np.bincount(answers.source, weights=weights, minlength=answers.n_sources)
        return np.asarray(sums, dtype=np.float64)

    said_same = answers.must
    differ = 1.0 - agree
    wrong = np.stack([total(agree, ~said_same), total(differ, said_same)])
    right = np.stack([total(agree, said_same), total(differ, ~said_same)])
    tied = answers.one_rate
    wrong[:, tied] = wrong[:, tied].sum(axis=0)
    right[:, tied] = right[:, tied].sum(axis=0)
    return Rates(prior.wrong + wrong, prior.right + right)


def log_evidence(prior: Rates, rates: Rates, answers: Answers) -> float:
    """Return what rates, integrated out, add to the bound; one rate of a source counts once."""
    gain = betaln(rates.wrong, rates.right) - betaln(prior.wrong, prior.right)
    gain[DIFFERENT, answers.one_rate] = 0.0
    return float(gain.sum())


def log_odds(rates: Rates, answers: Answers) -> Floats:
    """Return the expected log-odds, of each link, that its two tasks agree."""
    total = psi(rates.wrong + rates.right)
    log_wrong = psi(rates.wrong) - total
    log_right = psi(rates.right) - total
    said_same = log_right[SAME] - log_wrong[DIFFERENT]
    said_different = log_wrong[SAME] - log_right[DIFFERENT]
    source = answers.source
    return np.asarray(np.where(answers.must, said_same[source], said_different[source]))


@dataclass
class LearntLinks:
    """Soft links whose sources' error rates are learnt: a `vb.LinkModel` around `ExactLinks`."""

    links: ExactLinks
    answers: Answers
    prior: Rates
    rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        self.last_value: float | None = None
        self.reset()

    def reset(self, rates: Rates | None = None) -> None:
        """Begin anew, at the prior or at these rates."""
        self.rates = self.prior if rates is None else rates
        self.links.reset()
        self.links.set_log_odds(self._log_odds())
        self.last_value = None

    def _log_odds(self) -> Floats:
        return log_odds(self.rates, self.answers) + self._of_copies()

    def _of_copies(self) -> Floats:
        """Return log (K − 1) for copies: one that went wrong is any other class, all alike."""
        if self.answers.duplicate is None:
            return np.zeros(len(self.answers.must))
        others = np.log(max(self.links.n_classes - 1, 1))
        return np.where(self.answers.duplicate, others, 0.0)

    may_cycle = False
    remembers = True  # rates are learnt from update to update

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the linked tasks, then the error rates: [eq:link-errors]."""
        before = self.rates.mean
        swept = self.links.sweep(sweeper, scores, logs)
        entropy = self.links.entropy()
        agree = self.links.agreement()
        self.rates = learn_rates(self.prior, self.answers, agree)
        self.links.set_log_odds(self._log_odds())
        value = entropy + log_evidence(self.prior, self.rates, self.answers)
        self.last_value = value - float(self._of_copies() @ (1.0 - agree))
        moved = float(np.abs(self.rates.mean - before).max(initial=0.0))
        return swept._replace(entropy=self.last_value, change=max(swept.change, moved))
