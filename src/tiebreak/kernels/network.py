"""How a network of nodes lies for belief propagation: merged tasks are nodes, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass of messages up and one down are exact. The same holds depth first, which
is how huge networks are visited: most neighbours lie close to each other in memory then.
`inference/exact_links/network_layout.py` makes these arrays and shows them for three nodes.
"""

from __future__ import annotations

from typing import NamedTuple

from tiebreak.kernels.layout import Codes, Floats, Offsets

SMALLEST_MESSAGE = 1e-150  # passed in parts, where the largest is 1
LOWEST_LOG_MESSAGE = -1e8  # of others, where the largest is 0: round loops they run away


class Network(NamedTuple):
    """Nodes and the edges between them, each edge from both ends.

    Slot e of node i (start[i] ≤ e < start[i + 1]) leads to other[e]; the same edge seen from
    there is slot mate[e]; edge[e] numbers it. The message from other[e] to i is kept at slot e.

    A chain 0 – 1 – 2 with edges 0 and 1 has four slots, two of them those of node 1:

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


class Parts(NamedTuple):
    """Huge components cut into parts, and the messages between parts.

    The message that slot e sends goes to target_slot[e]: a slot of the same part, or −1 − t: it
    waits as outbox[t] until the pass is over, and then goes to slot down[t] or up[t]. With parts
    {0, 1} and {2} of the chain above, slot 2 sends down to slot 3 and slot 3 up to slot 2:

        target_slot = [1, 0, −1, −1]      down = [3]      up = [2]
    """

    edges: Offsets  # (n_parts + 1,) where parts begin: their nodes follow each other
    target_slot: Codes  # (2 · n_edges,)
    down: Codes  # slots that receive from other parts when messages go down, sorted
    up: Codes
    outbox: Floats  # (max(len(down), len(up)), n_classes)


class Forest(NamedTuple):
    """Small trees of nodes, for devices on which each tree is one thread's work.

    The trees 0 – 1 – 2 and 7 – 8 of visits, each from its first visit on:

        visit    0  1  2 | 7  8        first = [0, 3, 5]
        parent   0  0  1 | 3  3        places here; the first of a tree is its own
    """

    first: Offsets  # (n_trees + 1,) places where trees begin
    visit: Codes  # (n_places,)
    parent: Codes  # (n_places,) the place of the one earlier neighbour


class Cliques(NamedTuple):
    """The order in which the nodes of small loopy components are summed out.

    Clique c sums out node[c], given the `width[c]` later nodes that it is tied to. An entry of its
    table is numbered Σ_j digit_j K^j: digit 0 is the class of node[c], the others those of the
    nodes in `rest`. Its message, a table over `rest`, goes to clique parent[c] (-1: none), whose
    digits place[rest_start[c]:rest_start[c + 1]] are the same nodes.
    """

    node: Codes  # (n_cliques,)
    parent: Codes  # (n_cliques,), a later clique
    rest_start: Offsets  # (n_cliques + 1,)
    rest: Codes  # nodes of each clique besides its own
    place: Codes  # the digit of each of them in the parent clique
    edge_start: Offsets  # (n_cliques + 1,)
    edge: Codes  # edges between node[c] and one of its rest
    edge_digit: Codes  # the digit of the other end
    table_start: Offsets  # (n_cliques + 1,) sums of K^(width + 1)
    message_start: Offsets  # (n_cliques + 1,) sums of K^width
