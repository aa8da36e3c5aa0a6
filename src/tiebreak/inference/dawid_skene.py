"""Dawid-Skene: confusion matrices by expectation maximisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak.inference import calibration, dirichlet, gold_weights, publishing, squarem, vb
from tiebreak.inference.estimator import (
    Estimator,
    normalise,
    refuse_links,
    start_from_model,
)
from tiebreak.inference.gold_weights import GoldWeight
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.inference.problem import Patterns, Stopping, TasksElsewhere
from tiebreak.inference.squarem import Climb, Parameters, Sweep
from tiebreak.inference.stages import lay_out, patterns_of
from tiebreak.inference.workers import require_model
from tiebreak.inference.workers.coin import pooled_counts
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import Backend, choose_backend, where
from tiebreak.kernels.layout import FREE, KNOWN, ByTask, Floats
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.options import AUTO, check_common

Pool = Callable[[Floats], Floats]  # makes counts equal that share a parameter


def each_its_own(counts: Floats) -> Floats:
    """Return the counts: each cell of a confusion matrix is a parameter of its own."""
    return counts


POOLS: dict[str, Pool] = {"confusion": each_its_own, "coin": pooled_counts}


class Estimates(NamedTuple):
    """Point estimates: π, (n_classes,), and θ, (worker, truth, answer)."""

    class_prior: Floats
    confusion: Floats


class EmRun(NamedTuple):
    """Where expectation maximisation ended; `bounds` adds the smoothing's log prior."""

    q: Floats
    estimates: Estimates
    bounds: list[float]
    converged: bool


def maximise(
    tasks: ByTask,
    q: Floats,
    backend: Backend,
    *,
    smoothing: float = 0.01,
    tol: float = 1e-6,
    max_iter: int = 500,
    n_threads: int = 1,
    accelerate: bool = False,
    copies: Floats | None = None,
    pool: Pool = each_its_own,
    elsewhere: TasksElsewhere | None = None,
) -> EmRun:
    """Alternate estimates and tasks until no q moves by `tol`.

    Implements [eq:ds-counts] and [eq:ds-task], starting with the estimates that q implies. The
    objective of [eq:ds-likelihood] never falls. `accelerate` lets SQUAREM extrapolate, towards a
    tolerance and with smoothing: a count of zero has no logarithm. `copies` says for how many tasks
    each row of `tasks` counts; None is one each. `pool` says which counts share a parameter.
    `elsewhere` are tasks on other machines, which the backend sweeps too.
    """
    sweeper = backend.open(tasks, np.array(q, dtype=np.float64, order="C"), n_threads, copies)
    stopping = Stopping(tol, max_iter, accelerate)
    climbed = climb(sweeper, smoothing, stopping, pool)
    estimates = Estimates(*climbed.implied)
    q = sweeper.q()
    sweeper.close()
    likelihood = log_likelihood(tasks, q, backend, estimates, copies)
    if elsewhere is not None:
        likelihood += elsewhere.log_norm(expected_logs(estimates))
    last = likelihood + log_prior(estimates, smoothing)
    return EmRun(q, estimates, [*climbed.bounds, last], climbed.converged)


def climb(
    sweeper: Sweeper, smoothing: float, stopping: Stopping, pool: Pool = each_its_own
) -> Climb:
    """Sweep to the end."""

    def sweep(at: Parameters) -> Sweep:
        estimates = _normalised(*at)
        swept = sweeper.sweep(expected_logs(estimates))
        bound = swept.log_norm + log_prior(estimates, smoothing)
        return Sweep(estimate(swept.counts, swept.totals, smoothing, pool), bound, swept.change)

    tol, max_iter, accelerate = stopping
    may_extrapolate = accelerate and tol > 0.0 and smoothing > 0.0
    start = estimate(*sweeper.tally(), smoothing, pool)
    return squarem.climb(sweep, start, tol=tol, max_iter=max_iter, extrapolate=may_extrapolate)


