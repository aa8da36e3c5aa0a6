"""How many known labels are still worth buying: log-loss as gold grows, and where that ends.

The judges' confusion matrices, five tasks' worth a row, are counted on with some of the gold, and
the rest is scored: "one step", which needs no fit. Its log-loss with m labels is close to
a + b / m; b / m is what more labels can still win, [eq:gold-worth].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats
from tiebreak.panel.subsets import Rows, Scores
from tiebreak.panel.table import FLOOR, GoldTable, log_terms

STRENGTH = 5.0  # tasks of each class that the fitted confusion matrices count for
N_DRAWS = 10
SHARES = (0.25, 0.5, 0.75)  # of the gold that is learnt from
LEAST_GOLD = 16
WORTH = 0.01  # log-loss a task: a smaller gain is not worth more labels


class GoldWorth(NamedTuple):
    """What more known labels would win, in log-loss a task."""

    n_known: int
    left_to_win: float  # by any number of them
    next_gain: float  # by as many again
    n_more: int  # labels until less than WORTH is left to win


def gold_worth(
    table: GoldTable, confusion: Floats, prior: Floats, dependence: float, seed: int = 0
) -> GoldWorth | None:
    """Return how many more known labels are worth buying; None where there are too few to tell."""
    inside = np.flatnonzero(table.truth < len(table.classes))
    n = len(inside)
    if n < LEAST_GOLD:
        return None
    rng = np.random.default_rng(seed)
    rows = []
    for share in SHARES:
        m = max(int(share * n), 4)
        losses = []
        for _ in range(N_DRAWS):
            order = inside[rng.permutation(n)]
            losses.append(_loss(table, confusion, prior, dependence, order[:m], order[m:]))
        rows.append((1.0 / m, float(np.mean(losses))))
    x, y = np.array(rows).T
    slope = max(float(np.polyfit(x, y, 1)[0]), 0.0)
    more = max(slope / WORTH - n, 0.0)
    return GoldWorth(n, slope / n, slope / n - slope / (2 * n), int(np.ceil(more / 10.0) * 10))


def _loss(
    table: GoldTable, confusion: Floats, prior: Floats, dependence: float, seen: Rows, rest: Rows
) -> float:
    n_classes = len(table.classes)
    one_hot = np.eye(n_classes)[table.truth[seen]]
    counts = np.einsum("nk,njl->jkl", one_hot, table.share[seen])
    theta = STRENGTH * np.maximum(confusion, FLOOR) + counts
    theta /= theta.sum(axis=2, keepdims=True)
    shares = STRENGTH * prior + one_hot.sum(axis=0)
    held = table.rows(rest)
    scores = Scores(
        log_terms(held, theta),
        held.weight,
        np.log(shares / shares.sum()),
        held.truth,
        dependence,
    )
    return float(scores.losses(np.ones(len(table.workers), dtype=bool)).mean())
