"""Networks of tasks, compiled: the names and meaning of `numpy_neighbours`."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.numpy_neighbours import LEAST, Edges, count_neighbours

__all__ = ["count_neighbours", "pass_along"]


@kernel
def pass_along(
    score: Floats,
    edges: Edges,
    table: Floats,
    messages: Floats,
    belief: Floats,
    damping: float,
) -> None:
    start, _, mate = edges
    n_classes = score.shape[1]
    total = np.empty(n_classes)
    weight = np.empty(n_classes)
    sent = np.empty(n_classes)
    for i in range(len(score)):
        for k in range(n_classes):
            total[k] = score[i, k]
            for e in range(start[i], start[i + 1]):
                total[k] += np.log(messages[e, k])
        top = total.max()
        norm = 0.0
        for k in range(n_classes):
            belief[i, k] = np.exp(total[k] - top)
            norm += belief[i, k]
        for k in range(n_classes):
            belief[i, k] /= norm
        for e in range(start[i], start[i + 1]):
            top = -np.inf
            for k in range(n_classes):
                weight[k] = total[k] - np.log(messages[e, k])
                top = max(top, weight[k])
            for k in range(n_classes):
                weight[k] = np.exp(weight[k] - top)
            norm = 0.0
            for b in range(n_classes):
                sent[b] = 0.0
                for a in range(n_classes):
                    sent[b] += weight[a] * table[a, b]
                norm += sent[b]
            t = mate[e]
            for b in range(n_classes):
                mixed = damping * messages[t, b] + (1.0 - damping) * sent[b] / norm
                messages[t, b] = max(mixed, LEAST)