def estimate(
    counts: Floats, totals: Floats, smoothing: float, pool: Pool = each_its_own
) -> Estimates:
    """Return shares of what was counted, each count raised by `smoothing`: [eq:ds-counts]."""
    n_classes = len(totals)
    smoothed = totals + smoothing
    confusion = normalise(pool(counts + smoothing), len(counts) // n_classes)
    return Estimates(smoothed / smoothed.sum(), confusion)


def _normalised(class_prior: Floats, confusion: Floats) -> Estimates:
    """Return estimates whose shares add up to 1 again after a leap."""
    return Estimates(dirichlet.mean(class_prior), dirichlet.mean(confusion))


def log_likelihood(
    tasks: ByTask, q: Floats, backend: Backend, estimates: Estimates, copies: Floats | None = None
) -> float:
    """Return the log-likelihood of the responses (and of known labels): [eq:ds-likelihood]."""
    score = backend.score_tasks(tasks, *expected_logs(estimates))
    known = tasks.role == KNOWN
    of_task = np.logaddexp.reduce(score, axis=1)
    of_task[known] = score[known, q[known].argmax(axis=1)]
    return float(of_task.sum() if copies is None else of_task @ copies)


def log_norm(tasks: ByTask, logs: Logs, backend: Backend) -> float:
    """Return Σ log Σ exp(score) over the free tasks, with the scores of some of them at a time."""
    total = 0.0
    for low in range(0, tasks.n_tasks, calibration.TASKS_AT_ONCE):
        high = min(low + calibration.TASKS_AT_ONCE, tasks.n_tasks)
        part = layout.slice_of(tasks, low, high, len(logs[0]))
        scores = backend.score_tasks(part, *logs)[part.role == FREE]
        total += float(np.logaddexp.reduce(scores, axis=1).sum())
    return total


def expected_logs(estimates: Estimates) -> tuple[Floats, Floats]:
    """Return log π and log θ as [code, truth]; an impossible answer is −∞, never skipped."""
    n_classes = len(estimates.class_prior)
    table = np.ascontiguousarray(estimates.confusion.transpose(0, 2, 1)).reshape(-1, n_classes)
    with np.errstate(divide="ignore"):
        return np.log(estimates.class_prior), np.log(table)


def log_prior(estimates: Estimates, smoothing: float) -> float:
    """Return the log of the prior that smoothing is, up to a constant."""
    if smoothing == 0.0:
        return 0.0
    logs = np.log(estimates.class_prior).sum() + np.log(estimates.confusion).sum()
    return float(smoothing * logs)


class DawidSkene(Estimator):
    """Infer true labels and each worker's confusion matrix by maximum likelihood.

    Parameters
    ----------
    smoothing
        Added to every count, so that no answer is ever impossible; 0 is the classical estimator.
    worker_model
        "confusion": a confusion matrix per worker. "coin": one accuracy per worker.
    gold_weight
        How often a known task counts for its workers: "auto", or a number; see `VariationalBayes`.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    accelerate
        Whether SQUAREM may extrapolate, so that fewer sweeps are needed; the objective never
        falls. Sweeps of `tol=0` or `smoothing=0` are plain.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.

    Attributes
    ----------
    labels_, probabilities_, confusion_, class_prior_
        The labels; (n_tasks, n_classes); (n_workers, truth, answer); (n_classes,).
    bounds_
        The objective after each sweep; it never falls.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
    >>> DawidSkene().fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

    def __init__(
        self,
        *,
        smoothing: float = 0.01,
        worker_model: str = "confusion",
        gold_weight: GoldWeight = AUTO,
        tol: float = 1e-6,
        max_iter: int = 500,
        accelerate: bool = True,
        backend: str = "auto",
        n_threads: int | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.worker_model = worker_model
        self.gold_weight = gold_weight
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.backend = backend
        self.n_threads = n_threads

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Fit to responses and, if given, gold, from the end of another model where one is given.

        Links cannot be used.
        """
        self._check(links, start)
        inputs = read_and_check_inputs(responses, None, gold)
        crowd = inputs.responses
        q = None if start is None else start_from_model(start, crowd, lay_out(crowd))
        self._fit_inputs(inputs, q)
        labels = self.labels_.label
        has_collapsed = publishing.note_odd_labels(inputs, self.probabilities_, None, labels)
        if inputs.gold_codes is not None:  # it names the classes
            publishing.note_workers_below_chance(crowd, inputs.gold_codes)
        elif not has_collapsed:
            publishing.note_swapped_classes(crowd, labels)
        self._warn_unsettled(self.tol)
        return self

    def _check(self, links: Any, start: Any) -> None:
        """Refuse what cannot be fitted."""
        refuse_links(self, links)
        check_common(self.get_params())
        require_model(self.worker_model, tuple(POOLS))

    def _fit_inputs(self, inputs: Inputs, q: Floats | None) -> Floats:
        """Fit from q, None: from the votes; return where q ended."""
        crowd = inputs.responses
        there = inputs.elsewhere
        tasks = vb.lay_out(crowd, vb.roles(crowd.n_tasks, inputs.gold_codes, None))
        patterns = patterns_of(inputs, tasks, q)
        votes = vb.majority(patterns.tasks, crowd.n_classes)
        q = votes if q is None else patterns.to_patterns(q)
        choose = choose_backend if there is None else there.backend
        backend = choose(self.backend, len(patterns.tasks.code), 0)
        run = maximise(
            self._weigh_gold(patterns, inputs),
            vb.clamp(q, patterns.gold(inputs.gold_codes)),
            backend,
            smoothing=self.smoothing,
            tol=self.tol,
            max_iter=self.max_iter,
            n_threads=self.n_threads or default_threads(),
            accelerate=self.accelerate,
            copies=patterns.copies,
            pool=POOLS[self.worker_model],
            elsewhere=there,
        )
        self.class_prior_, self.confusion_ = run.estimates
        self.bounds_ = run.bounds
        self.n_iter_ = len(run.bounds) - 1
        self.converged_ = run.converged
        if there is None:
            self.ran_on_ = where(backend)
        self._publish(inputs, patterns.to_tasks(run.q))
        return run.q

    def _weigh_gold(self, patterns: Patterns, inputs: Inputs) -> ByTask:
        """Return the tasks, with responses on known ones as heavy as `gold_weight` says."""
        n_classes = inputs.responses.n_classes
        gold = patterns.gold(inputs.gold_codes)
        n_given = None if inputs.elsewhere is None else inputs.elsewhere.n_given
        table = gold_weights.find(self.gold_weight, gold, patterns, n_classes, n_given=n_given)
        if gold is None or table is None:
            return patterns.tasks
        return gold_weights.weigh_known(patterns.tasks, gold, table, n_classes)
