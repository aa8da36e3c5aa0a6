"""Links that may be wrong: how often each source errs, learnt beside everything else.

Every link is an answer to "are these two the same class?". A source says "different" of tasks that
are the same with one probability, and "same" of tasks that differ with another; each has a Beta
prior. Only given links count: what follows from two answers is not a third.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import betaln, psi

from tiebreak.kernels.layout import Codes, Floats, Mask, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper


class SoftModel(Protocol):
    """A link model whose links carry log-odds that can be set between sweeps."""

    @property
    def may_cycle(self) -> bool:
        """Whether updates can swap between two states for ever."""

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the linked tasks, and return what they imply."""

    def agreement(self, q: Floats) -> Floats:
        """Return for each link the probability that its two tasks agree."""

    def entropy(self, q: Floats) -> float:
        """Return the entropy of the linked tasks."""

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each link agree."""


class Answers(NamedTuple):
    """Links as answers: what was said, and by which source."""

    must: Mask  # (n_links,) the answer was "same"
    source: Codes  # (n_links,)
    n_sources: int


class Rates(NamedTuple):
    """Beta distributions of error rates: wrong + 1 answers of wrong + right, per source.

    With `tied`, a source errs as often on tasks that are the same as on tasks that differ, and
    row 0 serves both; else row 0 is for same tasks, row 1 for different ones.
    """

    wrong: Floats  # (2, n_sources), or (1, n_sources) when tied
    right: Floats

    @property
    def mean(self) -> Floats:
        """The expected error rates, in the shape of `wrong`."""
        return np.asarray(self.wrong / (self.wrong + self.right))


def prior_rates(n_sources: int, wrong: float, right: float, *, tied: bool = False) -> Rates:
    """Return the same Beta(wrong, right) for every rate."""
    shape = (1 if tied else 2, n_sources)
    return Rates(np.full(shape, wrong), np.full(shape, right))


def learn_rates(prior: Rates, answers: Answers, agree: Floats) -> Rates:
    """Add expected wrong and right answers to the prior: [eq:link-errors]."""
    same, n = agree, answers.n_sources
    says_same = answers.must
    wrong_same = np.bincount(answers.source, weights=np.where(says_same, 0.0, same), minlength=n)
    right_same = np.bincount(answers.source, weights=np.where(says_same, same, 0.0), minlength=n)
    apart = 1.0 - same
    wrong_apart = np.bincount(answers.source, weights=np.where(says_same, apart, 0.0), minlength=n)
    right_apart = np.bincount(answers.source, weights=np.where(says_same, 0.0, apart), minlength=n)
    if len(prior.wrong) == 1:
        return Rates(prior.wrong + wrong_same + wrong_apart, prior.right + right_same + right_apart)
    return Rates(
        prior.wrong + np.stack([wrong_same, wrong_apart]),
        prior.right + np.stack([right_same, right_apart]),
    )


def log_odds(rates: Rates, answers: Answers) -> Floats:
    """Return the expected log-odds, of each link, that its two tasks agree."""
    total = psi(rates.wrong + rates.right)
    log_wrong, log_right = psi(rates.wrong) - total, psi(rates.right) - total
    same, apart = 0, len(rates.wrong) - 1
    said_same = log_right[same] - log_wrong[apart]
    said_different = log_wrong[same] - log_right[apart]
    source = answers.source
    return np.asarray(np.where(answers.must, said_same[source], said_different[source]))


@dataclass
class LearntLinks:
    """Soft links whose sources' error rates are learnt: a `vb.LinkModel` around another."""

    links: SoftModel
    answers: Answers
    prior: Rates
    rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        self.rates = self.prior
        self.links.set_log_odds(log_odds(self.rates, self.answers))
        self.last_value: float | None = None

    remembers = True  # rates are learnt from update to update

    @property
    def may_cycle(self) -> bool:
        """Whether updates can swap between two states for ever."""
        return self.links.may_cycle

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the linked tasks, then the error rates: [eq:link-errors]."""
        swept = self.links.sweep(sweeper, scores, logs)
        q = sweeper.q()
        uncertainty = self.links.entropy(q)
        self.rates = learn_rates(self.prior, self.answers, self.links.agreement(q))
        self.links.set_log_odds(log_odds(self.rates, self.answers))
        gain = betaln(self.rates.wrong, self.rates.right) - betaln(
            self.prior.wrong, self.prior.right
        )
        self.last_value = uncertainty + float(gain.sum())
        return swept._replace(entropy=self.last_value)
