"""Messages that are heard only when the pass is over, so that many are worked out side by side.

Nodes speak in waves. In a wave a message (or a node's belief) is a column and a class a row, so
that every loop over its columns becomes vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.compile import fused_kernel, kernel, summing_kernel
from tiebreak.kernels.compiled.blocks import TOP, largest
from tiebreak.kernels.compiled.exponential import exp, log
from tiebreak.kernels.compiled.lanes import (
    Like,
    fused,
    largest_lane,
    load,
    load_column,
    minus,
    plus,
    prefetch,
    store,
    store_column,
    times,
)
from tiebreak.kernels.compiled.one_message import LARGEST_THETA, SMALLEST_SUM, exact_message
from tiebreak.kernels.compiled.rows import store_rows
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.kernels.network import Network

WAVE = 256  # slots of the nodes of a wave
BEST, ODDS = 1, 2  # rows beside the classes, and TOP


class Wave(NamedTuple):
    """Room for messages, or for beliefs."""

    slot: Offsets  # (width,) where the message goes; of a node, its number
    own: Offsets  # (width,) the same edge seen from who speaks
    node: Offsets  # (width,) the column of who speaks
    theta: Floats  # (width,) of its edge; of a node, how often its log norm counts
    score: Floats  # (n_classes, width)
    each: Floats  # (n_classes, width)
    after: Floats  # (n_classes, width)
    beside: Floats  # (3, width)


@kernel
def _room(n: int, width: int) -> Wave:
    numbers, rows = np.empty((3, width), np.int64), np.empty((3, n, width))
    beside = np.empty((3, width))
    return Wave(
        numbers[0],
        numbers[1],
        numbers[2],
        np.empty(width),
        rows[0],
        rows[1],
        rows[2],
        beside,
    )


@kernel
def pass_in_waves(
    like: Like,
    scores: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    heard: Floats,
    belief: Floats,
    span: tuple[int, int],
    down: bool,
) -> tuple[float, float]:
    """Let the nodes of one part speak: see `reference.pass_messages`; `hear` is what follows."""
    (low, high), n = span, scores.shape[1]
    said, nodes, moved = _room(n, WAVE), _room(n, WAVE), np.zeros(n)
    log_partition, done = 0.0, 0
    while done < high - low:
        first = low + done if down else high - 1 - done
        n_nodes, n_slots = _reach(first, network.start, high - low - done, down)
        if n_slots > said.score.shape[1]:
            said = _room(n, n_slots)
        _list_nodes(first, n_nodes, down, nodes.slot)
        at = nodes.slot[:n_nodes]
        _total(at, like, network.start, scores, messages, nodes.score)
        m = _speak(at, network, theta, heard, down, said, nodes.theta)
        _cavities(like, said.node[:m], said.own, nodes.score, messages, said.score)
        log_partition += _tell(like, said, m, heard)
        log_partition += _believe(like, nodes, n_nodes, belief, moved)
        done += n_nodes
    change = 0.0
    for k in range(n):
        change = max(change, moved[k])
    return change, log_partition


@kernel
def _reach(first: int, start: Offsets, n_left: int, down: bool) -> tuple[int, int]:
    """Return how many nodes the next wave has, and how many slots: at most WAVE, or one node."""
    n_nodes, n_slots = 0, 0
    while n_nodes < min(n_left, WAVE):
        i = first + n_nodes if down else first - n_nodes
        if n_nodes > 0 and n_slots + start[i + 1] - start[i] > WAVE:
            break
        n_nodes, n_slots = n_nodes + 1, n_slots + start[i + 1] - start[i]
    return n_nodes, n_slots


@kernel
def _list_nodes(first: int, n_nodes: int, down: bool, at: Offsets) -> None:
    for t in range(n_nodes):
        at[t] = first + t if down else first - t


@kernel
def _total(
    at: Offsets, like: Like, start: Offsets, scores: Floats, messages: Floats, total: Floats
) -> None:
    """Set column t of `total` to what node at[t] knows by itself and is told."""
    for k in range(0, scores.shape[1], len(like)):
        for t in range(len(at)):
            row = load(scores, at[t], k, like)
            for e in range(start[at[t]], start[at[t] + 1]):
                row = plus(row, load(messages, e, k, like))
            store_column(total, k, t, row)


@kernel
def _speak(
    at: Offsets,
    network: Network,
    theta: Floats,
    heard: Floats,
    down: bool,
    said: Wave,
    weight: Floats,
) -> int:
    """List what the nodes will say; return how many messages these are."""
    start, other, mate, edge = network
    slot, own, node, of_edge = said.slot, said.own, said.node, said.theta
    m = 0
    for t in range(len(at)):
        i, before = at[t], m
        for e in range(start[i], start[i + 1]):
            if (other[e] > i) == down:
                slot[m], own[m], node[m] = mate[e], e, t
                of_edge[m] = theta[edge[e]] if len(theta) > 1 else theta[0]
                prefetch(heard, mate[e], 0)  # it lies anywhere: fetched while others work
                m += 1
        weight[t] = 1.0 - (m - before)
    return m


@kernel
def _cavities(
    like: Like, node: Offsets, own: Offsets, total: Floats, messages: Floats, out: Floats
) -> None:
    """Set column t of `out` to what its node knows but for what the hearer told it."""
    for k in range(0, out.shape[0], len(like)):
        for t in range(len(node)):
            known = load_column(total, k, node[t], like)
            store_column(out, k, t, minus(known, load(messages, own[t], k, like)))


@kernel
def _tell(like: Like, said: Wave, m: int, heard: Floats) -> float:
    """Work out the messages of a wave, largest 0, and tell them; return the sum of their scales."""
    n, top, best = said.score.shape[0], said.beside[TOP], said.beside[BEST]
    largest(said.score, top, m)
    for k in range(n):
        _exp_of_gaps(said.score[k], top, said.each[k], m)
    if _log_sums(said, m) > 0:
        _repair(said, m)
    largest(said.after, best, m)
    scales = 0.0
    for t in range(m):
        scales += top[t] + best[t]
    for k in range(n):
        _lower(said.after[k], best, m)
    for k in range(0, n, len(like)):
        for t in range(m):
            store(heard, said.slot[t], k, load_column(said.after, k, t, like))
    return scales


@kernel
def hear(
    like: Like,
    network: Network,
    heard: Floats,
    messages: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
) -> None:
    """Let the nodes of one part take in what was said."""
    n, start, other = messages.shape[1], network.start, network.other
    for i in range(*span):
        for e in range(start[i], start[i + 1]):
            if (other[e] > i) == down:
                continue
            top = -np.inf
            for k in range(0, n, len(like)):
                old = times(load(messages, e, k, like), damping)
                new = fused(load(heard, e, k, like), 1.0 - damping, old)
                store(messages, e, k, new)
                top = max(top, largest_lane(new))
            for k in range(0, n, len(like)):
                store(messages, e, k, minus(load(messages, e, k, like), top))


@kernel
def _log_sums(said: Wave, m: int) -> int:
    """Set after = log(Σ_{l≠k} each_l + exp θ each_k); return how many of these are not right.

    The sum over the others is that over the classes before and that over those after: never the
    sum over all less one, so that nothing cancels.
    """
    n, before, odds = said.score.shape[0], said.beside[BEST], said.beside[ODDS]
    n_wrong = _odds(said.theta, odds, m)
    for t in range(m):
        before[t] = said.after[n - 1, t] = 0.0
    for k in range(n - 1, 0, -1):
        _add(said.after[k], said.each[k], said.after[k - 1], m)
    for k in range(n):
        _join(before, said.each[k], odds, said.after[k], m)
        _add(before, said.each[k], before, m)
        n_wrong += _logs(said.after[k], m)
    return n_wrong


@kernel
def _repair(said: Wave, m: int) -> None:
    """Do again, in logs throughout, what underflow or overflow made wrong."""
    n, top = said.score.shape[0], said.beside[TOP]
    cavity, out = np.empty(n), np.empty(n)
    for t in range(m):
        for k in range(n):
            cavity[k] = said.score[k, t]
        exact_message(cavity, said.theta[t], out)
        for k in range(n):
            said.after[k, t] = out[k] - top[t]


@kernel
def _believe(like: Like, nodes: Wave, m: int, belief: Floats, moved: Floats) -> float:
    """Set the beliefs of a wave's nodes; return the sum of their weighted log norms."""
    n, top, norm = nodes.score.shape[0], nodes.beside[TOP], nodes.beside[BEST]
    largest(nodes.score, top, m)
    for t in range(m):
        norm[t] = 0.0
    for k in range(n):
        _exp_of_gaps(nodes.score[k], top, nodes.each[k], m)
        _add(norm, nodes.each[k], norm, m)
    log_norms = _weighted_logs(nodes.theta, top, norm, m)
    for k in range(n):
        for t in range(m):
            nodes.each[k, t] *= norm[t]
    store_rows(nodes.slot[:m], like, nodes.each, belief, moved)
    return log_norms


