"""Exact inference in small loopy components, compiled: same names as the reference."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import Cliques


def eliminate(
    scores: Floats, cliques: Cliques, theta: Floats, belief: Floats, agree: Floats
) -> tuple[float, float]:
    """Sum out the nodes of all cliques: see `reference.eliminate`."""
    tables = np.zeros(cliques.table_start[-1])
    messages = np.zeros(cliques.message_start[-1])
    _collect(scores, cliques, theta, tables, messages, False)
    log_partition = _give_back(scores.shape[1], cliques, tables, messages)
    return _read_off(scores.shape[1], cliques, tables, belief, agree), log_partition


def decode_cliques(scores: Floats, cliques: Cliques, theta: Floats, label: Codes) -> None:
    """Set the likeliest joint labels of the nodes of all cliques: see `reference`."""
    tables = np.zeros(cliques.table_start[-1])
    messages = np.zeros(cliques.message_start[-1])
    _collect(scores, cliques, theta, tables, messages, True)
    _choose(scores.shape[1], cliques, tables, label)


@kernel
def _log_add(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a if b == -np.inf else float(a + np.log1p(np.exp(b - a)))


@kernel
def _heard(n: int, cliques: Cliques, child: int, entry_of: Offsets) -> Offsets:
    """Return which entry of a child's message each entry of its parent's table hears.

    The digits of a table's entry count up, so that no division is needed to read them.
    """
    parent = cliques.parent[child]
    size = cliques.table_start[parent + 1] - cliques.table_start[parent]
    entry_of[:size] = 0
    step = 1
    for at in range(cliques.rest_start[child], cliques.rest_start[child + 1]):
        n_same = n ** cliques.place[at]
        for first in range(0, size, n * n_same):
            for digit in range(1, n):
                low = first + digit * n_same
                entry_of[low : low + n_same] += digit * step
        step *= n
    return entry_of[:size]


@kernel
def _collect(
    scores: Floats,
    cliques: Cliques,
    theta: Floats,
    tables: Floats,
    messages: Floats,
    best: bool,
) -> None:
    """Fill each clique's table and message, first to last; `best` takes maxima, not sums."""
    n, room = scores.shape[1], _room(cliques)
    for c in range(len(cliques.node)):
        first, last = cliques.table_start[c], cliques.table_start[c + 1]
        sent = cliques.message_start[c]
        for m in range(sent, cliques.message_start[c + 1]):
            messages[m] = -np.inf
        for entry in range(last - first):
            value = tables[first + entry] + scores[cliques.node[c], entry % n]
            for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
                if (entry // n ** cliques.edge_digit[e]) % n == entry % n:
                    value += theta[cliques.edge[e]]
            tables[first + entry] = value
            m = sent + entry // n
            messages[m] = max(messages[m], value) if best else _log_add(messages[m], value)
        if cliques.parent[c] >= 0:
            above = cliques.table_start[cliques.parent[c]]
            for entry, m in enumerate(_heard(n, cliques, c, room)):
                tables[above + entry] += messages[sent + m]


@kernel
def _room(cliques: Cliques) -> Offsets:
    """Return room for one number an entry of the largest table."""
    return np.empty(np.diff(cliques.table_start).max() if len(cliques.node) else 0, np.int64)


@kernel
def _log_sums(values: Floats, place: Offsets, n_places: int) -> Floats:
    """Return log Σ exp of the values at each place; −∞ where none is above that."""
    top, total = np.full(n_places, -np.inf), np.zeros(n_places)
    for i, m in enumerate(place):
        top[m] = max(top[m], values[i])
    for i, m in enumerate(place):
        if top[m] > -np.inf:
            total[m] += np.exp(values[i] - top[m])
    return np.where(top > -np.inf, top + np.log(total), -np.inf)


@kernel
def _give_back(n: int, cliques: Cliques, tables: Floats, messages: Floats) -> float:
    """Make each table the log of its joint belief, last clique to first; return log Z."""
    log_partition, room = 0.0, _room(cliques)
    for c in range(len(cliques.node) - 1, -1, -1):
        sent, parent = cliques.message_start[c], cliques.parent[c]
        if parent < 0:
            log_partition += messages[sent]
            continue
        above = tables[cliques.table_start[parent] : cliques.table_start[parent + 1]]
        n_sent = cliques.message_start[c + 1] - sent
        told = _log_sums(above, _heard(n, cliques, c, room), n_sent)
        for m in range(n_sent):
            gain = told[m] - messages[sent + m] if told[m] > -np.inf else -np.inf
            for k in range(n):
                tables[cliques.table_start[c] + m * n + k] += gain
    return log_partition


@kernel
def _read_off(n: int, cliques: Cliques, tables: Floats, belief: Floats, agree: Floats) -> float:
    """Set beliefs and agreements from joint beliefs; return the largest change of a belief."""
    change = 0.0
    new = np.empty(n)
    for c in range(len(cliques.node)):
        first, last = cliques.table_start[c], cliques.table_start[c + 1]
        top = tables[first:last].max()
        norm = 0.0
        new[:] = 0.0
        for entry in range(last - first):
            weight = np.exp(tables[first + entry] - top)
            new[entry % n] += weight
            norm += weight
        for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
            same = 0.0
            for entry in range(last - first):
                if (entry // n ** cliques.edge_digit[e]) % n == entry % n:
                    same += np.exp(tables[first + entry] - top)
            agree[cliques.edge[e]] = same / norm
        for k in range(n):
            change = max(change, abs(new[k] / norm - belief[cliques.node[c], k]))
            belief[cliques.node[c], k] = new[k] / norm
    return change


@kernel
def _choose(n: int, cliques: Cliques, tables: Floats, label: Codes) -> None:
    """Set the best class of each node given those of its rest, last clique to first."""
    for c in range(len(cliques.node) - 1, -1, -1):
        index, step = 0, 1
        for at in range(cliques.rest_start[c], cliques.rest_start[c + 1]):
            index += label[cliques.rest[at]] * step
            step *= n
        first = cliques.table_start[c] + index * n
        label[cliques.node[c]] = tables[first : first + n].argmax()
