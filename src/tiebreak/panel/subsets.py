"""Smaller panels: what a judge adds, and the smallest panel that is about as good as the whole.

A panel of some judges scores a task by the sum of what they say, scaled by how much they err
together, as a fit does with its workers' confusion matrices held. Judges are added one by one, the
one that lowers log-loss on known tasks most (for its price) first. The path is made on four fifths
of the gold and scored on the rest, in turn, so that no judge is chosen and praised by one label.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.panel.table import GoldTable

Rows = npt.NDArray[Any]  # places among the known tasks

N_FOLDS = 5
MOST_JUDGES = 12  # of a path: after five nothing is gained on real panels
MOST_TASKS = 1000
LOSS_FLOOR = 1e-4
LARGE = 1e9  # a loss that no judge has
TIE = 1e-12  # log-losses no further apart are equal


class JudgeEffect(NamedTuple):
    """What leaving one judge out does: positive log-loss means that the judge is missed."""

    worker: Hashable
    log_loss: float
    error: float  # standard error
    accuracy: float


class SmallPanel(NamedTuple):
    """A panel within one standard error of the whole, by cross-validated log-loss."""

    workers: tuple[Hashable, ...]
    log_loss: float
    whole_log_loss: float
    error: float  # standard error of the difference
    price: float | None  # per task; of the whole: `whole_price`
    whole_price: float | None


class Scores(NamedTuple):
    """What judges say of known tasks: terms (n, J, K), weights (n, J), log prior (K,)."""

    terms: Floats
    weight: Floats
    prior: Floats
    truth: Codes
    dependence: float

    def losses(self, members: Mask) -> Floats:
        """Return the log-loss of each task by a panel of some judges."""
        scores = self.prior + self.terms[:, members].sum(axis=1)
        return self._loss(scores, self.weight[:, members].sum(axis=1))

    def right(self, members: Mask) -> Floats:
        """Return which tasks a panel of some judges gets right."""
        scores = self.prior + self.terms[:, members].sum(axis=1)
        return np.asarray(scores.argmax(axis=1) == self.truth, dtype=np.float64)

    def added(self, members: Mask, rows: Rows) -> Floats:
        """Return the mean log-loss on some tasks with each judge added in turn, (J,)."""
        here = self._replace(
            terms=self.terms[rows], weight=self.weight[rows], truth=self.truth[rows]
        )
        base = here.prior + here.terms[:, members].sum(axis=1)
        weight = here.weight[:, members].sum(axis=1)
        out = np.full(self.terms.shape[1], np.inf)
        for j in np.flatnonzero(~members):
            out[j] = here._loss(base + here.terms[:, j], weight + here.weight[:, j]).mean()
        return out

    def _loss(self, scores: Floats, weight: Floats) -> Floats:
        scale = 1.0 / (1.0 + self.dependence * np.maximum(weight - 1.0, 0.0))
        scaled = scale[:, None] * scores
        scaled = scaled - scaled.max(axis=1, keepdims=True)
        log_total = np.log(np.exp(scaled).sum(axis=1))
        known = np.minimum(self.truth, scores.shape[1] - 1)
        of_truth = scaled[np.arange(len(known)), known] - log_total
        of_truth = np.where(self.truth < scores.shape[1], of_truth, -np.inf)
        return np.asarray(-np.maximum(of_truth, np.log(LOSS_FLOOR)))


def scores_of(table: GoldTable, terms: Floats, prior: Floats, dependence: float) -> Scores:
    """Take the scores of known tasks; of very many, the first so many."""
    some = slice(0, MOST_TASKS)
    log_prior = np.log(np.maximum(prior, 1e-12))
    return Scores(terms[some], table.weight[some], log_prior, table.truth[some], dependence)


def effects(scores: Scores, table: GoldTable) -> tuple[JudgeEffect, ...]:
    """Return what leaving out each judge does, the most missed first."""
    n_judges = scores.terms.shape[1]
    everyone = np.ones(n_judges, dtype=bool)
    whole = scores.losses(everyone)
    right = scores.right(everyone)
    found = []
    for j in range(n_judges):
        rest = everyone.copy()
        rest[j] = False
        change = scores.losses(rest) - whole
        error = float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else np.nan
        gain = float((scores.right(rest) - right).mean())
        found.append(JudgeEffect(table.workers[j], float(change.mean()), error, gain))
    return tuple(sorted(found, key=lambda each: -each.log_loss))


def cheapest(scores: Scores, table: GoldTable, prices: Floats, seed: int = 0) -> SmallPanel | None:
    """Return the cheapest panel about as good as the whole: by gain for the price, or by gain."""
    found = [smallest(scores, table, prices, seed, by_price=by_price) for by_price in (True, False)]
    good = [each for each in found if each is not None]
    return min(good, key=lambda each: each.price or 0.0, default=None)


def smallest(
    scores: Scores,
    table: GoldTable,
    prices: Floats | None = None,
    seed: int = 0,
    *,
    by_price: bool = False,
) -> SmallPanel | None:
    """Return the smallest panel about as good as the whole; `by_price`: by gain for the price."""
    n, n_judges = scores.weight.shape
    if n < 2 * N_FOLDS or n_judges < 2:
        return None
    fold = np.random.default_rng(seed).permutation(n) % N_FOLDS
    longest = min(MOST_JUDGES, n_judges)
    divisor = prices if by_price else None
    loss = np.zeros((n, longest))
    for each in range(N_FOLDS):
        path = _path(scores, np.flatnonzero(fold != each), longest, divisor)
        for size in range(1, longest + 1):
            some = np.isin(np.arange(n_judges), path[:size])
            loss[fold == each, size - 1] = scores.losses(some)[fold == each]
    whole = scores.losses(np.ones(n_judges, dtype=bool))
    change = loss - whole[:, None]
    error = change.std(axis=0, ddof=1) / np.sqrt(n)
    good = np.flatnonzero(change.mean(axis=0) <= error + TIE)
    path = _path(scores, np.arange(n), longest, divisor)
    if not len(good):
        return None
    size = int(good[0]) + 1
    members = path[:size]
    return SmallPanel(
        tuple(table.workers[j] for j in members),
        float(loss[:, size - 1].mean()),
        float(whole.mean()),
        float(error[size - 1]),
        None if prices is None else float(prices[members].sum()),
        None if prices is None else float(prices.sum()),
    )


def _path(scores: Scores, rows: Rows, longest: int, prices: Floats | None) -> list[int]:
    """Return judges in the order in which they are added: most gain (for the price) first."""
    n_judges = scores.weight.shape[1]
    members = np.zeros(n_judges, dtype=bool)
    now = float(scores.losses(members)[rows].mean())
    path: list[int] = []
    answers = scores.weight[rows].sum(axis=0) > 0.0  # who is silent neither helps nor harms: last
    for _ in range(longest):
        loss = scores.added(members, rows)
        gain = now - loss
        if prices is not None:
            # A gain per price; where nothing gains, what harms least.
            gain = np.where(gain > 0.0, gain / np.maximum(prices, 1e-12), gain)
        gain = np.where(answers, gain, -LARGE)
        j = int(np.argmax(np.where(members, -np.inf, gain)))
        path.append(j)
        members[j] = True
        now = float(loss[j])
    return path
