"""Read `results.json`: one cell per dataset, size, share of wrong links and method."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Cells, Difference, mean
from run import CONFIG, HERE, cases

DATASETS: list[str] = CONFIG["datasets"]
SIZES: list[float] = CONFIG["sizes"]
CLEAN, *WRONG = CONFIG["wrong"]


class Results(Cells):
    """Figures by cell. A cell that was not run in full counts as missing."""

    def __init__(self) -> None:
        super().__init__(HERE)

    def of(self, figure: str, method: str, dataset: str, size: float, wrong: float) -> np.ndarray:
        """Return a figure over seeds; nothing where the cell is missing."""
        if method == "vb":  # links change nothing: run once
            size = SIZES[0]
            wrong = CLEAN
        cell = self.cells.get(f"{dataset}/{size:.2f}/{wrong:.2f}/{method}")
        needed = 1 if method == "vb" else self.about["seeds"]
        values = [] if cell is None else cell[figure]
        return np.array(values if len(values) == needed else [], dtype=float)

    def mean(self, *cell: Any) -> float:
        """Return the mean over seeds; nan where the cell is missing."""
        return mean(self.of(*cell))

    def difference(self, figure: str, ours: str, theirs: str, *cell: Any) -> Difference:
        """Return ours − theirs, seed by seed on the same links."""
        # plain VB has one value for all seeds
        return Difference.between(self.of(figure, ours, *cell), self.of(figure, theirs, *cell))

    def n_cells(self) -> tuple[int, int]:
        """Return how many cells were run in full, and how many there are to run."""
        wanted = {(case.method, case.dataset, case.size, case.wrong) for case in cases()}
        return sum(len(self.of("macro_f", *cell)) > 0 for cell in wanted), len(wanted)
