"""Links, compiled: the names and meaning of `numpy_links`.

Two nodes, two classes, link odds e^θ = 3. Node 0 believes (.2, .8) by its own responses, node 1
(.5, .5). The message from 0 to 1 is, for each class of node 1, what node 0 believes of the other
class plus three times what it believes of this one, the largest scaled to 1:

    (.8 + 3 · .2, .2 + 3 · .8) = (1.4, 2.6)  →  (.54, 1)       belief of node 1: (.35, .65)

which is what the four joint cases .6, .2, .8, 2.4 (of 4) say. A message is made of a node's belief
divided by what the receiver sent: a division a class, and hardly a logarithm. No sum over other
classes is taken as the sum over all less one, so that nothing cancels. Where numbers are too small
(a class of a node below 1e-290, a message below `SMALLEST_MESSAGE`), the node or the message is
worked out in logs, exact however far apart the scores are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.compile import fused_kernel, kernel
from tiebreak.kernels.layout import ByGroup, Codes, Floats, Offsets
from tiebreak.kernels.network import LOWEST_LOG_MESSAGE, SMALLEST_MESSAGE, Cliques, Network
from tiebreak.kernels.numba_sweep import exp
from tiebreak.kernels.numpy_links import expected_score, link_field, link_term, update_together

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

FEW_CLASSES = 8  # up to here loops over classes are compiled for their number
SMALLEST_SHARE = 1e-290  # below, products lose digits to underflow
LARGEST_LOG_ODDS = 300.0  # above, products may overflow
LOG_SMALLEST = float(np.log(SMALLEST_MESSAGE))
FAR = 1e100  # factors beyond, and products beyond its square, become logarithms


# -- messages --------------------------------------------------------------------------------------


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
    """Pass messages up or down: see `numpy_links.pass_messages`."""
    if 2 * (span[1] - span[0]) > len(coupling) > 0 and (coupling == coupling[0]).all():
        coupling = coupling[:1]  # hard links alone: nothing to look up
    n_classes = scores.shape[1]
    like = (0,) * n_classes if n_classes <= FEW_CLASSES else ()
    given = scores, network, coupling, messages, belief, span, damping, down, update_beliefs
    change, log_partition = _pass_messages(like, *given)
    return change, log_partition


@fused_kernel
def _pass_messages(
    like: Any,
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
    update_beliefs: bool,
) -> tuple[float, float]:
    """Pass messages; `like` has a number per class, so that loops over few are written out."""
    n = len(like) or scores.shape[1]
    row = np.empty(n)
    total = np.empty(n)
    cavity = np.empty(n)
    new = np.empty(n)
    change = 0.0
    logs = 0.0  # of the partition function; the log of `product` comes in the end
    product = 1.0
    low, high = span
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        begin = network.start[i]
        end = network.start[i + 1]
        first = network.later[i] if down else begin
        last = end if down else network.later[i]
        if first == last and not update_beliefs:
            continue  # it has nobody to tell
        top = scores[i, 0]
        for k in range(1, n):
            top = scores[i, k] if scores[i, k] > top else top
        norm = 0.0
        least = 1.0  # of all that is multiplied or divided by
        for k in range(n):
            row[k] = exp(scores[i, k] - top)
        for e in range(begin, end):
            for k in range(n):
                entry = messages[e, k]
                row[k] *= entry
                least = entry if entry < least else least
        for k in range(n):
            norm += row[k]
            share = row[k] if scores[i, k] > -np.inf else 1.0
            least = share if share < least else least
        in_logs = least < SMALLEST_SHARE
        if in_logs:
            logs += total_in_logs(scores[i], messages[begin:end], total)
            for k in range(n):
                row[k] = np.exp(total[k])
        else:
            logs, product = multiplied(logs + top, product, norm)
            share = 1.0 / norm
            for k in range(n):
                row[k] *= share
        for e in range(first, last):
            back = network.mate[e]
            log_odds = coupling[network.edge[e]] if len(coupling) > 1 else coupling[0]
            if in_logs or log_odds > LARGEST_LOG_ODDS:
                for k in range(n):
                    of_node = total[k] if in_logs else np.log(row[k])
                    cavity[k] = of_node - log_of(messages[e, k])
                logs += message_in_logs(cavity, log_odds, new)
                keep(new, messages, back, damping)
                continue
            odds = exp(log_odds)
            before = 0.0
            for k in range(n):
                cavity[k] = row[k] / messages[e, k]
                new[k] = before + odds * cavity[k]
                before += cavity[k]
            after = 0.0
            scale = 0.0
            for k in range(n - 1, -1, -1):
                new[k] += after
                after += cavity[k]
                scale = max(scale, new[k])
            logs, product = multiplied(logs, product, scale)
            least = 1.0
            share = 1.0 / scale
            for k in range(n):
                new[k] *= share
                least = min(least, new[k], messages[back, k])
            if least < SMALLEST_MESSAGE:
                for k in range(n):
                    new[k] = np.log(new[k])
                keep(new, messages, back, damping)
            else:
                for k in range(n):
                    messages[back, k] = damping * messages[back, k] + (1.0 - damping) * new[k]
        if update_beliefs:
            for k in range(n):
                change = max(change, abs(row[k] - belief[i, k]))
                belief[i, k] = row[k]
    return change, logs + np.log(product) if update_beliefs else 0.0


@kernel
def multiplied(logs: float, product: float, factor: float) -> tuple[float, float]:
    """Multiply by a factor; take logarithms only where the product goes far."""
    if 1.0 / FAR < factor < FAR and 1.0 / FAR**2 < product < FAR**2:
        return logs, product * factor
    return logs + np.log(product) + np.log(factor), 1.0


@kernel
def log_of(entry: float) -> float:
    """Return the log of what a message says of a class: see `network.SMALLEST_MESSAGE`."""
    return float(np.log(entry) if entry > 0.0 else entry)


@kernel
def keep(new: Floats, messages: Floats, slot: int, damping: float) -> None:
    """Mix a message given in logs, the largest 0, with the former one, and keep it."""
    for k in range(len(new)):
        value = max(new[k], LOWEST_LOG_MESSAGE)
        if damping > 0.0:
            one = np.log(damping) + log_of(messages[slot, k])
            other = np.log(1.0 - damping) + value
            value = max(one, other) + np.log1p(np.exp(-abs(one - other)))
        messages[slot, k] = np.exp(value) if value >= LOG_SMALLEST else value


@kernel
def total_in_logs(score: Floats, received: Floats, out: Floats) -> float:
    """Set out to the log beliefs of one node; return the log of their norm."""
    top = -np.inf
    for k in range(len(score)):
        out[k] = score[k]
        for e in range(len(received)):
            out[k] += log_of(received[e, k])
        top = max(top, out[k])
    norm = 0.0
    for k in range(len(score)):
        norm += np.exp(out[k] - top)
    log_norm = top + np.log(norm)
    for k in range(len(score)):
        out[k] -= log_norm
    return float(log_norm)


@kernel
def message_in_logs(cavity: Floats, coupling: float, out: Floats) -> float:
    """Set out[k] = log Σ_l exp(cavity_l + θ 1(k = l)) less the largest of them; return that."""
    _log_others(cavity, out)
    largest = -np.inf
    for k in range(len(cavity)):
        if coupling > -np.inf:
            same = coupling + cavity[k]
            high = max(out[k], same)
            low = min(out[k], same)
            out[k] = high + np.log1p(np.exp(low - high))
        largest = max(largest, out[k])
    for k in range(len(cavity)):
        out[k] -= largest
    return float(largest)


@kernel
def _log_others(cavity: Floats, out: Floats) -> None:
    """Set out[k] = log Σ_{l≠k} exp(cavity_l), exact however far apart the scores are."""
    n = len(cavity)
    first = 0
    second = -1
    for k in range(1, n):
        if cavity[k] > cavity[first]:
            second = first
            first = k
        elif second < 0 or cavity[k] > cavity[second]:
            second = k
    top = cavity[first]
    rest = 0.0  # Σ over all but the first, relative to the second: no cancellation
    for k in range(n):
        if k != first:
            out[k] = np.exp(cavity[k] - cavity[second])
            rest += out[k]
    shift = np.exp(cavity[second] - top)
    for k in range(n):
        if k == first:
            out[k] = cavity[second] + np.log(rest)
        else:
            out[k] = top + np.log1p(max(rest - out[k], 0.0) * shift)


@kernel
def agreement(scores: Floats, network: Network, coupling: Floats, messages: Floats) -> Floats:
    """Return for each edge the probability that its two ends agree: see `numpy_links.agreement`."""
    n_nodes, n = scores.shape
    agree = np.zeros(len(coupling))
    here = np.empty(n)
    there = np.empty(n)
    others = np.empty(n)
    totals = scores.copy()
    for i in range(n_nodes):
        for e in range(network.start[i], network.start[i + 1]):
            for k in range(n):
                totals[i, k] += log_of(messages[e, k])
    for i in range(n_nodes):
        for e in range(network.later[i], network.start[i + 1]):
            j = network.other[e]
            back = network.mate[e]
            for k in range(n):
                here[k] = totals[i, k] - log_of(messages[e, k])
                there[k] = totals[j, k] - log_of(messages[back, k])
            _log_others(there, others)
            same = coupling[network.edge[e]] + _log_dot(here, there)
            agree[network.edge[e]] = 1.0 / (1.0 + np.exp(_log_dot(here, others) - same))
    return agree


@kernel
def _log_dot(a: Floats, b: Floats) -> float:
    """Return log Σ_k exp(a_k + b_k)."""
    top = -np.inf
    for k in range(len(a)):
        top = max(top, a[k] + b[k])
    total = 0.0
    for k in range(len(a)):
        total += np.exp(a[k] + b[k] - top)
    return float(top + np.log(total))


@kernel
def decode_forest(
    scores: Floats, network: Network, coupling: Floats, span: tuple[int, int], label: Codes
) -> None:
    """Set the likeliest joint labels of nodes without loops: see `numpy_links.decode_forest`."""
    best = scores.copy()
    n = best.shape[1]
    low, high = span
    for i in range(high - 1, low - 1, -1):
        for e in range(network.start[i], network.later[i]):
            j = network.other[e]
            for k in range(n):
                message = best[i, k] + coupling[network.edge[e]]
                for other in range(n):
                    if other != k:
                        message = max(message, best[i, other])
                best[j, k] += message
    for i in range(low, high):
        for e in range(network.start[i], network.later[i]):
            best[i, label[network.other[e]]] += coupling[network.edge[e]]
        label[i] = best[i].argmax()


@kernel
def decode_greedily(
    wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
) -> None:
    """Give nodes, in order, the best class that breaks fewest: see `numpy_links`."""
    n = wish.shape[1]
    broken = np.empty(n)
    for i in order:
        broken[:] = 0.0
        for e in range(network.start[i], network.start[i + 1]):
            other = label[network.other[e]]
            if other >= 0 and coupling[network.edge[e]] == -np.inf:
                broken[other] += 1.0
        best = -1
        for k in range(n):
            if wish[i, k] == -np.inf:
                continue
            is_fewer = best < 0 or broken[k] < broken[best]
            if is_fewer or (broken[k] == broken[best] and wish[i, k] > wish[i, best]):
                best = k
        label[i] = max(best, 0)


# -- small loopy components ------------------------------------------------------------------------


def eliminate(
    scores: Floats, cliques: Cliques, coupling: Floats, belief: Floats, holds: Floats
) -> tuple[float, float]:
    """Sum out the variables of all cliques: see `numpy_links.eliminate`."""
    if not len(cliques.node):
        return 0.0, 0.0  # spares compiling
    tables, messages = cliques.new_tables(), np.empty(cliques.sent[-1])
    _collect(scores, cliques, coupling, tables, messages, False)
    return _distribute(cliques, tables, messages, belief, holds)


def decode_cliques(scores: Floats, cliques: Cliques, coupling: Floats, label: Codes) -> None:
    """Set the likeliest joint labels of the nodes of all cliques: see `numpy_links`."""
    if len(cliques.node):
        tables, messages = cliques.new_tables(), np.empty(cliques.sent[-1])
        _collect(scores, cliques, coupling, tables, messages, True)
        _decode(cliques, tables, label)


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
    for e in range(len(cliques.event)):
        for i in range(cliques.event_start[e], cliques.event_start[e + 1]):
            tables[cliques.event_entry[i]] += coupling[cliques.event[e]]
    for c in range(len(cliques.node)):
        n = cliques.card[c]
        for m in range(cliques.sent[c], cliques.sent[c + 1]):
            row = cliques.start[c] + (m - cliques.sent[c]) * n
            top = -np.inf
            for k in range(n):
                if cliques.node[c] >= 0:
                    tables[row + k] += scores[cliques.node[c], k]
                top = max(top, tables[row + k])
            if not best and top > -np.inf:
                total = 0.0
                for k in range(n):
                    total += np.exp(tables[row + k] - top)
                top += np.log(total)
            messages[m] = top
            for i in range(cliques.up_start[m], cliques.up_start[m + 1]):
                tables[cliques.up[i]] += top


@kernel
def _distribute(
    cliques: Cliques, tables: Floats, messages: Floats, belief: Floats, holds: Floats
) -> tuple[float, float]:
    """Make each table a joint belief, last clique to first; return change and log partition."""
    log_partition = 0.0
    change = 0.0
    for c in range(len(cliques.node) - 1, -1, -1):
        n = cliques.card[c]
        for m in range(cliques.sent[c], cliques.sent[c + 1]):
            first, last = cliques.up_start[m], cliques.up_start[m + 1]
            if first == last:
                log_partition += messages[m]
                continue
            top = -np.inf
            for i in range(first, last):
                top = max(top, tables[cliques.up[i]])
            gain = -np.inf
            if top > -np.inf:
                total = 0.0
                for i in range(first, last):
                    total += np.exp(tables[cliques.up[i]] - top)
                gain = top + np.log(total) - messages[m]
            row = cliques.start[c] + (m - cliques.sent[c]) * n
            for k in range(n):
                tables[row + k] += gain
    new = np.empty(cliques.card.max())
    for c in range(len(cliques.node)):
        n = cliques.card[c]
        table = tables[cliques.start[c] : cliques.start[c + 1]]
        top = -np.inf
        for i in range(len(table)):
            top = max(top, table[i])
        norm = 0.0
        new[:] = 0.0
        for i in range(0, len(table), n):
            for k in range(n):
                table[i + k] = np.exp(table[i + k] - top)
                new[k] += table[i + k]
                norm += table[i + k]
        for i in range(len(table)):
            table[i] /= norm
        node = cliques.node[c]
        for k in range(n if node >= 0 else 0):
            change = max(change, abs(new[k] / norm - belief[node, k]))
            belief[node, k] = new[k] / norm
    for e in range(len(cliques.event)):
        total = 0.0
        for i in range(cliques.event_start[e], cliques.event_start[e + 1]):
            total += tables[cliques.event_entry[i]]
        holds[cliques.event[e]] = total
    return change, log_partition


@kernel
def _decode(cliques: Cliques, tables: Floats, label: Codes) -> None:
    """Set the best class of each node given those of its rest, last clique to first."""
    state = np.zeros(len(cliques.node), np.int64)
    for c in range(len(cliques.node) - 1, -1, -1):
        row = 0
        for at in range(cliques.rest_start[c], cliques.rest_start[c + 1]):
            row += state[cliques.rest[at]] * cliques.stride[at]
        first = cliques.start[c] + row * cliques.card[c]
        state[c] = tables[first : first + cliques.card[c]].argmax()
        if cliques.node[c] >= 0:
            label[cliques.node[c]] = state[c]


# -- mean field ------------------------------------------------------------------------------------


@kernel
def update_in_turn(q: Floats, u: Floats, links: ByGroup, strength: float, order: Offsets) -> float:
    """Update linked tasks one after the other: see `numpy_links.update_in_turn`."""
    n = q.shape[1]
    inside = np.zeros((len(links.start) - 1, n))
    across = np.zeros_like(inside)
    for at in range(len(links.task)):
        for k in range(n):
            inside[links.group[at], k] += q[links.task[at], k]
    for group in range(len(inside)):
        _tell_neighbours(links, group, inside[group], across)
    sent = inside.copy()  # what the neighbours of each group last took into account
    new = np.empty(n)
    change = 0.0
    current = -1
    for at in order:
        i = links.task[at]
        group = links.group[at]
        if group != current and current >= 0:
            _tell_neighbours(links, current, inside[current] - sent[current], across)
            sent[current] = inside[current]
        current = group
        top = -np.inf
        for k in range(n):
            new[k] = u[i, k] + strength * (
                links.pull * (inside[group, k] - q[i, k]) + across[group, k]
            )
            top = max(top, new[k])
        norm = 0.0
        for k in range(n):
            new[k] = np.exp(new[k] - top)
            norm += new[k]
        for k in range(n):
            new[k] /= norm
            step = new[k] - q[i, k]
            change = max(change, abs(step))
            inside[group, k] += step
            q[i, k] = new[k]
    return change


@kernel
def _tell_neighbours(links: ByGroup, group: int, step: Floats, across: Floats) -> None:
    """Add what the members of a group say, or by how much that moved, to its neighbours."""
    for e in range(links.start[group], links.start[group + 1]):
        for k in range(len(step)):
            across[links.other[e], k] += links.weight[e] * step[k]
