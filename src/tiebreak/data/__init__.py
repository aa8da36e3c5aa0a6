"""Responses: who gave which label to which task. Gold, labels and the ids that name things."""

from tiebreak.data.building import REPEATS, Builder, Repeats, read_weights
from tiebreak.data.gold import Gold, GoldCodes
from tiebreak.data.ids import MISSING, Ids, encode
from tiebreak.data.labels import Labels
from tiebreak.data.pairs import FIRST, SECOND, TIE, PairVerdicts, pair_tasks
from tiebreak.data.responses import Responses
from tiebreak.data.runs import Extras, weigh
from tiebreak.data.scale import Scale, coincidences, disagreement, read_scale, share_of_orders
from tiebreak.data.sequences import SequenceCodes, Sequences, Spans
from tiebreak.data.tags import Tags

__all__ = [
    "FIRST",
    "MISSING",
    "REPEATS",
    "SECOND",
    "TIE",
    "Builder",
    "Extras",
    "Gold",
    "GoldCodes",
    "Ids",
    "Labels",
    "PairVerdicts",
    "Repeats",
    "Responses",
    "Scale",
    "SequenceCodes",
    "Sequences",
    "Spans",
    "Tags",
    "coincidences",
    "disagreement",
    "encode",
    "pair_tasks",
    "read_scale",
    "read_weights",
    "share_of_orders",
    "weigh",
]
