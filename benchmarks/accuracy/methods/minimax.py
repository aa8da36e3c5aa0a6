"""Minimax entropy (Zhou et al. 2012, 2014): P(l | k) = softmax_l(σ_j[k, l] + τ_i[k, l]).

Maximises Σ Q ln P − ½ λ |σ|² − ½ μ |τ|² by blocks, 25 steps of L-BFGS each, then Q ∝ Π P;
λ = K²/4, μ = λ · mean n_j / mean n_i; at most 50 rounds, stops at 5e-3.
"""

import numpy as np
from _layout import Layout, climb
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

PROBABILITIES = True


def minimax(crowd, basis):
    """Fit with σ and τ spanned by `basis`, (size, k, l)."""
    c = Layout(crowd)
    k, said = c.k, np.arange(c.n_answers)
    flat = basis.reshape(len(basis), k * k)
    of_worker, of_task = np.zeros((c.n_workers, len(flat))), np.zeros((c.n_tasks, len(flat)))
    penalty = k * k / 4

    def log_chances(one, other):
        s = (one + other).reshape(-1, k, k)
        return s - logsumexp(s, 2, keepdims=True)

    def block(x, at, other, gather, penalty, q):
        of_answer = q[c.i]

        def loss(v):
            v = v.reshape(x.shape)
            log_p = log_chances((v @ flat)[at], other)
            value = (of_answer * log_p[said, :, c.label]).sum()
            slope = -of_answer[:, :, None] * np.exp(log_p)
            slope[said, :, c.label] += of_answer
            gradient = (gather @ slope.reshape(-1, k * k)) @ flat.T - penalty * v
            return penalty * (v**2).sum() / 2 - value, -gradient.ravel()

        how = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 25}}
        return minimize(loss, x.ravel(), **how).x.reshape(x.shape)

    def update(q):
        nonlocal of_worker, of_task
        more = penalty * c.n_tasks / c.n_workers  # mean n_j / mean n_i
        of_worker = block(of_worker, c.j, (of_task @ flat)[c.i], c.by_worker, penalty, q)
        of_task = block(of_task, c.i, (of_worker @ flat)[c.j], c.by_task, more, q)
        log_p = log_chances((of_worker @ flat)[c.j], (of_task @ flat)[c.i])
        return softmax(c.by_task @ log_p[said, :, c.label], 1)

    return climb(c.shares, update, tol=5e-3, rounds=50)


def aggregate(crowd):
    k = crowd.n_classes
    return minimax(crowd, np.eye(k * k).reshape(-1, k, k))
