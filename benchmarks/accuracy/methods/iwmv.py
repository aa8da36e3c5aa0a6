"""Iterative weighted majority vote (Li and Yu 2014, arXiv:1411.4086): w_j = K a_j − 1."""

from _layout import Layout, weighted_until_same


def aggregate(crowd):
    c = Layout(crowd)
    return weighted_until_same(c, lambda q: c.k * c.agreement(q) - 1)
