"""A ranking as the class prior of tasks that ask which of two items is better: [eq:pair-prior].

    y_i ~ softmax(δ/2, −δ/2, t),   δ = s_a − s_b

Strengths s are learnt from what the fit says of all tasks, so that a task of few answers borrows
from all others. Two steps in turn, of which neither lowers the bound:

    q ──▶ Newton on s and t ──rows of log prior──▶ sweeps of plain VB ──▶ q
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.data.pairs import PairTasks, PairVerdicts
from tiebreak.errors import ConvergenceWarning, sentence, warn
from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import with_log_prior
from tiebreak.kernels.layout import Floats
from tiebreak.ranking.model import PRIORS, Davidson, Parts

SPREAD = 3.0  # standard deviation of strengths
SMALL_CHANGE = 1e-5  # of any log prior
MOST_ROUNDS = 300
LOOSE = Stopping(1e-3, 20)


class PairPrior(NamedTuple):
    """What a fit learns of items."""

    strengths: Floats  # (n_items,)
    log_prior: Floats  # (n_tasks, n_classes)
    q: Floats
    bounds: tuple[float, ...]  # after each round, with the prior of strengths


def learn(pairs: PairTasks, plain: Problem, known: Known, tasks: Ids) -> PairPrior:
    """Learn strengths of items; `plain` is plain VB with a row for each of these tasks."""
    n_classes, n_items = plain.n_classes, len(pairs.items)
    at = pairs.tasks.codes(tasks)
    is_pair = at >= 0  # others are named by rules or gold alone
    ends = np.stack([pairs.first, pairs.second])[:, at[is_pair]]
    key, pair = np.unique(ends[0] * np.int64(n_items) + ends[1], return_inverse=True)
    n_pairs = len(key)
    first, second = (np.tile(end, n_classes) for end in (key // n_items, key % n_items))
    verdict = np.repeat(np.arange(n_classes, dtype=np.int32), n_pairs)
    q = known.clamp(plain.votes())
    log_prior = np.full(q.shape, -np.log(n_classes))
    bounds: list[float] = []
    for _ in range(MOST_ROUNDS):
        before = log_prior
        weight = np.concatenate([np.bincount(pair, each, n_pairs) for each in q[is_pair].T])
        counted = PairVerdicts(first, second, verdict, pairs.items, weight=weight)
        found = Davidson(counted, Parts(spread=SPREAD)).maximise()
        s, t = found.of("s"), found.of("t")
        half = (s[ends[0]] - s[ends[1]]) / 2.0
        tie = np.full(len(half), t.sum() if found.has_ties else -np.inf)
        scores = np.stack([half, -half, tie], axis=1)[:, :n_classes]
        log_prior = before.copy()
        log_prior[is_pair] = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        state = climb(known.on(with_log_prior(plain, log_prior)), FitState(q), LOOSE)
        q = state.q
        penalty = 0.5 * float(s @ s) / SPREAD**2 + 0.5 * float(t @ t) / PRIORS["t"]
        bounds.append(state.bounds[-1] - penalty)
        if np.abs(log_prior - before).max(initial=0.0) < SMALL_CHANGE:
            break
    else:
        warn(sentence("ranking-not-converged", {}), ConvergenceWarning)
    return PairPrior(s, log_prior, q, tuple(bounds))
