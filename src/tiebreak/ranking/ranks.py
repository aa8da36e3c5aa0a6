"""Ranks and how far to trust them: intervals, chance of being best, tiers, what to compare next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, xlogy
from scipy.stats import norm

from tiebreak.data.frames import as_frame, as_html, as_plain, as_text
from tiebreak.data.ids import Ids
from tiebreak.kernels.layout import Floats, Offsets

N_DRAWS = 4000
SHOWN = 10  # rows
NO_TIER = 0.05  # chance to be better than the first of a tier, below which a new one begins
NEAR = 5  # ranks: pairs further apart are not proposed
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # of a standard normal
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Items, the best first, with intervals that hold with probability `level`.

    `low` and `high` are of each strength alone, `joint_low` and `joint_high` hold for all at once.
    Ranks count within the `group` of items that met, directly or through others. `win_share` counts
    a tie as half a win.
    """

    item: Ids
    rank: Offsets
    rank_low: Offsets
    rank_high: Offsets
    strength: Floats
    low: Floats
    high: Floats
    joint_low: Floats
    joint_high: Floats
    probability_best: Floats
    tier: Offsets
    verdicts: Floats
    win_share: Floats
    group: Offsets
    level: float = 0.9
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"{as_text(*self._first())}{more}"

    def _repr_html_(self) -> str:
        return as_html(f"{len(self):,} items, intervals of {self.level:.0%}", *self._first())

    def _first(self) -> tuple[list[str], list[tuple[object, ...]]]:
        columns = self.columns()
        rows = zip(*(list(each)[:SHOWN] for each in columns.values()), strict=True)
        return list(columns), list(rows)

    def columns(self) -> dict[str, Any]:
        """Return the columns of ranking.csv; the group where there are several."""
        names = ["rank", "rank_low", "rank_high", "strength", "low", "high", "probability_best"]
        names += ["tier", "verdicts", "win_share", *["group"] * bool(self.group.any())]
        return {"item": self.item.values} | {name: getattr(self, name) for name in names}

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the first items as plain numbers and names."""
        columns = {name: list(each)[:most] for name, each in as_plain(self.columns()).items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def shared_tier(self) -> int:
        """Return the first tier of several items; 0 where each item has its own."""
        tier, size = np.unique(self.tier, return_counts=True)
        return int(tier[size > 1][0]) if (size > 1).any() else 0

    def to_frame(self, frame: str | None = None) -> Any:
        """Return a table of the kind the verdicts came in, or of another."""
        return as_frame(self.columns(), frame or self.frame)


def draws(strength: Floats, covariance: Floats, seed: int) -> Floats:
    """Draw strengths, (N_DRAWS, n_items), jointly normal."""
    value, vector = np.linalg.eigh(covariance)
    noise = np.random.default_rng(seed).normal(size=(N_DRAWS, len(strength)))
    return np.asarray(strength + noise @ (vector * np.sqrt(np.maximum(value, 0.0))).T)


def rank_items(
    items: Ids,
    strength: Floats,
    covariance: Floats,
    group: Offsets,
    counts: tuple[Floats, Floats],
    level: float,
    seed: int,
    frame: str,
) -> Ranking:
    """Rank items within their groups, by joint draws of their strengths."""
    n = len(items)
    error = np.sqrt(np.diag(covariance))
    found = {name: np.ones(n, dtype=np.int64) for name in ("rank", "rank_low", "rank_high", "tier")}
    best, joint = np.ones(n), np.zeros(n)
    for each in range(int(group.max()) + 1):
        at = np.flatnonzero(group == each)
        at = at[np.argsort(-strength[at], kind="stable")]
        if len(at) == 1:
            continue
        drawn = draws(strength[at], covariance[np.ix_(at, at)], seed)
        rank = (-drawn).argsort(axis=1).argsort(axis=1) + 1
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        low, high = np.quantile(rank, tails, axis=0, method="nearest")
        found["rank"][at] = 1 + np.arange(len(at))
        found["rank_low"][at], found["rank_high"][at] = low, high
        best[at] = (rank == 1).mean(axis=0)
        largest = np.abs((drawn - strength[at]) / np.maximum(error[at], 1e-300)).max(axis=1)
        joint[at] = np.quantile(largest, level)
        head, tier = 0, 1
        for k in range(len(at)):
            if (drawn[:, k] > drawn[:, head]).mean() < NO_TIER and k > head:
                head, tier = k, tier + 1
            found["tier"][at[k]] = tier
    tie_all = len(items) > 1 and not np.any(counts[1] != 0.5) and not np.ptp(strength)
    if tie_all:
        found["rank_low"][:], found["rank_high"][:], found["tier"][:] = 1, n, 1
    order = np.lexsort((np.arange(n), found["rank"], group))
    z = norm.ppf((1.0 + level) / 2.0)
    columns = {
        **found,
        "strength": strength,
        "low": strength - z * error,
        "high": strength + z * error,
        "joint_low": strength - joint * error,
        "joint_high": strength + joint * error,
        "probability_best": best,
        "verdicts": counts[0],
        "win_share": counts[1],
        "group": group,
    }
    ordered = {name: each[order] for name, each in columns.items()}
    return Ranking(items.take(order), **ordered, level=level, frame=frame)


class NextPair(NamedTuple):
    """A pair to compare next, and how much less doubtful the order near the top would be (bits)."""

    first: Any
    second: Any
    gain: float


def next_pairs(
    ranking: Ranking, strength: Floats, covariance: Floats, n: int, noise: float
) -> list[NextPair]:
    """Return the pairs whose next verdict tells most about the order near the top: [eq:next-pair].

    A verdict on a new prompt knows η up to `noise`, its variance there. Order of strength and
    covariance: that of the ranking.
    """
    rank = ranking.rank
    a, b = np.triu_indices(len(rank), 1)
    near = (np.abs(rank[a] - rank[b]) <= NEAR) & (ranking.group[a] == ranking.group[b])
    a, b = a[near], b[near]
    delta = strength[a] - strength[b]
    before = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
    p = 1.0 / (1.0 + np.exp(-delta))
    information = 1.0 / (1.0 / (p * (1.0 - p)) + noise)
    after = before / (1.0 + before * information)
    moved = delta[:, None] + np.sqrt(before - after)[:, None] * NODES
    gain = _doubt(delta, before) - _doubt(moved, after[:, None]) @ WEIGHTS
    gain /= np.minimum(rank[a], rank[b])
    first = np.argsort(-gain, kind="stable")[:n]
    return [
        NextPair(ranking.item[int(a[k])], ranking.item[int(b[k])], float(gain[k])) for k in first
    ]


def _doubt(delta: Floats, variance: Floats) -> Floats:
    """Return the entropy, in bits, of which of two items is better."""
    p = ndtr(delta / np.sqrt(np.maximum(variance, 1e-300)))
    return np.asarray(-(xlogy(p, p) + xlogy(1.0 - p, 1.0 - p)) / np.log(2.0))
