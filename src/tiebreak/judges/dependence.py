"""Shared errors: what n judges are worth in judges that err independently.

r_ij is the error of judge j on task i less the judge's error rate on tasks of that class. The
correlation of a panel is

    φ = Σ_i Σ_a≠b r_ia r_ib / Σ_i Σ_a≠b (r_ia² + r_ib²) / 2,

and n judges are worth n / (1 + (n − 1) φ) independent ones, [eq:effective-judges].

`error_dependence` takes any crowd, with or without gold; `shared_errors` takes the few judges of a
panel on known tasks, several runs of a judge included.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import t as student

from tiebreak import tables
from tiebreak.arguments import FITTED, SEED, checks
from tiebreak.data.weighing import plurality
from tiebreak.errors import InputError
from tiebreak.judges.agreement import COPIED, LEAST_ERRORS, by_worker
from tiebreak.judges.known import LEVEL, GoldTable
from tiebreak.kernels.layout import Codes, Floats, Mask

N_BOOTSTRAP = 400
INTERVAL = (2.5, 97.5)  # percent of the bootstrap draws
MOST_WORKERS = 1000  # in tables of pairs: those with the most responses
LEAST_COMMON = 10  # tasks that two workers share, for a correlation of their own

MOST_GROUPS = 100  # of the jackknife: with more tasks, several are left out together
PAIR_PRIOR = 20.0  # tasks' worth of the panel's φ in the φ of a pair
LEAST_SHARED = 5  # known tasks that two judges share, for a correlation
APART = 0.15  # above the panel's φ: judges whose errors are so much more alike are one cluster


def effective(n: float, phi: float) -> float:
    """Return n / (1 + (n − 1) φ), but at most n: errors that offset each other are luck.

    >>> round(effective(9, 0.4), 2)
    2.14
    """
    return float(n / (1.0 + max(n - 1.0, 0.0) * max(phi, 0.0)))


def _sums(total: Any, square: Any, n: Any) -> tuple[Floats, Floats]:
    """Return, for each task, Σ over ordered pairs of r_a r_b, and of (r_a² + r_b²) / 2."""
    return np.asarray(total**2 - square), np.asarray(np.maximum(n - 1.0, 0.0) * square)


def _phi(agree: Floats, spread: Floats) -> float:
    of_all = float(spread.sum())
    return float(agree.sum() / of_all) if of_all > 0.0 else 0.0


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
    worth as much. Intervals are of 95 %, from a bootstrap over tasks.
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
        low, high = self.effective_interval
        words = (
            f"{self.n_responses:.1f} responses a task are worth {self.effective:.1f} "
            f"({low:.1f} to {high:.1f}) that err apart; mean correlation of errors "
            f"{self.mean_correlation:.2f}, on {self.n_tasks:,} tasks."
        )
        if self.copies:
            names = ", ".join(f"{c.left} and {c.right}" for c in self.copies[:5])
            words += f" Likely copies: {names}."
        if not self.by_gold:
            words += (
                " Without gold shared errors cannot be seen: what most workers get wrong counts as "
                "right. Some 50 known labels show them."
            )
        return words


@checks(model=FITTED, random_state=SEED)
def error_dependence(model: Any, gold: Any = None, *, random_state: int | None = 0) -> Dependence:
    """Return how much the workers of a fitted model err together, given the class.

    Parameters
    ----------
    model
        Fitted.
    gold
        Known labels; only their tasks are looked at. Without them the model's own labels stand in
        for the truth, and **shared errors cannot be seen**: what most workers get wrong together
        counts as right. Some 50 known labels show them.
    random_state
        Of the bootstrap for the intervals.

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
    truth = _truth(model, gold)[crowd.task_of_each()]
    known = truth >= 0
    if not known.any():
        raise InputError("no-known-response")
    task, worker = crowd.task_of_each()[known], crowd.worker_of_each()[known]
    errs = np.zeros(len(known))
    errs[known] = crowd.label_of_each()[known] != truth[known]
    cell = worker.astype(np.int64) * crowd.n_classes + truth[known]
    rate = np.bincount(cell, weights=errs[known]) / np.maximum(np.bincount(cell), 1)
    residual = np.zeros(len(known))
    residual[known] = errs[known] - rate[cell]
    n_of_task = np.bincount(task)
    total, square = (
        np.bincount(task, weights=each) for each in (residual[known], residual[known] ** 2)
    )
    agree, spread = _sums(total, square, n_of_task)
    scored = np.flatnonzero(n_of_task)
    n_each = len(task) / len(scored)
    found = _phi(agree, spread)
    rng = np.random.default_rng(random_state)
    drawn = rng.choice(scored, size=(N_BOOTSTRAP, len(scored)))
    again = [_phi(agree[tasks], spread[tasks]) for tasks in drawn]
    low, high = np.percentile(again, INTERVAL)
    given = np.bincount(worker, minlength=crowd.n_workers)
    busiest = np.argsort(-given, kind="stable")[:MOST_WORKERS]
    chosen = np.sort(busiest[given[busiest] > 0])
    names = tuple(model.workers_[int(w)] for w in chosen)
    there, errors, residuals = (
        by_worker(crowd, known, each)[:, chosen] for each in (None, errs, residual)
    )
    common = (there.T @ there).toarray()
    agreed = (residuals.T @ residuals).toarray()
    squares = ((residuals * residuals).T @ there).toarray()
    scale = np.sqrt(squares * squares.T)
    enough = (common >= LEAST_COMMON) & (scale > 0.0)
    # Copies give the same wrong labels on nearly all tasks on which either errs.
    of_left = (errors.T @ there).toarray()
    either = of_left + of_left.T - (errors.T @ errors).toarray()
    same = np.zeros(common.shape)
    for k in range(crowd.n_classes):
        wrong = by_worker(crowd, (errs > 0.0) & (crowd.label_of_each() == k))[:, chosen]
        same += (wrong.T @ wrong).toarray()
    is_copy = (either >= LEAST_ERRORS) & (same >= COPIED * either) & (common >= LEAST_COMMON)
    left, right = np.nonzero(np.triu(is_copy, 1))
    order = np.argsort(-same[left, right], kind="stable")
    copies = tuple(
        LikelyCopies(names[a], names[b], *(int(each[a, b]) for each in (common, either, same)))
        for a, b in zip(left[order].tolist(), right[order].tolist(), strict=True)
    )
    return Dependence(
        mean_correlation=found,
        interval=(float(low), float(high)),
        n_responses=n_each,
        effective=effective(n_each, found),
        effective_interval=(effective(n_each, high), effective(n_each, low)),
        copies=copies,
        by_gold=gold is not None,
        n_tasks=len(scored),
        workers=names,
        correlation=np.divide(agreed, scale, out=np.full(scale.shape, np.nan), where=enough),
    )


