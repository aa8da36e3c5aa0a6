"""Links that may be wrong: how often each source errs, and which links are suspect.

Every link is an answer to "are these two the same class?". A source says "different" of tasks that
are the same with one probability, and "same" of tasks that differ with another; each has a Beta
prior. Only given links count: what follows from two answers is not a third.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, psi

from tiebreak.data.frames import as_frame
from tiebreak.errors import note
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.links import Links
from tiebreak.links.graph import LinkCodes

# Rows of `Rates`: what the two tasks of a link really are.
SAME = 0
DIFFERENT = 1


class Answers(NamedTuple):
    """Links as answers: what was said, and by which source."""

    must: Mask  # (n_links,) the answer was "same"
    source: Codes  # (n_links,)
    n_sources: int
    of_copies: Floats | None = None  # (n_links,) `plan.odds_of_copies`; None: all are 0

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
    found = np.where(answers.must, said_same[source], said_different[source])
    return np.asarray(found if answers.of_copies is None else found + answers.of_copies)


class LearntRates:
    """The error rates of sources, from update to update."""

    def __init__(self, answers: Answers, prior: Rates) -> None:
        self.answers = answers
        self.prior = prior
        self.rates = prior

    def log_odds(self) -> Floats:
        """Return the expected log-odds, of each link, that its two tasks agree."""
        return log_odds(self.rates, self.answers)

    def update(self, agree: Floats) -> tuple[float, float]:
        """Learn the rates; return by how much they moved, and what they add to the bound."""
        before = self.rates.mean
        self.rates = learn_rates(self.prior, self.answers, agree)
        value = log_evidence(self.prior, self.rates, self.answers)
        if self.answers.of_copies is not None:
            value -= float(self.answers.of_copies @ (1.0 - agree))
        return float(np.abs(self.rates.mean - before).max(initial=0.0)), value


# -- what is published -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DoubtfulLinks:
    """Links that are more likely wrong than right, the most likely first."""

    links: Links
    probability: Floats  # (n_links,) that each is wrong

    def __len__(self) -> int:
        return len(self.probability)

    def __repr__(self) -> str:
        return f"DoubtfulLinks({len(self):,} links)"

    def to_frame(self) -> Any:
        """Return left, right, link and the probability that it is wrong, as a table."""
        return as_frame({**self.links.columns(), "wrong": self.probability}, "pyarrow")


class ErrorRate(NamedTuple):
    """How often one source errs, as expected after the fit."""

    says_different_of_same: float
    says_same_of_different: float


LinkErrors = dict[Hashable, ErrorRate]


def suspect_links(links: Links | None, codes: LinkCodes, wrong: Floats) -> DoubtfulLinks | None:
    """Rank the links that are more likely wrong than right; None where all are hard."""
    if links is None or not wrong.any():
        return None
    suspect = np.flatnonzero(wrong > 0.5)
    suspect = suspect[np.argsort(-wrong[suspect], kind="stable")]
    return DoubtfulLinks(links.select(codes.row[suspect]), wrong[suspect])


def errors_by_source(links: Links | None, rates: Rates) -> LinkErrors:
    """Name learnt error rates by source; warn about a source that is worse than a coin."""
    names = [None] if links is None or links.sources is None else [None, *links.sources]
    has_unnamed = links is None or links.who is None or bool((links.who < 0).any())
    found: LinkErrors = {}
    for name, same, different in zip(names, *rates.mean.tolist(), strict=False):
        if name is None and len(names) > 1 and rates.wrong.shape[1] > 1 and not has_unnamed:
            continue  # no link of these has an unknown source
        found[name] = ErrorRate(same, different)
        if same + different > 1.0:
            who = "The links" if name is None else f"Source {name!r}"
            note(
                f"{who} look worse than a coin: wrong on {same:.0%} of pairs that are the same "
                f"and {different:.0%} of pairs that differ. Are the words swapped?"
            )
    return found
