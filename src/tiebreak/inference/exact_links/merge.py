"""Merging: tasks that hard links tie become one node, what remains are edges between nodes.

Must-links merge tasks. With two classes cannot-links merge them too, one of the two flipped, and
no hard edge is left. Nodes whose class is known leave the network; what they say to their
neighbours is added to those neighbours' scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.gold import GoldCodes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import Implications, LinkCodes

OPEN = link_graph.OPEN  # the class of a node that is not known


class Merged(NamedTuple):
    """Which node each linked task belongs to, and what is known of nodes."""

    task: Codes  # (n_linked,) the tasks that any link names
    node: Codes  # (n_linked,)
    flip: Codes  # (n_linked,) 1: the task has the other one of two classes
    node_class: Codes  # (n_nodes,) the known class of a node, or OPEN
    left: Codes  # hard cannot-links that are left between nodes
    right: Codes

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_class)

    def of(self, task: Codes) -> tuple[Codes, Codes]:
        """Return node and flip of linked tasks."""
        at = link_graph.places_in(self.task, task)
        return self.node[at], self.flip[at]

    def known(self) -> GoldCodes:
        """Return the tasks whose class is known or follows, and their classes."""
        label = self.node_class[self.node]
        settled = np.flatnonzero(label != OPEN)
        return GoldCodes(self.task[settled], (label ^ self.flip)[settled])


class SoftLinks(NamedTuple):
    """Where each soft link acts: on an edge, on one node's score, or nowhere.

    `log_odds` weighs the event that the two tasks agree. Seen from the nodes that event is
    "equal" or, where one of the tasks is flipped, "opposite".
    """

    a: Codes  # node of the left task
    b: Codes  # node of the right task
    opposite: Mask


def merge(implied: Implications) -> Merged:
    """Merge tasks that hard links tie; what gold implies is known of the nodes."""
    return Merged(
        implied.task,
        implied.group,
        implied.flip,
        implied.group_class,
        implied.left,
        implied.right,
    )


def soft_links(links: LinkCodes, soft: Mask, merged: Merged) -> SoftLinks:
    """Find the nodes that each soft link ties."""
    a, flip_a = merged.of(links.left[soft])
    b, flip_b = merged.of(links.right[soft])
    return SoftLinks(a, b, flip_a != flip_b)


def log_odds_of(links: LinkCodes, error: float | None) -> tuple[Floats, Mask]:
    """Return the log-odds that each link's tasks agree, and which links are hard.

    A weight is log-odds that the answer is right. A link without weight is hard, unless an error
    rate is given for all of those: [eq:link-strength].
    """
    weight = np.full(links.n_links, np.nan) if links.weight is None else links.weight
    if error is not None:
        weight = np.where(np.isnan(weight), np.log1p(-error) - np.log(error), weight)
    hard = np.isnan(weight)
    strength = np.where(hard, np.inf, weight)
    return np.where(links.must, strength, -strength), hard
