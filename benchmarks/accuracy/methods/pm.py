"""PM, or CRH (Li et al. 2014, as Zheng et al. 2017 ran it): w_j = −ln(err_j / max err).

err_j is the number of disagreements, not their rate: who answers little weighs much.
"""

import numpy as np
from _layout import Layout, weighted_until_same


def aggregate(crowd):
    c = Layout(crowd)

    def weights(q):
        wrong = np.maximum(c.errors(q), 1e-8)
        return 1e-7 - np.log(wrong / wrong.max() + 1e-7)

    return weighted_until_same(c, weights)
