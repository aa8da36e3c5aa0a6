"""Responses: who gave which label to which task."""

from tiebreak.responses.building import (
    REPEATS,
    Builder,
    Built,
    MixedLabelsError,
    Repeats,
    sorted_classes,
)
from tiebreak.responses.table import Responses
from tiebreak.responses.weights import read_weights

__all__ = [
    "REPEATS",
    "Builder",
    "Built",
    "MixedLabelsError",
    "Repeats",
    "Responses",
    "read_weights",
    "sorted_classes",
]
