"""Responses: who gave which label to which task."""

from tiebreak.responses.building import REPEATS, Builder, Repeats, sorted_classes
from tiebreak.responses.runs import Runs, WorkerRuns
from tiebreak.responses.table import Responses
from tiebreak.responses.weighing import Extras, plurality, weigh

__all__ = [
    "REPEATS",
    "Builder",
    "Extras",
    "Repeats",
    "Responses",
    "Runs",
    "WorkerRuns",
    "plurality",
    "sorted_classes",
    "weigh",
]
