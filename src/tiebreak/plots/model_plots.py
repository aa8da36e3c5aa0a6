"""`model.plot`: pictures of a fitted model for notebooks; no drawing package is needed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tiebreak.arguments import checks, having, whole
from tiebreak.charts import Chart
from tiebreak.errors import OptionError
from tiebreak.ids import MISSING
from tiebreak.markup import clip
from tiebreak.plots import drawings
from tiebreak.plots.calibration_curve import calibration_curve, labels_to_score
from tiebreak.plots.drawings import LONGEST_ID, WorkerRow
from tiebreak.plots.worker_accuracy import WorkerAccuracy, dropped_by_class, worker_accuracy

MOST_WORKERS = 40  # of one picture


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
        return drawings.worker_accuracies(rows, len(self._model.workers_), guessing(self._model))

    def confusion(self, worker: Hashable | None = None) -> Chart:
        """Draw what a worker says of tasks of each class; None: what a response says on average."""
        model = self._model
        if worker is None:
            given = np.bincount(model.responses_.worker_of_each(), minlength=len(model.workers_))
            given = given + dropped_by_class(model).sum(axis=1)
            matrix = np.einsum("w,wkl->kl", given / max(given.sum(), 1), model.confusion_)
            title = "What workers say, on average"
            words = "Each row: of tasks of this class, the share of answers that name each class."
        else:
            code = int(model.workers_.codes([worker])[0])
            if code == MISSING:
                raise OptionError(f"There is no worker {worker!r} among {len(model.workers_):,}.")
            matrix = model.confusion_[code]
            title = f"What {clip(worker, LONGEST_ID)} says"
            words = "Each row: of tasks of this class, how likely each answer is."
        classes = [str(name) for name in model.classes_]
        names, merged = drawings.merge_rare_classes(classes, model.class_prior_, matrix)
        return drawings.confusion_matrix(title, names, merged, words)

    def calibration(self, gold: Any = None) -> Chart:
        """Draw stated probabilities against the share of labels that is right.

        `gold` are known labels that the fit was not given. Without them, a model that was given
        gold is fitted once more without it, and compared with it.
        """
        found = labels_to_score(self._model, gold)
        if found is None:
            raise OptionError(
                "There are no known labels to compare with. Give some: plot.calibration(gold)."
            )
        points = calibration_curve(found.labels, found.gold)
        return drawings.calibration(points, sum(point.n for point in points))

    def bound(self) -> Chart:
        """Draw the bound, sweep by sweep."""
        model = self._model
        if not model.bounds_:
            raise OptionError(f"{type(model).__name__} climbs no bound: there is nothing to draw.")
        points = drawings.thinned(model.bounds_, model.n_iter_)
        return drawings.bound(points, model.n_iter_, settled=model.converged_)


def guessing(model: Any) -> float:
    """Return how often answers drawn as classes are would be right."""
    return float((np.asarray(model.class_prior_) ** 2).sum())


def worker_rows(model: Any, most: int, found: WorkerAccuracy | None = None) -> list[WorkerRow]:
    """Return what is drawn of workers, the least accurate first.

    Of many, the half whose accuracy is surely lowest and, of the rest, those with most responses.
    """
    found = found or worker_accuracy(model)
    everyone = np.arange(len(found.accuracy))
    if len(everyone) > most:
        worst = np.argsort(found.high, kind="stable")[: most // 2]
        rest = np.setdiff1d(everyone, worst)
        busiest = rest[np.argsort(-found.n_responses[rest], kind="stable")[: most - len(worst)]]
        everyone = np.concatenate([worst, busiest])
    order = everyone[np.argsort(found.accuracy[everyone], kind="stable")]
    return [
        WorkerRow(
            str(model.workers_[w]),
            int(found.n_responses[w]),
            float(found.accuracy[w]),
            float(found.low[w]),
            float(found.high[w]),
            found.verdict[w],
        )
        for w in order.tolist()
    ]
