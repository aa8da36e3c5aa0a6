"""Suspect links: those that are more likely wrong than right, and how often each source errs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.frames import as_frame
from tiebreak.errors import note
from tiebreak.inference.link_errors.learnt import Rates
from tiebreak.kernels.layout import Floats
from tiebreak.links import Links
from tiebreak.links.graph import LinkCodes


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
