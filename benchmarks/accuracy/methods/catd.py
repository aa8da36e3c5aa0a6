"""CATD (Li et al. 2014): w_j = χ²_.975(n_j) / err_j. Who was never contradicted decides alone."""

from _layout import Layout, share_out, weighted_until_same
from scipy.stats import chi2


def aggregate(crowd):
    c = Layout(crowd)
    limit = chi2.ppf(0.975, c.n_of_worker)
    return share_out(weighted_until_same(c, lambda q: limit / (c.errors(q) + 1e-9)))
