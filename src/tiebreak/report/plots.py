"""What the report and `model.plot` share: how often workers and labels are right, and pictures."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import tables
from tiebreak.arguments import checks, having, whole
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING
from tiebreak.data.labels import Labels
from tiebreak.decide.held_out import without_gold
from tiebreak.errors import InputError, OptionError
from tiebreak.inference.worker_summary import Interval
from tiebreak.judges.known import interval_of_share
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.report import charts
from tiebreak.report.charts import (
    CHANCE,
    LONGEST_ID,
    RELIABLE,
    TOO_FEW,
    WORSE,
    Chart,
    Found,
    clip,
    number,
)
from tiebreak.wording import counted

LEVEL = 0.9  # of the interval of a worker's accuracy
MOST_RESPONSES = 1_000_000  # up to which intervals come from the model's own table of workers
FEWEST = 10  # responses: workers with fewer get no verdict
BINS = 10  # of the calibration curve
MOST_CLASSES = 12  # of a confusion matrix; the rarest are put together
MOST_POINTS = 200  # of a line
MOST_WORKERS = 40  # of one picture
OTHERS = "all others"


class WorkerAccuracy(NamedTuple):
    """One row per worker, in the order of the model's workers."""

    accuracy: Floats  # expected over the classes
    low: Floats
    high: Floats
    n_responses: npt.NDArray[np.int64]
    verdict: tuple[str, ...]


class ToScore(NamedTuple):
    """Labels that have not seen the known labels which they are compared with."""

    labels: Labels
    gold: Gold
    is_fitted_again: bool  # whether the model was fitted once more, without its gold


def worker_accuracy(model: Any) -> WorkerAccuracy:
    """Return how often each worker is right, with an interval of 90 %.

    The accuracy is Σ π(k) θ(k, k), with the interval of `model.workers_table()`. That takes about
    as long as the fit: for very large crowds, and where the model has no such table, each row of a
    confusion matrix is taken as Dirichlet with its fitted mean and as much weight as the worker has
    responses to tasks labelled so, and one for each class; the sum over rows as the Beta of the
    same mean and variance. Then labels count as certain, and the interval is a little narrow.

    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, 2, random_state=0)
    >>> found = worker_accuracy(tb.VariationalBayes().fit(crowd.responses))
    >>> bool((found.low < found.accuracy).all() and (found.accuracy < found.high).all())
    True
    """
    prior = np.asarray(model.class_prior_)
    counts = responses_by_class(model)
    end, crowd = vars(model).get("_state"), model.responses_
    # A table can be had soon, and is of the tasks that this model shows.
    has_table = end is not None and getattr(model, "_carried", None) is None
    if has_table and len(end.q) == crowd.n_tasks and 0 < crowd.n_responses <= MOST_RESPONSES:
        table = model.workers_table(level=LEVEL)
        mean, low, high = table.accuracy, table.accuracy_low, table.accuracy_high
    else:
        right = np.diagonal(model.confusion_, axis1=1, axis2=2)
        variance = (right * (1.0 - right) / (counts + len(prior) + 1.0)) @ prior**2
        mean, low, high = Interval.of(right @ prior, variance, LEVEL)
    n_responses = counts.sum(axis=1).round().astype(np.int64)
    # How often answers that ignore the task would be right.
    by_chance = np.einsum("k,wkl->wl", prior, model.confusion_) @ prior
    # Nobody is called a guesser who may be as good as most.
    is_judged = n_responses >= FEWEST
    usual = float(np.median(mean[is_judged])) if is_judged.any() else 1.0
    verdict = np.where(low > by_chance, RELIABLE, TOO_FEW).astype(object)
    verdict[is_judged & (low <= by_chance) & (high < usual)] = CHANCE
    verdict[is_judged & (high < by_chance)] = WORSE
    verdict[~is_judged] = TOO_FEW
    return WorkerAccuracy(mean, low, high, n_responses, tuple(verdict))


