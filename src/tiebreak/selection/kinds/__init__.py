"""Kinds of questions: what each would put right, and how it is put.

A kind is one file with one class and a line in `KINDS`. It prices every open unit at once; the
policy (`selection.questions`) takes, for each unit, the kind that is worth most for its cost.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits

LAST_RESORT = 1e-3  # of the gain without errors, where no one answer could change a label


class Prices(NamedTuple):
    """What one question of a kind would put right, unit by unit; −inf where it cannot be asked."""

    gain: Floats  # (n_units,) labels put right, as expected
    about: Offsets  # (n_units,) the class or the worker that it would name
    cost: Floats  # (n_units,)


class QuestionKind(Protocol):
    """One kind of question."""

    name: str

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Say what a question about each unit would put right."""

    def offer(
        self, model: Estimator, units: OpenUnits, at: int, about: int, rng: np.random.Generator
    ) -> Offer:
        """Put the question about one unit; gain and cost are filled in by the caller."""


def kinds_by_name() -> dict[str, QuestionKind]:
    """Return every kind, by its name."""
    from tiebreak.selection.kinds.is_class import IsClass
    from tiebreak.selection.kinds.label import LabelOf
    from tiebreak.selection.kinds.same import SameClass
    from tiebreak.selection.kinds.vote import OneMoreVote

    return {kind.name: kind for kind in (SameClass(), LabelOf(), IsClass(), OneMoreVote())}


KINDS = ("same", "label", "is", "vote")
