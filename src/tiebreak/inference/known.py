"""Gold: how q starts with known classes, how often they count, whether the crowd is against them.

What a worker is like is learnt from all tasks the worker answered, most of which are guessed. These
guesses have errors in common: what the crowd gets wrong together teaches the same wrong lesson on
many tasks, and more of them do not make it right. A known task has no such error. So n guessed
tasks are worth n / (1 + ρ (n − 1)), the design effect of a clustered sample, and a known one is
worth 1 + ρ (n − 1) of them: [eq:gold-weight].

    a worker with 200 responses, 2 classes, ρ = .04:  n = 100 a class, a known task counts 5 times
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.kernels import layout
from tiebreak.kernels.layout import ByTask, Codes, Floats, Offsets
from tiebreak.options import AUTO

if TYPE_CHECKING:
    from tiebreak.inference.vb import Patterns

SHARED = 0.04  # ρ of guesses; chosen on draws 0 to 5 of gold, see experiments/07_juries/README.md

PARTS = 16  # with subtypes weights are multiples of 1 / 16, so that sums are exact
LEAST_AGAINST = 6  # known labels that contradict the crowd before gold names a start of its own:
SHARE_AGAINST = 2 / 3  # five wrong ones must not turn a crowd that is right

GoldWeight = str | float


def clamp(q: Floats, gold: GoldCodes | None, n_classes: int | None = None) -> Floats:
    """Return q with the classes of known tasks certain, a copy where there are any: [eq:gold].

    Where q has more states than there are classes, subtypes keep their shares of the known class.
    """
    if gold is None or not len(gold.task):
        return q
    q = np.array(q, dtype=np.float64, order="C")
    clamp_in_place(q, gold, n_classes)
    return q


def clamp_in_place(q: Floats, gold: GoldCodes, n_classes: int | None = None) -> None:
    """Do what `clamp` does to q itself, which nobody else holds."""
    n_subtypes = q.shape[1] // (n_classes or q.shape[1])
    by_class = q.reshape(len(q), -1, n_subtypes)
    within = by_class[gold.task, gold.label]
    total = within.sum(axis=1, keepdims=True)
    by_class[gold.task] = 0.0
    share = np.divide(within, total, out=np.full_like(within, 1.0 / n_subtypes), where=total > 0.0)
    by_class[gold.task, gold.label] = share


def weight_of_known(
    gold_weight: GoldWeight,
    gold: GoldCodes | None,
    patterns: Patterns,
    n_classes: int,
    *,
    has_links: bool = False,
    n_given: npt.ArrayLike | None = None,
) -> Floats | None:
    """Return how often a known task counts, (n_workers, class); None: once for everyone.

    `n_given` is how many responses each worker gave; None: as many as there are here.

    With links "auto" is once: a known label settles whole groups of tasks, which links chose and
    not chance, so that they are no sample of what a worker sees.

    >>> from tiebreak.inference.vb import Patterns
    >>> code = np.repeat(np.arange(4, dtype=np.int32), [51, 50, 1, 0])  # worker 0 answers 101 tasks
    >>> roles = np.zeros(102, np.int8)
    >>> tasks = layout.lay_out(np.arange(103), code, roles, n_codes=4, n_classes=2)
    >>> weight_of_known("auto", GoldCodes(code[:1], code[:1]), Patterns(tasks), 2).tolist()
    [[2.98, 2.98], [1.0, 1.0]]
    """
    if gold is None or gold_weight == 1.0 or (has_links and gold_weight == AUTO):
        return None
    tasks = patterns.tasks
    n_workers = tasks.n_codes // n_classes
    if not isinstance(gold_weight, str):
        return np.full((n_workers, n_classes), float(gold_weight))
    if n_given is None:
        weight = layout.weights_or_ones(tasks.weight, len(tasks.code))
        if patterns.copies is not None:
            weight = weight * np.repeat(patterns.copies, np.diff(tasks.start))
        n_given = np.bincount(tasks.code // n_classes, weights=weight, minlength=n_workers)
    others = np.maximum(np.asarray(n_given) / n_classes - 1.0, 0.0)
    return np.repeat((1.0 + SHARED * others)[:, None], n_classes, axis=1)


def weigh_known(tasks: ByTask, gold: GoldCodes, table: Floats, n_states: int) -> ByTask:
    """Return the same tasks, with responses on known ones by the table: [eq:weighted-model].

    Codes after those of workers, which say who saw a task, have the last row of the table.
    """
    n_classes = table.shape[1]
    label = np.full(tasks.n_tasks, -1, dtype=np.int32)
    label[gold.task] = gold.label
    of_each = np.repeat(label, np.diff(tasks.start))
    known = np.flatnonzero(of_each >= 0)
    if n_states > n_classes:  # so that sums over responses are exact, [eq:exact-sums]
        table = np.round(table * PARTS) / PARTS
    weight = np.array(layout.weights_or_ones(tasks.weight, len(tasks.code)))
    row = np.minimum(tasks.code[known] // n_classes, len(table) - 1)
    weight[known] *= table[row, of_each[known]]
    return layout.lay_out(tasks.start, tasks.code, tasks.role, tasks.n_codes, n_states, weight)


def contradicts(q: Floats, gold: GoldCodes) -> bool:
    """Say whether known labels, all or those of one class, contradict what the crowd says."""
    n_classes = q.shape[1]
    is_against = q[gold.task].argmax(axis=1) != gold.label
    n_known = np.append(np.bincount(gold.label, minlength=n_classes), len(gold.label))
    by_class = np.bincount(gold.label[is_against], minlength=n_classes)
    n_against = np.append(by_class, np.count_nonzero(is_against))
    is_much = (n_against >= LEAST_AGAINST) & (n_against >= SHARE_AGAINST * n_known)
    return bool(is_much.any())


def deal(order: Offsets, n_folds: int) -> Codes:
    """Return the fold of each thing, dealt in turn in this order: folds are alike in what it sorts.

    >>> deal(np.array([2, 0, 1, 3]), 2).tolist()
    [1, 0, 0, 1]
    """
    fold = np.empty(len(order), dtype=np.int32)
    fold[order] = np.arange(len(order)) % n_folds
    return fold
