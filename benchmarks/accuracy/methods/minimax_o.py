"""Ordinal minimax entropy (Zhou et al. 2014): σ and τ spanned by [k ≷ s][l ≷ s], s = 1 … K."""

from itertools import product

import numpy as np
from minimax import minimax

PROBABILITIES = True


def aggregate(crowd):
    k = np.arange(crowd.n_classes)
    sides = [[k < s, k >= s] for s in k]
    parts = [np.outer(truth, said) for both in sides for truth, said in product(both, both)]
    return minimax(crowd, np.array([part for part in parts if part.any()], float))
