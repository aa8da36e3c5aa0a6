"""KOS (Karger, Oh and Shah 2011): messages along responses, each without its own; ten starts.

x_{i→j} = Σ_{j'≠j} A y, y_{j→i} = Σ_{i'≠i} A x, ten rounds, y ~ N(1, 1) at first.
"""

import numpy as np
from _layout import Layout, winners

CLASSES = 2


def aggregate(crowd):
    c = Layout(crowd)
    a = 2.0 * c.label - 1
    found = np.zeros((c.n_tasks, 2))
    for seed in range(10):
        y = np.random.default_rng(seed).normal(1, 1, len(a))
        for _ in range(10):
            x = (c.by_task @ (a * y))[c.i] - a * y
            y = (c.by_worker @ (a * x))[c.j] - a * x
            y /= np.sqrt((y**2).mean()) + 1e-300
        s = c.by_task @ (a * y)
        found += winners(np.stack([-s, s], 1))
    return found
