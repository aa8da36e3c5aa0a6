"""Ghosh, Kale and McAfee 2011: the first left singular vector of the signs, turned to the vote."""

import numpy as np
import scipy.sparse as sp
from _layout import Layout

CLASSES = 2


def aggregate(crowd):
    c = Layout(crowd)
    signs = sp.csr_matrix((2.0 * c.label - 1, (c.i, c.j)), shape=(c.n_tasks, c.n_workers))
    u = sp.linalg.svds(signs, k=1, v0=np.ones(min(signs.shape)))[0][:, 0]
    u *= np.sign(u @ (c.shares[:, 1] - c.shares[:, 0]))
    return np.stack([-u, u], 1)
