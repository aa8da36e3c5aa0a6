"""Merging: tasks that hard links tie become one node, what remains are edges between nodes.

Must-links merge tasks. With two classes cannot-links merge them too, one of the two flipped, and
no hard edge is left. Nodes whose class is known leave the network; what they imply for their
neighbours is added to those neighbours' scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.gold import GoldCodes
from tiebreak.inference.exact_links.numbers import NodeCodes, TaskCodes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import Implications, LinkCodes

OPEN = link_graph.OPEN  # the class of a node that is not known

SUREST = 1e3  # log-odds: beyond, sums with scores would lose the scores


class Merged(NamedTuple):
    """Which node each linked task belongs to, and what is known of nodes."""

    task: TaskCodes  # (n_linked,) the tasks that any link names, sorted
    node: NodeCodes  # (n_linked,) of each of them
    flip: Codes  # (n_linked,) 1: the task has the other one of two classes
    node_class: Codes  # (n_nodes,) the known class of a node, or OPEN
    left_node: NodeCodes  # hard cannot-links that are left between nodes
    right_node: NodeCodes

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_class)

    def node_and_flip(self, task: Codes) -> tuple[NodeCodes, Codes]:
        """Return node and flip of linked tasks."""
        place = link_graph.places_in(self.task, task)
        return NodeCodes(self.node[place]), self.flip[place]

    def ends(self, links: LinkCodes) -> tuple[NodeCodes, NodeCodes, Mask]:
        """Return the nodes at both ends of links, and where just one of the two tasks is flipped.

        There the tasks agree when their nodes differ.
        """
        left_node, left_flip = self.node_and_flip(links.left)
        right_node, right_flip = self.node_and_flip(links.right)
        return left_node, right_node, left_flip != right_flip

    def known(self) -> GoldCodes:
        """Return the tasks whose class is known or follows, and their classes."""
        label = self.node_class[self.node]
        place = np.flatnonzero(label != OPEN)
        return GoldCodes(self.task[place], (label ^ self.flip)[place])


def merge(implied: Implications) -> Merged:
    """Merge tasks that hard links tie; what gold implies is known of the nodes."""
    return Merged(
        TaskCodes(implied.task),
        NodeCodes(implied.group),
        implied.flip,
        implied.group_class,
        NodeCodes(implied.left),
        NodeCodes(implied.right),
    )


def log_odds_of(links: LinkCodes, error: float | None, n_classes: int = 2) -> tuple[Floats, Mask]:
    """Return the log-odds that each link's tasks agree, and which links are hard.

    A weight is log-odds that the answer is right. A link without weight is hard, unless an error
    rate is given for all of those: [eq:link-strength]. A copy that is none is any of the other
    classes, all alike: [eq:sampling].
    """
    weight = np.full(links.n_links, np.nan) if links.weight is None else links.weight
    if error is not None:
        weight = np.where(np.isnan(weight), np.log1p(-error) - np.log(error), weight)
    hard = np.isnan(weight)
    if links.duplicate is not None:
        weight = np.where(links.duplicate, weight + np.log(max(n_classes - 1, 1)), weight)
    strength = np.where(hard, np.inf, np.minimum(weight, SUREST))
    return np.where(links.must, strength, -strength), hard
