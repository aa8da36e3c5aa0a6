"""Is: is this of that class, yes or no?"""

from __future__ import annotations

import numpy as np

from tiebreak.estimators.base import Estimator
from tiebreak.selection import value
from tiebreak.selection.kinds import LAST_RESORT, Prices
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits


class IsClass:
    """Ask whether a task is of its likeliest class: as "same", but no example is needed."""

    name = "is"

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Return the chance of the second class: then "no" puts the label right."""
        gain = units.p[:, 1]
        if units.error > 0.0:
            of_class = np.zeros(units.p.shape)
            of_class[:, 0] = 1.0
            found = value.link_gain(units.p, of_class, units.error)
            gain = np.maximum(found, LAST_RESORT * gain)
        gain = units.stake * gain
        return Prices(gain, units.classes[:, 0], np.full(len(units), cost))

    def offer(
        self, model: Estimator, units: OpenUnits, at: int, about: int, rng: np.random.Generator
    ) -> Offer:
        """Name the class."""
        task = model.tasks_[int(units.task[at])]
        return Offer(self.name, task, label=model.classes_[about])
