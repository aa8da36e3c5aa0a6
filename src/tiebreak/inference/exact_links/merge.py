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
from tiebreak.link_graph import LinkCodes

OPEN = -1  # the class of a node that is not known

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


def merge(links: LinkCodes, hard: Mask, n_classes: int, gold: GoldCodes | None) -> Merged:
    """Merge tasks along hard links; find what gold implies for the nodes."""
    task = TaskCodes(links.tasks())
    by_place = links.keep(hard)._replace(weight=None).among(task)
    if n_classes == 2:
        return _merge_two_classes(task, by_place, gold)
    closed = link_graph.close(len(task), by_place)
    node_class = _all_open(closed.n_groups)
    if gold is not None:
        known = link_graph.propagate(closed, *gold.among(task), n_classes)
        node_class = known.group_class.astype(np.int32)
    return Merged(
        task,
        NodeCodes(closed.group),
        np.zeros(len(task), dtype=np.int32),
        node_class,
        NodeCodes(closed.left),
        NodeCodes(closed.right),
    )


def _merge_two_classes(task: TaskCodes, by_place: LinkCodes, gold: GoldCodes | None) -> Merged:
    """Merge tasks along must- and cannot-links; `by_place` names tasks by places in `task`."""
    tied = link_graph.parity(len(task), by_place)
    root, node = np.unique(tied.root, return_inverse=True)
    no_edges = NodeCodes(np.empty(0, dtype=np.int32))
    merged = Merged(
        task,
        NodeCodes(node.astype(np.int32)),
        tied.parity.astype(np.int32),
        _all_open(len(root)),
        no_edges,
        no_edges,
    )
    if gold is not None:
        is_linked = np.isin(gold.task, task)
        known_node, flip = merged.node_and_flip(gold.task[is_linked])
        merged.node_class[known_node] = gold.label[is_linked] ^ flip
    return merged


def _all_open(n_nodes: int) -> Codes:
    return np.full(n_nodes, OPEN, dtype=np.int32)


def log_odds_of(links: LinkCodes, error: float | None) -> tuple[Floats, Mask]:
    """Return the log-odds that each link's tasks agree, and which links are hard.

    A weight is log-odds that the answer is right. A link without weight is hard, unless an error
    rate is given for all of those: [eq:link-strength].
    """
    weight = np.full(links.n_links, np.nan) if links.weight is None else links.weight
    if error is not None:
        weight = np.where(np.isnan(weight), np.log1p(-error) - np.log(error), weight)
    hard = np.isnan(weight)
    strength = np.where(hard, np.inf, np.minimum(weight, SUREST))
    return np.where(links.must, strength, -strength), hard
