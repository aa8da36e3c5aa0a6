"""Honest rates: what share of tasks is of each class, with intervals that hold."""

from tiebreak.rates.estimate import METHODS, Difference, Rate, RateTable, estimate

__all__ = ["METHODS", "Difference", "Rate", "RateTable", "estimate"]
