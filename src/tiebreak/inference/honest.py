"""Honest probabilities: scores of tasks, scaled by a calibration, as probabilities of classes."""

from __future__ import annotations

import numpy as np

from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration, Evidence, Honesty
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import SweepBackend
from tiebreak.kernels.layout import ByTask, Codes, Floats
from tiebreak.kernels.sweeper import Logs
from tiebreak.kernels.threads import for_each

TASKS_AT_ONCE = 1 << 15  # memory for the scores of some tasks, not of all


def choose(
    plain: Problem, beliefs: Beliefs, honesty: Honesty, evidence: Evidence | None
) -> Calibration | None:
    """Return how scores become probabilities; None: as the model says.

    Parameters
    ----------
    plain, beliefs
        Plain VB, which has seen neither links nor gold.
    evidence
        Links and gold, which overrule what is expected; None where there are none.
    """
    if honesty.mode == "none":
        return None
    if honesty.mode == "votes" or evidence is None:
        return Calibration(honesty.dependence)
    tasks = evidence.tasks()
    scores = class_scores_of(plain, beliefs, tasks)
    counted = n_responses(plain.responses, tasks)
    by_place = evidence.among(tasks)._replace(is_sample=plain.gold_weight is not None)
    return calibration.fit(scores, counted, by_place, honesty.dependence, plain.backend)


def n_responses(tasks: ByTask, at: Codes | None = None) -> Floats:
    """Return the number of responses of each task, by weight, or of those listed."""
    if tasks.weight is None and at is not None:
        return (tasks.start[at + 1] - tasks.start[at]).astype(np.float64)
    counted = _of_each_task(tasks)
    return counted if at is None else counted[at]


def _of_each_task(tasks: ByTask) -> Floats:
    if tasks.weight is None:
        return np.diff(tasks.start).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(tasks.weight)])
    return np.asarray(np.diff(sums[tasks.start]))


def mean_responses(problem: Problem) -> float:
    """Return how many responses a task has on average, by weight."""
    here = n_responses(problem.responses)
    if problem.elsewhere is None:
        return float(np.average(here, weights=problem.copies))
    return float((here.sum() + problem.elsewhere.n_responses) / problem.n_tasks)


def class_scores_of(
    problem: Problem, beliefs: Beliefs, tasks: Codes, logs: Logs | None = None
) -> Floats:
    """Return the class scores of some tasks, (n, n_classes); `logs` as in `scaled_scores`."""
    logs = vb.expected_logs(problem, beliefs) if logs is None else logs
    part = layout.part_of(problem.tasks, tasks, problem.n_states)
    return vb.class_scores(problem, problem.backend.score_tasks(part, *logs))


def scaled_scores(
    problem: Problem,
    beliefs: Beliefs,
    found: Calibration,
    tasks: Codes,
    pays: Floats | None = None,
    unit: Codes | None = None,
    n_given: Floats | None = None,
    logs: Logs | None = None,
) -> Floats:
    """Return the scaled class scores of some tasks, (n, n_classes).

    `logs` is what the beliefs expect, where the caller has found it. Copies of one task, equal in
    `unit`, have one prior among them; `pays` says how much of it each holds. It is scaled by the
    mean over the unit, so that it does not matter which holds it.
    """
    scores = class_scores_of(problem, beliefs, tasks, logs)
    counted = n_responses(problem.responses, tasks) if n_given is None else n_given[tasks]
    scale = found.scale(counted)
    log_prior = problem.states.expected_log_of_class(beliefs.alpha)
    return scale_scores(scores, scale, log_prior, pays, unit)


def scale_scores(
    scores: Floats,
    scale: Floats,
    log_prior: Floats,
    pays: Floats | None = None,
    unit: Codes | None = None,
) -> Floats:
    """Return class scores times the scale of each task; `pays` and `unit` as in `scaled_scores`."""
    if pays is None or unit is None:
        return np.asarray(scale[:, None] * scores)
    scaled = np.asarray(scale[:, None] * (scores - log_prior))
    total = np.bincount(unit, weights=scale)[unit]
    mean = total / np.bincount(unit)[unit]
    scaled += (pays * mean)[:, None] * log_prior
    return scaled


def probabilities(
    problem: Problem,
    beliefs: Beliefs,
    found: Calibration,
    n_given: Floats | None = None,
    logs: Logs | None = None,
) -> Floats:
    """Return the probability of each class of each task, by its responses alone.

    `n_given`, (n_tasks,), is how many responses each has had, where some were dropped; `logs` as in
    `scaled_scores`.
    """
    logs = vb.expected_logs(problem, beliefs) if logs is None else logs
    scale = found.scale(n_responses(problem.responses) if n_given is None else n_given)
    return probabilities_by(
        logs, problem.tasks, scale, problem.n_classes, problem.backend, problem.n_threads
    )


def probabilities_by(
    logs: Logs, tasks: ByTask, scale: Floats, n_classes: int, backend: SweepBackend, n_threads: int
) -> Floats:
    """Return the probability of each class by expected logs, the scores of each task scaled."""
    if len(logs[0]) == n_classes:
        return backend.scaled_probabilities(tasks, *logs, scale, n_threads)
    q = np.empty((tasks.n_tasks, n_classes))

    def work(piece: int) -> None:
        low = piece * TASKS_AT_ONCE
        high = min(low + TASKS_AT_ONCE, tasks.n_tasks)
        part = layout.slice_of(tasks, low, high, len(logs[0]))
        scores = vb.by_class(backend.score_tasks(part, *logs), n_classes)
        q[low:high] = softmax(scores, scale[low:high])

    for_each(work, -(-tasks.n_tasks // TASKS_AT_ONCE), n_threads)
    return q
