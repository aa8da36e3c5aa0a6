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

WRONG, RIGHT = 0, 1  # the first axis of counts
SAME, DIFFERENT = 0, 1  # the second: what the two tasks of a link really are


@dataclass(frozen=True, eq=False)
class LearntErrors:
    """Links as answers, and Beta counts of how often sources are wrong and right.

    Counts are (2, 2, n_sources): wrong or right, on tasks that are the same or differ, by source.
    They are parameters of the task model beside class counts.
    """

    must: Mask  # (n_links,) the answer was "same"
    source: Codes  # (n_links,)
    prior: Floats  # (2, 2, n_sources)
    of_copies: Floats | None = None  # (n_links,) `plan.odds_of_copies`; None: all are 0

    @property
    def one_rate(self) -> Mask:
        """Which sources give links of one kind only, (n_sources,): they have one rate, not two.

        No answer of theirs could show the other rate, and it would run away.
        """
        n_sources = self.prior.shape[2]
        n_must = np.bincount(self.source[self.must], minlength=n_sources)
        n_all = np.bincount(self.source, minlength=n_sources)
        return np.asarray((n_must == 0) | (n_must == n_all))

    def count(self, agree: Floats) -> Floats:
        """Return expected wrong and right answers: [eq:link-errors].

        One source said "same" of a pair that is the same with probability 0.9, and "different" of
        one that is with 0.2. It was wrong on 0.2 and right on 0.9 same pairs, wrong on 0.1 and
        right on 0.8 different ones.

        >>> prior = np.zeros((2, 2, 1))
        >>> said = LearntErrors(np.array([True, False]), np.array([0, 0], np.int32), prior)
        >>> said.count(np.array([0.9, 0.2]))[:, :, 0].round(1).tolist()
        [[0.2, 0.1], [0.9, 0.8]]

        A source whose links are all of one kind has one rate: both rows hold the sum.
        """
        counts = np.zeros_like(self.prior)
        for said_same, of_same in ((False, WRONG), (True, RIGHT)):
            chosen = self.must == said_same
            source = self.source[chosen]
            np.add.at(counts[of_same, SAME], source, agree[chosen])
            np.add.at(counts[1 - of_same, DIFFERENT], source, 1.0 - agree[chosen])
        tied = self.one_rate
        counts[:, :, tied] = counts[:, :, tied].sum(axis=1, keepdims=True)
        return counts

    def log_evidence(self, counts: Floats) -> float:
        """Return what rates, integrated out, add to the bound; one rate of a source counts once."""
        gain = betaln(*counts) - betaln(*self.prior)
        gain[DIFFERENT, self.one_rate] = 0.0
        return float(gain.sum())

    def log_odds(self, counts: Floats) -> Floats:
        """Return the expected log-odds, of each link, that its two tasks agree."""
        log_wrong, log_right = psi(counts) - psi(counts.sum(axis=0))
        said_same = log_right[SAME] - log_wrong[DIFFERENT]
        said_different = log_wrong[SAME] - log_right[DIFFERENT]
        found = np.where(self.must, said_same[self.source], said_different[self.source])
        return np.asarray(found if self.of_copies is None else found + self.of_copies)

    def value(self, agree: Floats) -> float:
        """Return what copies that are none add to the bound: any other class, all alike."""
        return (
            0.0 if self.of_copies is None else -float(np.einsum("i,i", self.of_copies, 1.0 - agree))
        )


def rates_of(counts: Floats) -> Floats:
    """Return the expected error rates, (2, n_sources): on the same tasks, on different ones."""
    return np.asarray(counts[WRONG] / counts.sum(axis=0))


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


def errors_by_source(links: Links | None, counts: Floats) -> LinkErrors:
    """Name learnt error rates by source; warn about a source that is worse than a coin."""
    names = [None] if links is None or links.sources is None else [None, *links.sources]
    has_unnamed = links is None or links.who is None or bool((links.who < 0).any())
    found: LinkErrors = {}
    for name, same, different in zip(names, *rates_of(counts).tolist(), strict=False):
        if name is None and len(names) > 1 and counts.shape[2] > 1 and not has_unnamed:
            continue  # no link of these has an unknown source
        found[name] = ErrorRate(same, different)
        if same + different > 1.0:
            who = "The links" if name is None else f"Source {name!r}"
            note("source-worse-than-a-coin", who=who, same=same, different=different)
    return found
