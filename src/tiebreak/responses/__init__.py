"""Responses: who gave which label to which task."""

from tiebreak.responses.building import (
    REPEATS,
    Builder,
    Built,
    MixedLabelsError,
    Repeats,
    sorted_classes,
)
from tiebreak.responses.runs import Runs, WorkerRuns
from tiebreak.responses.table import Responses
from tiebreak.responses.weighing import Extras, plurality, weigh
from tiebreak.responses.weights import read_weights

__all__ = [
    "REPEATS",
    "Builder",
    "Built",
    "Extras",
    "MixedLabelsError",
    "Repeats",
    "Responses",
    "Runs",
    "WorkerRuns",
    "plurality",
    "read_weights",
    "sorted_classes",
    "weigh",
]