def worker_rows(model: Any, most: int, found: WorkerAccuracy | None = None) -> list[Found]:
    """Return what is known of some workers, the least accurate first.

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
        {
            "worker": clip(model.workers_[w], LONGEST_ID),
            "responses": int(found.n_responses[w]),
            "accuracy": float(found.accuracy[w]),
            "low": float(found.low[w]),
            "high": float(found.high[w]),
            "verdict": found.verdict[w],
        }
        for w in order.tolist()
    ]


def guessing(model: Any) -> float:
    """Return how often answers drawn as classes are would be right."""
    return float((np.asarray(model.class_prior_) ** 2).sum())


def responses_by_class(model: Any) -> Floats:
    """Count the responses of each worker by the label of their task, (n_workers, n_classes).

    Those that the model no longer has, and counts by class, are among them.
    """
    n_workers, n_classes = len(model.workers_), len(model.classes_)
    cell = model.responses_.worker_of_each().astype(np.int64) * n_classes
    cell += np.asarray(model.labels_.label)[model.responses_.task_of_each()]
    counts = np.bincount(cell, minlength=n_workers * n_classes).reshape(n_workers, n_classes)
    carried = getattr(model, "_carried", None)
    if carried is None:
        return counts.astype(np.float64)
    n_parts = carried.counts.shape[1] // n_classes
    by_answer = carried.counts.reshape(-1, n_classes, n_classes, n_parts)
    return np.asarray(counts + by_answer.sum(axis=(1, 3)))


def labels_to_score(model: Any, truth: Any = None) -> ToScore | None:
    """Return labels and known labels that they have not seen; None where nothing is known.

    `truth` is compared as it is, less the tasks that the fit was given. Without it, a model that
    was given gold is fitted once more without, and that fit is compared with the gold.
    """
    if truth is not None:
        known = tables.read_gold(truth)
        if model.gold_ is not None:
            seen = known.tasks.codes(model.gold_.tasks)
            is_new = np.ones(len(known), dtype=bool)
            is_new[seen[seen != MISSING]] = False
            if not is_new.any():
                raise InputError("gold-all-given")
            known = subset(known, np.flatnonzero(is_new))
        return ToScore(model.labels_, known, False)
    if model.gold_ is None or not len(model.gold_):
        return None
    return ToScore(without_gold(model).labels_, model.gold_, True)


def calibration_curve(labels: Labels, gold: Gold, bins: int = BINS) -> list[Found]:
    """Return one point for each bin of stated probability that has labels in it.

    >>> from tiebreak.data.ids import Ids
    >>> q = np.array([[0.9, 0.1], [0.92, 0.08], [0.2, 0.8]])
    >>> labels = Labels.from_probabilities(Ids("abc"), Ids("xy"), q)
    >>> gold = Gold.from_dict({"a": "x", "b": "y", "c": "y"})
    >>> [(point["right"], point["n"]) for point in calibration_curve(labels, gold)]
    [(1.0, 1), (0.5, 2)]
    """
    task = labels.tasks.codes(gold.tasks)
    truth = labels.classes.codes(gold.classes)[gold.label]
    there = task != MISSING
    if not there.any() or labels.probability is None:
        raise InputError("gold-of-no-task")
    stated = labels.probability[task[there]]
    right = (labels.label[task[there]] == truth[there]).astype(np.float64)
    bin_of = np.minimum((bins * stated).astype(np.int64), bins - 1)
    n, mean, n_right = (np.bincount(bin_of, weights, bins) for weights in (None, stated, right))
    points = []
    for k in np.flatnonzero(n).tolist():
        low, high = interval_of_share(float(n_right[k]), float(n[k]))
        shares = {"stated": float(mean[k] / n[k]), "right": float(n_right[k] / n[k])}
        points.append(shares | {"low": low, "high": high, "n": int(n[k])})
    return points


def subset(known: Gold, chosen: Offsets) -> Gold:
    names = known.tasks.take(chosen)
    return replace(known, tasks=names, label=known.label[chosen], row=known.row[chosen])


# Pictures


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
        return charts.worker_accuracies(rows, len(self._model.workers_), guessing(self._model))

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
        return charts.confusion_matrix((title, words), names, merged)

    def calibration(self, gold: Any = None) -> Chart:
        """Draw stated probabilities against the share of labels that is right.

        `gold` are known labels that the fit was not given. Without them, a model that was given
        gold is fitted once more without it, and compared with it.
        """
        found = labels_to_score(self._model, gold)
        if found is None:
            raise OptionError("plot-no-gold")
        points = calibration_curve(found.labels, found.gold)
        return charts.calibration(points, sum(point["n"] for point in points))

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
