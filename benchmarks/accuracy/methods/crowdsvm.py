"""Gibbs-CrowdSVM (Tian and Zhu 2015): confusion matrices and the margins of M3V in one posterior.

1/λ_i ~ IG(1/|c ζ_i|, 1), η ~ N, θ_j ~ Dirichlet(1 + n), y_i ∝ Π θ · exp(−(λ_i + c ζ_i)² / 2 λ_i);
60 sweeps, 20 of them not counted. c of 2^-8, 2^-5, 2^-3, 2^-1 as in M3V.
"""

import numpy as np
import scipy.sparse as sp
from _layout import Layout, likelihood_of_answers, share_out

PROBABILITIES = True
SWEEPS, BURNT = 60, 20


def crowd_svm(c, cost, seed):
    rng, at = np.random.default_rng(seed), np.arange(c.n_tasks)
    y, eta = c.shares.argmax(1), np.ones(c.n_workers)
    total = np.zeros((c.n_tasks, c.k))
    for sweep in range(SWEEPS):
        score = c.votes(eta)
        others = score.copy()
        others[at, y] = -np.inf
        rival = others.argmax(1)
        zeta = 1 - (score[at, y] - score[at, rival])
        inverse = rng.wald(1 / np.maximum(abs(cost * zeta), 1e-6), 1.0)
        sign = (c.label == y[c.i]).astype(float) - (c.label == rival[c.i])
        g = sp.csr_matrix((sign, (c.i, c.j)), shape=(c.n_tasks, c.n_workers))
        precision = np.eye(c.n_workers) + cost**2 * (g.T @ sp.diags(inverse) @ g).toarray()
        mean = np.linalg.solve(precision, cost * (g.T @ (1 + cost * inverse)))
        root = np.linalg.cholesky(precision)
        eta = mean + np.linalg.solve(root.T, rng.normal(size=c.n_workers))
        theta = share_out(rng.gamma(c.counts(np.eye(c.k)[y]) + 1))
        log_p = c.evidence(np.log(np.maximum(theta, 1e-12)))
        score = c.votes(eta)
        ordered = np.sort(score, 1)
        best_other = np.where(score == ordered[:, -1:], ordered[:, -2:-1], ordered[:, -1:])
        pull = 1 / inverse[:, None] + cost * (1 - (score - best_other))
        log_p -= inverse[:, None] * pull**2 / 2
        y = (log_p + rng.gumbel(size=log_p.shape)).argmax(1)
        if sweep >= BURNT:
            total[at, y] += 1
    return share_out(total)


def aggregate(crowd, seed):
    c = Layout(crowd)
    found = [crowd_svm(c, 2.0**e, seed) for e in (-8, -5, -3, -1)]
    return max(found, key=lambda q: likelihood_of_answers(c, q.argmax(1)))
