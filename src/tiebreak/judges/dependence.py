"""Shared errors: what n judges are worth in judges that err independently.

r_ij is the error of judge j on task i less the judge's error rate on tasks of that class. The
correlation of a panel is

    φ = Σ_i Σ_a≠b r_ia r_ib / Σ_i Σ_a≠b (r_ia² + r_ib²) / 2,

and n judges are worth n / (1 + (n − 1) φ) independent ones, [eq:effective-judges].

`error_dependence` takes any crowd, with or without gold; `shared_errors` takes the few judges of a
panel on known tasks, several runs of a judge included. Both are made of `Residuals`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import t as student

from tiebreak import tables, templating
from tiebreak.arguments import FITTED, checks
from tiebreak.data.runs import plurality
from tiebreak.errors import InputError
from tiebreak.judges.agreement import COPIED, LEAST_ERRORS, by_worker
from tiebreak.judges.known import LEVEL, GoldTable
from tiebreak.kernels.layout import Codes, Floats, Offsets

Places = npt.NDArray[np.integer[Any]]

FEW_OF_CLASS = 3  # tasks: rarer classes are taken together, as they show no spread of their own
MOST_GROUPS = 100  # of the jackknife: with more tasks, several are left out together
MOST_WORKERS = 1000  # in tables of pairs: those with the most responses
LEAST_COMMON = 10  # tasks that two workers share, for a correlation of their own
PAIR_PRIOR = 20.0  # tasks' worth of the panel's φ in the φ of a pair of judges
LEAST_SHARED = 5  # known tasks that two judges share, for a correlation
APART = 0.15  # above the panel's φ: judges whose errors are so much more alike are one cluster


def effective(n: float, phi: float) -> float:
    """Return n / (1 + (n − 1) φ), but at most n: errors that offset each other are luck.

    >>> round(effective(9, 0.4), 2)
    2.14
    """
    return float(n / (1.0 + max(n - 1.0, 0.0) * max(phi, 0.0)))


class Residuals:
    """Errors of workers on tasks, each once a task, less the worker's rate on tasks of the class.

    Parameters
    ----------
    task, worker
        Of each error, (n,).
    error
        (n,), 0 to 1.
    truth
        The class of each task.
    """

    def __init__(
        self, task: Places, worker: Places, error: Floats, truth: Codes, n_workers: int
    ) -> None:
        self.task, self.worker, self.error = task, worker, error
        self.truth, self.n_workers = truth, n_workers
        tasks = np.unique(task)
        is_rare = np.bincount(truth[tasks], minlength=int(truth.max()) + 1)[truth] < FEW_OF_CLASS
        group = np.where(is_rare, int(truth.max()) + 1, truth)
        cell = worker.astype(np.int64) * (int(group.max()) + 1) + group[task]
        n = np.bincount(cell)[cell]
        rate = (np.bincount(cell, weights=error)[cell]) / n
        # n / (n − 1): the rate was fitted to these very tasks.
        self.r = np.where(n > 1, (error - rate) * np.sqrt(n / np.maximum(n - 1.0, 1.0)), 0.0)
        self.n_of_task = np.bincount(task)
        self.n_tasks = len(tasks)
        total, square = np.bincount(task, self.r), np.bincount(task, self.r**2)
        spread = float((np.maximum(self.n_of_task - 1.0, 0.0) * square).sum())
        agree = float((total**2 - square).sum())
        self.phi = float(np.clip(agree / spread, -1.0, 1.0)) if spread > 0.0 else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the interval of φ: the jackknife over tasks, on the scale of artanh φ.

        Each task, or group of tasks, is left out in turn, and rates are fitted again.
        """
        n = self.n_tasks
        if n < 3:
            return -1.0, 1.0
        m = min(n, MOST_GROUPS)
        group = (np.cumsum(self.n_of_task > 0) % m)[self.task]
        left = []
        for out in range(m):
            rows = group != out
            rest = (self.task[rows], self.worker[rows], self.error[rows])
            left.append(Residuals(*rest, self.truth, self.n_workers).phi)
        z = np.arctanh(np.clip(left, -0.999, 0.999))
        error_of_z = float(np.sqrt((m - 1.0) / m * np.square(z - z.mean()).sum()))
        others = max(len(self.task) / n - 1.0, 1.0)
        half = float(student.ppf((1.0 + LEVEL) / 2.0, m - 1)) * max(
            error_of_z, (n * others) ** -0.5
        )
        centre = float(np.arctanh(np.clip(self.phi, -0.999, 0.999)))
        return float(np.tanh(centre - half)), float(np.tanh(centre + half))

    def table(self, values: Floats) -> sparse.csr_array:
        """Return values of the errors by task and worker: table.T @ table sums over pairs."""
        shape = (len(self.truth), self.n_workers)
        return sparse.csr_array(sparse.coo_array((values, (self.task, self.worker)), shape=shape))

    def pairs(self, chosen: Offsets) -> tuple[Floats, Floats]:
        """Return how many tasks two of some workers share, and φ of both, nan where unknown."""
        there = self.table(np.ones(len(self.task)))[:, chosen]
        r = self.table(self.r)[:, chosen]
        squares = ((r * r).T @ there).toarray()
        scale = np.sqrt(squares * squares.T)
        agree = (r.T @ r).toarray()
        phi = np.divide(agree, scale, out=np.full_like(agree, np.nan), where=scale > 0.0)
        return (there.T @ there).toarray(), phi


