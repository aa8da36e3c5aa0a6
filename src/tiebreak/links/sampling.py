"""Sampling: how links came about, as answers about pairs or as duplicates.

Pairs that were drawn or asked are outcomes: "same" is one answer of two, and each task has a class
of its own draw. Duplicates are copies of one task: the group is one draw of the class. A must-link
says the same in both cases, but what a group of m tasks says about how common its class is differs
by a factor of m: [eq:sampling].
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tiebreak.errors import OptionError, note
from tiebreak.kernels.layout import Codes, Mask

Sampling = Literal["pairs", "duplicates"]
SAMPLINGS: tuple[Sampling, ...] = ("pairs", "duplicates")


PAIR = 0
DUPLICATE = 1
UNSAID = -1  # the table does not say

Said = npt.NDArray[np.int8]


def duplicates(
    must: Mask, who: Codes | None, said: Said | None, sampling: Sampling | None
) -> Mask | None:
    """Return which links join duplicates; None where none does.

    Parameters
    ----------
    said
        (n_links,) PAIR, DUPLICATE or UNSAID, as the words of the table say; None: all UNSAID.
    sampling
        What holds for links of which the table does not say it. None: must-links of a source that
        gives no cannot-link are duplicates, since answers would be of both kinds; that is reported.
    """
    if sampling is not None and sampling not in SAMPLINGS:
        raise OptionError.unknown("sampling", sampling, SAMPLINGS)
    if said is None:
        said = np.full(len(must), UNSAID, dtype=np.int8)
    found = said == DUPLICATE
    if sampling == "duplicates":
        found |= must & (said == UNSAID)
    elif sampling is None:
        guessed = guess(must, who) & (said == UNSAID)
        if guessed.any():
            note(
                f"{np.count_nonzero(guessed):,} must-links come from a source without "
                "cannot-links: they count as duplicates, one draw of the class per group. "
                'sampling="pairs" says that they are answers about pairs.'
            )
        found |= guessed
    return found if found.any() else None


def guess(must: Mask, who: Codes | None) -> Mask:
    """Return the must-links of sources that give no cannot-link."""
    source = np.zeros(len(must), dtype=np.int64) if who is None else who
    return np.asarray(must & ~np.isin(source, source[~must]))
