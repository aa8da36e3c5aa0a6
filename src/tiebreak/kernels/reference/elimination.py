"""Exact inference in small loopy components by summing out nodes, in plain NumPy."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Cliques


def eliminate(
    scores: Floats, cliques: Cliques, coupling: Floats, belief: Floats, agree: Floats
) -> tuple[float, float]:
    """Sum out the nodes of all cliques; set their beliefs and the agreement of their edges.

    Implements [eq:elimination]: messages go from each clique to its parent, then back.

    Returns
    -------
    The largest change of any belief, and the log partition of these components.
    """
    tables, messages = _collect(scores, cliques, coupling, np.logaddexp)
    log_partition = sum(
        float(message.sum()) for c, message in enumerate(messages) if cliques.parent[c] < 0
    )
    change = 0.0
    for c in range(len(cliques.node) - 1, -1, -1):
        parent = cliques.parent[c]
        if parent >= 0:
            above = _marginal(tables[parent], _places(cliques, c), np.logaddexp)
            gain = np.where(above > -np.inf, above - messages[c], -np.inf)
            tables[c] = tables[c] + gain[None]
        joint = np.exp(tables[c] - np.logaddexp.reduce(tables[c], axis=None))
        new = joint.reshape(len(joint), -1).sum(axis=1)
        node = cliques.node[c]
        change = max(change, float(np.abs(new - belief[node]).max()))
        belief[node] = new
        for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
            digit = int(cliques.edge_digit[e])
            agree[cliques.edge[e]] = np.trace(np.moveaxis(joint, digit, 1)).sum()
    return change, log_partition


def decode_cliques(scores: Floats, cliques: Cliques, coupling: Floats, label: Codes) -> None:
    """Set the likeliest joint labels of the nodes of all cliques: [eq:decode]."""
    tables, _ = _collect(scores, cliques, coupling, np.maximum)
    for c in range(len(cliques.node) - 1, -1, -1):
        rest = cliques.rest[cliques.rest_start[c] : cliques.rest_start[c + 1]]
        given = np.moveaxis(tables[c], 0, -1)[tuple(label[rest].tolist())]
        label[cliques.node[c]] = given.argmax()


def _collect(
    scores: Floats, cliques: Cliques, coupling: Floats, add: np.ufunc
) -> tuple[list[Floats], list[Floats]]:
    """Return each clique's table, axis j its digit j, and the message that it sends."""
    n_classes = scores.shape[1]
    tables: list[Floats] = []
    for c in range(len(cliques.node)):
        width = cliques.rest_start[c + 1] - cliques.rest_start[c]
        table = np.zeros((n_classes,) * (width + 1))
        table += scores[cliques.node[c]].reshape((-1,) + (1,) * width)
        for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
            table += _diagonal(
                coupling[cliques.edge[e]], n_classes, int(cliques.edge_digit[e]), width
            )
        tables.append(table)
    messages: list[Floats] = []
    for c in range(len(cliques.node)):
        messages.append(np.asarray(add.reduce(tables[c], axis=0)))
        if cliques.parent[c] >= 0:
            tables[cliques.parent[c]] += _spread(
                messages[c], _places(cliques, c), tables[cliques.parent[c]].ndim
            )
    return tables, messages


def _places(cliques: Cliques, c: int) -> list[int]:
    return [int(p) for p in cliques.place[cliques.rest_start[c] : cliques.rest_start[c + 1]]]


def _diagonal(coupling: float, n_classes: int, digit: int, width: int) -> Floats:
    """Return θ where digit 0 equals `digit`, 0 elsewhere."""
    pair = np.zeros((n_classes, n_classes))
    np.fill_diagonal(pair, coupling)
    shape = [1] * (width + 1)
    shape[0] = shape[digit] = n_classes
    return pair.reshape(shape)


def _spread(message: Floats, places: list[int], n_axes: int) -> Floats:
    """Lay a message over the axes `places` of a table with n_axes axes."""
    order = np.argsort(places)
    shape = [1] * n_axes
    for axis, place in enumerate(places):
        shape[place] = message.shape[axis]
    return np.transpose(message, order).reshape(shape)


def _marginal(table: Floats, places: list[int], add: np.ufunc) -> Floats:
    """Sum a table down to the axes `places`, in their order."""
    others = tuple(axis for axis in range(table.ndim) if axis not in places)
    kept = add.reduce(table, axis=others) if others else table
    rank = np.argsort(np.argsort(places))
    return np.transpose(kept, rank)
