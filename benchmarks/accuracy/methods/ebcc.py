"""EBCC (Li, Rubinstein and Cohn 2019): classes have 10 subtypes; of 5 starts the best bound.

States are s = (k, m): η_km = .1/10 + Σ q, ν_k = votes + Σ q, μ_jsl = prior + n; q ∝ exp(ψ terms).
"""

import numpy as np
from _layout import Layout
from scipy.special import digamma, gammaln, softmax

PROBABILITIES = True
SUBTYPES = 10


def log_beta(a):
    return gammaln(a).sum(-1) - gammaln(a.sum(-1))


def expected_log(a):
    return digamma(a) - digamma(a.sum(-1, keepdims=True))


def from_seed(c, seed, place=slice(None), m=SUBTYPES):
    """Return q and its bound; `place` is where each task stands in what is drawn."""
    prior = np.repeat(1 + 3 * np.eye(c.k), m, 0)
    z = c.shares
    votes = z.sum(0)
    split = np.random.RandomState(seed).dirichlet(np.ones(m), z.shape)  # as their code draws
    q = (split[place] * z[:, :, None]).reshape(c.n_tasks, -1)
    for _ in range(500):
        eta = 0.1 / m + q.sum(0).reshape(c.k, m)
        nu = votes + z.sum(0)
        mu = c.counts(q) + prior
        shares = expected_log(eta) + expected_log(nu)[:, None]
        q = softmax(shares.ravel() + c.evidence(expected_log(mu)), 1)
        last, z = z, q.reshape(c.n_tasks, c.k, m).sum(2)
        if np.allclose(last, z, atol=1e-3):
            break
    entropy = -(q * np.log(np.maximum(q, 1e-300))).sum()
    return z, log_beta(nu) + log_beta(eta).sum() + log_beta(mu).sum() + entropy


def best_of(crowd, seeds):
    c = Layout(crowd)
    return max((from_seed(c, seed) for seed in range(seeds)), key=lambda found: found[1])[0]


def aggregate(crowd):
    return best_of(crowd, 5)
