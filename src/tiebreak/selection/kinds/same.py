"""Same: is this the same class as that one, whose class is known?"""

from __future__ import annotations

import numpy as np

from tiebreak.estimators.base import Estimator
from tiebreak.selection import value
from tiebreak.selection.kinds import LAST_RESORT, Prices
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits

SECOND = (
    0.9  # of the gain, for the second class: "different" leaves more open. Chosen on Music, Web
)


class SameClass:
    """Ask whether a task is the same class as a known example of its likeliest class."""

    name = "same"

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Return the chance of the second class: then "different" puts the label right.

        Where the likeliest class has no example, one of the second class is asked: "same" puts the
        label right as often.
        """
        has_example = units.has_example()
        first = has_example[units.classes[:, 0]]
        second = has_example[units.classes[:, 1]]
        share = np.where(first, 1.0, np.where(second, SECOND, -np.inf))
        about = np.where(first | ~second, units.classes[:, 0], units.classes[:, 1])
        gain = units.p[:, 1]
        if units.example_q is not None:
            example = np.take_along_axis(units.example_q[about], units.classes, axis=1)
            found = value.link_gain(units.p, example, units.error)
            gain = np.maximum(found, LAST_RESORT * gain)
        share[units.is_only_example()] = -np.inf
        gain = np.where(first | second, units.stake * gain, 1.0) * share
        return Prices(gain, about, np.full(len(units), cost))

    def offer(
        self, model: Estimator, units: OpenUnits, at: int, about: int, rng: np.random.Generator
    ) -> Offer:
        """Ask against an example of the class, drawn so that no example wears out."""
        example, label = units.example(at, about, rng)
        task = model.tasks_[int(units.task[at])]
        return Offer(self.name, task, model.tasks_[example], model.classes_[label])
