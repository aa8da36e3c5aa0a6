"""Channels: a worker reads a scale with a bias, a gain, a blur and lapses.

Each of the four is on a coarse grid, so that what is known of a worker is a probability for each of
588 channels. No row of a confusion matrix is learnt for itself: a judge who is a step low on one
level is so on all, which a few answers tell. The grid is that of docs/scales.md; a cell at exactly
no bias keeps a crowd from sliding along its scale as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np

from tiebreak.data.scale import channels
from tiebreak.inference.workers.base import CrowdFacts, WorkerCells, Workers, unset
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import ByTask, Floats, weights_or_ones

BIASES = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)  # steps, on scales of five levels
GAINS = (0.6, 1.0, 1.6)
BLURS = (0.25, 0.4, 0.6, 0.9, 1.3, 2.0, 4.0)  # steps, on scales of five levels
LAPSES = (0.02, 0.15, 0.5, 0.95)
BIAS_SPREAD, GAIN_SPREAD = 0.5, 0.3  # of the priors; that of gain is on its log
TRAITS = ("bias", "gain", "blur", "lapse")
FLOOR = 1e-3  # of parameters, so that SQUAREM keeps them positive
# What a channel counts for in intervals of confusions, in answers a level: of 2 to 40, intervals of
# 90 % cover the accuracies of simulated crowds most evenly with 10.
STANDS_FOR = 10.0
TOGETHER = 4096  # workers, of whom the whole grid is in memory
START_WIDTH = 0.5  # steps: how near to the mean answer q starts
JURY = 0.5  # of all tasks, that the median worker of a jury has answered


@dataclass(frozen=True, eq=False)
class Channels(Workers):
    """Parameters are counts (n_workers, answer, level) above a floor: [eq:scale].

    With no `values`, it is an option; `of` says what each level is worth.
    """

    prior: Floats = field(default_factory=unset)  # the floor, and what is trusted
    n_workers: int = 0
    prior_of_new: Floats = field(default_factory=unset)
    values: Floats | None = None  # (n_levels,), ascending
    share: Floats | None = None  # (n_levels,) f, of each answer among all responses

    starts_at_gold = True
    can_widen = False  # a scale has all its levels

    def of(self, crowd: CrowdFacts) -> Channels:
        n_levels = crowd.n_classes
        values = np.arange(1.0, n_levels + 1.0) if self.values is None else self.values
        given = crowd.counts_of_labels().sum(axis=0)
        share = (given + 1.0 / n_levels) / (given.sum() + 1.0)  # a level that nobody gave, too
        floor = np.full((1, n_levels, n_levels), FLOOR)
        trusted = crowd.trusted()
        prior = floor if trusted is None else floor + trusted
        return replace(
            self,
            prior=prior,
            n_workers=crowd.n_workers,
            prior_of_new=floor,
            values=values,
            share=share,
        )

    def starts(self, rows: ByTask, copies: Floats | None = None) -> tuple[Floats, ...]:
        """Return q near the mean answer of each task, where workers are a jury: [eq:scale-start].

        In a crowd the mean leads to worse fits with higher bounds: docs/scales.md.
        """
        values, share = self.values, self.share
        assert values is not None  # it is of a crowd
        assert share is not None
        n_levels = len(values)
        task = rows.task_of_each()
        worker, label = np.divmod(rows.code, n_levels)
        is_first = np.ones(len(task), dtype=bool)
        is_first[1:] = (np.diff(task) != 0) | (np.diff(worker) != 0)
        each = np.ones(rows.n_tasks) if copies is None else copies
        n_answered = np.bincount(worker[is_first], each[task[is_first]], self.n_workers)
        if n_levels < 2 or np.median(n_answered) < JURY * each.sum():
            return ()
        weight = weights_or_ones(rows.weight, len(task))
        total = np.bincount(task, weight, rows.n_tasks)
        mean = np.bincount(task, weight * values[label], rows.n_tasks)
        mean = np.where(total > 0.0, mean / np.maximum(total, 1e-300), share @ values)
        width = START_WIDTH * (values[-1] - values[0]) / (n_levels - 1)
        return (softmax(-0.5 * ((values - mean[:, None]) / width) ** 2),)

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, level)."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return Σ_g r_wg ln γ^g: the mean log over channels."""
        parts = [part @ self._logs for part in self._responsibility(parameters)]
        return np.concatenate(parts).reshape(-1, self.n_states)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_w ln Σ_g p_g exp A_wg, less the same of what is trusted alone."""
        return self._evidence(parameters) - self._evidence_before

    def confusion(self, parameters: Floats) -> Floats:
        """Return Σ_g r_wg γ^g, (worker, level, answer)."""
        mean = np.concatenate([part @ self._shares for part in self._responsibility(parameters)])
        by_answer = mean.reshape(self.n_workers, self.n_classes, self.n_states)
        return np.ascontiguousarray(by_answer.transpose(0, 2, 1))

    def cells(self, parameters: Floats) -> WorkerCells:
        """Return confusion matrices with the channels expected as their prior.

        A grid of channels is surer than what lies between them allows; the counts of each row are
        not.
        """
        parts = list(self._responsibility(parameters))
        shape = (self.n_workers, self.n_classes, self.n_states)
        mean = np.concatenate([part @ self._shares for part in parts])
        square = np.concatenate([part @ self._shares**2 for part in parts])
        between = np.maximum(square - mean**2, 0.0).reshape(shape)
        return WorkerCells.of_confusions(STANDS_FOR * mean.reshape(shape), between=between)

    def traits(self, parameters: Floats, level: float) -> dict[str, Floats]:
        """Return bias and blur in steps, gain, and lapse of each worker, and where they lie."""
        r = np.concatenate(list(self._responsibility(parameters)))
        found = {}
        for name, of_cell in zip(TRAITS, self._grid.T, strict=True):
            at, cell = np.unique(of_cell, return_inverse=True)
            share = np.stack([r[:, cell == k].sum(axis=1) for k in range(len(at))], axis=1)
            below = np.cumsum(share, axis=1)
            # A cell stands for all that is nearer to it than to its neighbours.
            edges = np.interp(np.arange(len(at) + 1) - 0.5, np.arange(len(at)), at)
            edges[0] -= (at[1] - at[0]) / 2.0
            edges[-1] += (at[-1] - at[-2]) / 2.0
            edges = (
                edges if name == "bias" else np.clip(edges, 0.0, 1.0 if name == "lapse" else None)
            )
            found[name] = share @ at
            for end, tail in (("low", (1.0 - level) / 2.0), ("high", (1.0 + level) / 2.0)):
                ends = [np.interp(tail, np.r_[0.0, row], edges) for row in below]
                found[f"{name}_{end}"] = np.array(ends)
        return found

    @cached_property
    def _grid(self) -> Floats:
        """Bias, gain, blur and lapse of each channel, (n_channels, 4)."""
        size = (self.n_classes - 1) / 4.0
        biases = np.array(BIASES) * max(size, 1.0)
        blurs = np.array(BLURS) * (size or 1.0) ** 0.75
        return np.array(list(product(biases, GAINS, blurs, LAPSES)))

    @cached_property
    def _log_weight(self) -> Floats:
        """The log of p, (n_channels,)."""
        bias, gain, *_ = self._grid.T
        spread = BIAS_SPREAD * max((self.n_classes - 1) / 4.0, 1.0)
        logs = -0.5 * (bias / spread) ** 2 - 0.5 * (np.log(gain) / GAIN_SPREAD) ** 2
        return np.asarray(logs - np.logaddexp.reduce(logs))

    @cached_property
    def _shares(self) -> Floats:
        """Every channel γ by answer and level, (n_channels, n_levels²)."""
        assert self.values is not None  # it is of a crowd
        assert self.share is not None
        found = channels(self.values, self.share, *self._grid.T)
        return np.ascontiguousarray(found.transpose(0, 2, 1).reshape(len(found), -1))

    @cached_property
    def _logs(self) -> Floats:
        return np.log(self._shares)

    @cached_property
    def _evidence_before(self) -> float:
        """What the bound would be before any response."""
        each = self.n_workers if len(self.prior) == 1 else 1
        return each * self._evidence(self.prior)

    def _log_weights(self, parameters: Floats) -> list[Floats]:
        """Return ln p_g + A_wg of some workers at a time."""
        counts = (parameters - self.prior_of_new).reshape(len(parameters), -1)
        return [
            counts[low : low + TOGETHER] @ self._logs.T + self._log_weight
            for low in range(0, max(len(counts), 1), TOGETHER)
        ]

    def _responsibility(self, parameters: Floats) -> list[Floats]:
        """Return r, the probability of each channel, of some workers at a time."""
        return [softmax(each) for each in self._log_weights(parameters)]

    def _evidence(self, parameters: Floats) -> float:
        each = (np.logaddexp.reduce(logs, axis=1).sum() for logs in self._log_weights(parameters))
        return float(sum(each))
