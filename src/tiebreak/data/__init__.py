"""Responses: who gave which label to which task."""

from tiebreak.data.building import (
    REPEATS,
    Builder,
    Built,
    MixedLabelsError,
    Repeats,
    sorted_classes,
)
from tiebreak.data.responses import Responses
from tiebreak.data.weights import read_weights

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
