"""MACE (Hovy et al. 2013): l is the truth with chance θ_j, else drawn from ξ_j. VB, ten starts.

Beta(.5, .5) for θ, Dirichlet(10) for ξ; 50 sweeps each; the start of the highest likelihood.
"""

import numpy as np
from _layout import Layout
from scipy.special import digamma, logsumexp, softmax

PROBABILITIES = True
STARTS, SWEEPS, HABIT = 10, 50, 10


def from_start(c, rng):
    honest, xi = rng.random(c.n_workers), rng.dirichlet(np.ones(c.k), c.n_workers)
    for _ in range(SWEEPS):
        spam = np.maximum((1 - honest)[c.j] * xi[c.j, c.label], 1e-300)
        meant = honest[c.j]
        log_truth = np.log(spam + meant) - np.log(spam)
        e = c.by_task @ (np.log(spam)[:, None] + c.answers * log_truth[:, None])
        q = softmax(e, 1)
        likelihood = logsumexp(e, 1).sum()
        r = q[c.i, c.label] * meant / (spam + meant)
        good, bad = c.by_worker @ r, (c.by_answer @ (1 - r)).reshape(-1, c.k)
        honest = np.exp(digamma(good + 0.5) - digamma(good + bad.sum(1) + 1))
        honest = np.clip(honest, 1e-12, 1)
        xi = np.exp(digamma(bad + HABIT) - digamma((bad + HABIT).sum(1, keepdims=True)))
        xi = np.maximum(xi, 1e-12)
    return q, likelihood


def aggregate(crowd, seed):
    c = Layout(crowd)
    rngs = np.random.default_rng(seed).spawn(STARTS)
    return max((from_start(c, rng) for rng in rngs), key=lambda found: found[1])[0]
