"""The model of VB, sampled (Kim and Ghahramani's BCC), as in tiebreak.research."""

import tiebreak as tb

PROBABILITIES = True


def aggregate(crowd):
    return tb.GibbsSampler(random_state=0).fit(crowd).probabilities_
