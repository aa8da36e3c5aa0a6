"""Networks of tasks in plain NumPy: messages along edges with one table of neighbours.

p(y) ∝ Π_n exp(u_n(y_n)) · Π_ij W[y_i, y_j], with W symmetric. Nodes take turns; the message in slot
e goes from other[e] to the node that has the slot, and that in mate[e] the other way:

    m_i→j(b) ∝ Σ_a exp(u_i(a)) Π_k≠j m_k→i(a) · W[a, b]            [eq:near-messages]
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Codes, Floats, Offsets

__all__ = ["count_neighbours", "pass_along"]

Edges = tuple[Offsets, Codes, Offsets]  # start of the slots of each node; other; mate
LEAST = 1e-12  # of a message, so that none forbids a class for good


def pass_along(
    score: Floats,
    edges: Edges,
    table: Floats,
    messages: Floats,
    belief: Floats,
    damping: float,
) -> None:
    """Pass messages once from each node in turn; overwrite messages and beliefs."""
    start, _, mate = edges
    for i in range(len(score)):
        slots = slice(start[i], start[i + 1])
        logs = np.log(messages[slots])
        total = score[i] + logs.sum(axis=0)
        weight = np.exp(total - total.max())
        belief[i] = weight / weight.sum()
        without = total - logs
        sent = np.exp(without - without.max(axis=1, keepdims=True)) @ table
        sent /= sent.sum(axis=1, keepdims=True)
        mixed = damping * messages[mate[slots]] + (1.0 - damping) * sent
        messages[mate[slots]] = np.maximum(mixed, LEAST)


def count_neighbours(edges: Edges, table: Floats, messages: Floats, belief: Floats) -> Floats:
    """Return the expected classes of both ends over all edges, (K, K), symmetric."""
    start, other, mate = edges
    node = np.repeat(np.arange(len(belief)), np.diff(start))
    once = np.flatnonzero(node < other)
    left = belief[node[once]] / messages[once]
    right = belief[other[once]] / messages[mate[once]]
    pair = left[:, :, None] * table * right[:, None, :]
    pair /= pair.sum(axis=(1, 2), keepdims=True)
    total = pair.sum(axis=0)
    return np.asarray((total + total.T) / 2.0)
