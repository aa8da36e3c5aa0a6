"""Responses: who gave which label to which task."""

from tiebreak.responses.building import REPEATS, Builder, Repeats, sorted_classes
from tiebreak.responses.table import Responses

__all__ = ["REPEATS", "Builder", "Repeats", "Responses", "sorted_classes"]
