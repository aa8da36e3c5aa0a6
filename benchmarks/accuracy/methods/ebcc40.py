"""EBCC with 40 starts, which four of its published figures need."""

from ebcc import best_of

PROBABILITIES = True


def aggregate(crowd):
    return best_of(crowd, 40)
