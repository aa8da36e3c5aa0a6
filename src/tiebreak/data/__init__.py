"""Responses: who gave which label to which task. Gold, labels and the ids that name things."""

from tiebreak.data.building import REPEATS, Builder, Repeats, read_weights
from tiebreak.data.gold import Gold, GoldCodes
from tiebreak.data.ids import MISSING, Ids
from tiebreak.data.labels import Labels
from tiebreak.data.responses import Responses
from tiebreak.data.runs import Extras, weigh
from tiebreak.data.sequences import Sequences, Spans

__all__ = [
    "MISSING",
    "REPEATS",
    "Builder",
    "Extras",
    "Gold",
    "GoldCodes",
    "Ids",
    "Labels",
    "Repeats",
    "Responses",
    "Sequences",
    "Spans",
    "read_weights",
    "weigh",
]
