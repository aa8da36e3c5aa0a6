"""Chains in plain NumPy: forward-backward, the likeliest path, what follows what.

A sequence of tasks is a Markov chain: p(y) ∝ Π_n exp(u_n(y_n)) · Π_n exp(a(y_n−1, y_n)), with
scores u, (n, K), and steps a, (K, K), which need not be normalised; −∞ is impossible. Sequences lie
one after the other, that of number s in rows start[s] … start[s + 1] − 1. All are worked on at
once, position by position, in logs, so that nothing underflows. Three tasks, K = 2, tags O and I:

    u         -2  0 | 0 -1 | 0 0         a: O → I is −∞, all else 0
    forward   -2  0 | .1 -1 | .5 -1      log of all that leads here
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Offsets

__all__ = ["after_each", "best_path", "forward_backward"]


class Field(NamedTuple):
    """Soft links between rows of different sequences, from both ends: weight > 0 pulls."""

    start: Offsets  # (n + 1,) where the links of a row begin
    other: Codes  # (2 · n_links,)
    weight: Floats  # (2 · n_links,)


class Chained(NamedTuple):
    """What forward-backward found, beside q."""

    pairs: Floats  # (K, K) Σ ξ: expected steps
    value: float  # Σ (log Z_s − ⟨u, q⟩): entropy plus ⟨a, ξ⟩
    impossible: int = -1  # the first sequence that has no possible labelling; −1: none


def forward_backward(
    score: Floats,
    start: Offsets,
    step: Floats,
    q: Floats,
    field: Field | None = None,
    n_threads: int = 1,
) -> Chained:
    """Overwrite q by the class probabilities of each row, [eq:chain-update].

    With a field sequences take turns: each is inferred from the links as its neighbours stand, and
    is the exact maximiser of the bound given these, [eq:chain-links].
    """
    if field is None:
        return _all_at_once(score, start, step, q)
    pairs = np.zeros(step.shape)
    value = 0.0
    for s, (low, high) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        u = pulled(score, q, low, high, field)
        found = _all_at_once(u, np.array([0, high - low]), step, q[low:high])
        if found.impossible >= 0:
            return found._replace(impossible=s)
        pairs += found.pairs
        value += found.value
    return Chained(pairs, value)


def pulled(score: Floats, q: Floats, low: int, high: int, field: Field) -> Floats:
    """Return the scores of rows low … high − 1, with what their links say as q stands."""
    at = (slice(field.start[i], field.start[i + 1]) for i in range(low, high))
    return score[low:high] + np.stack([field.weight[each] @ q[field.other[each]] for each in at])


def _all_at_once(score: Floats, start: Offsets, step: Floats, q: Floats) -> Chained:
    forward = score.copy()
    at = positions(start)
    for before, here in at[1:]:
        forward[here] += _log_sum(forward[before][:, :, None] + step, axis=1)
    backward = after_each(score, start, step)
    last = start[1:] - 1
    log_total = np.repeat(_log_sum(forward[last], axis=1), np.diff(start))
    impossible = np.flatnonzero(~np.isfinite(log_total[last]))
    if len(impossible):
        return Chained(np.zeros(step.shape), 0.0, int(impossible[0]))
    q[:] = softmax(forward + backward)
    pairs = np.zeros(step.shape)
    for before, here in at[1:]:
        follows = score[here] + backward[here]
        joint = forward[before][:, :, None] + step + follows[:, None, :]
        pairs += np.exp(joint - log_total[here][:, None, None]).sum(axis=0)
    value = log_total[last].sum() - (q * np.where(q > 0.0, score, 0.0)).sum()
    return Chained(pairs, float(value))


def after_each(score: Floats, start: Offsets, step: Floats) -> Floats:
    """Return the backward messages: the log of all that follows a row's class, (n, K)."""
    backward = np.zeros(score.shape)
    for before, here in reversed(positions(start)[1:]):
        follows = score[here] + backward[here]
        backward[before] = _log_sum(follows[:, None, :] + step, axis=2)
    return backward


def best_path(score: Floats, start: Offsets, step: Floats) -> Codes:
    """Return the likeliest class of each row jointly, the first one on ties: [eq:best-path]."""
    best = score.copy()
    came_from = np.zeros(score.shape, dtype=np.int32)
    at = positions(start)
    for before, here in at[1:]:
        ways = best[before][:, :, None] + step
        came_from[here] = ways.argmax(axis=1)
        best[here] += ways.max(axis=1)
    path = np.zeros(len(score), dtype=np.int32)
    last = start[1:] - 1
    path[last] = best[last].argmax(axis=1)
    for before, here in reversed(at[1:]):
        path[before] = came_from[here, path[here]]
    return path


def positions(start: Offsets) -> list[tuple[Offsets, Offsets]]:
    """Return by position the rows of all sequences that reach it, and the rows before these.

    >>> [(before.tolist(), here.tolist()) for before, here in positions(np.array([0, 1, 4]))[1:]]
    [([1], [2]), ([2], [3])]
    """
    length = np.diff(start)
    order = np.argsort(-length, kind="stable")
    first = start[:-1][order]
    n_reach = np.searchsorted(-length[order], -np.arange(length.max(initial=0)), side="left")
    return [(first[:n] + t - 1, first[:n] + t) for t, n in enumerate(n_reach.tolist())]


def _log_sum(logs: Floats, axis: int) -> Floats:
    return np.asarray(np.logaddexp.reduce(logs, axis=axis))
