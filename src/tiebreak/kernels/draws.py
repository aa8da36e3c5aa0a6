"""How arrays lie for draws of classes: nodes, what they pay, blocks that are drawn together.

A node is a task, or tasks that hard links make one. Its items are the responses on its tasks, and
PRIOR once for each task that is a draw of its own from the class prior. An item that is flipped
(two classes only) belongs to a task with the other class.

Three tasks, two workers, K = 2; tasks 0 and 2 must be of one class, and both count as draws:

    node     0                        1
    code     1  3  PRIOR  1  PRIOR    0  PRIOR      start = [0, 5, 7]

Worker 0 answers node 0 twice, so its items are counted in turn: each is seen after those before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

PRIOR = -1  # the code of an item that is a draw from the class prior


class DrawNodes(NamedTuple):
    """The items of node a are code[start[a]:start[a + 1]]."""

    start: Offsets  # (n_nodes + 1,)
    code: Codes  # (n_items,)
    flip: npt.NDArray[np.int8]  # (n_items,) 1: of the other one of two classes
    weight: Floats  # (n_items,) how often each item counts
    in_turn: Mask  # (n_nodes,) whether an item of the node depends on an earlier one

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.in_turn)


class Couplings(NamedTuple):
    """The neighbours of node a are other[start[a]:start[a + 1]], with the log-odds to be equal."""

    start: Offsets  # (n_nodes + 1,)
    other: Codes
    log_odds: Floats  # −∞: never equal


class Blocks(NamedTuple):
    """The nodes that are drawn together are node[start[b]:start[b + 1]]."""

    start: Offsets  # (n_blocks + 1,)
    node: Codes

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.start) - 1


class DrawCounts(NamedTuple):
    """Prior counts plus what the drawn classes add; drawing changes them in place."""

    of_class: Floats  # (n_classes,)
    of_code: Floats  # (n_codes, n_classes)
    of_worker: Floats  # (n_workers, n_classes) sums of `of_code` over labels

    def copy(self) -> DrawCounts:
        """Return the same in memory of its own."""
        return DrawCounts(*(each.copy() for each in self))
