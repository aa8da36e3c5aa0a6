"""Messages that are heard only when the pass is over, so that many are worked out side by side.

First every node adds up what it was told, then nodes speak in waves. In a wave a message (or a
node's belief) is a column and a class a row, so that loops over columns become vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.compile import fused_kernel, kernel, summing_kernel
from tiebreak.kernels.compiled.blocks import TOP, largest
from tiebreak.kernels.compiled.exponential import exp, log
from tiebreak.kernels.compiled.lanes import (
    Like,
    load,
    load_column,
    minus,
    plus,
    prefetch,
    store,
    store_column,
)
from tiebreak.kernels.compiled.one_message import LARGEST_THETA, SMALLEST_SUM, exact_message
from tiebreak.kernels.compiled.rows import store_rows
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import Network

WAVE = 256  # slots of the nodes of a wave
BEST, ODDS = 1, 2  # rows beside the classes, and TOP


class Wave(NamedTuple):
    """Room for messages, or for beliefs."""

    node: Offsets  # (width,) who speaks
    own: Offsets  # (width,) its slot
    slot: Offsets  # (width,) where the message goes: the slot of who hears
    theta: Floats  # (width,) of the edge; of a node, how often its log norm counts
    score: Floats  # (n_classes, width)
    each: Floats  # (n_classes, width)
    after: Floats  # (n_classes, width)
    beside: Floats  # (3, width)


@kernel
def _room(n: int, width: int) -> Wave:
    numbers, rows, beside = np.empty((3, width), np.int64), np.empty((3, n, width)), (3, width)
    of_nodes = numbers[0], numbers[1], numbers[2], np.empty(width)
    return Wave(*of_nodes, rows[0], rows[1], rows[2], np.empty(beside))


@kernel
def believe_in_waves(
    like: Like,
    scores: Floats,
    network: Network,
    messages: Floats,
    totals: Floats,
    belief: Floats,
    span: tuple[int, int],
    down: bool,
) -> tuple[float, float]:
    """Set totals and beliefs of nodes; return the largest change and their part of log Z."""
    (low, high), n = span, scores.shape[1]
    nodes, moved, log_norms, change = _room(n, WAVE), np.zeros(n), 0.0, 0.0
    for first in range(low, high, WAVE):
        m = min(WAVE, high - first)
        for t in range(m):
            nodes.node[t] = first + t
        _add_up(nodes.node[:m], like, network.start, scores, messages, totals, nodes.score)
        _weigh(first, m, network.start, network.other, down, nodes.theta)
        log_norms += _believe(like, nodes, m, belief, moved)
    for k in range(n):
        change = max(change, moved[k])
    return change, log_norms


@kernel
def speak_in_waves(
    like: Like,
    totals: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
) -> float:
    """Let nodes speak, given their totals; return the sum of the messages' scales."""
    (first, high), start, scales = span, network.start, 0.0
    said = _room(totals.shape[1], WAVE)
    while first < high:
        last = first + 1
        while last < high and start[last + 1] - start[first] <= WAVE:
            last += 1
        if start[last] - start[first] > said.score.shape[1]:
            said = _room(totals.shape[1], start[last] - start[first])
        m = _list(first, last, network, theta, messages, down, said)
        _cavities(like, said.node[:m], said.own, totals, messages, said.score)
        scales += _tell(like, said, m, messages, damping)
        first = last
    return scales


@kernel
def _add_up(
    at: Offsets,
    like: Like,
    start: Offsets,
    scores: Floats,
    messages: Floats,
    totals: Floats,
    score: Floats,
) -> None:
    """Set totals, and columns of `score`, to what nodes know by themselves and were told."""
    for k in range(0, scores.shape[1], len(like)):
        for t in range(len(at)):
            row = load(scores, at[t], k, like)
            for e in range(start[at[t]], start[at[t] + 1]):
                row = plus(row, load(messages, e, k, like))
            store(totals, at[t], k, row)
            store_column(score, k, t, row)


@kernel
def _weigh(first: int, m: int, start: Offsets, other: Codes, down: bool, weight: Floats) -> None:
    """Set weights to 1 less the number of messages that each node speaks."""
    for t in range(m):
        i, n_spoken = first + t, 0
        for e in range(start[i], start[i + 1]):
            n_spoken += (other[e] > i) == down
        weight[t] = 1.0 - n_spoken


@kernel
def _list(
    first: int,
    last: int,
    network: Network,
    theta: Floats,
    messages: Floats,
    down: bool,
    said: Wave,
) -> int:
    """List what the nodes will say; return how many messages these are."""
    start, other, mate, edge = network
    slot, own, node, of_edge = said.slot, said.own, said.node, said.theta
    m = 0
    for i in range(first, last):
        for e in range(start[i], start[i + 1]):
            if (other[e] > i) == down:
                slot[m], own[m], node[m] = mate[e], e, i
                of_edge[m] = theta[edge[e]] if len(theta) > 1 else theta[0]
                prefetch(messages, mate[e], 0)  # it lies anywhere: fetched while others work
                m += 1
    return m


@kernel
def _cavities(
    like: Like, node: Offsets, own: Offsets, totals: Floats, messages: Floats, out: Floats
) -> None:
    """Set column t of `out` to what its node knows but for what the hearer told it.

    What the hearer told goes the other way: no message of this pass takes its place.
    """
    for k in range(0, out.shape[0], len(like)):
        for t in range(len(node)):
            known = load(totals, node[t], k, like)
            store_column(out, k, t, minus(known, load(messages, own[t], k, like)))


@kernel
def _tell(like: Like, said: Wave, m: int, messages: Floats, damping: float) -> float:
    """Work out the messages of a wave and tell them; return the sum of their scales."""
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
    for k in range(0, n, len(like)):
        for t in range(m):
            store_column(said.each, k, t, load(messages, said.slot[t], k, like))
    for k in range(n):
        _mix(said.after[k], best, said.each[k], damping, m)
    largest(said.after, best, m)
    for k in range(n):
        _lower(said.after[k], best, m)
    for k in range(0, n, len(like)):
        for t in range(m):
            store(messages, said.slot[t], k, load_column(said.after, k, t, like))
    return scales


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
    store_rows(nodes.node[:m], like, nodes.each, belief, moved)
    return log_norms


# Loops over the columns of a wave.


@fused_kernel
def _exp_of_gaps(score: Floats, top: Floats, out: Floats, m: int) -> None:
    for t in range(m):
        out[t] = exp(score[t] - top[t])


@fused_kernel
def _odds(theta: Floats, out: Floats, m: int) -> int:
    """Set the odds of log-odds; return how many are too large."""
    n_wrong = n_soft = 0
    for t in range(m):
        n_soft += theta[t] > -np.inf
    if n_soft == 0:  # hard links alone: no exponential
        out[:m] = 0.0
        return 0
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
def _mix(row: Floats, best: Floats, old: Floats, damping: float, m: int) -> None:
    for t in range(m):
        row[t] = (1.0 - damping) * (row[t] - best[t]) + damping * old[t]


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
