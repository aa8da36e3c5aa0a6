"""ZenCrowd (Demartini et al. 2012): an accuracy per worker, a_j = mean Q[i, l]; even classes."""

import numpy as np
from _layout import Layout, climb
from scipy.special import softmax

PROBABILITIES = True


def aggregate(crowd):
    c = Layout(crowd)

    def update(q):
        a = np.clip(c.agreement(q), 1e-6, 1 - 1e-6)
        return softmax(c.votes(np.log(a) - np.log((1 - a) / max(c.k - 1, 1))), 1)

    return climb(c.shares, update)
