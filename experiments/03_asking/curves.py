"""Read `results.json`: scores by dataset, share of wrong answers, method, budget and seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Cells, Difference, mean
from run import CONFIG, HERE, cases, cell_of

DATASETS: list[str] = CONFIG["datasets"]
TWO: list[str] = CONFIG["two_classes"]
MORE = [name for name in DATASETS if name not in TWO]
BUDGETS: list[float] = CONFIG["budgets"]
CLEAN, WRONG = CONFIG["wrong"]


class Curves(Cells):
    """Macro-F after so many questions. A cell that was not run in full counts as missing."""

    def __init__(self) -> None:
        super().__init__(HERE)

    def missing(self) -> list[str]:
        wanted = {cell_of(case) for case in cases()}
        return sorted(wanted - set(self.cells))

    def plain(self, dataset: str) -> float:
        return float(self.about["plain"][dataset][0])

    def n_gold(self, dataset: str) -> int:
        return int(self.about["n_gold"][dataset])

    def curve(self, dataset: str, wrong: float, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of questions and macro-F, (seeds, numbers), from no question on."""
        cell = self.cells.get(f"{dataset}/{wrong:.2f}/{method}")
        if cell is None:
            return np.zeros(0), np.zeros((0, 0))
        scores = np.array(cell["macro_f"], dtype=float)
        first = np.full((len(scores), 1), self.plain(dataset))
        return np.array([0, *cell["n"]]), np.hstack([first, scores])

    def at(self, dataset: str, wrong: float, method: str, budget: float) -> np.ndarray:
        """Return macro-F over seeds after a budget; nothing where it was not run."""
        n, scores = self.curve(dataset, wrong, method)
        place = np.flatnonzero(n == round(budget * self.n_gold(dataset)))
        return scores[:, place[0]] if len(place) else np.zeros(0)

    def mean(self, *cell: Any) -> float:
        return mean(self.at(*cell))

    def difference(
        self, dataset: str, wrong: float, ours: str, theirs: str, budget: float
    ) -> Difference:
        """Return ours − theirs, seed by seed; `vb` is plain VB."""
        mine = self.at(dataset, wrong, ours, budget)
        other = (
            np.full(len(mine), self.plain(dataset))
            if theirs == "vb"
            else self.at(dataset, wrong, theirs, budget)
        )
        return Difference.between(mine, other)

    def questions_needed(self, dataset: str, wrong: float, method: str, target: float) -> float:
        """Return after how many questions the mean curve reaches a score; inf where never."""
        n, scores = self.curve(dataset, wrong, method)
        if not len(n):
            return np.nan
        mean = scores.mean(axis=0)
        above = np.flatnonzero(mean >= target)
        if not len(above):
            return np.inf
        k = int(above[0])
        if k == 0:
            return 0.0
        share = (target - mean[k - 1]) / (mean[k] - mean[k - 1])
        return float(n[k - 1] + share * (n[k] - n[k - 1]))