# Loops over the columns of a wave.


@fused_kernel
def _exp_of_gaps(score: Floats, top: Floats, out: Floats, m: int) -> None:
    for t in range(m):
        out[t] = exp(score[t] - top[t])


@fused_kernel
def _odds(theta: Floats, out: Floats, m: int) -> int:
    """Set the odds of log-odds; return how many are too large."""
    n_wrong = 0
    for t in range(m):
        n_wrong += theta[t] > LARGEST_THETA
        out[t] = exp(theta[t])
    return n_wrong


@fused_kernel
def _add(a: Floats, b: Floats, out: Floats, m: int) -> None:
    for t in range(m):
        out[t] = a[t] + b[t]


@fused_kernel
def _join(before: Floats, each: Floats, odds: Floats, after: Floats, m: int) -> None:
    for t in range(m):
        after[t] += before[t] + odds[t] * each[t]


@fused_kernel
def _logs(row: Floats, m: int) -> int:
    """Take logs; return how many are of sums that underflow has touched."""
    n_wrong = 0
    for t in range(m):
        n_wrong += row[t] < SMALLEST_SUM
        row[t] = log(row[t])
    return n_wrong


@fused_kernel
def _lower(row: Floats, best: Floats, m: int) -> None:
    for t in range(m):
        row[t] -= best[t]


@summing_kernel
def _weighted_logs(weight: Floats, top: Floats, norm: Floats, m: int) -> float:
    """Return Σ weight (top + log norm), and replace each norm by its inverse."""
    total = 0.0
    for t in range(m):
        total += weight[t] * (top[t] + log(norm[t]))
        norm[t] = 1.0 / norm[t]
    return total
