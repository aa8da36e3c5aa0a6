"""Responses: who gave which label to which task."""

from tiebreak.responses.building import Builder
from tiebreak.responses.table import REPEATS, Repeats, Responses, sorted_classes

__all__ = ["REPEATS", "Builder", "Repeats", "Responses", "sorted_classes"]
