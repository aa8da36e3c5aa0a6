"""Vote: one more response, and from whom."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.selection import value
from tiebreak.selection.kinds import Prices
from tiebreak.selection.offers import Offer
from tiebreak.selection.units import OpenUnits

MOST = 200  # units in most doubt that votes are priced for: each worker is tried on each


class OneMoreVote:
    """Ask a worker who has not answered a task for one more response."""

    name = "vote"

    def __init__(self, workers: Mapping[Hashable, float] | None = None) -> None:
        self._workers = workers

    def price(self, model: Estimator, units: OpenUnits, cost: float) -> Prices:
        """Return what the best vote for its cost puts right, [eq:vote-gain]."""
        gain = np.full(len(units), -np.inf)
        worker = np.zeros(len(units), dtype=np.int64)
        costs = np.full(len(units), cost)
        doubt = units.stake * (1.0 - units.p[:, 0])
        for at in np.argsort(-doubt, kind="stable")[:MOST].tolist():
            who, price = self._can_be_asked(model, int(units.task[at]), cost)
            if len(who):
                q = np.zeros(units.n_classes)
                q[units.classes[at]] = units.p[at]
                found = value.vote_gain(q[None, :], model.confusion_[who]) * units.stake[at]
                best = int(np.argmax(found / price))
                gain[at] = found[best]
                worker[at] = who[best]
                costs[at] = price[best]
        return Prices(gain, worker, costs)

    def offer(
        self, model: Estimator, units: OpenUnits, at: int, about: int, rng: np.random.Generator
    ) -> Offer:
        """Name the worker."""
        task = model.tasks_[int(units.task[at])]
        return Offer(self.name, task, worker=model.workers_[about])

    def _can_be_asked(self, model: Estimator, task: int, cost: float) -> tuple[Offsets, Floats]:
        """Return the workers who have not answered a task, and what each costs."""
        answered, _ = model.responses_.of(task)
        if self._workers is None:
            who = np.setdiff1d(np.arange(len(model.workers_)), answered)
            return who, np.full(len(who), cost)
        names = list(self._workers)
        codes = model.workers_.codes(names).astype(np.int64)
        if len(codes) and codes.min() < 0:
            unknown = names[int(codes.argmin())]
            raise OptionError("vote-of-unknown-worker", name=unknown)
        price = np.array([require_cost("vote", each) for each in self._workers.values()])
        is_free = ~np.isin(codes, answered)
        return codes[is_free], price[is_free]


def require_cost(kind: str, cost: float) -> float:
    """Refuse a cost that is not above 0."""
    if not (np.isfinite(cost) and cost > 0.0):
        raise OptionError.must_be(f"The cost of a {kind}", "above 0 and finite", cost)
    return float(cost)
