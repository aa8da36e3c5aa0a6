"""Chains, compiled: the names and meaning of `numpy_chains`.

Here a sequence is one loop, in probabilities with one scale a row: no logarithm is taken inside it
but that of the scale. Rows whose probabilities underflow (scores some 700 apart) are rare, and
their sequence is done again in logs. Sequences are independent, and go to threads in pieces; with
links they take turns on one thread.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels import numpy_chains
from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.kernels.numpy_chains import Chained, Field, after_each

__all__ = ["after_each", "best_path", "forward_backward"]

ROWS_PER_PIECE = 10_000
MOST_PIECES = 64
NO_FIELD = Field(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))


def forward_backward(
    score: Floats,
    start: Offsets,
    step: Floats,
    q: Floats,
    field: Field | None = None,
    n_threads: int = 1,
) -> Chained:
    edges = _pieces(start) if field is None else np.array([0, len(start) - 1])
    n_pieces = len(edges) - 1
    pairs = np.zeros((n_pieces, *step.shape))
    value = np.zeros(n_pieces)
    failed = np.zeros(len(start) - 1, dtype=np.bool_)
    links = NO_FIELD if field is None else field
    ways = np.exp(step)

    def work(p: int) -> None:
        low, high = int(edges[p]), int(edges[p + 1])
        given = low, high, score, start, ways, q, pairs[p], failed
        value[p] = _infer(*given, links.start, links.other, links.weight)

    for_each(work, n_pieces, n_threads)
    total, of_all = pairs.sum(axis=0), float(value.sum())
    for s in np.flatnonzero(failed).tolist():
        low, high = int(start[s]), int(start[s + 1])
        here = slice(low, high)
        u = score[here] if field is None else numpy_chains.pulled(score, q, low, high, field)
        found = numpy_chains.forward_backward(u, np.array([0, len(u)]), step, q[here])
        if found.impossible >= 0:
            return found._replace(impossible=s)
        total += found.pairs
        of_all += found.value
    return Chained(total, of_all)


def best_path(score: Floats, start: Offsets, step: Floats) -> Codes:
    path = np.zeros(len(score), dtype=np.int32)
    _best_path(score, start, np.ascontiguousarray(step), path)
    return path


def _pieces(start: Offsets) -> Offsets:
    """Cut sequences into pieces of about as many rows each; by the input alone."""
    n_pieces = min(MOST_PIECES, max(1, int(start[-1]) // ROWS_PER_PIECE))
    wanted = np.linspace(0, start[-1], n_pieces + 1)
    return np.unique(np.searchsorted(start, wanted))


@kernel
def _infer(
    low: int,
    high: int,
    score: Floats,
    start: Offsets,
    ways: Floats,
    q: Floats,
    pairs: Floats,
    failed: Mask,
    first_link: Offsets,
    other: Codes,
    weight: Floats,
) -> float:
    """Infer sequences low … high − 1; return Σ (log Z − ⟨u, q⟩).

    f[t] is p(y_t | what came so far), norm[t] what it was divided by; b is what follows, on the
    scale of norm, so that q = f · b needs no division.
    """
    n_classes = score.shape[1]
    has_links = len(first_link) > 0
    longest = 0
    for s in range(low, high):
        longest = max(longest, start[s + 1] - start[s])
    u = np.empty((longest, n_classes))
    e = np.empty((longest, n_classes))
    f = np.empty((longest, n_classes))
    norm = np.empty(longest)
    b = np.empty(n_classes)
    follows = np.empty(n_classes)
    steps = np.zeros((n_classes, n_classes))  # its own memory: threads share no line of the cache
    value = 0.0
    for s in range(low, high):
        first = start[s]
        length = start[s + 1] - first
        log_total = 0.0
        for t in range(length):
            top = -np.inf
            for k in range(n_classes):
                x = score[first + t, k]
                if has_links:
                    for r in range(first_link[first + t], first_link[first + t + 1]):
                        x += weight[r] * q[other[r], k]
                u[t, k] = x
                top = max(top, x)
            total = 0.0
            if top > -np.inf:
                for k in range(n_classes):
                    e[t, k] = np.exp(u[t, k] - top)
                    f[t, k] = 1.0 if t == 0 else 0.0
                if t > 0:
                    for j in range(n_classes):
                        x = f[t - 1, j]
                        for k in range(n_classes):
                            f[t, k] += x * ways[j, k]
                for k in range(n_classes):
                    f[t, k] *= e[t, k]
                    total += f[t, k]
            if total < 1e-280:
                failed[s] = True
                break
            for k in range(n_classes):
                f[t, k] /= total
            norm[t] = total
            log_total += np.log(total) + top
        if failed[s]:
            continue
        expected = 0.0
        for k in range(n_classes):
            b[k] = 1.0
        for t in range(length - 1, -1, -1):
            total = 0.0
            for k in range(n_classes):
                total += f[t, k] * b[k]
            for k in range(n_classes):
                x = f[t, k] * b[k] / total
                q[first + t, k] = x
                if x > 0.0:
                    expected += x * u[t, k]
            if t == 0:
                break
            for k in range(n_classes):
                follows[k] = e[t, k] * b[k] / norm[t]
            for j in range(n_classes):
                x = 0.0
                for k in range(n_classes):
                    way = ways[j, k] * follows[k]
                    x += way
                    steps[j, k] += f[t - 1, j] * way
                b[j] = x
        value += log_total - expected
    pairs += steps
    return value


@kernel
def _best_path(score: Floats, start: Offsets, step: Floats, path: Codes) -> None:
    n_classes = score.shape[1]
    longest = 0
    for s in range(len(start) - 1):
        longest = max(longest, start[s + 1] - start[s])
    came_from = np.empty((longest, n_classes), np.int32)
    best = np.empty(n_classes)
    new = np.empty(n_classes)
    for s in range(len(start) - 1):
        first = start[s]
        length = start[s + 1] - first
        for k in range(n_classes):
            best[k] = score[first, k]
        for t in range(1, length):
            for k in range(n_classes):
                highest = -np.inf
                came_from[t, k] = 0
                for j in range(n_classes):
                    x = best[j] + step[j, k]
                    if x > highest:
                        highest = x
                        came_from[t, k] = j
                new[k] = highest + score[first + t, k]
            for k in range(n_classes):
                best[k] = new[k]
        k = 0
        for j in range(1, n_classes):
            if best[j] > best[k]:
                k = j
        for t in range(length - 1, -1, -1):
            path[first + t] = k
            if t > 0:
                k = came_from[t, k]
