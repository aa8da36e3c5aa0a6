"""Elimination: how variables of small components are summed out, one after the other.

Summing out a variable makes one table over it and the later variables that it is tied to (a
clique), and ties these to each other. A ring of 0 – 1 – 2 – 3: variable 0 goes first, with the
clique {0, 1, 3}, and ties 1 to 3. Then 1 goes with {1, 2, 3}, 2 with {2, 3}, and 3 alone. With
three classes the tables have 27, 27, 9 and 3 entries:

>>> ring = [((0, 1), None, np.eye(3)), ((1, 2), None, np.eye(3))]
>>> ring += [((2, 3), None, np.eye(3)), ((0, 3), None, np.eye(3))]
>>> shape = shape_of([3] * 4, ring, 100, 100)
>>> shape.variable, shape.rest, np.diff(lay_cliques([(shape, *2 * [np.arange(4)[None]])]).start)
([0, 1, 2, 3], [[1, 3], [2, 3], [3], []], array([27, 27,  9,  3]))

Components of one shape are planned once. `kernels.network.Cliques` says how tables lie.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats, Mask
from tiebreak.kernels.network import Cliques
from tiebreak.links.graph import AnyCodes

# Variables, what their states are worth together, and the event whose probability is asked for:
# where it holds. None: nothing; and not asked for.
Factor = tuple[Sequence[int], Floats | None, Mask | None]


class Shape(NamedTuple):
    """The cliques of one component, in the order in which their variables are summed out.

    `rest` are places in this order. An entry of a table is numbered by the state of its own
    variable, plus its number of states times the number of a message: that of the states of the
    rest, the first one counting fastest.
    """

    variable: list[int]
    cards: list[int]  # how many states it has
    rest: list[list[int]]
    stride: list[list[int]]  # of the states of the rest in a message
    above: list[list[int]]  # and in the table of the parent, which is the first of the rest
    level: list[int]  # all cliques that send to it are at lower ones
    tables: Floats  # what factors are worth, all cliques end to end; empty where they say nothing
    events: list[tuple[int, AnyCodes]]  # clique, and the entries of its table where it holds


def shape_of(
    cards: Sequence[int],
    factors: Sequence[Factor],
    largest_table: float,
    largest_component: float,
) -> Shape | None:
    """Plan how the variables of a component are summed out; None where tables are too large."""
    later = _order(cards, [scope for scope, *_ in factors], largest_table, largest_component)
    if later is None:
        return None
    variable = list(later)
    turn = {v: t for t, v in enumerate(variable)}
    own = [cards[v] for v in variable]
    rest = [sorted(turn[u] for u in later[v]) for v in variable]
    stride = [[prod(own[u] for u in each[:j]) for j in range(len(each))] for each in rest]
    above, level = [], [0] * len(rest)
    for t, each in enumerate(rest):
        at = {}
        if each:
            parent = each[0]
            level[parent] = max(level[parent], level[t] + 1)
            at = {u: own[parent] * s for u, s in zip(rest[parent], stride[parent], strict=True)}
            at[parent] = 1
        above.append([at[u] for u in each])
    scopes = [tuple(turn[v] for v in scope) for scope, *_ in factors]
    axes = [(*each[::-1], t) for t, each in enumerate(rest)]  # of tables, the fastest one last
    is_worth = any(table is not None for _, table, _ in factors)
    tables = [np.zeros([own[u] for u in each]) for each in axes if is_worth]
    events = []
    for scope, (_, table, event) in zip(scopes, factors, strict=True):
        t = min(scope)
        order = sorted(range(len(scope)), key=[axes[t].index(v) for v in scope].__getitem__)
        laid = [own[u] if u in scope else 1 for u in axes[t]]
        if table is not None:
            tables[t] += table.transpose(order).reshape(laid)
        if event is not None:
            whole = [own[u] for u in axes[t]]
            holds = np.broadcast_to(event.transpose(order).reshape(laid), whole)
            events.append((t, np.flatnonzero(holds)))
    flat = np.concatenate([np.empty(0), *(each.ravel() for each in tables)])
    return Shape(variable, own, rest, stride, above, level, flat, events)


def _order(
    cards: Sequence[int],
    scopes: Sequence[Sequence[int]],
    largest_table: float,
    largest_component: float,
) -> dict[int, set[int]] | None:
    """Return variables in an order to sum them out, the smallest table next, with their rest."""
    near: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            near[v].update(u for u in scope if u != v)
    log_card = np.log(cards).tolist()
    size = [log_card[v] + sum(log_card[u] for u in around) for v, around in enumerate(near)]
    heap = [(each, v) for v, each in enumerate(size)]
    heapq.heapify(heap)
    later: dict[int, set[int]] = {}
    most, entries = np.log(largest_table) + 1e-9, 0.0
    while heap:
        now, v = heapq.heappop(heap)
        if v in later or now != size[v]:
            continue
        entries += np.exp(now)
        if now > most or entries > largest_component + 0.5:
            return None
        later[v] = near[v]
        for u in near[v]:  # they are tied to each other now
            near[u] |= near[v]
            near[u] -= {u, v}
        for u in near[v]:
            new = log_card[u] + sum(log_card[w] for w in near[u])
            if new != size[u]:
                size[u] = new
                heapq.heappush(heap, (new, u))
    return later


def lay_cliques(planned: Sequence[tuple[Shape, AnyCodes, AnyCodes]]) -> Cliques:
    """Lay out the cliques of components for the kernels.

    Parameters
    ----------
    planned
        Shapes; the nodes of components, (n_components, n_nodes), that are their first variables
        (the others are counters); and the numbers of events, (n_components, n_events).
    """
    by_clique: list[Any] = [np.empty((5, 0), np.int64)]  # of all components, shape by shape
    by_rest: list[Any] = [np.empty((3, 0), np.int64)]
    places: list[Any] = []  # (n_components, n_cliques of one) of each shape
    n = 0
    for shape, nodes, _ in planned:
        n_own = len(shape.variable)
        places.append(n + np.arange(n_own * len(nodes)).reshape(-1, n_own))
        n += places[-1].size
        node = np.full((len(nodes), max(n_own, nodes.shape[1])), -1)
        node[:, : nodes.shape[1]] = nodes
        n_sent = [prod(shape.cards[u] for u in each) for each in shape.rest]
        n_rest = [len(each) for each in shape.rest]
        # The last cliques of components send nothing: they are at odd levels of their own.
        level = [2 * at + (not each) for at, each in zip(shape.level, shape.rest, strict=True)]
        same = np.tile(np.array([level, shape.cards, n_sent, n_rest]), len(nodes))
        by_clique.append(np.vstack([node[:, shape.variable].ravel(), same]))
        rest, stride, above = (
            np.array([u for each in column for u in each], np.int64)
            for column in (shape.rest, shape.stride, shape.above)
        )
        to = (places[-1][:, :1] + rest).ravel()
        by_rest.append(np.vstack([to, np.tile(np.stack([stride, above]), len(nodes))]))
    node, level, card, n_sent, n_rest = np.concatenate(by_clique, axis=1)
    rest, stride, above = np.concatenate(by_rest, axis=1)

    # Those that can be done side by side come one after the other.
    former, order = _starts(n_rest), np.lexsort((card, node < 0, level))
    place = np.empty_like(order)
    place[order] = np.arange(n)
    node, level, card, n_sent, n_rest = (
        each[order] for each in (node, level, card, n_sent, n_rest)
    )
    rest_start = _starts(n_rest)
    at = np.repeat(former[order] - rest_start[:-1], n_rest) + np.arange(rest_start[-1])
    rest, stride, above = place[rest[at]], stride[at], above[at]
    kinds = np.column_stack([level, node < 0, card])
    batches = np.flatnonzero((np.diff(kinds, axis=0, prepend=-1, append=-1) != 0).any(axis=1))
    start, sent = _starts(n_sent * card), _starts(n_sent)

    # Which entry of a message goes to each entry of its parent's table
    sends = np.flatnonzero(n_rest)
    parent = rest[rest_start[sends]]
    size = np.diff(start)[parent]
    owner = np.repeat(np.arange(len(sends)), size)
    entry = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    message = sent[sends[owner]]
    for j in range(int(n_rest.max(initial=0))):
        some = np.flatnonzero(n_rest[sends[owner]] > j)
        which = rest_start[sends[owner[some]]] + j
        message[some] += entry[some] // above[which] % card[rest[which]] * stride[which]
    up = (start[parent[owner]] + entry)[np.argsort(message, kind="stable")]
    up_start = _starts(np.bincount(message, minlength=sent[-1]))

    tables = np.zeros(start[-1] if any(len(shape.tables) for shape, *_ in planned) else 0)
    event, n_entries, entries = ([np.empty(0, np.int64)] for _ in range(3))
    for (shape, _, numbers), own in zip(planned, places, strict=True):
        first = start[place[own]]
        if len(shape.tables):
            local = np.diff(start)[place[own[0]]]
            offset = np.arange(len(shape.tables)) - np.repeat(np.cumsum(local) - local, local)
            tables[np.repeat(first, local, axis=1) + offset] = shape.tables
        for j, (t, inside) in enumerate(shape.events):
            event.append(numbers[:, j])
            n_entries.append(np.full(len(own), len(inside)))
            entries.append((first[:, t, None] + inside).ravel())
    return Cliques(
        node, card, start, sent, up_start, up, rest_start, rest, stride, batches, tables,
        np.concatenate(event), _starts(np.concatenate(n_entries)), np.concatenate(entries),
    )  # fmt: skip


def _starts(sizes: AnyCodes) -> Any:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


NO_CLIQUES = lay_cliques([])  # where no component has a loop
