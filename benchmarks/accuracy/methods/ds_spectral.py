"""Dawid-Skene from a start of moments (Zhang et al. 2014), as in tiebreak.research."""

import tiebreak as tb

PROBABILITIES = True


def aggregate(crowd):
    start = tb.research.spectral_start(crowd, random_state=0)
    return tb.DawidSkene().fit(crowd, start=start).probabilities_
