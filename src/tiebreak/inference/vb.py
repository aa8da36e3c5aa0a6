"""Variational Bayes: prepare, start, ascend, bound. Pure functions on named tuples.

Letters: q, class probabilities of tasks; α, Dirichlet of the class prior π; β, Dirichlet of the
confusion matrices θ. β and every table of confusions lie as [worker, answer, truth] here, so that
a response gathers neighbours in memory; results turn to [worker, truth, answer].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import dirichlet, response_patterns, squarem
from tiebreak.inference.squarem import Parameters, Sweep
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    FREE,
    KNOWN,
    LINKED,
    POOLED,
    ByTask,
    Codes,
    Floats,
    Mask,
    Roles,
    Swept,
)
from tiebreak.responses import Responses

VOTES_AT_ONCE = 1 << 20  # tasks

Logs = tuple[Floats, Floats]  # E[log π] and E[log θ]


class LinkStep(NamedTuple):
    """What one joint update of tasks or nodes gives."""

    change: float  # largest change of any q
    value: float  # their entropy plus the expected link term: their part of the bound


class LinkModel(Protocol):
    """How linked tasks are updated: `mean_field.py` is the paper's way."""

    @property
    def may_cycle(self) -> bool:
        """Whether updates can swap between two states for ever."""

    @property
    def remembers(self) -> bool:
        """Whether an update depends on the ones before it, so that it cannot be taken back."""

    def sweep(self, problem: Problem, q: Floats, u: Floats, logs: Logs) -> Swept:
        """Update the linked tasks, whose scores are u, and return what they imply.

        They are rows of q, or are kept apart by the model. `Swept.entropy` is their part of the
        bound.
        """

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound; None before joint beliefs exist."""


class Problem(NamedTuple):
    """Everything that stays fixed while a model is fitted.

    Where equal rows were collapsed, a task here is a row, and `copies` says for how many it counts.
    """

    tasks: ByTask
    class_prior: Floats  # (n_classes,)
    confusion_prior: Floats  # (n_workers or 1, answer, truth)
    backend: Backend
    n_threads: int = 1
    links: LinkModel | None = None
    copies: Floats | None = None  # (n_tasks,); None: one each

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_prior)

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return self.tasks.n_codes // self.n_classes


class Beliefs(NamedTuple):
    """Dirichlet parameters of the class prior and of the confusion matrices."""

    alpha: Floats  # (n_classes,)
    beta: Floats  # (n_workers, answer, truth)


class Run(NamedTuple):
    """Where the ascent ended, and the bound at its start and after each sweep.

    Joint inference of links has no bound before its first sweep.
    """

    q: Floats
    beliefs: Beliefs
    bounds: list[float]
    n_sweeps: int
    converged: bool
    cycled: bool = False  # q alternates between two states (simultaneous updates only)


class BoundTerms(NamedTuple):
    """The bound of [eq:bound], term by term; nothing is dropped."""

    tasks: float  # E log p(y)
    responses: float  # E log p(responses)
    class_prior: float  # E log p(π)
    confusion: float  # E log p(θ)
    entropy_tasks: float  # H(y); with links, plus the expected link term
    entropy_class_prior: float  # H(π)
    entropy_confusion: float  # H(θ)

    @property
    def total(self) -> float:
        """The bound."""
        return float(sum(self))


def roles(n_tasks: int, gold: GoldCodes | None, linked: Codes | None) -> Roles:
    """Say of each task whether it is free, linked or known; known wins."""
    role = np.full(n_tasks, FREE, dtype=np.int8)
    if linked is not None:
        role[linked] = LINKED
    if gold is not None:
        role[gold.task] = KNOWN
    return role


def lay_out(responses: Responses, role: Roles) -> ByTask:
    """Cut the responses, which are sorted by task, into chunks for the kernels."""
    n_classes = responses.n_classes
    n_codes = responses.n_workers * n_classes
    return layout.lay_out(responses.start, responses.code, role, n_codes, n_classes)


def majority(tasks: ByTask, n_classes: int) -> Floats:
    """Return vote shares, uniform where a task has no votes: [eq:majority]."""
    shares = np.empty((tasks.n_tasks, n_classes))
    for low in range(0, tasks.n_tasks, VOTES_AT_ONCE):  # memory for some tasks, not for all
        start = tasks.start[low : low + VOTES_AT_ONCE + 1]
        task = np.repeat(np.arange(len(start) - 1), np.diff(start))
        cells = task * n_classes + tasks.code[start[0] : start[-1]] % n_classes
        votes = np.bincount(cells, minlength=(len(start) - 1) * n_classes)
        shares[low : low + len(start) - 1] = votes.reshape(-1, n_classes)
    totals = shares.sum(axis=1, keepdims=True)
    shares[totals[:, 0] == 0.0] = 1.0 / n_classes
    shares /= np.maximum(totals, 1.0)
    return shares


def clamp(q: Floats, gold: GoldCodes | None) -> Floats:
    """Return q with known tasks certain, a copy where there are any: [eq:gold]."""
    if gold is None or not len(gold.task):
        return q
    q = np.array(q, dtype=np.float64, order="C")
    q[gold.task] = 0.0
    q[gold.task, gold.label] = 1.0
    return q


def update_beliefs(problem: Problem, counts: Floats, totals: Floats) -> Beliefs:
    """Add what was counted to the priors: [eq:class-prior-update], [eq:confusion-update]."""
    by_worker = counts.reshape(problem.n_workers, problem.n_classes, problem.n_classes)
    return Beliefs(problem.class_prior + totals, problem.confusion_prior + by_worker)


def counted(problem: Problem, beliefs: Beliefs) -> tuple[Floats, Floats]:
    """Return what was added to the priors: counts (n_workers, answer, truth), and totals."""
    return beliefs.beta - problem.confusion_prior, beliefs.alpha - problem.class_prior


def first_beliefs(problem: Problem, q: Floats) -> Beliefs:
    """Return the beliefs that q implies."""
    everyone = np.ones(problem.tasks.n_tasks, dtype=bool)
    return update_beliefs(problem, *_tally(problem, q, everyone))


def _tally(problem: Problem, q: Floats, chosen: Mask) -> tuple[Floats, Floats]:
    weighed = response_patterns.weigh(q, problem.copies)
    return problem.backend.tally(weighed, problem.tasks, chosen, problem.n_threads)


def swept_linked(problem: Problem, q: Floats, step: LinkStep) -> Swept:
    """Count the linked tasks after such a step."""
    counts, totals = _tally(problem, q, problem.tasks.role == LINKED)
    return Swept(counts, totals, step.change, step.value, 0.0)


def with_nodes(problem: Problem, links: LinkModel, pooled: Codes, known: GoldCodes) -> Problem:
    """Return the problem with links whose model keeps the tasks `pooled` apart, in nodes."""
    role = roles(problem.tasks.n_tasks, known, None)
    role[pooled] = POOLED
    return problem._replace(tasks=problem.tasks._replace(role=role), links=links)


def expected_logs(beliefs: Beliefs, n_threads: int = 1) -> Logs:
    """Return E[log π], (n_classes,), and E[log θ], (n_codes, truth): [eq:expected-logs]."""
    log_table = dirichlet.expected_log(beliefs.beta, axis=1, n_threads=n_threads)
    return dirichlet.expected_log(beliefs.alpha), log_table.reshape(-1, len(beliefs.alpha))


def update_tasks(problem: Problem, q: Floats, beliefs: Beliefs) -> Swept:
    """Update q in place, given the beliefs; return what it implies.

    The free tasks are updated and counted in one pass; linked tasks are scored in it, updated
    by the link model, and counted after. `Swept.entropy` holds the value of the linked tasks too.
    """
    tasks, links = problem.tasks, problem.links
    backend, n_threads = problem.backend, problem.n_threads
    logs = expected_logs(beliefs, n_threads)
    if links is not None and (tasks.role == POOLED).all():
        return links.sweep(problem, q, q[:0], logs)
    has_scores = links is not None and bool((tasks.role == LINKED).any())
    u = np.empty((tasks.n_tasks if has_scores else 0, problem.n_classes))
    swept = backend.sweep_tasks(q, u, tasks, *logs, n_threads=n_threads)
    if problem.copies is not None:
        swept = response_patterns.recount(swept, q, tasks, problem.copies, logs, backend, n_threads)
    if links is None:
        return swept
    linked = links.sweep(problem, q, u, logs)
    return Swept(
        swept.counts + linked.counts,
        swept.totals + linked.totals,
        max(swept.change, linked.change),
        swept.entropy + linked.entropy,
        swept.log_norm,
    )


def ascend(
    problem: Problem,
    q: Floats,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    watch: Callable[[Floats, Beliefs], None] | None = None,
    accelerate: bool = False,
    implied: Beliefs | None = None,
    first: Callable[[Floats, Beliefs], Beliefs] | None = None,
) -> Run:
    """Climb the bound by turns: tasks, then beliefs; stop when no q moves by `tol`.

    `watch` is called with q and the beliefs after each sweep. Where simultaneous updates of
    linked tasks swap between two states, the run stops there and says so (`cycled`).
    `implied` is what q implies, where that is known; `first` is a step before the first sweep, and
    returns the beliefs after it.
    `accelerate` lets sweeps leap ahead where that is safe: towards a tolerance, without a watch and
    without links whose model remembers more than beliefs.
    """
    q = np.array(q, dtype=np.float64, order="C")
    beliefs = first_beliefs(problem, q) if implied is None else implied
    value = value_of_tasks(problem, q)
    bounds = [] if value is None else [bound_after_update(problem, beliefs, value)]
    if first is not None:
        beliefs = first(q, beliefs)
    remembers = problem.links is not None and problem.links.remembers
    if accelerate and tol > 0.0 and not remembers and watch is None:
        run = _ascend_by_leaps(problem, q, beliefs, tol, max_iter)
        return run._replace(bounds=bounds + run.bounds)
    before: list[Floats] = []  # q of the last two sweeps, kept only where a cycle can occur
    for sweep in range(1, max_iter + 1):
        if problem.links is not None and problem.links.may_cycle:
            before = [*before[-1:], q.copy()]
        swept = update_tasks(problem, q, beliefs)
        beliefs = update_beliefs(problem, swept.counts, swept.totals)
        bounds.append(bound_after_update(problem, beliefs, swept.entropy))
        if watch is not None:
            watch(q, beliefs)
        if swept.change < tol:
            return Run(q, beliefs, bounds, sweep, converged=True)
        if len(before) == 2 and np.abs(q - before[0]).max() < tol:
            return Run(q, beliefs, bounds, sweep, converged=False, cycled=True)
    return Run(q, beliefs, bounds, max_iter, converged=False)


def _ascend_by_leaps(problem: Problem, q: Floats, start: Beliefs, tol: float, max_iter: int) -> Run:
    """Climb the bound in fewer sweeps, as `acceleration` does; q is overwritten."""

    def sweep(at: Parameters) -> Sweep:
        swept = update_tasks(problem, q, Beliefs(*at))
        implied = update_beliefs(problem, swept.counts, swept.totals)
        return Sweep(implied, bound_after_update(problem, implied, swept.entropy), swept.change)

    climbed = squarem.climb(sweep, start, tol=tol, max_iter=max_iter)
    implied, bounds, converged = climbed
    return Run(q, Beliefs(*implied), bounds, len(bounds), converged)


def value_of_tasks(problem: Problem, q: Floats) -> float | None:
    """Return H(y) and, with links, the expected link term; None before joint beliefs exist."""
    linked = 0.0 if problem.links is None else problem.links.value(q)
    if linked is None:
        return None
    return response_patterns.counted_entropy(q, problem.tasks.role == FREE, problem.copies) + linked


def bound_after_update(problem: Problem, beliefs: Beliefs, value_of_tasks: float) -> float:
    """Return the bound right after the beliefs were updated: [eq:bound-after-update].

    log B(α) − log B(α₀) + Σ_wk [log B(β_wk) − log B(β₀_wk)] + H(y) (+ the link term)
    """
    prior = dirichlet.log_beta(problem.confusion_prior, axis=1).sum()
    if len(problem.confusion_prior) == 1:
        prior *= problem.n_workers
    return float(
        dirichlet.log_beta(beliefs.alpha)
        - dirichlet.log_beta(problem.class_prior)
        + dirichlet.log_beta(beliefs.beta, axis=1, n_threads=problem.n_threads).sum()
        - prior
        + value_of_tasks
    )


def bound_terms(problem: Problem, q: Floats, beliefs: Beliefs) -> BoundTerms:
    """Return every term of [eq:bound], for any q and beliefs."""
    log_prior, log_table = expected_logs(beliefs)
    counted = _tally(problem, q, np.ones(len(q), dtype=bool))
    log_confusion = log_table.reshape(beliefs.beta.shape)
    prior = np.broadcast_to(problem.confusion_prior, beliefs.beta.shape)
    value = value_of_tasks(problem, q)
    return BoundTerms(
        tasks=float(counted[1] @ log_prior),
        responses=float((counted[0] * log_table).sum()),
        class_prior=float(
            (problem.class_prior - 1) @ log_prior - dirichlet.log_beta(problem.class_prior)
        ),
        confusion=float(
            ((prior - 1) * log_confusion).sum() - dirichlet.log_beta(prior, axis=1).sum()
        ),
        entropy_tasks=-np.inf if value is None else value,
        entropy_class_prior=float(
            dirichlet.log_beta(beliefs.alpha) - (beliefs.alpha - 1) @ log_prior
        ),
        entropy_confusion=float(
            dirichlet.log_beta(beliefs.beta, axis=1).sum()
            - ((beliefs.beta - 1) * log_confusion).sum()
        ),
    )
