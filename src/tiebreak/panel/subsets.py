"""Smaller panels: what a judge adds, and the smallest panel that is about as good as the whole.

Every panel is scored on known tasks by the method that will be used (`held_out`), task by task
beside the whole panel. What is said follows from the interval of the difference: "better without"
where all of it is below 0, "about as good" where all of it is within a margin, else nothing.

Which small panels are tried is found without a fit: judges are added one by one, the one that
lowers log-loss most (for its price) first, with confusion matrices counted on gold. In each fold
that uses the gold of the others, so that no judge is chosen and praised by one label.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.panel.held_out import LOSS_FLOOR, N_FOLDS, CrossValidation, Scored
from tiebreak.panel.table import GoldTable

Rows = npt.NDArray[Any]  # places among the known tasks

LEVEL = 0.95
LEAST_GOLD = 20  # known tasks, below which no panel is compared with another
MOST_LEFT_OUT = 12  # judges: of more, only those that look bad on their own are left out in turn
SIZES = (12, 8, 5, 3, 2, 1)  # of small panels that are tried, where there are more than 13 judges
LOSS_MARGIN = 0.05  # log-loss a task: a panel that is surely no more behind is about as good …
ACCURACY_MARGIN = 0.03  # … if it is surely no more than this behind in accuracy, too
PRIOR_TASKS = 2.0  # tasks that stand for differences not seen yet
LOSS_SPREAD = 0.5  # log-loss by which two panels differ on such a task; in accuracy it is 1
STRENGTH = 2.0  # tasks of each class that stand for a judge like all others
MOST_RANKED = 1000  # known tasks by which judges are ranked
LARGE = 1e9  # a loss that no judge has
BEHIND = 0.05  # accuracy, by which a judge to look at is surely behind the others
TOO_OFTEN = 0.05  # share of tasks, by which a class is surely said too often
MOST_SUSPECTS = 3


class Difference(NamedTuple):
    """A mean difference over known tasks, with its interval."""

    value: float
    low: float
    high: float


class JudgeEffect(NamedTuple):
    """What leaving one judge out does; intervals of 95 %, for all judges tried together.

    A positive log-loss means that the judge is missed.
    """

    worker: Hashable
    log_loss: Difference
    accuracy: Difference

    @property
    def is_harmful(self) -> bool:
        """Whether labels are surely better without it: log-loss falls, and accuracy does not."""
        return self.log_loss.high < 0.0 and self.accuracy.value >= 0.0


class SmallPanel(NamedTuple):
    """A panel that is surely within a margin of the whole, by cross-validation on gold."""

    workers: tuple[Hashable, ...]
    log_loss: float
    whole_log_loss: float
    change: Difference  # of log-loss
    accuracy: float
    whole_accuracy: float
    price: float | None  # per task; of the whole: `whole_price`
    whole_price: float | None


class GoldGain(NamedTuple):
    """What known labels are worth: log-loss with half of them and with all."""

    n_known: int
    half: float
    all: float
    change: Difference


def difference(a: Floats, b: Floats, spread: float, level: float = LEVEL) -> Difference:
    """Return the mean of a − b with its interval, of Student's t.

    Some differences of size `spread` are added to the variance: tasks on which two panels never
    differed yet do not show that they never will.

    >>> difference(np.ones(20), np.ones(20), 1.0).high > 0.1
    True
    """
    change = a - b
    n = len(change)
    mean = float(change.mean())
    square = float(np.square(change - mean).sum()) + PRIOR_TASKS * spread**2
    freedom = n - 1.0 + PRIOR_TASKS
    reach = float(student.ppf((1.0 + level) / 2.0, freedom)) * np.sqrt(square / freedom / n)
    return Difference(mean, mean - reach, mean + reach)


def effects(
    validation: CrossValidation, whole: Scored, table: GoldTable, among: list[int]
) -> tuple[JudgeEffect, ...]:
    """Return what leaving out each of some judges does, the most missed first."""
    found = []
    level = 1.0 - (1.0 - LEVEL) / max(len(among), 1)  # one false word in twenty panels, not judges
    for j in among:
        rest = table.there.any(axis=0)
        rest[j] = False
        if not rest.any():
            continue
        scored = validation.score(rest, f"the panel without {table.workers[j]}")
        found.append(
            JudgeEffect(
                table.workers[j],
                difference(scored.loss, whole.loss, LOSS_SPREAD, level),
                difference(scored.right, whole.right, 1.0, level),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.log_loss.value))


def smallest(
    validation: CrossValidation,
    whole: Scored,
    table: GoldTable,
    dependence: float,
    prices: Floats | None = None,
) -> SmallPanel | None:
    """Return the smallest panel that is surely about as good as the whole; None: none is.

    Sizes are tried from the largest down, until one may be worse: the first mistake ends it.
    With `prices` judges are added by gain for the price.
    """
    answers = int(np.count_nonzero(table.there.any(axis=0)))
    sizes = [size for size in SIZES if size < answers]
    if answers <= SIZES[0] + 1:
        sizes = list(range(answers - 1, 0, -1))
    if not sizes:
        return None
    n_judges = len(table.workers)
    paths = [
        path(table, np.flatnonzero(validation.fold != fold), sizes[0], dependence, prices)
        for fold in range(N_FOLDS)
    ]
    members = path(table, np.arange(len(table.task)), sizes[0], dependence, prices)
    best = None
    for size in sizes:
        some = [np.isin(np.arange(n_judges), each[:size]) for each in paths]
        scored = validation.score(some, f"panels of {size}")
        change = difference(scored.loss, whole.loss, LOSS_SPREAD)
        lost = difference(whole.right, scored.right, 1.0)
        if change.high > LOSS_MARGIN or lost.high > ACCURACY_MARGIN:
            break
        best = SmallPanel(
            tuple(table.workers[j] for j in members[:size]),
            float(scored.loss.mean()),
            float(whole.loss.mean()),
            change,
            float(scored.right.mean()),
            float(whole.right.mean()),
            None if prices is None else float(prices[members[:size]].sum()),
            None if prices is None else float(prices.sum()),
        )
    return best


def gold_gain(validation: CrossValidation, whole: Scored, everyone: Mask) -> GoldGain:
    """Compare log-loss with half of the gold and with all of it, each on tasks not told."""
    half = validation.score(everyone, "half of the gold", half_of_gold=True)
    return GoldGain(
        len(whole.loss),
        float(half.loss.mean()),
        float(whole.loss.mean()),
        difference(whole.loss, half.loss, LOSS_SPREAD),
    )


def path(
    table: GoldTable, rows: Rows, longest: int, dependence: float, prices: Floats | None = None
) -> list[int]:
    """Return judges in the order in which they are added: most gain (for the price) first.

    Confusion matrices are counted on the tasks of `rows`, less the task that is scored. Scores are
    scaled by 1 / (1 + dependence · (n − 1)) for n judges, as a fit does.
    """
    some = table.rows(rows[table.truth[rows] < len(table.classes)][:MOST_RANKED])
    terms, prior = _terms(some)
    answers = some.there.any(axis=0)  # who is silent neither helps nor harms: last
    members = np.zeros(len(table.workers), dtype=bool)
    scores = np.tile(prior, (len(some.task), 1))
    weight = np.zeros(len(some.task))
    now = float(_losses(scores, weight, some.truth, dependence).mean()) if len(rows) else 0.0
    order: list[int] = []
    for _ in range(longest):
        loss = np.full(len(members), np.inf)
        for j in np.flatnonzero(~members & answers):
            added = _losses(
                scores + terms[:, j], weight + some.weight[:, j], some.truth, dependence
            )
            loss[j] = float(added.mean())
        gain = np.where(np.isfinite(loss), now - loss, -LARGE)
        if prices is not None:
            # A gain per price; where nothing gains, what harms least.
            gain = np.where(gain > 0.0, gain / np.maximum(prices, 1e-12), gain)
        j = int(np.argmax(np.where(members, -np.inf, gain)))
        order.append(j)
        members[j] = True
        scores = scores + terms[:, j]
        weight = weight + some.weight[:, j]
        now = float(loss[j])
    return order


def _terms(table: GoldTable) -> tuple[Floats, Floats]:
    """Return what each judge says of each class, (n, J, K), and the log shares of classes, (K,).

    A term is weight · Σ_l share(l) log θ(k, l), θ counted on all tasks but the one it is of.
    """
    n_classes = len(table.classes)
    one_hot = np.eye(n_classes)[table.truth]
    counts = np.einsum("nk,njl->jkl", one_hot, table.share)
    right = np.einsum("jkk->", counts) / max(float(counts.sum()), 1.0)
    wrong = (1.0 - right) / max(n_classes - 1, 1)
    like_all = STRENGTH * np.where(np.eye(n_classes) > 0.0, max(right, 0.01), max(wrong, 0.01))
    theta = counts + like_all
    terms = np.einsum(
        "njl,jkl->njk", table.share, np.log(theta / theta.sum(axis=2, keepdims=True))
    )
    own = np.swapaxes(theta[:, table.truth], 0, 1) - table.share  # (n, J, K), of the true class
    of_truth = (table.share * np.log(own / own.sum(axis=2, keepdims=True))).sum(axis=2)
    np.put_along_axis(terms, table.truth[:, None, None].astype(np.int64), of_truth[:, :, None], 2)
    prior = (one_hot.sum(axis=0) + 1.0) / (len(one_hot) + n_classes)
    return terms * table.weight[:, :, None], np.log(prior)


def _losses(scores: Floats, weight: Floats, truth: Codes, dependence: float) -> Floats:
    scale = 1.0 / (1.0 + dependence * np.maximum(weight - 1.0, 0.0))
    scaled = scale[:, None] * scores
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    of_truth = scaled[np.arange(len(truth)), truth] - np.log(np.exp(scaled).sum(axis=1))
    return np.asarray(-np.maximum(of_truth, np.log(LOSS_FLOOR)))


class Suspect(NamedTuple):
    """A judge to look at: much less often right than the others, or too fond of one class."""

    worker: Hashable
    accuracy: float  # on known tasks that others answered, too
    others: float  # accuracy of the other judges there
    behind: Difference  # its accuracy less theirs
    label: Hashable | None  # the class that it says too often, or None
    said: float  # how often it says that
    true: float  # how often that is so


def suspects(table: GoldTable) -> tuple[Suspect, ...]:
    """Return judges to look at, the one furthest behind the others first.

    A judge that is surely better than the others is not among them, whatever it prefers to say.
    """
    n_judges, n_classes = table.share.shape[1:]
    found = []
    for j in range(n_judges):
        others = np.delete(table.error, j, axis=1)
        n_others = np.isfinite(others).sum(axis=1)
        rows = np.flatnonzero(table.there[:, j] & (n_others > 0))
        if len(rows) < LEAST_GOLD:
            continue
        mine = 1.0 - table.error[rows, j]
        theirs = 1.0 - np.nansum(others[rows], axis=1) / n_others[rows]
        behind = difference(mine, theirs, 1.0, 1.0 - (1.0 - LEVEL) / n_judges)
        level = 1.0 - (1.0 - LEVEL) / (n_judges * n_classes)
        is_true = np.eye(n_classes + 1)[np.minimum(table.truth[rows], n_classes)]
        excess = [
            difference(table.share[rows, j, k], is_true[:, k], 1.0, level)
            for k in range(n_classes)
        ]
        k = int(np.argmax([each.low for each in excess]))
        is_fond = excess[k].low > TOO_OFTEN
        if behind.high < -BEHIND or (is_fond and behind.low < 0.0):
            found.append(
                Suspect(
                    table.workers[j],
                    float(mine.mean()),
                    float(theirs.mean()),
                    behind,
                    table.classes[k] if is_fond else None,
                    float(table.share[rows, j, k].mean()) if is_fond else np.nan,
                    float(is_true[:, k].mean()) if is_fond else np.nan,
                )
            )
    return tuple(sorted(found, key=lambda each: each.behind.value)[:MOST_SUSPECTS])
