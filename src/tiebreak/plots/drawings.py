"""Drawings: each picture of a model from plain numbers, as reports and notebooks show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak import charts
from tiebreak.charts import Chart, Whisker, number, percent
from tiebreak.markup import clip
from tiebreak.plots.calibration_curve import CalibrationPoint
from tiebreak.plots.worker_accuracy import POOR
from tiebreak.wording import counted

LONGEST_ID = 60  # characters of an id in a table
MOST_CLASSES = 12  # of a confusion matrix; the rarest are put together
MOST_POINTS = 200  # of a line
OTHERS = "all others"


class WorkerRow(NamedTuple):
    """What a picture of workers says of one of them."""

    worker: str
    responses: int
    accuracy: float
    low: float
    high: float
    verdict: str


def worker_accuracies(rows: Sequence[WorkerRow], n_workers: int, by_chance: float) -> Chart:
    """Draw how often workers are right, with intervals."""
    shown = f"{len(rows):,} of {n_workers:,} workers" if len(rows) < n_workers else "All workers"
    description = (
        f"{shown}: the share of answers that are right, expected over the classes, with an "
        "interval of 90 %. The dashed line is where guessing would end."
    )
    header = ("worker", "responses", "accuracy", "from", "to", "in a word")
    cells = [
        (
            clip(row.worker, LONGEST_ID),
            number(row.responses),
            percent(row.accuracy),
            percent(row.low),
            percent(row.high),
            row.verdict,
        )
        for row in rows
    ]
    return charts.intervals(
        "How often workers are right",
        description,
        header,
        [row.worker for row in rows],
        [(row.low, row.accuracy, row.high) for row in rows],
        rows=cells,
        axis="share of answers that are right",
        mark=by_chance,
        mark_text="guessing",
        stands_out=[row.verdict in POOR for row in rows],
    )


def confusion_matrix(title: str, classes: Sequence[str], matrix: Any, description: str) -> Chart:
    """Draw what somebody says of tasks of each class."""
    return charts.heat_map(
        title,
        description,
        [clip(name, LONGEST_ID) for name in classes],
        [[float(value) for value in row] for row in matrix],
        corner="true class",
        row_title="true ↓",
        column_title="says →",
    )


def merge_rare_classes(
    classes: Sequence[str], prior: Any, matrix: Any, most: int = MOST_CLASSES
) -> tuple[list[str], Any]:
    """Put the rarest classes together, so that a matrix can be read; rows still sum to 1.

    >>> names, merged = merge_rare_classes("abc", [0.6, 0.2, 0.2], np.eye(3), most=2)
    >>> names, merged.tolist()
    (['a', 'all others'], [[1.0, 0.0], [0.0, 1.0]])
    """
    prior = np.asarray(prior, dtype=np.float64)
    matrix = np.asarray(matrix, dtype=np.float64)
    if len(classes) <= most:
        return list(classes), matrix
    kept = np.sort(np.argsort(-prior, kind="stable")[: most - 1])
    rare = np.setdiff1d(np.arange(len(classes)), kept)
    weight = prior[rare] / max(float(prior[rare].sum()), 1e-300)
    rows = np.vstack([matrix[kept], weight @ matrix[rare]])
    merged = np.column_stack([rows[:, kept], rows[:, rare].sum(axis=1)])
    return [*(classes[int(k)] for k in kept), OTHERS], merged


def calibration(points: Sequence[CalibrationPoint], n_tasks: int) -> Chart:
    """Draw what probabilities state against what is so."""
    header = ("stated probability", "share right", "from", "to", "labels")
    cells = [
        (
            number(point.stated),
            number(point.right),
            number(point.low),
            number(point.high),
            number(point.n),
        )
        for point in points
    ]
    return charts.against_diagonal(
        "Stated probability against the share that is right",
        f"{n_tasks:,} known labels in bins of 0.1. On the dashed line probabilities are honest, "
        "below it too sure. Bars are intervals of 95 %; larger dots are more labels.",
        header,
        [Whisker(p.stated, p.right, p.low, p.high, p.n) for p in points],
        rows=cells,
        axes=("stated probability", "share right"),
    )


def bound(bounds: Sequence[tuple[int, float]], n_sweeps: int, *, settled: bool) -> Chart:
    """Draw how the bound grew, from (sweep, bound)."""
    ending = "settled" if settled else "did not settle"
    return charts.line(
        "The bound, sweep by sweep",
        f"The fit {ending} after {counted(n_sweeps, 'sweep')}. The bound never falls; where it is "
        "flat, nothing changes any more.",
        ("sweep", "bound"),
        [float(sweep) for sweep, _ in bounds],
        [value for _, value in bounds],
        rows=[(number(sweep), number(value, 4)) for sweep, value in bounds],
    )


def thinned(bounds: Sequence[float], n_sweeps: int) -> list[tuple[int, float]]:
    """Return (sweep, bound), at most so many that a line needs, the first and last among them.

    >>> thinned([-3.0, -2.0, -1.5], 2)
    [(0, -3.0), (1, -2.0), (2, -1.5)]
    """
    first = n_sweeps + 1 - len(bounds)
    at = np.arange(len(bounds))
    if len(at) > MOST_POINTS:
        at = np.unique(np.linspace(0, len(bounds) - 1, MOST_POINTS).round().astype(np.int64))
    return [(first + int(k), float(bounds[int(k)])) for k in at]
