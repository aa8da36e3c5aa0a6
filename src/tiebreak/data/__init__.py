"""Responses: who gave which label to which task. Gold, labels and the ids that name things."""

from tiebreak.data.building import REPEATS, Builder, Repeats, read_weights
from tiebreak.data.responses import Responses

__all__ = ["REPEATS", "Builder", "Repeats", "Responses", "read_weights"]
