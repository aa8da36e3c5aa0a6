"""Links in plain NumPy: what the other backends mean.

Belief propagation (sum-product) and max-product decoding where components are large or have no
loops, elimination where they are small and have some, and mean field.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import ByGroup, Codes, Floats, Offsets
from tiebreak.kernels.network import LOWEST_LOG_MESSAGE, SMALLEST_MESSAGE, Cliques, Network

__all__ = [
    "agreement",
    "decode_cliques",
    "decode_forest",
    "decode_greedily",
    "eliminate",
    "expected_score",
    "link_field",
    "link_term",
    "pass_messages",
    "update_in_turn",
    "update_together",
]

LOWEST_SCORE = -1e300  # in the place of −∞, which times 0 is no number


# -- messages --------------------------------------------------------------------------------------


def expected_score(belief: Floats, scores: Floats, n_threads: int = 1) -> float:
    """Return Σ ⟨belief, score⟩ over nodes; impossible classes add nothing."""
    # Not by BLAS: its threads wait for more to do on the cores that other kernels need.
    return float(np.einsum("ik,ik->", belief, np.maximum(scores, LOWEST_SCORE)))


def pass_messages(
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    *,
    down: bool,
    update_beliefs: bool = True,
) -> tuple[float, float]:
    """Pass messages up or down among nodes span[0] … span[1] − 1, and set their beliefs.

    Implements [eq:messages], c_i the score of node i with all messages but j's:

        log m_{i→j}(k) = log(Σ_{l≠k} exp c_i(l) + exp(θ_ij + c_i(k))) − scale

    Up, every node sends to its earlier neighbours, last node first; down, to its later ones,
    first node first. Without loops, beliefs are exact after one pass up and one down, and so is
    the returned log partition [eq:log-partition]; with loops it is Bethe's.

    Parameters
    ----------
    coupling
        (n_edges,) log-odds that the two ends agree; −∞ where they cannot.
    messages
        (2 · n_edges, n_classes), 1 at the start; see `network.SMALLEST_MESSAGE`. Overwritten.
        Damping mixes them as probabilities.
    belief
        (n_nodes, n_classes), rows sum to 1. Rows of the span are overwritten.
    update_beliefs
        Whether to set beliefs; where not, nothing is known of change and log partition: 0.

    Returns
    -------
    The largest change of any belief, and the log partition of the span.
    """
    change = 0.0
    log_partition = 0.0
    for i in range(*span) if down else range(span[1] - 1, span[0] - 1, -1):
        slots = np.arange(network.start[i], network.start[i + 1])
        received = _logs_of(messages[slots])
        total = scores[i] + received.sum(axis=0)
        sending = np.flatnonzero((network.other[slots] > i) == down)
        for s in sending:
            new = _message(total - received[s], coupling[network.edge[slots[s]]])
            log_partition += new.max()
            new = np.maximum(new - new.max(), LOWEST_LOG_MESSAGE)
            back = network.mate[slots[s]]
            if damping > 0.0:
                former = np.log(damping) + _logs_of(messages[back])
                new = np.logaddexp(np.log(1.0 - damping) + new, former)
            messages[back] = np.where(new < np.log(SMALLEST_MESSAGE), new, np.exp(new))
        if not update_beliefs:
            continue
        log_norm = np.logaddexp.reduce(total)
        new = np.exp(total - log_norm)
        change = max(change, float(np.abs(new - belief[i]).max()))
        belief[i] = new
        log_partition += (1 - len(sending)) * log_norm
    return change, float(log_partition) if update_beliefs else 0.0


def _logs_of(messages: Floats) -> Floats:
    """Return logs of messages: see `network.SMALLEST_MESSAGE`."""
    return np.where(messages > 0.0, np.log(np.where(messages > 0.0, messages, 1.0)), messages)


def _message(cavity: Floats, coupling: float) -> Floats:
    """Return log Σ_l exp(cavity_l + θ 1(k = l)) for each k."""
    return np.logaddexp(_others(cavity), coupling + cavity)


def _others(cavity: Floats) -> Floats:
    """Return log Σ_{l≠k} exp(cavity_l) for each k, along the last axis."""
    itself = np.eye(cavity.shape[-1], dtype=bool)
    return np.asarray(np.logaddexp.reduce(np.where(itself, -np.inf, cavity[..., None, :]), axis=-1))


def agreement(scores: Floats, network: Network, coupling: Floats, messages: Floats) -> Floats:
    """Return for each edge the probability that its two ends agree: [eq:agreement]."""
    logs = _logs_of(messages)
    totals = scores.copy()
    owner = np.repeat(np.arange(network.n_nodes), np.diff(network.start))
    np.add.at(totals, owner, logs)
    slot = np.flatnonzero(owner < network.other)  # each edge once
    edge = network.edge[slot]
    here = totals[owner[slot]] - logs[slot]
    there = totals[network.other[slot]] - logs[network.mate[slot]]
    same = coupling[edge] + np.logaddexp.reduce(here + there, axis=1)
    differ = np.logaddexp.reduce(here + _others(there), axis=1)
    agree = np.zeros(len(coupling))
    agree[edge] = np.exp(same - np.logaddexp(same, differ))
    return agree


def decode_forest(
    scores: Floats, network: Network, coupling: Floats, span: tuple[int, int], label: Codes
) -> None:
    """Set the likeliest joint labels of nodes in components without loops: [eq:decode].

    Max-product up, then each node takes its best class given its earlier neighbour's.
    """
    low, high = span
    best = scores.copy()
    for i in range(high - 1, low - 1, -1):
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] < i:
                best[network.other[e]] += _best_message(best[i], coupling[network.edge[e]])
    for i in range(low, high):
        choice = best[i].copy()
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] < i:
                choice[label[network.other[e]]] += coupling[network.edge[e]]
        label[i] = choice.argmax()


def _best_message(total: Floats, coupling: float) -> Floats:
    """Return max_l (total_l + θ 1(k = l)) for each k."""
    itself = np.eye(len(total), dtype=bool)
    return np.asarray(np.where(itself, total + coupling, total).max(axis=1))


def decode_greedily(
    wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
) -> None:
    """Give nodes, in order, their best class of those that break fewest hard links.

    Neighbours with label −1 have no class yet and do not count.
    """
    for i in order:
        broken = np.zeros(wish.shape[1])
        for e in range(network.start[i], network.start[i + 1]):
            other = label[network.other[e]]
            if other >= 0 and coupling[network.edge[e]] == -np.inf:
                broken[other] += 1.0
        broken[np.isneginf(wish[i])] = np.inf
        label[i] = np.where(broken == broken.min(), wish[i], -np.inf).argmax()


# -- small loopy components ------------------------------------------------------------------------


def eliminate(
    scores: Floats, cliques: Cliques, coupling: Floats, belief: Floats, holds: Floats
) -> tuple[float, float]:
    """Sum out the variables of all cliques; set beliefs of nodes, and that each event holds.

    Implements [eq:elimination]: messages go from each clique to a later one, then back.

    Returns
    -------
    The largest change of any belief, and the log partition of these components.
    """
    tables, messages = _collect(scores, cliques, coupling, np.logaddexp)
    log_partition = change = 0.0
    for first, last in reversed([*pairwise(cliques.batches.tolist())]):
        rows, own = _rows(cliques, tables, first, last), slice(*cliques.sent[[first, last]])
        starts = cliques.up_start[own.start : own.stop + 1]
        if starts[0] == starts[-1]:
            log_partition += float(messages[own].sum())
            continue
        above = tables[cliques.up[starts[0] : starts[-1]]]
        back = np.logaddexp.reduceat(above, starts[:-1] - starts[0])
        gain = np.full(len(back), -np.inf)
        np.subtract(back, messages[own], out=gain, where=back > -np.inf)
        rows += gain[:, None]
    if not len(cliques.node):
        return 0.0, 0.0
    norm = np.logaddexp.reduceat(tables, cliques.start[:-1])
    np.exp(tables - np.repeat(norm, np.diff(cliques.start)), out=tables)
    for first, last in pairwise(cliques.batches.tolist()):
        node = cliques.node[first:last]
        if node[0] >= 0:
            of_clique = cliques.sent[first:last] - cliques.sent[first]
            new = np.add.reduceat(_rows(cliques, tables, first, last), of_clique)
            change = max(change, float(np.abs(new - belief[node]).max()))
            belief[node] = new
    which = np.repeat(cliques.event, np.diff(cliques.event_start))
    found = np.bincount(which, tables[cliques.event_entry], len(holds))
    holds[cliques.event] = found[cliques.event]
    return change, log_partition


def decode_cliques(scores: Floats, cliques: Cliques, coupling: Floats, label: Codes) -> None:
    """Set the likeliest joint labels of the nodes of all cliques: [eq:decode]."""
    tables, _ = _collect(scores, cliques, coupling, np.maximum)
    state = np.zeros(len(cliques.node), np.int64)
    for first, last in reversed([*pairwise(cliques.batches.tolist())]):
        starts = cliques.rest_start[first : last + 1]
        at = slice(starts[0], starts[-1])
        owner = np.repeat(np.arange(last - first), np.diff(starts))
        row = np.bincount(owner, state[cliques.rest[at]] * cliques.stride[at], last - first)
        row = row.astype(np.int64) + cliques.sent[first:last] - cliques.sent[first]
        state[first:last] = _rows(cliques, tables, first, last)[row].argmax(axis=1)
    is_node = cliques.node >= 0
    label[cliques.node[is_node]] = state[is_node]


def _collect(
    scores: Floats, cliques: Cliques, coupling: Floats, add: np.ufunc
) -> tuple[Floats, Floats]:
    """Return tables and the messages that cliques send, first to last."""
    tables, messages = cliques.new_tables(), np.empty(cliques.sent[-1])
    worth = np.repeat(coupling[cliques.event], np.diff(cliques.event_start))
    np.add.at(tables, cliques.event_entry, worth)
    for first, last in pairwise(cliques.batches.tolist()):
        rows, own = _rows(cliques, tables, first, last), slice(*cliques.sent[[first, last]])
        if cliques.node[first] >= 0:
            n_rows = np.diff(cliques.sent[first : last + 1])
            rows += np.repeat(scores[cliques.node[first:last]], n_rows, axis=0)
        messages[own] = add.reduce(rows, axis=1)
        starts = cliques.up_start[own.start : own.stop + 1]
        up = cliques.up[starts[0] : starts[-1]]
        np.add.at(tables, up, np.repeat(messages[own], np.diff(starts)))
    return tables, messages


def _rows(cliques: Cliques, tables: Floats, first: int, last: int) -> Floats:
    """Return the tables of cliques of one batch, row by row: a view."""
    low, high = cliques.start[[first, last]]
    return tables[low:high].reshape(-1, cliques.card[first])


# -- mean field ------------------------------------------------------------------------------------


def _group_sums(q: Floats, links: ByGroup) -> tuple[Floats, Floats]:
    """Return S_A, the sum of q over each group, and X_A = Σ_B w_AB S_B, both (n_groups, K)."""
    end = np.repeat(np.arange(links.n_groups), np.diff(links.start))
    inside = np.empty((links.n_groups, q.shape[1]))
    across = np.empty_like(inside)
    for k, column in enumerate(q.T):
        inside[:, k] = np.bincount(links.group, column[links.task], links.n_groups)
        sent = links.weight * inside[links.other, k]
        across[:, k] = np.bincount(end, sent, links.n_groups)
    return inside, across


def link_field(q: Floats, links: ByGroup) -> Floats:
    """Return what links say about each linked task, (n_linked, n_classes).

    Implements [eq:link-field], for task i of group A:

        f_i = pull · (S_A − q_i) + Σ_B w_AB S_B
    """
    inside, across = _group_sums(q, links)
    return links.pull * (inside[links.group] - q[links.task]) + across[links.group]


def link_term(q: Floats, links: ByGroup) -> float:
    """Return Σ w_ij ⟨q_i, q_j⟩ over all closed links, each once: [eq:link-term]."""
    inside, across = _group_sums(q, links)
    within = (inside**2).sum() - (q[links.task] ** 2).sum()
    return float(0.5 * (links.pull * within + (inside * across).sum()))


def update_together(q: Floats, u: Floats, links: ByGroup, strength: float, at: Codes) -> float:
    """Update linked tasks all at once, from the same q; return the largest change.

    Implements [eq:link-update] as the paper does; `at` are positions in `links.task`.
    """
    task = links.task[at]
    new = softmax(u[task] + strength * link_field(q, links)[at])
    change = float(np.abs(new - q[task]).max(initial=0.0))
    q[task] = new
    return change


def update_in_turn(q: Floats, u: Floats, links: ByGroup, strength: float, order: Offsets) -> float:
    """Update linked tasks one after the other; return the largest change.

    Implements [eq:link-update] with the newest q of every neighbour:

        q_i = softmax(u_i + η f_i)

    Departs from the paper: it updates all tasks at once, which can swap two linked tasks for
    ever; in turn, every step raises the bound. Sums over groups stand for their members, and the
    change of a group reaches its neighbours when the turn passes to another group.

    Parameters
    ----------
    order
        Positions in `links.task`, in the order of their turns; known tasks are left out.
    """
    inside, across = _group_sums(q, links)
    sent = inside.copy()  # what the neighbours of each group last took into account
    change = 0.0
    current = -1
    for at in order:
        task = links.task[at]
        group = links.group[at]
        if group != current and current >= 0:
            _update_neighbours(links, current, inside, sent, across)
        current = group
        score = u[task] + strength * (links.pull * (inside[group] - q[task]) + across[group])
        new = np.exp(score - score.max())
        new /= new.sum()
        step = new - q[task]
        change = max(change, float(np.abs(step).max()))
        inside[group] += step
        q[task] = new
    return change


def _update_neighbours(
    links: ByGroup, group: int, inside: Floats, sent: Floats, across: Floats
) -> None:
    edges = slice(links.start[group], links.start[group + 1])
    step = inside[group] - sent[group]
    np.add.at(across, links.other[edges], links.weight[edges, None] * step)
    sent[group] = inside[group]
