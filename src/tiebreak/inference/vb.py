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
from tiebreak.inference import acceleration, collapse, dirichlet
from tiebreak.inference.acceleration import Parameters, Sweep
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    FREE,
    KNOWN,
    LINKED,
    ByTask,
    Codes,
    Floats,
    Mask,
    Roles,
    Swept,
)
from tiebreak.responses import Responses

VOTES_AT_ONCE = 1 << 20  # tasks
FEW = 0.1  # of all tasks: so few linked ones are laid out a second time, by themselves


class LinkStep(NamedTuple):
    """What one update of the linked tasks gives."""

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

    def update(self, q: Floats, u: Floats) -> LinkStep:
        """Set the rows of q of the linked tasks, given their scores u."""

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound; None before joint beliefs exist."""


class Part(NamedTuple):
    """Some tasks, and how their responses lie by themselves."""

    at: Codes
    tasks: ByTask


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
    linked: Part | None = None  # the linked tasks, where they are few beside all
    room: Floats | None = None  # (n_tasks, n_classes) for scores of linked tasks, kept for speed

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
    weighed = collapse.weigh(q, problem.copies)
    return problem.backend.tally(weighed, problem.tasks, chosen, problem.n_threads)


def _tally_linked(problem: Problem, q: Floats) -> tuple[Floats, Floats]:
    """Count the linked tasks; where they are few, without a look at the others."""
    if problem.linked is None:
        return _tally(problem, q, problem.tasks.role == LINKED)
    at, tasks = problem.linked
    weighed = collapse.weigh(q[at], None if problem.copies is None else problem.copies[at])
    everyone = np.ones(len(at), dtype=bool)
    return problem.backend.tally(weighed, tasks, everyone, problem.n_threads)


def with_links(problem: Problem, links: LinkModel, linked: Codes, known: GoldCodes) -> Problem:
    """Return the problem with these links, and with roles for linked and known tasks."""
    n_tasks = problem.tasks.n_tasks
    tasks = problem.tasks._replace(role=roles(n_tasks, known, linked))
    part = None
    if len(linked) < FEW * n_tasks:
        part = Part(linked, layout.part_of(tasks, linked, problem.n_classes))
    room = np.empty((n_tasks, problem.n_classes))  # new memory each sweep would take time
    return problem._replace(tasks=tasks, links=links, linked=part, room=room)


def update_linked(problem: Problem, q: Floats, beliefs: Beliefs) -> Beliefs:
    """Update the linked tasks alone, in place; return the beliefs that q then implies.

    Where the free tasks have settled and only links are new, this does what a whole sweep would,
    at the cost of the linked tasks. The bound cannot fall: all else stays as it is.
    """
    if problem.linked is None or problem.links is None:
        return beliefs
    at, tasks = problem.linked
    u = np.empty_like(q) if problem.room is None else problem.room
    u[at] = problem.backend.score_tasks(tasks, *expected_logs(beliefs))
    counts_before, totals_before = _tally_linked(problem, q)
    problem.links.update(q, u)
    counts, totals = _tally_linked(problem, q)
    added = (counts - counts_before).reshape(beliefs.beta.shape)
    return Beliefs(beliefs.alpha + (totals - totals_before), beliefs.beta + added)


def expected_logs(beliefs: Beliefs) -> tuple[Floats, Floats]:
    """Return E[log π], (n_classes,), and E[log θ], (n_codes, truth): [eq:expected-logs]."""
    log_table = dirichlet.expected_log(beliefs.beta, axis=1)
    return dirichlet.expected_log(beliefs.alpha), log_table.reshape(-1, len(beliefs.alpha))


def update_tasks(problem: Problem, q: Floats, beliefs: Beliefs) -> Swept:
    """Update q in place, given the beliefs; return what it implies.

    The free tasks are updated and counted in one pass; linked tasks are scored in it, updated
    by the link model, and counted after. `Swept.entropy` holds the value of the linked tasks too.
    """
    tasks, links = problem.tasks, problem.links
    u = problem.room
    if u is None:
        u = np.empty((tasks.n_tasks if links else 0, problem.n_classes))
    logs = expected_logs(beliefs)
    backend, n_threads = problem.backend, problem.n_threads
    swept = backend.sweep_tasks(q, u, tasks, *logs, n_threads=n_threads)
    if problem.copies is not None:
        swept = collapse.recount(swept, q, tasks, problem.copies, logs, backend, n_threads)
    if links is None:
        return swept
    step = links.update(q, u)
    counts, totals = _tally_linked(problem, q)
    return Swept(
        swept.counts + counts,
        swept.totals + totals,
        max(swept.change, step.change),
        swept.entropy + step.value,
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
    links_first: bool = False,
) -> Run:
    """Climb the bound by turns: tasks, then beliefs; stop when no q moves by `tol`.

    `watch` is called with q and the beliefs after each sweep. Where simultaneous updates of
    linked tasks swap between two states, the run stops there and says so (`cycled`).
    `implied` is what q implies, where that is known; `links_first` infers the linked tasks alone
    before the first sweep.
    `accelerate` lets sweeps leap ahead where that is safe: towards a tolerance, without a watch and
    without links whose model remembers more than beliefs.
    """
    q = np.array(q, dtype=np.float64, order="C")
    beliefs = first_beliefs(problem, q) if implied is None else implied
    value = value_of_tasks(problem, q)
    bounds = [] if value is None else [bound_after_update(problem, beliefs, value)]
    if links_first:
        beliefs = update_linked(problem, q, beliefs)
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

    climbed = acceleration.climb(sweep, start, tol=tol, max_iter=max_iter)
    implied, bounds, converged = climbed
    return Run(q, Beliefs(*implied), bounds, len(bounds), converged)


def value_of_tasks(problem: Problem, q: Floats) -> float | None:
    """Return H(y) and, with links, the expected link term; None before joint beliefs exist."""
    linked = 0.0 if problem.links is None else problem.links.value(q)
    if linked is None:
        return None
    return collapse.counted_entropy(q, problem.tasks.role == FREE, problem.copies) + linked


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
        + dirichlet.log_beta(beliefs.beta, axis=1).sum()
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
