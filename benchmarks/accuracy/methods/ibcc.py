"""IBCC (Kim and Ghahramani 2012) by VB, as Li, Rubinstein and Cohn 2019 ran it.

Prior counts are 4 on the diagonal and 1 off it, 1 for each class; stops at 1e-3.
"""

import numpy as np
from _layout import Layout
from scipy.special import digamma, softmax

PROBABILITIES = True


def aggregate(crowd):
    c = Layout(crowd)
    prior = 1 + 3 * np.eye(c.k)
    q = c.shares
    for _ in range(500):
        n = c.counts(q) + prior
        log_theta = digamma(n) - digamma(n.sum(2, keepdims=True))
        last, q = q, softmax(digamma(q.sum(0) + 1) + c.evidence(log_theta), 1)
        if np.allclose(last, q, atol=1e-3):
            break
    return q
