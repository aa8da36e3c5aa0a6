"""The weight of gold: how often a known task counts for its workers.

What a worker is like is learnt from all tasks the worker answered, most of which are guessed. These
guesses have errors in common: what the crowd gets wrong together teaches the same wrong lesson on
many tasks, and more of them do not make it right. A known task has no such error. So n guessed
tasks are worth n / (1 + ρ (n − 1)), the design effect of a clustered sample, and a known one is
worth 1 + ρ (n − 1) of them: [eq:gold-weight].

    a worker with 200 responses, 2 classes, ρ = .04:  n = 100 a class, a known task counts 5 times
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.problem import Patterns
from tiebreak.kernels import layout
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.options import AUTO

SHARED = 0.04  # ρ of guesses; chosen on draws 0 to 5 of gold, see experiments/07_juries/README.md

PARTS = 16  # with subtypes weights are multiples of 1 / 16, so that sums are exact

GoldWeight = str | float


def find(
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

    >>> code = np.repeat(np.arange(4, dtype=np.int32), [51, 50, 1, 0])  # worker 0 answers 101 tasks
    >>> roles = np.zeros(102, np.int8)
    >>> tasks = layout.lay_out(np.arange(103), code, roles, n_codes=4, n_classes=2)
    >>> find("auto", GoldCodes(code[:1], code[:1]), Patterns(tasks), 2).tolist()
    [[2.98, 2.98], [1.0, 1.0]]
    """
    if gold is None or gold_weight == 1.0 or (has_links and gold_weight == AUTO):
        return None
    tasks = patterns.tasks
    n_workers = tasks.n_codes // n_classes
    if not isinstance(gold_weight, str):
        return np.full((n_workers, n_classes), float(gold_weight))
    if n_given is None:
        weight = _weight_of_each(tasks, patterns.copies)
        n_given = np.bincount(tasks.code // n_classes, weights=weight, minlength=n_workers)
    return np.repeat(of_answers(gold_weight, n_given, n_classes)[:, None], n_classes, axis=1)


def of_answers(gold_weight: GoldWeight, n_given: npt.ArrayLike, n_classes: int) -> Floats:
    """Return how often a known task counts for those who gave so many answers."""
    if not isinstance(gold_weight, str):
        return np.full(np.shape(n_given), float(gold_weight))
    others = np.maximum(np.asarray(n_given) / n_classes - 1.0, 0.0)
    return np.asarray(1.0 + SHARED * others)


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


def _weight_of_each(tasks: ByTask, copies: Floats | None) -> Floats | None:
    if copies is None:
        return tasks.weight
    by_copies = np.repeat(copies, np.diff(tasks.start))
    return by_copies if tasks.weight is None else by_copies * tasks.weight
