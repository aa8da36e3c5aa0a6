"""Suspects: workers that answer at random or always alike, and workers that copy each other.

These are reasons to look at a worker, not proof. A worker model gives little weight to workers that
guess; copies are what it cannot see.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from tiebreak.agreement.pairs import CohenKappas, SharedRows
from tiebreak.arguments import checks
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.responses import Responses

MIN_ANSWERS = 10  # a worker with fewer is not judged
GUESSING = 1 / 3  # of the median worker's κ: whose upper limit stays below guesses
MIN_SHARED_ERRORS = 5
COPIED = 0.8  # of the tasks on which either stands against the others, both do, alike
UNLIKELY = 1e-3  # that any pair of honest workers looks like this, all pairs together
MAX_SUSPECTS = 50  # of each kind, the clearest first


class Spam(NamedTuple):
    """A worker that looks like spam."""

    worker: int  # code
    n_answers: int
    kappa: float  # agreement with the others, beyond chance
    reason: str


class Copies(NamedTuple):
    """Two workers that look like copies of each other."""

    first: int  # code of a worker
    second: int
    n_shared: int
    n_equal: int
    reason: str


class WithOthers(NamedTuple):
    """How far each worker agrees with the others on the same tasks."""

    n_answers: Floats
    n_compared: Floats  # answers to tasks that others answered too
    share: Floats  # of the others who say the same
    kappa: Floats
    error: Floats  # standard error of κ
    is_constant: Mask  # only one label, though others gave another one mostly


@checks(responses=Responses)
def find_spam(responses: Responses) -> list[Spam]:
    """Return workers that agree with the others no better than chance, or give one label only."""
    found = agreement_with_others(responses)
    is_judged = found.n_compared >= MIN_ANSWERS
    usual = float(np.median(found.kappa[is_judged])) if is_judged.any() else 0.0
    guesses = is_judged & (found.kappa + 2.0 * found.error < GUESSING * usual)
    alike = is_judged & found.is_constant
    order = np.argsort(np.where(np.isnan(found.kappa), 0.0, found.kappa), kind="stable")
    suspects = [int(w) for w in order if guesses[w] or alike[w]][:MAX_SUSPECTS]
    return [
        Spam(
            w,
            int(found.n_answers[w]),
            float(found.kappa[w]),
            "gives one label only"
            if alike[w]
            else "hardly agrees with others more than chance would",
        )
        for w in suspects
    ]


def agreement_with_others(responses: Responses) -> WithOthers:
    """Compare each answer with the other answers to its task.

    P is the mean share of others that say the same, E what the worker's own shares of labels and
    those of the others give by chance, κ = (P − E) / (1 − E).
    """
    n_workers = responses.n_workers
    n_classes = responses.n_classes
    worker = responses.worker_of_each()
    label = responses.label_of_each()
    n_others = np.repeat(np.diff(responses.start) - 1, np.diff(responses.start))
    share = (_count_equal(responses) - 1) / np.maximum(n_others, 1)
    compared = n_others > 0
    n_compared = np.bincount(worker[compared], minlength=n_workers).astype(np.float64)
    observed = np.bincount(worker[compared], share[compared], minlength=n_workers)
    squares = np.bincount(worker[compared], share[compared] ** 2, minlength=n_workers)
    n = np.maximum(n_compared, 1.0)
    mean = observed / n
    variance = np.maximum(squares / n - mean**2, 0.0)
    own = np.bincount(
        worker[compared].astype(np.int64) * n_classes + label[compared],
        minlength=n_workers * n_classes,
    ).reshape(n_workers, n_classes)
    overall = own.sum(axis=0) / max(own.sum(), 1)
    by_chance = np.minimum(own @ overall / n, 1.0 - 1e-12)
    is_constant = (own.max(axis=1) == n_compared) & (mean < 0.5) & (n_compared > 0)
    return WithOthers(
        np.bincount(worker, minlength=n_workers).astype(np.float64),
        n_compared,
        mean,
        (mean - by_chance) / (1.0 - by_chance),
        np.sqrt(variance / n) / (1.0 - by_chance),
        is_constant,
    )


def find_copies(
    responses: Responses, kappas: CohenKappas, rows: SharedRows, percent: float
) -> list[Copies]:
    """Return pairs that share their errors, or agree on more tasks than honest workers would.

    `percent` is how often two labels of a task are equal in the whole crowd.
    """
    n_same, n_any = _stands_against_others(responses, kappas, rows)
    n_pairs = max(len(kappas.first), 1)
    usual = n_same.sum() / max(n_any.sum(), 1.0)
    by_chance = bdtrc(n_same - 1.0, n_any.astype(np.int64), min(max(usual, 0.01), 0.99))
    shares_errors = (n_same >= MIN_SHARED_ERRORS) & (n_same >= COPIED * n_any)
    shares_errors &= by_chance < UNLIKELY / n_pairs
    # A worker right with probability a agrees with others with about a · √percent.
    skill = agreement_with_others(responses).share / np.sqrt(max(percent, 1e-9))
    likely = np.clip(skill[kappas.first] * skill[kappas.second], 0.5, 1.0)
    log_chance = kappas.n_shared * np.log(likely)
    always = (kappas.n_equal == kappas.n_shared) & (log_chance < np.log(UNLIKELY / n_pairs))
    chosen = np.flatnonzero(shares_errors | always)
    order = chosen[np.argsort(-(n_same[chosen] + kappas.n_equal[chosen]), kind="stable")]
    return [
        Copies(
            int(kappas.first[p]),
            int(kappas.second[p]),
            int(kappas.n_shared[p]),
            int(kappas.n_equal[p]),
            f"both stand against the others on {int(n_same[p]):,} tasks, with the same label"
            if shares_errors[p]
            else "equal answers to all shared tasks",
        )
        for p in order[:MAX_SUSPECTS].tolist()
    ]


def _stands_against_others(
    responses: Responses, kappas: CohenKappas, rows: SharedRows
) -> tuple[Floats, Floats]:
    """Count, by pair, tasks on which both differ alike from more than half of the others.

    Return that and on how many tasks either of them does.
    """
    top, n_top = _most_frequent(responses)
    top_there = top[rows.task]
    rest = np.diff(responses.start)[rows.task] - 2
    from_pair = (rows.label_of_first == top_there).astype(np.int64)
    from_pair += rows.label_of_second == top_there
    is_clear = (rest >= 2) & (2 * (n_top[rows.task] - from_pair) > rest)
    same = rows.label_of_first == rows.label_of_second
    first_alone = is_clear & (rows.label_of_first != top_there)
    second_alone = is_clear & (rows.label_of_second != top_there)
    keys = kappas.first.astype(np.int64) * responses.n_workers + kappas.second
    pair = np.searchsorted(keys, rows.first.astype(np.int64) * responses.n_workers + rows.second)
    both = np.bincount(pair[first_alone & same], minlength=len(keys))
    either = np.bincount(pair[first_alone | second_alone], minlength=len(keys))
    return both.astype(np.float64), either.astype(np.float64)


def _most_frequent(responses: Responses) -> tuple[Codes, Offsets]:
    """Return the label that each task got most often (the first on ties), and how often."""
    cells = responses.task_of_each().astype(np.int64) * responses.n_classes
    known, count = np.unique(cells + responses.label_of_each(), return_counts=True)
    task = known // responses.n_classes
    order = np.lexsort((-known, count, task))  # the last of a task is its most frequent
    last = order[np.append(np.diff(task) != 0, True)] if len(known) else order
    top = np.zeros(responses.n_tasks, dtype=np.int32)
    n_top = np.zeros(responses.n_tasks, dtype=np.int64)
    top[task[last]] = known[last] % responses.n_classes
    n_top[task[last]] = count[last]
    return top, n_top


def _count_equal(responses: Responses) -> Floats:
    """Count, for each answer, the answers with the same label to the same task, itself included."""
    cells = responses.task_of_each().astype(np.int64) * responses.n_classes
    cells += responses.label_of_each()
    _, inverse, count = np.unique(cells, return_inverse=True, return_counts=True)
    return count[inverse].astype(np.float64)
