"""Results: every run as arrays of runs by numbers given, in one JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.errors import FileError
from tiebreak.kernels.layout import Floats
from tiebreak.reproduce.experiments import Reproduction
from tiebreak.reproduce.runner import Row, made_on
from tiebreak.tables.write import open_target


class Estimate(NamedTuple):
    """A mean over runs with its 95 % interval; with one run the interval is not known: nan."""

    mean: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there were runs enough for an interval."""
        return bool(np.isfinite(self.low))

    def __str__(self) -> str:
        if not self.is_known:
            return f"{self.mean:+.4f}"
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def estimate(of_runs: Floats) -> Estimate:
    """Return the mean of one number a run, with Student's 95 % interval.

    >>> print(estimate(np.array([0.1, 0.2, 0.3])))
    +0.2000 [-0.0484, +0.4484]
    """
    mean, half = (float(each) for each in band(of_runs[:, None])[:, 0])
    return Estimate(mean, mean - half, mean + half)


def band(of_runs: Floats) -> Floats:
    """Return mean and half width of the 95 % interval of each column: (2, n_columns)."""
    from scipy.special import stdtrit

    n_runs = len(of_runs)
    if n_runs < 2:
        return np.stack([of_runs.mean(axis=0), np.full(of_runs.shape[1], np.nan)])
    error = of_runs.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return np.stack([of_runs.mean(axis=0), stdtrit(n_runs - 1, 0.975) * error])


class Measured(NamedTuple):
    """One dataset: figures[method][figure] is an array of runs by numbers given."""

    title: str
    n_classes: int
    n_gold: int
    n_given: tuple[int, ...]
    figures: dict[str, dict[str, Floats]]

    def has(self, *methods: str) -> bool:
        """Tell whether these methods were run."""
        return all(method in self.figures for method in methods)

    def of(self, method: str, figure: str = "macro_f") -> Floats:
        """Return a figure of a method: (n_runs, n_numbers)."""
        return self.figures[method][figure]

    def share_broken(self, method: str) -> Floats:
        """Return which share of its links a method breaks: (n_runs, n_numbers); 0 of none is 0."""
        n_links = np.maximum(self.of(method, "n_links"), 1.0)
        return np.asarray(self.of(method, "n_broken") / n_links)

    @property
    def is_upper(self) -> Any:
        """Which numbers given are in the upper half: above half of the largest, (n_numbers,)."""
        return np.array(self.n_given) > self.n_given[-1] / 2.0


class Results(NamedTuple):
    """All datasets of a reproduction, and how it was made."""

    about: dict[str, Any]
    datasets: dict[str, Measured]

    def write(self, path: Path) -> None:
        """Write one JSON file, whole or not at all."""
        measured = {name: each._asdict() for name, each in self.datasets.items()}
        with open_target(path) as out:
            whole = {"about": self.about, "datasets": measured}
            out.write(json.dumps(whole, default=_plain, separators=(",", ":")).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read what `write` wrote."""
        try:
            whole = json.loads(path.read_text(encoding="utf-8"))
            found = {name: _measured(each) for name, each in whole["datasets"].items()}
            return cls(whole["about"], found)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(f"{path} holds no results of tiebreak reproduce: {error}.") from None


def gather(plan: Reproduction, rows: list[Row]) -> Results:
    """Turn the rows of all cases into arrays."""
    about = {
        "version": rows[0]["version"],
        **made_on(),
        "runs": plan.n_runs,
        "steps": plan.n_steps,
        "fingerprints": {name: each.fingerprint for name, each in plan.about.items()},
    }
    of_dataset: dict[str, list[Row]] = {}
    for row in rows:
        of_dataset.setdefault(row["dataset"], []).append(row)
    return Results(about, {name: _stack(plan, name, of_dataset[name]) for name in plan.about})


def _stack(plan: Reproduction, name: str, rows: list[Row]) -> Measured:
    numbers = plan.numbers(name)
    scores = {(row["run"], row["n_given"]): row["scores"] for row in rows}
    first = scores[0, numbers[0]]
    figures = {
        method: {
            figure: np.array(
                [[scores[run, n][method][figure] for n in numbers] for run in range(plan.n_runs)],
                dtype=np.float64,
            )
            for figure in of_method
        }
        for method, of_method in first.items()
    }
    about = plan.about[name]
    return Measured(about.title, about.n_classes, about.n_gold, numbers, figures)


def _measured(stored: dict[str, Any]) -> Measured:
    figures = {
        method: {figure: np.array(values, dtype=np.float64) for figure, values in each.items()}
        for method, each in stored["figures"].items()
    }
    return Measured(**{**stored, "n_given": tuple(stored["n_given"]), "figures": figures})


def _plain(values: Any) -> Any:
    """Return an array as lists for JSON, counts as whole numbers."""
    if np.all(values == np.round(values)):
        values = values.astype(np.int64)
    return values.tolist()
