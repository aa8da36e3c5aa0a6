"""`model.plot`: pictures of a fitted model for notebooks; the report draws the same ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tiebreak.arguments import checks, having, whole
from tiebreak.data.ids import MISSING
from tiebreak.errors import OptionError
from tiebreak.report import charts
from tiebreak.report.accuracy import (
    LONGEST_ID,
    POOR,
    Found,
    calibration_curve,
    guessing,
    labels_to_score,
    responses_by_class,
    worker_rows,
)
from tiebreak.report.charts import Chart, Words, clip, number, percent
from tiebreak.wording import counted

MOST_CLASSES = 12  # of a confusion matrix; the rarest are put together
MOST_POINTS = 200  # of a line
MOST_WORKERS = 40  # of one picture
MUCH = 0.2  # mean correlation of errors from which on errors are shared a lot
OTHERS = "all others"


class Plots:
    """Pictures of a fitted model: each is a `Chart`, with `save(path)` for .svg and .html."""

    @checks(model=having("fit", words="a model"))
    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return "Plots: .workers(), .confusion(worker), .calibration(gold), .bound()"

    @checks(most=whole(1))
    def workers(self, most: int = MOST_WORKERS) -> Chart:
        """Draw how often workers are right, with intervals; of many, the worst and the busiest.

        >>> import tiebreak as tb
        >>> crowd = tb.simulate.crowd(100, 5, 3, random_state=0)
        >>> len(tb.VariationalBayes().fit(crowd.responses).plot.workers().rows)
        5
        """
        rows = worker_rows(self._model, most)
        return worker_accuracies(rows, len(self._model.workers_), guessing(self._model))

    def confusion(self, worker: Hashable | None = None) -> Chart:
        """Draw what a worker says of tasks of each class; None: what a response says on average."""
        model = self._model
        if worker is None:
            given = responses_by_class(model).sum(axis=1)
            matrix = np.einsum("w,wkl->kl", given / max(given.sum(), 1), model.confusion_)
            title = "What workers say, on average"
            words = "Each row: of tasks of this class, the share of answers that name each class."
        else:
            code = int(model.workers_.codes([worker])[0])
            if code == MISSING:
                raise OptionError("plot-unknown-worker", worker=worker, n=len(model.workers_))
            matrix = model.confusion_[code]
            title = f"What {clip(worker, LONGEST_ID)} says"
            words = "Each row: of tasks of this class, how likely each answer is."
        classes = [str(name) for name in model.classes_]
        names, merged = merge_rare_classes(classes, model.class_prior_, matrix)
        return confusion_matrix((title, words), names, merged)

    def calibration(self, gold: Any = None) -> Chart:
        """Draw stated probabilities against the share of labels that is right.

        `gold` are known labels that the fit was not given. Without them, a model that was given
        gold is fitted once more without it, and compared with it.
        """
        found = labels_to_score(self._model, gold)
        if found is None:
            raise OptionError("plot-no-gold")
        points = calibration_curve(found.labels, found.gold)
        return calibration(points, sum(point["n"] for point in points))

    def bound(self) -> Chart:
        """Draw the lower bound after each iteration."""
        model = self._model
        if not model.bounds_:
            raise OptionError("plot-no-bound", model=type(model).__name__)
        points = thinned(model.bounds_, model.n_iter_)
        ending = "converged" if model.converged_ else "did not converge"
        described = (
            f"The fit {ending} after {counted(model.n_iter_, 'iteration')}. The bound never falls; "
            "where it is flat, nothing changes any more."
        )
        return charts.line(
            ("The lower bound after each iteration", described),
            ("iteration", "bound"),
            [(number(iteration), number(value, 4)) for iteration, value in points],
            points,
        )


def worker_accuracies(rows: Sequence[Found], n_workers: int, by_chance: float) -> Chart:
    """Draw how often workers are right, with intervals."""
    shown = f"{len(rows):,} of {n_workers:,} workers" if len(rows) < n_workers else "All workers"
    described = (
        f"{shown}: the share of answers that are right, expected over the classes, with an "
        "interval of 90 %. The dashed line is the accuracy of guessing."
    )
    shares = [(row["accuracy"], row["low"], row["high"]) for row in rows]
    return charts.intervals(
        ("How often workers are right", described),
        ("worker", "responses", "accuracy", "from", "to", "verdict"),
        [
            (row["worker"], number(row["responses"]), *map(percent, share), row["verdict"])
            for row, share in zip(rows, shares, strict=True)
        ],
        shares,
        "share of answers that are right",
        (by_chance, "guessing"),
        [row["verdict"] in POOR for row in rows],
    )


def confusion_matrix(words: Words, classes: Sequence[str], matrix: Any) -> Chart:
    """Draw what somebody says of tasks of each class."""
    names = [clip(name, LONGEST_ID) for name in classes]
    values = [[float(value) for value in row] for row in matrix]
    return charts.heat_map(words, "true class", ("true ↓", "says →"), names, values)


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


def calibration(points: Sequence[Found], n_tasks: int) -> Chart:
    """Draw stated probabilities against the share of labels that is right."""
    described = (
        f"{n_tasks:,} known labels in bins of 0.1. On the dashed line probabilities are "
        "calibrated, below it too high. Bars are intervals of 95 %; larger dots are more labels."
    )
    values = [(e["stated"], e["right"], e["low"], e["high"], e["n"]) for e in points]
    return charts.against_diagonal(
        ("Stated probability against the share that is right", described),
        ("stated probability", "share right", "from", "to", "labels"),
        [tuple(map(number, each)) for each in values],
        values,
    )


def thinned(bounds: Sequence[float], n_iter: int) -> list[tuple[int, float]]:
    """Return (iteration, bound), no more than a line needs, the first and last among them.

    >>> thinned([-3.0, -2.0, -1.5], 2)
    [(0, -3.0), (1, -2.0), (2, -1.5)]
    """
    first = n_iter + 1 - len(bounds)
    at = np.arange(len(bounds))
    if len(at) > MOST_POINTS:
        at = np.unique(np.linspace(0, len(bounds) - 1, MOST_POINTS).round().astype(np.int64))
    return [(first + int(k), float(bounds[int(k)])) for k in at]
