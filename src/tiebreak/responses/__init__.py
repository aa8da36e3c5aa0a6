"""Responses: who gave which label to which task."""

from tiebreak.responses.building import REPEATS, Builder, Repeats, sorted_classes
from tiebreak.responses.runs import Runs, WorkerRuns
from tiebreak.responses.table import Responses
from tiebreak.responses.weighing import Extras, weigh

__all__ = [
    "REPEATS",
    "Builder",
    "Extras",
    "Repeats",
    "Responses",
    "Runs",
    "WorkerRuns",
    "sorted_classes",
    "weigh",
]
