"""Dawid and Skene 1979: π, θ by EM from vote shares; θ_jkl ∝ n_jkl; Q ∝ π exp E(ln θ)."""

import numpy as np
from _layout import Layout, climb, share_out
from scipy.special import softmax

PROBABILITIES = True


def dawid_skene(crowd, added):
    c = Layout(crowd)

    def update(q):
        theta = share_out(c.counts(q) + added)
        return softmax(np.log(q.mean(0) + 1e-300) + c.evidence(np.log(theta)), 1)

    return climb(c.shares, update)


def aggregate(crowd):
    return dawid_skene(crowd, added=1e-9)
