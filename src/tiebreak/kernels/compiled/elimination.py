"""Exact inference in small loopy components, compiled: same names as the reference.

The plain version is the reference: a table has an axis for each of its nodes. Here all tables lie
one after the other in one array, and an entry's number holds its classes as digits: with K = 3,
entry 7 = 1 + 2 · 3 of a clique with one more node is class 1 of its own node and class 2 of the
other.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import Cliques


def eliminate(
    scores: Floats, cliques: Cliques, coupling: Floats, belief: Floats, agree: Floats
) -> tuple[float, float]:
    """Sum out the nodes of all cliques: see `reference.eliminate`."""
    if not len(cliques.node):
        return 0.0, 0.0  # spares compiling
    tables = np.zeros(cliques.table_start[-1])
    messages = np.zeros(cliques.message_start[-1])
    _collect(scores, cliques, coupling, tables, messages, False)
    log_partition = _distribute(scores.shape[1], cliques, tables, messages)
    return _set_marginals(scores.shape[1], cliques, tables, belief, agree), log_partition


def decode_cliques(scores: Floats, cliques: Cliques, coupling: Floats, label: Codes) -> None:
    """Set the likeliest joint labels of the nodes of all cliques: see `reference`."""
    if not len(cliques.node):
        return
    tables = np.zeros(cliques.table_start[-1])
    messages = np.zeros(cliques.message_start[-1])
    _collect(scores, cliques, coupling, tables, messages, True)
    _decode(scores.shape[1], cliques, tables, label)


@kernel
def _message_entries(n: int, cliques: Cliques, child: int, workspace: Offsets) -> Offsets:
    """Return which entry of a child's message belongs to each entry of its parent's table.

    The digits of a table's entry count up, so that no division is needed to read them.
    """
    parent = cliques.parent[child]
    size = cliques.table_start[parent + 1] - cliques.table_start[parent]
    entry_of = workspace[:size]
    entry_of[:] = 0
    step = 1
    for at in range(cliques.rest_start[child], cliques.rest_start[child + 1]):
        n_same = n ** cliques.place[at]
        for first in range(0, size, n * n_same):
            for digit in range(1, n):
                low = first + digit * n_same
                for entry in range(low, low + n_same):  # often one: a slice would take longer
                    entry_of[entry] += digit * step
        step *= n
    return entry_of


@kernel
def _collect(
    scores: Floats,
    cliques: Cliques,
    coupling: Floats,
    tables: Floats,
    messages: Floats,
    best: bool,
) -> None:
    """Fill each clique's table and message, first to last; `best` takes maxima, not sums."""
    n = scores.shape[1]
    workspace = _workspace(cliques)
    for c in range(len(cliques.node)):
        table = tables[cliques.table_start[c] : cliques.table_start[c + 1]]
        score = scores[cliques.node[c]]
        sent = cliques.message_start[c]
        for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
            add = coupling[cliques.edge[e]]
            n_same = n ** cliques.edge_digit[e]
            for first in range(0, len(table), n * n_same):
                for k in range(n):  # the entries where both ends have class k
                    low = first + k * n_same
                    for entry in range(low + k, low + n_same, n):
                        table[entry] += add
        for m in range(len(table) // n):
            top = -np.inf
            total = 0.0
            for k in range(n):
                table[m * n + k] += score[k]
                top = max(top, table[m * n + k])
            if not best and top > -np.inf:
                for k in range(n):
                    total += np.exp(table[m * n + k] - top)
                top += np.log(total)
            messages[sent + m] = top
        if cliques.parent[c] >= 0:
            above = cliques.table_start[cliques.parent[c]]
            for entry, m in enumerate(_message_entries(n, cliques, c, workspace)):
                tables[above + entry] += messages[sent + m]


@kernel
def _workspace(cliques: Cliques) -> Offsets:
    """Return space for one number per entry of the largest table."""
    largest = 0
    for c in range(len(cliques.node)):
        largest = max(largest, cliques.table_start[c + 1] - cliques.table_start[c])
    return np.empty(largest, np.int64)


@kernel
def _log_sums(values: Floats, place: Offsets, n_places: int) -> Floats:
    """Return log Σ exp of the values at each place; −∞ where none is above that."""
    top = np.empty(n_places)
    total = np.zeros(n_places)
    for m in range(n_places):
        top[m] = -np.inf
    for i, m in enumerate(place):
        top[m] = max(top[m], values[i])
    for i, m in enumerate(place):
        if top[m] > -np.inf:
            total[m] += np.exp(values[i] - top[m])
    for m in range(n_places):
        if top[m] > -np.inf:
            top[m] += np.log(total[m])
    return top


@kernel
def _distribute(n: int, cliques: Cliques, tables: Floats, messages: Floats) -> float:
    """Make each table the log of its joint belief, last clique to first; return log Z."""
    log_partition = 0.0
    workspace = _workspace(cliques)
    for c in range(len(cliques.node) - 1, -1, -1):
        sent = cliques.message_start[c]
        parent = cliques.parent[c]
        if parent < 0:
            log_partition += messages[sent]
            continue
        above = tables[cliques.table_start[parent] : cliques.table_start[parent + 1]]
        n_sent = cliques.message_start[c + 1] - sent
        back = _log_sums(above, _message_entries(n, cliques, c, workspace), n_sent)
        for m in range(n_sent):
            gain = back[m] - messages[sent + m] if back[m] > -np.inf else -np.inf
            for k in range(n):
                tables[cliques.table_start[c] + m * n + k] += gain
    return log_partition


@kernel
def _set_marginals(
    n: int, cliques: Cliques, tables: Floats, belief: Floats, agree: Floats
) -> float:
    """Set beliefs and agreements from joint beliefs; return the largest change of a belief."""
    change = 0.0
    new = np.empty(n)
    for c in range(len(cliques.node)):
        table = tables[cliques.table_start[c] : cliques.table_start[c + 1]]
        top = -np.inf
        norm = 0.0
        for entry in range(len(table)):
            top = max(top, table[entry])
        new[:] = 0.0
        for m in range(len(table) // n):
            for k in range(n):
                table[m * n + k] = np.exp(table[m * n + k] - top)
                new[k] += table[m * n + k]
                norm += table[m * n + k]
        for e in range(cliques.edge_start[c], cliques.edge_start[c + 1]):
            same = 0.0
            n_same = n ** cliques.edge_digit[e]
            for first in range(0, len(table), n * n_same):
                for k in range(n):
                    low = first + k * n_same
                    for entry in range(low + k, low + n_same, n):
                        same += table[entry]
            agree[cliques.edge[e]] = same / norm
        for k in range(n):
            change = max(change, abs(new[k] / norm - belief[cliques.node[c], k]))
            belief[cliques.node[c], k] = new[k] / norm
    return change


@kernel
def _decode(n: int, cliques: Cliques, tables: Floats, label: Codes) -> None:
    """Set the best class of each node given those of its rest, last clique to first."""
    for c in range(len(cliques.node) - 1, -1, -1):
        index = 0
        step = 1
        for at in range(cliques.rest_start[c], cliques.rest_start[c + 1]):
            index += label[cliques.rest[at]] * step
            step *= n
        first = cliques.table_start[c] + index * n
        label[cliques.node[c]] = tables[first : first + n].argmax()