class LikelyCopies(NamedTuple):
    """Two workers that give the same wrong labels."""

    left: Hashable
    right: Hashable
    n_common: int  # tasks that both answered
    n_errors: int  # of these, on which either errs
    n_same: int  # of these, on which both give the same wrong label


@dataclass(frozen=True)
class Dependence:
    """How much errors are shared, given the class.

    `correlation` is (n, n) for `workers`: of the errors of two of them, nan where they share fewer
    than ten tasks. `mean_correlation`, φ, is over all pairs of responses on a task. `effective` is
    n / (1 + (n − 1) φ), n the mean number of responses of a task: the number of independent workers
    worth as much. Intervals are of 95 %, from a jackknife over tasks.
    """

    mean_correlation: float
    interval: tuple[float, float]
    n_responses: float
    effective: float
    effective_interval: tuple[float, float]
    copies: tuple[LikelyCopies, ...]
    by_gold: bool
    n_tasks: int
    workers: tuple[Hashable, ...] = field(repr=False)
    correlation: Floats = field(repr=False)

    def __str__(self) -> str:
        return " ".join(templating.sentences("tiebreak.judges", "dependence.txt", d=self))


@checks(model=FITTED)
def error_dependence(model: Any, gold: Any = None) -> Dependence:
    """Return how much the workers of a fitted model err together, given the class.

    Parameters
    ----------
    model
        Fitted.
    gold
        Known labels; only their tasks are looked at. Without them the model's own labels stand in
        for the truth, and **shared errors cannot be seen**: what most workers get wrong together
        counts as right. Some 50 known labels show them.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(400, 6, responses_per_task=6, shared=0.5, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> known, blind = error_dependence(model, crowd.gold), error_dependence(model)
    >>> bool(known.effective < blind.effective)
    True
    """
    crowd = plurality(model.responses_)
    if gold is None:
        truth = np.asarray(model.labels_.label)
    else:
        codes = tables.read_gold(gold).on(model.tasks_, model.classes_)
        truth = np.full(len(model.tasks_), -1, dtype=np.int32)
        truth[codes.task] = codes.label
    task, worker = crowd.task_of_each(), crowd.worker_of_each()
    known = truth[task] >= 0
    if not known.any():
        raise InputError("no-known-response")
    errs = known & (crowd.label_of_each() != truth[task])
    found = Residuals(
        task[known], worker[known], errs[known].astype(np.float64), truth, crowd.n_workers
    )
    low, high = found.interval()
    n = len(found.task) / found.n_tasks
    given = np.bincount(found.worker)
    busiest = np.argsort(-given, kind="stable")[:MOST_WORKERS]
    chosen = np.sort(busiest[given[busiest] > 0])
    common, phi = found.pairs(chosen)
    # Copies give the same wrong labels on nearly all tasks on which either errs.
    errors, wrong = (by_worker(crowd, errs, by_label=each)[:, chosen] for each in (False, True))
    same, both = ((each.T @ each).toarray() for each in (wrong, errors))
    of_left = (errors.T @ by_worker(crowd, known)[:, chosen]).toarray()
    either = of_left + of_left.T - both
    is_copy = (either >= LEAST_ERRORS) & (same >= COPIED * either) & (common >= LEAST_COMMON)
    left, right = np.nonzero(np.triu(is_copy, 1))
    order = np.argsort(-same[left, right], kind="stable")
    names = tuple(model.workers_[int(w)] for w in chosen)
    return Dependence(
        mean_correlation=found.phi,
        interval=(low, high),
        n_responses=n,
        effective=effective(n, found.phi),
        effective_interval=(effective(n, high), effective(n, low)),
        copies=tuple(
            LikelyCopies(names[a], names[b], *(int(each[a, b]) for each in (common, either, same)))
            for a, b in zip(left[order].tolist(), right[order].tolist(), strict=True)
        ),
        by_gold=gold is not None,
        n_tasks=found.n_tasks,
        workers=names,
        correlation=np.where(common >= LEAST_COMMON, phi, np.nan),
    )


