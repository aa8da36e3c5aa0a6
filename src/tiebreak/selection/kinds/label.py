"""Label: which class is this?"""

from __future__ import annotations

import numpy as np

from tiebreak.inference.estimator import Estimator
from tiebreak.selection.kinds import Prices
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits


class LabelOf:
    """Ask for the class of a task: the answer puts right all that was wrong with its unit."""

    name = "label"

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Return the chance that the likeliest class is wrong, [eq:gold-gain]."""
        gain = units.stake * (1.0 - units.p[:, 0])
        return Prices(gain, units.classes[:, 0], np.full(len(units), cost))

    def offer(
        self,
        model: Estimator,
        units: OpenUnits,
        at: int,
        about: int,
        rng: np.random.Generator,
    ) -> Offer:
        """Ask about the task that stands for the unit."""
        return Offer(self.name, model.tasks_[int(units.task[at])])
