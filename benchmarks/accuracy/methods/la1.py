"""LA, one pass (Yang et al., TKDD): tasks in random order; votes weigh c_j / t_j, which count on.

c and t of a worker, right and all, start at 1 and 2. The mean of ten orders.
"""

import numpy as np
from _layout import Layout
from numba import njit

ORDERS = 10


@njit
def one_pass(start, j, label, order, tie, n_workers):
    right, total = np.ones(n_workers), np.full(n_workers, 2.0)
    found = np.zeros(len(order), np.int64)
    for i in order:
        score = 1e-9 * tie[i]
        for r in range(start[i], start[i + 1]):
            score[label[r]] += right[j[r]] / total[j[r]]
        found[i] = np.argmax(score)
        for r in range(start[i], start[i + 1]):
            total[j[r]] += 1
            right[j[r]] += label[r] == found[i]
    return found, right / total


def in_order(c, seed):
    rng = np.random.default_rng(seed)
    order, tie = rng.permutation(c.n_tasks), rng.random((c.n_tasks, c.k))
    return one_pass(c.start, c.j, c.label, order, tie, c.n_workers)


def aggregate(crowd):
    c = Layout(crowd)
    return np.mean([np.eye(c.k)[in_order(c, seed)[0]] for seed in range(ORDERS)], 0)
