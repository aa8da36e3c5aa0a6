"""Gold: how q starts with known classes, how often they count, whether the crowd is against them.

What a worker is like is learnt from all tasks the worker answered, most of which are guessed. These
guesses have errors in common: what the crowd gets wrong together teaches the same wrong lesson on
many tasks, and more of them do not make it right. A known task has no such error. So n guessed
tasks are worth n / (1 + ρ (n − 1)), the design effect of a clustered sample, and a known one is
worth 1 + ρ (n − 1) of them: [eq:gold-weight].

    a worker with 200 responses, 2 classes, ρ = .04:  n = 100 a class, a known task counts 5 times
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.tasks import OwnRows, Parameters
from tiebreak.kernels import layout
from tiebreak.kernels.layout import KNOWN, Codes, Floats, Mask, Offsets
from tiebreak.options import AUTO

if TYPE_CHECKING:
    from tiebreak.inference.climb import Problem
    from tiebreak.inference.door import Inputs

SHARED = 0.04  # ρ of guesses; chosen on draws 0 to 5 of gold, see experiments/07_juries/README.md

# How often a known task counts on a scale. A channel is learnt from few tasks, so that guesses
# outweigh gold sooner than there are; of care_asset and simulated juries: experiments/10_scales.
WEIGHT_ON_SCALE = 5.0

PARTS = 16  # with subtypes weights are multiples of 1 / 16, so that sums are exact
LEAST_AGAINST = 6  # known labels that contradict the crowd before gold names a start of its own:
SHARE_AGAINST = 2 / 3  # five wrong ones must not turn a crowd that is right

GoldWeight = str | float


class Known(NamedTuple):
    """Rows whose class is known."""

    task: Codes  # (n_known,)
    label: Codes  # (n_known,)
    weight: Floats | None = None  # (n_workers, n_classes) how often known tasks count; None: once

    @classmethod
    def of(cls, gold: GoldCodes | None, weight: Floats | None = None) -> Known:
        """Return known rows from gold; none where there is none."""
        if gold is None:
            return cls(np.empty(0, np.int32), np.empty(0, np.int32), weight)
        return cls(gold.task, gold.label, weight)

    def keep(self, chosen: Mask) -> Known:
        """Return some of the known rows."""
        return self._replace(task=self.task[chosen], label=self.label[chosen])

    def clamp(self, q: Floats, n_classes: int | None = None) -> Floats:
        """Return q with the classes of known rows certain, a copy where there are any: [eq:gold].

        Where q has more states than there are classes, subtypes keep their shares of the class.
        """
        if not len(self.task):
            return q
        q = np.array(q, dtype=np.float64, order="C")
        n_subtypes = q.shape[1] // (n_classes or q.shape[1])
        by_class = q.reshape(len(q), -1, n_subtypes)
        within = by_class[self.task, self.label]
        total = within.sum(axis=1, keepdims=True)
        even = np.full_like(within, 1.0 / n_subtypes)
        by_class[self.task] = 0.0
        by_class[self.task, self.label] = np.divide(within, total, out=even, where=total > 0.0)
        return q

    def on(self, problem: Problem) -> Problem:
        """Return the problem with these rows known: [eq:gold].

        Where a class is one state such a row does not move. Where it has subtypes the row moves
        among those of its class: all other states are impossible.
        """
        if not len(self.task):
            return problem
        n_states = problem.n_states
        if self.weight is not None:
            problem = problem._replace(rows=self._weighed(problem))
        if n_states > problem.n_classes:
            class_of = problem.tasks.shares.class_of
            fixed = np.where(class_of == self.label[:, None], 0.0, -np.inf)
            return with_fixed(problem, self.task, fixed)
        role = problem.rows.role.copy()
        role[self.task] = KNOWN
        problem = problem._replace(rows=problem.rows._replace(role=role))
        own = problem.tasks.own
        if own is None:
            return problem
        assert own.fixed is not None  # what makes rows own before there are links
        is_open = ~np.isin(own.at, self.task)
        return with_fixed(problem, own.at[is_open], own.fixed[is_open], more=False)

    def _weighed(self, problem: Problem) -> layout.ByTask:
        """Return the rows with responses on known ones weighed: [eq:weighted-model]."""
        rows, table = problem.rows, self.weight
        assert table is not None
        n_classes = table.shape[1]
        label = np.full(rows.n_tasks, -1, dtype=np.int32)
        label[self.task] = self.label
        of_each = np.repeat(label, np.diff(rows.start))
        known = np.flatnonzero(of_each >= 0)
        if problem.n_states > n_classes:  # so that sums over responses are exact
            table = np.round(table * PARTS) / PARTS
        weight = np.array(layout.weights_or_ones(rows.weight, len(rows.code)))
        weight[known] *= table[rows.code[known] // n_classes, of_each[known]]
        given = rows.start, rows.code, rows.role, rows.n_codes, problem.n_states
        return layout.lay_out(*given, weight)

    def parameters(self, problem: Problem, q: Floats) -> Parameters:
        """Return what known rows alone say of workers and classes: [eq:gold-start]."""
        chosen = np.zeros(problem.rows.n_tasks, dtype=bool)
        chosen[self.task] = True
        return self.on(problem).implied(self.clamp(q, problem.n_classes), chosen)

    def contradicts(self, q: Floats) -> bool:
        """Say whether known labels, all or those of one class, contradict what the crowd says."""
        n_classes = q.shape[1]
        is_against = q[self.task].argmax(axis=1) != self.label
        n_known = np.append(np.bincount(self.label, minlength=n_classes), len(self.label))
        by_class = np.bincount(self.label[is_against], minlength=n_classes)
        n_against = np.append(by_class, np.count_nonzero(is_against))
        is_much = (n_against >= LEAST_AGAINST) & (n_against >= SHARE_AGAINST * n_known)
        return bool(is_much.any())


def weight_of_gold(gold_weight: GoldWeight, inputs: Inputs) -> Floats | None:
    """Return how often known tasks count, (n_workers, n_classes); None: once for everyone.

    With links "auto" is once: a known label settles whole groups of tasks, which links chose and
    not chance, so that they are no sample of what a worker sees.
    """
    if inputs.gold_codes is None:
        return None
    counts = inputs.responses.weigh_labels()
    if inputs.remote is not None:
        counts = inputs.remote.answers.counts
    n_given, n_classes = counts.sum(axis=1), counts.shape[1]
    if gold_weight == AUTO and inputs.link_codes is not None:
        gold_weight = 1.0
    elif gold_weight == AUTO and inputs.scale is not None:
        gold_weight = WEIGHT_ON_SCALE
    if gold_weight == 1.0:
        return None
    if not isinstance(gold_weight, str):
        return np.full((len(n_given), n_classes), float(gold_weight))
    others = np.maximum(n_given / n_classes - 1.0, 0.0)
    return np.repeat((1.0 + SHARED * others)[:, None], n_classes, axis=1)


def deal(order: Offsets, n_folds: int) -> Codes:
    """Return the fold of each thing, dealt in turn in this order: folds are alike in what it sorts.

    >>> deal(np.array([2, 0, 1, 3]), 2).tolist()
    [1, 0, 0, 1]
    """
    fold = np.empty(len(order), dtype=np.int32)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def with_fixed(
    problem: Problem, at: npt.NDArray[np.signedinteger], fixed: Floats, *, more: bool = True
) -> Problem:
    """Return the problem with given log scores on some rows, more of them or in place of former."""
    own = problem.tasks.own
    place = np.asarray(at, dtype=np.int32)
    if more and own is not None and own.fixed is not None:
        place = np.union1d(own.at, at).astype(np.int32)
        total = np.zeros((len(place), fixed.shape[1]))
        total[np.searchsorted(place, own.at)] += own.fixed
        total[np.searchsorted(place, at)] += fixed
        fixed = total
    is_prior = own is not None and own.is_prior
    own = None
    if len(place):
        part = layout.part_of(problem.rows, place, problem.n_states)
        own = OwnRows(place, part, fixed=fixed, is_prior=is_prior)
    return problem._replace(tasks=replace(problem.tasks, own=own))