class SharedErrors(NamedTuple):
    """What the errors of a panel have in common; intervals are of 95 %."""

    correlation: float  # φ
    interval: tuple[float, float]
    n_judges: float  # mean number of judges of a task
    effective: float
    effective_interval: tuple[float, float]
    one_more: float  # effective number with one more judge like these
    pairs: Floats  # (J, J): φ of two judges, nan where they share too few tasks
    clusters: tuple[tuple[int, ...], ...]  # of two judges and more, largest first


def shared_errors(table: GoldTable, n_judges: float | None = None) -> SharedErrors:
    """Return how much the judges of a panel err together, given the class.

    `n_judges` is the mean number of judges of a task; None: that of the table.
    """
    task, judge = np.nonzero(table.there)
    found = Residuals(task, judge, table.error[task, judge], table.truth, len(table.workers))
    phi = found.phi
    low, high = found.interval()
    n = len(task) / len(table.task) if n_judges is None else n_judges
    common, pairs = found.pairs(np.arange(len(table.workers)))
    # A pair's φ is drawn towards that of the panel.
    pairs = (common * np.nan_to_num(pairs) + PAIR_PRIOR * phi) / (common + PAIR_PRIOR)
    pairs[common < LEAST_SHARED] = np.nan
    np.fill_diagonal(pairs, 1.0)
    return SharedErrors(
        phi,
        (low, high),
        n,
        effective(n, phi),
        (effective(n, high), effective(n, low)),
        effective(n + 1.0, phi),
        pairs,
        _clusters(pairs, phi),
    )


def _clusters(pairs: Floats, phi: float) -> tuple[tuple[int, ...], ...]:
    """Return groups of judges whose errors are more alike than those of the panel."""
    n = len(pairs)
    if n < 3:
        return ()
    distance = 1.0 - np.where(np.isnan(pairs), phi, pairs)
    distance = np.clip((distance + distance.T) / 2.0, 0.0, None)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    label = fcluster(tree, 1.0 - min(phi + APART, 0.95), criterion="distance")
    groups = [tuple(np.flatnonzero(label == each).tolist()) for each in np.unique(label)]
    several = [group for group in groups if 2 <= len(group) < n]
    return tuple(sorted(several, key=len, reverse=True))
