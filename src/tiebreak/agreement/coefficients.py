"""Coefficients of agreement over all workers: Krippendorff's α, Fleiss' κ, percent agreement.

All of them need only how often each task got each label. Three tasks, classes x and y:

    task   labels     counts      a label can be paired with
    a      x x y      x 2, y 1    two others
    b      y y        y 2         one other
    c      x          x 1         none: left out everywhere

Tasks with equal counts add equal amounts, so that they are kept once with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tiebreak import tables
from tiebreak.arguments import SEED, checks, refused, whole
from tiebreak.kernels.layout import Floats
from tiebreak.options import as_floats, require_word
from tiebreak.responses import Responses

Level = Literal["nominal", "ordinal"]
LEVELS = ("nominal", "ordinal")
COVERAGE = 0.95  # of the bootstrap interval
MIN_TASKS = 2  # fewer cannot be resampled
MAX_CELLS = 1 << 24  # counts are compared with each other as a dense table below this


class Counts(NamedTuple):
    """How often labels were given to tasks that have at least two; equal tasks are one row."""

    table: sparse.csr_array  # (n_rows, n_classes)
    n_tasks_of: npt.NDArray[np.int64]  # (n_rows,): for how many tasks a row stands

    @property
    def n_tasks(self) -> int:
        """How many tasks have at least two labels."""
        return int(self.n_tasks_of.sum())

    def votes(self) -> Floats:
        """Count the labels of each row."""
        return np.asarray(self.table.sum(axis=1), dtype=np.float64).ravel()

    def squares(self) -> Floats:
        """Add up the squared counts of each row."""
        return np.asarray((self.table * self.table).sum(axis=1)).ravel()


class Alpha(NamedTuple):
    """Krippendorff's α, and the interval that 95 % of the resampled values lie in."""

    value: float  # NaN where all labels are of one class
    low: float | None
    high: float | None
    level: Level


@checks(responses=Responses)
def count_labels(responses: Responses) -> Counts:
    """Count labels by task and class, and join tasks with equal counts."""
    n_classes = responses.n_classes
    votes = np.diff(responses.start)
    cells = (responses.task_of_each(), responses.label_of_each())
    ones = np.ones(responses.n_responses)
    shape = (responses.n_tasks, n_classes)
    table = sparse.csr_array(sparse.coo_array((ones, cells), shape=shape))[votes >= 2]
    n_rows = table.shape[0]
    if not n_rows or n_rows * n_classes > MAX_CELLS:
        return Counts(table, np.ones(n_rows, dtype=np.int64))
    order = np.lexsort(table.toarray().T)
    dense = table.toarray()[order]
    is_new = np.append(True, (np.diff(dense, axis=0) != 0).any(axis=1))
    n_equal = np.diff(np.append(np.flatnonzero(is_new), n_rows))
    return Counts(sparse.csr_array(dense[is_new]), n_equal)


def as_counts(responses: Any) -> Counts:
    """Count labels, where that is not done yet; whatever `read_responses` takes will do."""
    if isinstance(responses, Counts):
        return responses
    return count_labels(tables.read_responses(responses))


def percent_agreement(responses: Any) -> float:
    """Return how often two labels of one task are equal, averaged over tasks."""
    counts = as_counts(responses)
    votes = counts.votes()
    share = (counts.squares() - votes) / (votes * (votes - 1.0))  # of equal pairs, by row
    return float((share * counts.n_tasks_of).sum() / counts.n_tasks_of.sum())


def fleiss_kappa(responses: Any) -> float:
    """Return Fleiss' κ (1971); tasks may have different numbers of labels.

    κ = (P − E) / (1 − E), P the mean share of equal pairs of a task and E = Σ p_c², with p_c the
    share of class c among all labels.
    """
    counts = as_counts(responses)
    totals = counts.table.T @ counts.n_tasks_of.astype(np.float64)
    by_chance = float(((totals / totals.sum()) ** 2).sum())
    if by_chance >= 1.0:
        return float("nan")
    return (percent_agreement(counts) - by_chance) / (1.0 - by_chance)


