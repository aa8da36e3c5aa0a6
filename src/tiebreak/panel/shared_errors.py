"""Errors that judges share: their correlation given the class, clusters, the effective number.

r_ij is the error of judge j on task i less the judge's error rate on tasks of that class. The
correlation of the panel is φ = Σ_i Σ_a≠b r_ia r_ib / Σ_i Σ_a≠b (r_ia² + r_ib²) / 2; n judges are
worth n / (1 + (n − 1) φ) who err apart, [eq:effective-judges].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import t as student

from tiebreak.error_dependence import effective
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.panel.table import GoldTable

LEVEL = 0.95
MOST_GROUPS = 100  # of the jackknife: with more tasks, several are left out together
PAIR_PRIOR = 20.0  # tasks' worth of the panel's φ that stand for a pair before its own tasks count
LEAST_COMMON = 5  # tasks that two judges share, for a correlation
APART = 0.15  # above the panel's φ: judges whose errors are so much more alike are one cluster


class SharedErrors(NamedTuple):
    """What the panel's errors have in common; intervals are of 95 %."""

    correlation: float  # φ
    interval: tuple[float, float]
    n_judges: float  # on a task, in the mean
    effective: float
    effective_interval: tuple[float, float]
    one_more: float  # effective number if one more judge like these were added
    pairs: Floats  # (J, J): φ of two judges, nan where they share too few tasks
    clusters: tuple[tuple[int, ...], ...]  # of two judges and more, largest first


def shared_errors(table: GoldTable, n_judges: float | None = None) -> SharedErrors:
    """Return how much the judges err together, given the class.

    `n_judges` answer a task in the mean; None: as on the tasks of the table.
    """
    agree, spread = _by_task(table)
    phi = _ratio(agree.sum(), spread.sum())
    low, high = _interval(table, phi)
    n = float(table.there.sum(axis=1).mean()) if n_judges is None else n_judges
    pairs = _pairs(table, phi)
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


def residuals(table: GoldTable) -> Floats:
    """Return errors less the rate of each judge on each class, (n, J); 0 where it did not answer.

    A class with one known task has no spread of its own: such tasks are taken together, as one
    class.
    """
    group = _class_groups(table.truth)
    there = table.there
    error = np.where(there, table.error, 0.0)
    out = np.zeros_like(error)
    for each in np.unique(group):
        rows = group == each
        n = there[rows].sum(axis=0)
        rate = error[rows].sum(axis=0) / np.maximum(n, 1)
        # n / (n − 1) takes out that the rate was fitted to these very tasks.
        scale = np.sqrt(n / np.maximum(n - 1.0, 1.0))
        out[rows] = np.where(there[rows] & (n > 1), (error[rows] - rate) * scale, 0.0)
    return out


def _class_groups(truth: Codes) -> Codes:
    """Return the class of each task, with classes of fewer than three tasks as one."""
    n_each = np.bincount(truth)
    rare = n_each[truth] < 3
    return np.where(rare, -1, truth)


def _by_task(table: GoldTable) -> tuple[Floats, Floats]:
    r = residuals(table)
    n_others = np.maximum(table.there.sum(axis=1) - 1.0, 0.0)
    square = np.square(r).sum(axis=1)
    return r.sum(axis=1) ** 2 - square, n_others * square


def _ratio(agree: float, spread: float) -> float:
    return float(np.clip(agree / spread, -1.0, 1.0)) if spread > 0.0 else 0.0


def _interval(table: GoldTable, phi: float) -> tuple[float, float]:
    """Return the interval of φ: the jackknife over tasks, on the scale of log-odds of (1 + φ) / 2.

    Each task is left out in turn, and rates are fitted again.
    """
    n = len(table.task)
    if n < 3:
        return -1.0, 1.0
    m = min(n, MOST_GROUPS)
    group = np.random.default_rng(0).permutation(n) % m
    left = []
    for out in range(m):
        agree, spread = _by_task(table.rows(np.flatnonzero(group != out)))
        left.append(_ratio(agree.sum(), spread.sum()))
    z = np.arctanh(np.clip(left, -0.999, 0.999))
    error = float(np.sqrt((m - 1.0) / m * np.square(z - z.mean()).sum()))
    error = max(error, 1.0 / np.sqrt(n * max(table.there.sum(axis=1).mean() - 1.0, 1.0)))
    reach = float(student.ppf((1.0 + LEVEL) / 2.0, m - 1)) * error
    centre = float(np.arctanh(np.clip(phi, -0.999, 0.999)))
    return float(np.tanh(centre - reach)), float(np.tanh(centre + reach))


def _pairs(table: GoldTable, phi: float) -> Floats:
    """Return φ of each pair, drawn towards that of the panel; 1 on the diagonal."""
    r = residuals(table)
    there = table.there.astype(np.float64)
    agree = r.T @ r
    square = np.square(r).T @ there
    common = there.T @ there
    scale = np.sqrt(square * square.T)
    own = np.divide(agree, scale, out=np.zeros_like(agree), where=scale > 0.0)
    found = (common * own + PAIR_PRIOR * phi) / (common + PAIR_PRIOR)
    found[common < LEAST_COMMON] = np.nan
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
