"""Responses: who gave which label to which task. Gold, labels and the ids that name things."""

from tiebreak.data.building import REPEATS, Builder, Repeats, read_weights
from tiebreak.data.gold import Gold, GoldCodes
from tiebreak.data.ids import MISSING, Ids
from tiebreak.data.labels import Labels
from tiebreak.data.responses import Responses
from tiebreak.data.runs import Extras, weigh
from tiebreak.data.scale import Scale, coincidences, disagreement, read_scale, share_of_orders
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
    "Scale",
    "Sequences",
    "Spans",
    "coincidences",
    "disagreement",
    "read_scale",
    "read_weights",
    "share_of_orders",
    "weigh",
]