@checks(n_resamples=whole(0), random_state=SEED)
def krippendorff_alpha(
    responses: Any,
    level: Level = "nominal",
    *,
    order: npt.NDArray[np.int64] | None = None,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Alpha:
    """Return Krippendorff's α, and an interval from resampled tasks.

    Parameters
    ----------
    responses
        Responses, or anything that `read_responses` takes; or what `count_labels` returned.
    level
        "nominal": two labels are equal or not. "ordinal": classes have an order, and labels far
        apart count as more different.
    order
        Codes of the classes from lowest to highest; as they are sorted if not given.
    n_resamples
        How often tasks are drawn again, with replacement, for the interval; 0: no interval.
    """
    require_word("level", level, LEVELS)
    counts = as_counts(responses)
    if order is not None:
        by_rank = _checked_order(order, counts.table.shape[1])
        counts = counts._replace(table=sparse.csr_array(counts.table[:, by_rank]))
    disagreement = _nominal_ratio if level == "nominal" else _ordinal_ratio
    rows = _Rows.of(counts)
    value = 1.0 - disagreement(rows, counts.n_tasks_of.astype(np.float64))
    n_tasks = counts.n_tasks
    if not n_resamples or n_tasks < MIN_TASKS or np.isnan(value):
        return Alpha(value, None, None, level)
    random = np.random.default_rng(random_state)
    drawn = _resamples(counts.n_tasks_of, n_tasks, n_resamples, random)
    values = [1.0 - disagreement(rows, weights) for weights in drawn]
    outside = (1.0 - COVERAGE) / 2.0
    low, high = np.nanquantile(values, [outside, 1.0 - outside])
    return Alpha(value, float(low), float(high), level)


def _checked_order(order: npt.ArrayLike, n_classes: int) -> npt.NDArray[np.int64]:
    given = as_floats("order", order)
    if given.ndim != 1 or sorted(given.tolist()) != list(range(n_classes)):
        raise refused("order", f"the codes 0 to {n_classes - 1}, each once", order)
    return np.asarray(given, dtype=np.int64)


class _Rows(NamedTuple):
    """What α needs of each row of counts, whatever its weight."""

    table: sparse.csr_array
    by_class: sparse.csr_array  # the table, turned, so that totals are one product
    votes: Floats
    n_apart: Floats  # pairs of different labels, in both orders

    @classmethod
    def of(cls, counts: Counts) -> _Rows:
        votes = counts.votes()
        by_class = sparse.csr_array(counts.table.T)
        return cls(counts.table, by_class, votes, votes**2 - counts.squares())


def _nominal_ratio(rows: _Rows, weights: Floats) -> float:
    """Return D_o / D_e, where row i stands for weights[i] tasks.

    D_o = Σ_u Σ_{c,k} n_uc n_uk d_ck / (m_u − 1) and D_e = Σ_{c,k} n_c n_k d_ck / (n − 1); d_ck, the
    squared difference of two classes, is 1 unless c = k.
    """
    totals = rows.by_class @ weights
    n = totals.sum()
    observed = (weights * rows.n_apart / (rows.votes - 1.0)).sum()
    return _ratio(observed, (n**2 - (totals**2).sum()) / (n - 1.0))


def _ordinal_ratio(rows: _Rows, weights: Floats) -> float:
    """Return D_o / D_e with d_ck = (r_c − r_k)², r the mid-ranks of classes among all labels.

    Then Σ_{c,k} n_c n_k d_ck = 2 (n Σ n_c r_c² − (Σ n_c r_c)²).
    """
    totals = rows.by_class @ weights
    n = totals.sum()
    ranks = np.cumsum(totals) - totals / 2.0
    apart = 2.0 * (rows.votes * (rows.table @ ranks**2) - (rows.table @ ranks) ** 2)
    observed = (weights * apart / (rows.votes - 1.0)).sum()
    expected = 2.0 * (n * (totals @ ranks**2) - (totals @ ranks) ** 2)
    return _ratio(observed, expected / (n - 1.0))


def _ratio(observed: float, expected: float) -> float:
    return float(observed / expected) if expected > 0.0 else float("nan")


def _resamples(
    n_tasks_of: npt.NDArray[np.int64], n_tasks: int, n: int, random: np.random.Generator
) -> Iterator[Floats]:
    """Draw as many tasks as there are, n times; yield how often each row was drawn."""
    n_rows = len(n_tasks_of)
    if n_rows * 8 < n_tasks:  # few rows: one draw of all counts
        for _ in range(n):
            yield random.multinomial(n_tasks, n_tasks_of / n_tasks).astype(np.float64)
        return
    row = np.repeat(np.arange(n_rows), n_tasks_of)
    for _ in range(n):
        drawn = row[random.integers(0, n_tasks, n_tasks, dtype=np.int32)]
        yield np.bincount(drawn, minlength=n_rows).astype(np.float64)
