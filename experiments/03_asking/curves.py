"""Read `results.json`: scores by dataset, method, budget and seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from common import NAMES, Cells, Difference, mean
from crowds import CONFIG, HERE, SIMULATED
from run import cases, cell_of

from tiebreak.wording import counted

REAL: list[str] = CONFIG["datasets"]
DATASETS: list[str] = [*REAL, *SIMULATED]
BUDGETS: list[float] = CONFIG["budgets"]
COSTS: list[float] = CONFIG["costs"]
TITLES = {**NAMES, **{name: f"Simulated, {k} classes" for name, k in SIMULATED.items()}}


class FreeLinks(NamedTuple):
    """How many labels a macro-F takes with links that are there for free, and without."""

    needed: float
    error: float  # standard error of that, over seeds
    without: int

    @property
    def share(self) -> float:
        return self.needed / self.without

    def __str__(self) -> str:
        return f"{self.share:.3f} ± {self.error / self.without:.3f}"


def first_above(n: np.ndarray, curve: np.ndarray, target: float) -> float:
    """Return where a curve first reaches a target, straight between two fits; inf: nowhere."""
    above = np.flatnonzero(curve >= target)
    if not len(above):
        return np.inf
    k = int(above[0])
    if k == 0:
        return float(n[0])
    share = (target - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(n[k - 1] + share * (n[k] - n[k - 1]))


class Curves(Cells):
    """Macro-F after so much was asked, over as many seeds as were run."""

    def __init__(self) -> None:
        super().__init__(HERE)

    def missing(self) -> list[str]:
        wanted = {cell_of(case) for case in cases()}
        return sorted(wanted - set(self.cells))

    def plain(self, dataset: str) -> float:
        return float(self.about["plain"][dataset])

    def n_gold(self, dataset: str) -> int:
        return int(self.about["n_gold"][dataset])

    def cell(self, dataset: str, method: str) -> dict[str, Any] | None:
        return self.cells.get(f"{dataset}/{method}")

    def scores(self, dataset: str, method: str) -> np.ndarray:
        """Return macro-F, (seeds, places)."""
        cell = self.cell(dataset, method)
        if cell is None:
            return np.zeros((0, 0))
        rows = np.array(cell["macro_f"], dtype=float)
        return np.repeat(rows, cell["seeds"], axis=0) if len(rows) == 1 else rows

    def seeds(self, methods: Iterable[str]) -> str:
        """Say how many seeds the cells of some methods have."""
        cells = (self.cell(dataset, method) for dataset in DATASETS for method in methods)
        found = sorted({cell["seeds"] for cell in cells if cell is not None})
        if not found:
            return "no seeds"
        if found[0] == found[-1]:
            return counted(found[0], "seed")
        return f"{found[0]} to {found[-1]} seeds"

    def labels(self, dataset: str, cost: float, budget: float) -> np.ndarray:
        """Return what labels alone reach, at a cost each, over seeds."""
        return self.at(dataset, f"labels {cost:g}", budget)

    def at(self, dataset: str, method: str, budget: float) -> np.ndarray:
        """Return macro-F over seeds after a budget; nothing where it was not run."""
        scores = self.scores(dataset, method)
        return scores[:, BUDGETS.index(budget)] if len(scores) else np.zeros(0)

    def mix(self, dataset: str, cost: float, budget: float) -> np.ndarray:
        return self.at(dataset, f"mix {cost:g}", budget)

    def above(self, ours: np.ndarray, theirs: np.ndarray) -> float:
        """Return the difference of means; nan where one was not run."""
        return mean(ours) - mean(theirs)

    def wrong(
        self, dataset: str, rate: float, budget: float, *, labels: bool = False
    ) -> np.ndarray:
        method = f"wrong {'labels ' if labels else ''}{rate:g}"
        scores = self.scores(dataset, method)
        return scores[:, CONFIG["wrong"]["budgets"].index(budget)] if len(scores) else np.zeros(0)

    def free_links(self, dataset: str) -> FreeLinks:
        """Return how many labels are needed with free links, and without, for the same macro-F.

        The mean curve is read; how far it is known, by leaving out one seed after the other.
        """
        cell = self.cell(dataset, "free")
        without = round(BUDGETS[-1] * self.n_gold(dataset))
        if cell is None:
            return FreeLinks(np.nan, np.nan, without)
        n = np.array(cell["n"], dtype=float)
        curves = self.scores(dataset, "free")
        target = mean(self.labels(dataset, 1.0, BUDGETS[-1]))
        needed = first_above(n, curves.mean(axis=0), target)
        others = np.array(
            [
                first_above(n, np.delete(curves, seed, axis=0).mean(axis=0), target)
                for seed in range(len(curves) if len(curves) > 1 else 0)
            ]
        )
        apart = others - mean(others)
        error = np.sqrt((len(others) - 1) * mean(apart**2)) if len(others) else np.nan
        return FreeLinks(needed, float(error), without)

    def difference(self, ours: np.ndarray, theirs: np.ndarray) -> Difference:
        n = min(len(ours), len(theirs))
        return Difference.between(ours[:n], theirs[:n]) if n > 1 else Difference(np.nan, np.nan)
