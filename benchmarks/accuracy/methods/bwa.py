"""BWA (Li, Rubinstein and Cohn 2019): each class apart, a mean z and variances of workers.

With y = [l = k], v_j = (15 + n_j) / (b + Σ (z_i − y)²), z_i = (mean z + Σ v_j y) / (1 + Σ v_j);
at the start b = 15 · 4 (1 − 1/K) Σ_i n_i z_i (1 − z_i) / R. Who gave a task two answers counts
once, for both classes, except in n_i.
"""

import numpy as np
from _layout import Layout

A = 15


def aggregate(crowd):
    c = Layout(crowd)
    (i, j), pair = np.unique(np.stack([c.i, c.j]), axis=1, return_inverse=True)
    n_j = np.bincount(j, minlength=c.n_workers)
    answered = np.maximum(np.bincount(i, minlength=c.n_tasks), 1)
    found = np.empty((c.n_tasks, c.k))
    for k in range(c.k):
        y = np.bincount(pair.ravel(), c.label == k) > 0
        z = np.bincount(i, y, c.n_tasks) / answered
        b = A * (c.n_of_task @ (z * (1 - z))) / len(y) * 4 * (1 - 1 / c.k)
        for _ in range(500):
            v = (A + n_j) / (b + np.bincount(j, (z[i] - y) ** 2, c.n_workers))
            weight = 1 + np.bincount(i, v[j], c.n_tasks)
            last, z = z, (z.mean() + np.bincount(i, v[j] * y, c.n_tasks)) / weight
            if np.allclose(last, z, rtol=1e-3):
                break
        found[:, k] = z
    return found
