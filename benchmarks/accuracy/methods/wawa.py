"""Wawa (crowd-kit): w_j = a_j, the agreement with the vote; then one weighted vote."""

from _layout import Layout, winners


def aggregate(crowd):
    c = Layout(crowd)
    return c.votes(c.agreement(winners(c.shares)))
