"""Label: which class is this?"""

from __future__ import annotations

import numpy as np

from tiebreak.estimators.base import Estimator
from tiebreak.selection import value
from tiebreak.selection.kinds import LAST_RESORT, Prices
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits


class LabelOf:
    """Ask for the class of a task: the answer puts right all that was wrong with its unit."""

    name = "label"

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Return the chance that the likeliest class is wrong, [eq:gold-gain].

        Where answers may be wrong it is what such an answer puts right, [eq:vote-gain]. If other
        labels hang on it, all doubt in what they hang on counts: one more answer may not settle it,
        but it is the way to find out before it misleads them.
        """
        doubt = 1.0 - units.p[:, 0]
        gain = doubt
        if units.error > 0.0:
            gain = np.maximum(value.answer_gain(units.p, units.error), LAST_RESORT * doubt)
        gain = units.stake * gain
        if units.gain_for_others is not None:
            gain = gain + units.gain_for_others
        return Prices(gain, units.classes[:, 0], np.full(len(units), cost))

    def offer(
        self, model: Estimator, units: OpenUnits, at: int, about: int, rng: np.random.Generator
    ) -> Offer:
        """Ask about the task that stands for the unit."""
        return Offer(self.name, model.tasks_[int(units.task[at])])
