"""Parity: with two classes, a link of either kind ties two tasks, equal or opposite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.link_graph.closure import components, first_members
from tiebreak.link_graph.codes import AnyCodes, LinkCodes, pair_keys, places_in

Parities = npt.NDArray[np.int8]


class Parity(NamedTuple):
    """With two classes, the class of task i is that of root[i], flipped where parity[i] is 1.

    `root` is the smallest task that links of either kind join to i. `conflict` are the places of
    links that this breaks: always cannot-links, one for each independent odd cycle.
    """

    root: Codes
    parity: Parities
    conflict: Offsets


def parity(n_tasks: int, links: LinkCodes) -> Parity:
    """Tie tasks to roots, equal or opposite, along links without weights.

    Two copies of each task, one per class, are joined straight by must-links and crosswise by
    cannot-links; on a spanning forest the copies of a root then split every component in two.
    """
    hard = np.flatnonzero(links.is_hard)
    must = links.must[hard]
    firm = links.keep(hard)
    linked = firm.tasks()  # most tasks have no link: leave them out
    n = len(linked)
    left = places_in(linked, firm.left)
    right = places_in(linked, firm.right)
    tree = _forest(n, left, right, must)
    copy = components(2 * n, *_two_copies(n, left[tree], right[tree], must[tree]))
    component = components(n, left, right)
    head = first_members(component, int(component.max(initial=-1)) + 1)[component]
    flipped = copy[:n] != copy[head]
    root = np.arange(n_tasks, dtype=np.int32)
    root[linked] = linked[head]
    parities = np.zeros(n_tasks, dtype=np.int8)
    parities[linked] = flipped
    broken = (flipped[left] == flipped[right]) != must
    return Parity(root, parities, hard[broken])


def _two_copies(n: int, left: AnyCodes, right: AnyCodes, must: Mask) -> tuple[AnyCodes, AnyCodes]:
    """Join the copies i and n + i of each task straight or crosswise."""
    cross = np.where(must, 0, n).astype(left.dtype)
    return np.concatenate([left, left + n]), np.concatenate([right + cross, right + n - cross])


def _forest(n: int, left: AnyCodes, right: AnyCodes, must: Mask) -> Offsets:
    """Return the places of links that join every component without a cycle.

    Must-links go first, so that no cannot-link of the forest lies inside a group of must-links.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    turn = np.argsort(~must, kind="stable")
    _, first = np.unique(pair_keys(left[turn], right[turn], n), return_index=True)
    kept = turn[np.sort(first)]  # one link per pair, in turn
    cost = np.arange(1.0, len(kept) + 1.0)
    graph = csr_array((cost, (left[kept], right[kept])), shape=(n, n))
    return np.asarray(kept[minimum_spanning_tree(graph).data.astype(np.int64) - 1])
