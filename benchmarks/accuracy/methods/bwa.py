"""BWA (Li, Rubinstein and Cohn 2019): each class apart, a mean z and variances of workers.

With y = [l = k], v_j = (15 + n_j) / (b + Σ (z_i − y)²), z_i = (mean z + Σ v_j y) / (1 + Σ v_j);
at the start b = 15 · 4 (1 − 1/K) Σ_i n_i z_i (1 − z_i) / R. Who gave
a task two answers counts once in n.
"""

import numpy as np
from _layout import Layout

A = 15


def aggregate(crowd):
    c = Layout(crowd)
    i, j = np.unique(np.stack([c.i, c.j]), axis=1)
    n_i, n_j = np.bincount(i, minlength=c.n_tasks), np.bincount(j, minlength=c.n_workers)
    found = np.empty((c.n_tasks, c.k))
    for k in range(c.k):
        y = c.answers[:, k]
        z = (c.by_task @ y) / np.maximum(n_i, 1)
        b = A * (n_i @ (z * (1 - z))) / n_i.sum() * 4 * (1 - 1 / c.k)
        for _ in range(500):
            v = (A + n_j) / (b + c.by_worker @ (z[c.i] - y) ** 2)
            last, z = z, (z.mean() + c.by_task @ (v[c.j] * y)) / (1 + c.by_task @ v[c.j])
            if np.allclose(last, z, rtol=1e-3):
                break
        found[:, k] = z
    return found