def _truth(model: Any, gold: Any) -> Codes:
    """Return the class of each task; −1 where it is not known."""
    if gold is None:
        return np.asarray(model.labels_.label)
    known = tables.read_gold(gold).on(model.tasks_, model.classes_)
    truth = np.full(len(model.tasks_), -1, dtype=np.int32)
    truth[known.task] = known.label
    return truth


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
    r = residuals(table.error, table.truth)
    phi = _panel_phi(r, table.there)
    low, high = _jackknife(table, phi)
    n = float(table.there.sum(axis=1).mean()) if n_judges is None else n_judges
    pairs = _pairs(r, table.there.astype(np.float64), phi)
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


def residuals(error: Floats, truth: Codes) -> Floats:
    """Return errors less the rate of each judge on each class, (n, J); 0 without an answer.

    A class with one known task has no spread of its own: classes of fewer than three tasks are
    taken together.
    """
    group = np.where(np.bincount(truth)[truth] < 3, -1, truth)
    there = np.isfinite(error)
    error = np.where(there, error, 0.0)
    out = np.zeros_like(error)
    for each in np.unique(group):
        rows = group == each
        n = there[rows].sum(axis=0)
        rate = error[rows].sum(axis=0) / np.maximum(n, 1)
        # n / (n − 1): the rate was fitted to these very tasks.
        scale = np.sqrt(n / np.maximum(n - 1.0, 1.0))
        out[rows] = np.where(there[rows] & (n > 1), (error[rows] - rate) * scale, 0.0)
    return out


def _panel_phi(r: Floats, there: Mask) -> float:
    sums = _sums(r.sum(axis=1), np.square(r).sum(axis=1), there.sum(axis=1))
    return float(np.clip(_phi(*sums), -1.0, 1.0))


def _jackknife(table: GoldTable, phi: float) -> tuple[float, float]:
    """Return the interval of φ: the jackknife over tasks, on the scale of artanh φ.

    Each task is left out in turn, and rates are fitted again.
    """
    n = len(table.task)
    if n < 3:
        return -1.0, 1.0
    m = min(n, MOST_GROUPS)
    group = np.random.default_rng(0).permutation(n) % m
    left = []
    for out in range(m):
        rows = group != out
        error = table.error[rows]
        left.append(_panel_phi(residuals(error, table.truth[rows]), np.isfinite(error)))
    z = np.arctanh(np.clip(left, -0.999, 0.999))
    error_of_z = float(np.sqrt((m - 1.0) / m * np.square(z - z.mean()).sum()))
    least = 1.0 / np.sqrt(n * max(table.there.sum(axis=1).mean() - 1.0, 1.0))
    half = float(student.ppf((1.0 + LEVEL) / 2.0, m - 1)) * max(error_of_z, least)
    centre = float(np.arctanh(np.clip(phi, -0.999, 0.999)))
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def _pairs(r: Floats, there: Floats, phi: float) -> Floats:
    """Return φ of each pair, drawn towards that of the panel; 1 on the diagonal."""
    agree = r.T @ r
    square = np.square(r).T @ there
    common = there.T @ there
    scale = np.sqrt(square * square.T)
    own = np.divide(agree, scale, out=np.zeros_like(agree), where=scale > 0.0)
    found = (common * own + PAIR_PRIOR * phi) / (common + PAIR_PRIOR)
    found[common < LEAST_SHARED] = np.nan
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


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
