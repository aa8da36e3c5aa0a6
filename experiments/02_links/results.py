"""Read `results.json`: one cell per dataset, size, share of wrong links and method."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from run import CONFIG, HERE, cases

ROOT = HERE.parents[1]
DATASETS: list[str] = CONFIG["datasets"]
SIZES: list[float] = CONFIG["sizes"]
CLEAN, *WRONG = CONFIG["wrong"]
NAMES = {
    "bluebird": "Bluebird",
    "dog": "Dog",
    "web": "Web",
    "music_genre": "Music",
    "zencrowd_india": "ZenCrowd India",
    "zencrowd_us": "ZenCrowd US",
    "rte": "RTE",
    "sentence_polarity": "Sentence Polarity",
    "trec": "TREC",
    "product": "Product",
}


class Difference(NamedTuple):
    """A paired difference over seeds: its mean and the standard error of that."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{signed(self.mean)} ± {self.error:.4f}"


def signed(value: float) -> str:
    """Write a difference with its sign; what rounds to nothing has none."""
    text = f"{value:+.4f}"
    return "0.0000" if float(text) == 0.0 else text.replace("-", "−")


class Results:
    """Figures by cell. A cell that was not run in full counts as missing."""

    def __init__(self, path: Path = HERE / "results.json") -> None:
        kept = json.loads(path.read_text("utf-8"))
        self.about: dict[str, Any] = kept["about"]
        self.cells: dict[str, dict[str, list[float]]] = kept["cells"]

    def of(self, figure: str, method: str, dataset: str, size: float, wrong: float) -> np.ndarray:
        """Return a figure over seeds; nothing where the cell is missing."""
        if method == "vb":  # links change nothing: run once
            size, wrong = SIZES[0], CLEAN
        cell = self.cells.get(f"{dataset}/{size:.2f}/{wrong:.2f}/{method}")
        needed = 1 if method == "vb" else self.about["seeds"]
        values = [] if cell is None else cell[figure]
        return np.array(values if len(values) == needed else [], dtype=float)

    def mean(self, *cell: Any) -> float:
        """Return the mean over seeds; nan where the cell is missing."""
        values = self.of(*cell)
        return float(values.mean()) if len(values) else np.nan

    def difference(self, figure: str, ours: str, theirs: str, *cell: Any) -> Difference:
        """Return ours − theirs, seed by seed on the same links."""
        mine, other = self.of(figure, ours, *cell), self.of(figure, theirs, *cell)
        if not (len(mine) and len(other)):
            return Difference(np.nan, np.nan)
        apart = mine - other  # plain VB has one value for all seeds
        return Difference(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart))))

    def n_cells(self) -> tuple[int, int]:
        """Return how many cells were run in full, and how many there are to run."""
        wanted = {
            (case.method, case.dataset, case.size, case.wrong)
            for case in cases(list(CONFIG["methods"]), DATASETS)
        }
        return sum(len(self.of("macro_f", *cell)) > 0 for cell in wanted), len(wanted)
