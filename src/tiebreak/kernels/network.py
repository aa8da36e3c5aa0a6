"""How a network of nodes lies for belief propagation: merged tasks are nodes, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass of messages up and one down are exact.

A message lies as it is made: probabilities, the largest of them 1. One below `SMALLEST_MESSAGE`
lies as its logarithm instead, a negative number, so that nothing is lost to underflow.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Floats, Offsets

SMALLEST_MESSAGE = 1e-150  # kept as a probability, where the largest is 1
LOWEST_LOG_MESSAGE = -1e8  # of smaller ones: round loops they run away
TREE_NODES_PER_CHUNK = 5_000


class Network(NamedTuple):
    """Nodes and the edges between them, each edge from both ends.

    Slot e of node i (start[i] ≤ e < start[i + 1]) leads to other[e]; the same edge seen from
    there is slot mate[e]; edge[e] numbers it. The message from other[e] to i is kept at slot e.

    A chain 0 – 1 – 2 with edges 0 and 1 has four slots, two of them those of node 1, sorted by
    node, then by neighbour:

        slot       0 | 1  2 | 3
        node       0 | 1  1 | 2      start = [0, 1, 3, 4]
        other      1 | 0  2 | 1      later = [0, 2, 4]
        mate       1 | 0  3 | 2
        edge       0 | 0  1 | 1
    """

    start: Offsets  # (n_nodes + 1,)
    later: Offsets  # (n_nodes,) the first slot of each node that leads to a later one
    other: Codes  # (2 · n_edges,), sorted by slot of each node
    mate: Offsets  # (2 · n_edges,)
    edge: Codes  # (2 · n_edges,)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.start) - 1


class Cliques(NamedTuple):
    """The order in which the variables of small components are summed out, and where tables lie.

    Clique c sums out a variable of card[c] states, given the later variables that it is tied to.
    Its table has a row for each combination of states of these, the first one counting fastest, and
    in it an entry for each of its own: start[c] … start[c + 1] − 1, row by row. Sums of rows are
    what it sends, sent[c] … sent[c + 1] − 1; sum m goes to up[up_start[m]:up_start[m + 1]], entries
    of a later clique, or is the partition function of a component. Cliques batches[i] …
    batches[i + 1] − 1 are alike, and none of them sends to another.

    Event e holds at the entries event_entry[event_start[e]:event_start[e + 1]] of one table, which
    are worth coupling[event[e]]; of links that is where both ends are equal.
    """

    node: Offsets  # (n_cliques,) whose scores are of the variable; −1: a counter has none
    card: Offsets
    start: Offsets
    sent: Offsets
    up_start: Offsets
    up: Offsets
    rest_start: Offsets
    rest: Offsets  # cliques that sum out the other variables of each,
    stride: Offsets  # and how far their states lie apart in its message
    batches: Offsets
    tables: Floats  # what is added to all tables; empty: nothing
    event: Offsets
    event_start: Offsets
    event_entry: Offsets

    def new_tables(self) -> Floats:
        """Return tables as they are before scores and couplings."""
        return self.tables.copy() if len(self.tables) else np.zeros(self.start[-1])


def network(n_nodes: int, left: Codes, right: Codes) -> Network:
    """Lay out edges (left[e], right[e]) between nodes that are already numbered by visits.

    >>> path = network(3, np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    >>> path.other.tolist(), path.mate.tolist(), path.edge.tolist()
    ([1, 0, 2, 1], [1, 0, 3, 2], [0, 0, 1, 1])
    >>> path.start.tolist(), path.later.tolist()
    ([0, 1, 3, 4], [0, 2, 4])
    """
    n_edges = len(left)
    ends = np.concatenate([left, right])
    others = np.concatenate([right, left])
    # A half edge h < n_edges is edge h seen from its left end, h + n_edges from its right end.
    half_of_slot = np.argsort(ends * np.int64(n_nodes) + others)  # no two are equal
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n_nodes), out=start[1:])
    slot_of_half = np.empty(2 * n_edges, dtype=np.int64)
    slot_of_half[half_of_slot] = np.arange(2 * n_edges)
    mate_half = (half_of_slot + n_edges) % max(2 * n_edges, 1)
    n_earlier = np.bincount(np.maximum(left, right), minlength=n_nodes)
    return Network(
        start,
        start[:-1] + n_earlier,
        others[half_of_slot].astype(np.int32),
        slot_of_half[mate_half],
        (half_of_slot % max(n_edges, 1)).astype(np.int32),
    )


def tree_spans(network: Network, n_forest: int) -> list[tuple[int, int]]:
    """Cut the visits without loops, 0 … n_forest − 1, between components."""
    n_spans = max(1, min(MAX_CHUNKS, n_forest // TREE_NODES_PER_CHUNK))
    # Slots of a node are sorted by neighbour: the first of a tree has no earlier one.
    begins = network.later[:n_forest] == network.start[:n_forest]
    first_visits = np.append(np.flatnonzero(begins), n_forest)
    wanted = np.linspace(0, n_forest, n_spans + 1).astype(np.int64)
    cuts = first_visits[np.searchsorted(first_visits, wanted)].tolist()
    return [(low, high) for low, high in pairwise(cuts) if low < high]
