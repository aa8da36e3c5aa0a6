"""Which judges a panel could do without, by known labels.

A judge is named to go only if two other judges are surely more often right than it is, on the known
tasks that they share. The error of that is at most one panel in twenty, so that the two best judges
are safe. The panel without the named judges is then scored on known tasks beside the whole one, by
the method that will be used (`held_out`): it is "better" where the whole interval of the difference
in log-loss is below 0, "about as good" where it is within a margin, and else nothing is said.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from tiebreak.kernels.layout import Floats, Mask
from tiebreak.panel.held_out import CrossValidation, Scored
from tiebreak.panel.table import GoldTable

LEVEL = 0.95
LEAST_GOLD = 20  # known tasks, below which no panel is compared with another
LOSS_MARGIN = 0.05  # log-loss a task: a panel that is surely no more behind is about as good …
ACCURACY_MARGIN = 0.03  # … if it is surely no more than this behind in accuracy, too
PRIOR_TASKS = 2.0  # tasks that stand for differences not seen yet
LOSS_SPREAD = 0.5  # log-loss by which two panels differ on such a task; in accuracy it is 1
BEHIND = 0.05  # accuracy, by which a judge to look at is surely behind the others
TOO_OFTEN = 0.05  # share of tasks, by which a class is surely said too often
MOST_SUSPECTS = 3


class PairedDifference(NamedTuple):
    """A mean difference over known tasks, with its interval."""

    value: float
    low: float
    high: float


class SmallPanel(NamedTuple):
    """A part of the panel that is surely about as good as the whole, or better."""

    workers: tuple[Hashable, ...]  # who stays
    left_out: tuple[Hashable, ...]
    log_loss: float
    whole_log_loss: float
    change: PairedDifference  # of log-loss
    accuracy: float
    whole_accuracy: float
    price: float | None  # per task; of the whole: `whole_price`
    whole_price: float | None

    @property
    def is_better(self) -> bool:
        """Whether labels are surely better: log-loss falls, and accuracy does not."""
        return self.change.high < 0.0 and self.accuracy >= self.whole_accuracy


class GoldGain(NamedTuple):
    """What known labels are worth: log-loss with half of them and with all."""

    n_known: int
    half: float
    all: float
    change: PairedDifference


class Suspect(NamedTuple):
    """A judge to look at: much less often right than the others, or too fond of one class."""

    worker: Hashable
    accuracy: float  # on known tasks that others answered, too
    others: float  # accuracy of the other judges there
    behind: PairedDifference  # its accuracy less theirs
    label: Hashable | None  # the class that it says too often, or None
    said: float  # how often it says that
    true: float  # how often that is so


def difference(a: Floats, b: Floats, spread: float, level: float = LEVEL) -> PairedDifference:
    """Return the mean of a − b with its interval, of Student's t.

    Some differences of size `spread` are added to the variance: tasks on which two panels never
    differed yet do not show that they never will.

    >>> difference(np.ones(20), np.ones(20), 1.0).high > 0.1
    True
    """
    change = a - b
    mean = change.mean()
    square = np.square(change - mean).sum()
    reach = float(_reach(square, np.array(len(change)), spread, level))
    return PairedDifference(float(mean), float(mean - reach), float(mean + reach))


def _reach(square: Floats, n: Floats, spread: float, level: float) -> Floats:
    freedom = n - 1.0 + PRIOR_TASKS
    variance = (square + PRIOR_TASKS * spread**2) / freedom / n
    return np.asarray(student.ppf((1.0 + level) / 2.0, freedom) * np.sqrt(variance))


def surely_better(table: GoldTable) -> Mask:
    """Return whether judge i is surely more often right than judge j, (J, J).

    Compared on the known tasks that both answered. A judge that is one of the two best has at most
    one better judge; each of the two has J − 1 chances of a false one more, so that every interval
    leaves out .05 / J, half of it on either side.
    """
    there = table.there.astype(np.float64)
    error = np.where(table.there, table.error, 0.0)
    n = there.T @ there
    total = there.T @ error  # [i, j]: errors of j where i answered
    square = there.T @ error**2
    mean = (total - total.T) / np.maximum(n, 1.0)  # errors of j less those of i
    spread = square + square.T - 2.0 * error.T @ error - n * mean**2
    level = 1.0 - (1.0 - LEVEL) / max(n.shape[0], 1)
    reach = _reach(np.maximum(spread, 0.0), np.maximum(n, 1.0), 1.0, level)
    return np.asarray((mean > reach) & (n >= LEAST_GOLD))


def outdone(table: GoldTable) -> list[int]:
    """Return the judges than whom two others are surely better, the least accurate first."""
    found = np.flatnonzero(surely_better(table).sum(axis=0) >= 2)
    if len(table.workers) - len(found) < 2:
        return []  # judges of different tasks: nobody is seen to be best
    wrong = np.nansum(table.error, axis=0) / np.maximum(table.there.sum(axis=0), 1)
    return sorted(found.tolist(), key=lambda j: (-wrong[j], str(table.workers[j])))


def smallest(
    validation: CrossValidation,
    whole: Scored,
    table: GoldTable,
    may_go: list[int],
    prices: Floats | None = None,
) -> SmallPanel | None:
    """Leave out as many of the judges that may go, the first ones first, as is surely harmless.

    All of them, half of them, the first: three panels at most are scored.
    """
    tries = sorted({len(may_go), (len(may_go) + 1) // 2, min(len(may_go), 1)} - {0}, reverse=True)
    for size in tries:
        stays = np.ones(len(table.workers), dtype=bool)
        stays[may_go[:size]] = False
        scored = validation.score(stays, f"the panel without {size} of {len(stays)} judges")
        level = 1.0 - (1.0 - LEVEL) / len(tries)
        change = difference(scored.loss, whole.loss, LOSS_SPREAD, level)
        lost = difference(whole.right, scored.right, 1.0, level)
        if change.high <= LOSS_MARGIN and lost.high <= ACCURACY_MARGIN:
            kept = np.flatnonzero(stays & validation.answers)
            return SmallPanel(
                tuple(table.workers[int(j)] for j in kept),
                tuple(table.workers[j] for j in may_go[:size]),
                float(scored.loss.mean()),
                float(whole.loss.mean()),
                change,
                float(scored.right.mean()),
                float(whole.right.mean()),
                None if prices is None else float(prices[kept].sum()),
                None if prices is None else float(prices.sum()),
            )
    return None


def gold_gain(validation: CrossValidation, whole: Scored) -> GoldGain:
    """Compare log-loss with half of the gold and with all of it, each on tasks not told."""
    everyone = np.ones(len(validation.answers), dtype=bool)
    half = validation.score(everyone, "the panel with half of the gold", half_of_gold=True)
    return GoldGain(
        len(whole.loss),
        float(half.loss.mean()),
        float(whole.loss.mean()),
        difference(whole.loss, half.loss, LOSS_SPREAD),
    )


def suspects(table: GoldTable, may_go: list[int]) -> tuple[Suspect, ...]:
    """Return judges to look at, the one furthest behind the others first.

    Either two judges are surely better, and the mean of the others is by far; or it says one class
    surely too often, and is not one of the two that are most often right.
    """
    n_judges, n_classes = table.share.shape[1:]
    n = table.there.sum(axis=0)
    wrong = (np.nansum(table.error, axis=0) + 1.0) / (n + 2.0)
    best = set(np.argsort(wrong, kind="stable")[:2].tolist())
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
        is_true = np.eye(n_classes + 1)[table.truth[rows]]
        excess = [
            difference(table.share[rows, j, k], is_true[:, k], 1.0, level) for k in range(n_classes)
        ]
        k = int(np.argmax([each.low for each in excess]))
        is_fond = excess[k].low > TOO_OFTEN
        if (j in may_go and behind.high < -BEHIND) or (is_fond and j not in best):
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
