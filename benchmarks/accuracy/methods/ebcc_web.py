"""EBCC from the start that the notebook of its authors names for Web: tasks by number, their seed.

Its bound is above those of other starts, which all end at one other, lower optimum.
"""

import numpy as np
from _layout import Layout
from ebcc import from_seed

PROBABILITIES = True


def aggregate(crowd):
    number = [int(task) for task in crowd.tasks]
    return from_seed(Layout(crowd), 34424996, np.argsort(np.argsort(number)))[0]
