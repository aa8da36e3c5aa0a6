"""Codes of links: each unordered pair once, whatever the order and direction given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

AnyCodes = npt.NDArray[np.signedinteger[Any]]

ROUNDING = 1e-12  # weights that cancel but for rounding leave no link
DENSE = 16  # codes for each value: up to here a table of all codes is made sooner than searches


class LinkCodes(NamedTuple):
    """Links in the codes of a crowd, each unordered pair once: left[e] < right[e].

    `weight` is positive, nan where none was given; None where no link has one. `who` says where
    a link comes from, -1 where that is not known. `row` is the place in the links given.
    """

    left: Codes
    right: Codes
    must: Mask
    weight: Floats | None
    who: Codes | None
    row: Offsets
    duplicate: Mask | None = None  # which must-links join copies of one task; None: none does

    @property
    def n_links(self) -> int:
        """How many links there are (`len` counts the fields)."""
        return len(self.left)

    @property
    def is_hard(self) -> Mask:
        """Which links carry no weight, so that they must hold."""
        if self.weight is None:
            return np.ones(self.n_links, dtype=bool)
        return np.isnan(self.weight)

    def keep(self, index: npt.NDArray[Any]) -> LinkCodes:
        """Return the links at these places, or under this mask."""
        weight = None if self.weight is None else self.weight[index]
        who = None if self.who is None else self.who[index]
        duplicate = None if self.duplicate is None else self.duplicate[index]
        ends = (self.left[index], self.right[index])
        return LinkCodes(*ends, self.must[index], weight, who, self.row[index], duplicate)

    def tasks(self) -> Codes:
        """Return the tasks that links name, sorted, each once."""
        return each_once(np.concatenate([self.left, self.right])).astype(np.int32)

    def among(self, tasks: AnyCodes) -> LinkCodes:
        """Return the links with each task numbered by its place in `tasks`: all of them, sorted."""
        return self._replace(left=places_in(tasks, self.left), right=places_in(tasks, self.right))


def distinct(
    left: AnyCodes, right: AnyCodes, must: Mask, weight: Floats | None, who: Codes | None
) -> LinkCodes:
    """Bring links into one order and one direction, equal ones together.

    Links without weight that say the same collapse to the first. Weights of one pair are added,
    must-links counting positive and cannot-links negative; where they cancel the weight is 0.
    Links from different sources, and links with and without weight, stay apart; so do a must- and
    a cannot-link without weight, which contradict each other.

    >>> pairs = np.array([[4, 1], [1, 4], [0, 4]])
    >>> links = distinct(*pairs.T, np.array([True, False, True]), np.array([2, 3, np.nan]), None)
    >>> links.left.tolist(), links.right.tolist(), links.must.tolist(), links.weight.tolist()
    ([0, 1], [4, 4], [True, False], [nan, 1.0])
    """
    low = np.minimum(left, right)
    high = np.maximum(left, right)
    source = np.full(len(low), -1, np.int32) if who is None else who
    soft = np.zeros(len(low), dtype=bool) if weight is None else ~np.isnan(weight)
    size = np.where(soft, 0.0 if weight is None else weight, 1.0)
    signed = np.where(must, size, -size)
    says = np.where(soft, 2, must)
    order = np.lexsort((signed, says, source, high, low))
    start = _starts(order, low, high, source, says)
    total = _added(signed[order], start)
    total[np.abs(total) <= ROUNDING * _added(size[order], start)] = 0.0
    at = order[start]
    return LinkCodes(
        low[at].astype(np.int32),
        high[at].astype(np.int32),
        total > 0.0,
        None if weight is None else np.where(soft[at], np.abs(total), np.nan),
        None if who is None else source[at],
        np.minimum.reduceat(order, start) if len(start) else order,
    )


def each_once(values: AnyCodes) -> AnyCodes:
    """Return the values sorted, each once: `np.unique`, which is far slower where they are many.

    >>> each_once(np.array([4, 1, 4])).tolist()
    [1, 4]
    """
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]


def places_in(found: AnyCodes, values: AnyCodes) -> Codes:
    """Return where each value stands among codes that are sorted and hold every value once.

    >>> places_in(np.array([1, 4]), np.array([4, 4, 1])).tolist()
    [1, 1, 0]
    """
    n_codes = int(found[-1]) + 1 if len(found) else 0
    if n_codes > DENSE * len(values):
        return np.searchsorted(found, values).astype(np.int32)
    place = np.empty(n_codes, dtype=np.int32)
    place[found] = np.arange(len(found), dtype=np.int32)
    return place[values]


def pair_keys(left: AnyCodes, right: AnyCodes, n: int) -> Offsets:
    """Return one number per unordered pair of codes below n."""
    low = np.minimum(left, right)
    high = np.maximum(left, right)
    return low.astype(np.int64) * n + high


def _starts(order: Offsets, *keys: npt.NDArray[Any]) -> Offsets:
    """Return where in `order` a run of equal keys begins."""
    begins = np.zeros(len(order), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    return np.flatnonzero(begins)


def _added(values: Floats, start: Offsets) -> Floats:
    return np.add.reduceat(values, start) if len(start) else values


def violated(label: AnyCodes, links: LinkCodes) -> Mask:
    """Say of each given link whether the labels break it.

    >>> links = LinkCodes(
    ...     *np.array([[0, 0], [1, 2]], np.int32), np.array([True, False]), None, None, np.arange(2)
    ... )
    >>> violated(np.array([0, 1, 1]), links).tolist()
    [True, False]
    """
    return np.asarray((label[links.left] == label[links.right]) != links.must)
