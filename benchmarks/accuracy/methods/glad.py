"""GLAD (Whitehill et al. 2009): right with chance σ(a_j e^{b_i}), else even; a, b ~ N(1, 1); EM.

M steps are L-BFGS, 25 steps.
"""

import numpy as np
from _layout import Layout, climb
from scipy.optimize import minimize
from scipy.special import expit, softmax

PROBABILITIES = True


def aggregate(crowd):
    c = Layout(crowd)
    m, others = c.n_workers, np.log(max(c.k - 1, 1))
    x = np.ones(m + c.n_tasks)

    def parts(x):
        ease = np.exp(np.clip(x[m:], -20, 20))[c.i]
        return ease, x[:m][c.j] * ease

    def update(q):
        nonlocal x
        right = q[c.i, c.label]

        def loss(x):
            ease, u = parts(x)
            log_p = right * -np.logaddexp(0, -u) + (1 - right) * (-np.logaddexp(0, u) - others)
            slope = right - expit(u)
            gradient = np.r_[c.by_worker @ (slope * ease), c.by_task @ (slope * u)] - (x - 1)
            return ((x - 1) ** 2).sum() / 2 - log_p.sum(), -gradient

        x = minimize(loss, x, jac=True, method="L-BFGS-B", options={"maxiter": 25}).x
        return softmax(c.weigh(parts(x)[1] + others), 1)  # log σ(u) − log σ(−u) = u

    return climb(c.shares, update, tol=1e-4, rounds=50)
