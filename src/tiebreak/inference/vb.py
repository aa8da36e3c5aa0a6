"""Variational Bayes: prepare, start, ascend, bound. Pure functions on named tuples.

Letters: q, class probabilities of tasks; α, parameters of the class prior π; β, parameters of the
workers, as their model has them (`workers/`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.inference import gold_weights
from tiebreak.inference.climb import Parameters, Sweep, climb
from tiebreak.inference.dirichlet import POSTERIOR, ClassPrior, to_classes, within_classes
from tiebreak.inference.problem import Beliefs as Beliefs
from tiebreak.inference.problem import LinkModel as LinkModel
from tiebreak.inference.problem import LinkStep as LinkStep
from tiebreak.inference.problem import PlainBeliefs as PlainBeliefs
from tiebreak.inference.problem import Problem as Problem
from tiebreak.inference.problem import Run as Run
from tiebreak.inference.problem import Stopping as Stopping
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.inference.workers.base import ExtraCodes
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import majority as majority
from tiebreak.kernels.layout import (
    FREE,
    KNOWN,
    LINKED,
    POOLED,
    ByTask,
    Codes,
    Floats,
    Roles,
    Swept,
    rounded,
)
from tiebreak.kernels.sweeper import DirichletStep, Logs, Sweeper

# With subtypes logs are multiples of 2^-36, so that sums over the responses on a task are exact up
# to 131,072: [eq:exact-sums]. q moves by some 1e-11 for it, and the bound by the square of that.
LOG_ROUNDER = 1.5 * 2.0**16


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
    return layout.lay_out(
        responses.start, responses.code, role, n_codes, n_classes, responses.weight
    )


def to_states(problem: Problem, q: Floats, seed: int | None = None) -> Floats:
    """Return q by state, where it is by class: subtypes start by votes, [eq:subtype-start].

    With a `seed` they are drawn instead: `worker_model="auto"` compares several such starts.
    """
    n_subtypes = problem.n_states // problem.n_classes
    if q.shape[1] == problem.n_states:
        return q
    if seed is None:
        votes = majority(problem.tasks, problem.n_classes)
        return split_into_subtypes(q, votes, n_subtypes)
    within = np.random.default_rng(seed).dirichlet(np.ones(n_subtypes), size=q.shape)
    return np.asarray((q[:, :, None] * within).reshape(len(q), q.shape[1] * n_subtypes))


def split_into_subtypes(q: Floats, votes: Floats, n_subtypes: int) -> Floats:
    """Return q by state from q by class, shared out by votes, (n_tasks, n_classes).

    [eq:subtype-start]: the subtypes of a class stand at equal steps of its share of the votes, from
    none to all of them, and a task starts at the two that are nearest. Only what was said decides,
    so that neither the order of rows nor names do.

    >>> votes = np.array([[1.0, 0.0], [0.75, 0.25]])
    >>> split_into_subtypes(votes, votes, 3).tolist()
    [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.375, 0.375, 0.125, 0.125, 0.0]]
    """
    place = votes[:, :, None] * (n_subtypes - 1)
    within = np.maximum(0.0, 1.0 - np.abs(place - np.arange(n_subtypes)))
    return np.asarray((q[:, :, None] * within).reshape(len(q), q.shape[1] * n_subtypes))


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


def beliefs_of_known(problem: Problem, q: Floats, gold: GoldCodes) -> Beliefs:
    """Return what known tasks alone say of workers and classes: [eq:gold-start]."""
    chosen = np.zeros(problem.tasks.n_tasks, dtype=bool)
    chosen[gold.task] = True
    known = with_known(problem, gold)
    return update_beliefs(known, *known.open(clamp(q, gold, problem.n_classes)).tally(chosen))


def with_known(problem: Problem, gold: GoldCodes | None) -> Problem:
    """Return the problem with tasks whose class is known: [eq:gold].

    Where a class is one state such a task does not move. Where it has subtypes, the task moves
    among those of its class: one more response, which is impossible in all others, keeps it there.
    """
    if gold is None:
        return problem
    tasks = problem.tasks
    if problem.gold_weight is not None:
        tasks = gold_weights.weigh_known(tasks, gold, problem.gold_weight, problem.n_states)
    if problem.n_states == problem.n_classes:
        role = roles(tasks.n_tasks, gold, None)
        return problem._replace(tasks=tasks._replace(role=role))
    start, code, weight = layout.with_more_codes(
        tasks.start, tasks.code, tasks.weight, gold.task, tasks.n_codes + gold.label
    )
    n_codes = tasks.n_codes + problem.n_classes
    known = layout.lay_out(start, code, tasks.role, n_codes, problem.n_states, weight)
    is_of_class = problem.states.class_of == np.arange(problem.n_classes)[:, None]
    rows = np.where(is_of_class, 0.0, -np.inf)
    return problem._replace(tasks=known, workers=ExtraCodes(problem.workers, rows))


def update_beliefs(problem: Problem, counts: Floats, totals: Floats) -> Beliefs:
    """Add what was counted to the priors: [eq:class-prior-update], [eq:confusion-update]."""
    return prior_plus(problem, (problem.workers.collect(counts), totals))


def prior_plus(problem: Problem, added: tuple[Floats, Floats]) -> Beliefs:
    """Add to the priors, and to what is carried, what `added` returned."""
    of_workers, of_classes = added
    beta0, alpha0 = _whole_prior(problem)
    return Beliefs(alpha0 + of_classes, beta0 + of_workers)


def added(problem: Problem, beliefs: Beliefs) -> tuple[Floats, Floats]:
    """Return what was added to the priors: of the workers, and of the classes."""
    beta0, alpha0 = _whole_prior(problem)
    return beliefs.beta - beta0, beliefs.alpha - alpha0


def _whole_prior(problem: Problem) -> tuple[Floats, Floats]:
    of_workers, of_states = problem.workers.prior, problem.states.prior
    if problem.carried is None:
        return of_workers, of_states
    more_of_workers, more_of_states = problem.carried
    return of_workers + more_of_workers, of_states + more_of_states


def implied_beliefs(problem: Problem, q: Floats) -> Beliefs:
    """Return the beliefs that q implies."""
    return update_beliefs(problem, *problem.open(q).tally())


def with_nodes(problem: Problem, links: LinkModel, pooled: Codes, known: GoldCodes) -> Problem:
    """Return the problem with links whose model keeps the tasks `pooled` apart, in nodes."""
    problem = with_known(problem, known)
    role = problem.tasks.role.copy()
    role[pooled] = POOLED
    tasks = problem.tasks._replace(role=role)
    return problem._replace(tasks=tasks, links=links, n_pooled=len(pooled))


def expected_logs(problem: Problem, beliefs: Beliefs) -> Logs:
    """Return E[log π], (n_states,), and E[log θ], (n_codes, n_states): [eq:expected-logs]."""
    if isinstance(beliefs, PlainBeliefs) and _has_confusions(problem):
        if beliefs.logs is None:
            beliefs.logs = _expected_logs(problem, beliefs)
        return beliefs.logs
    return _expected_logs(problem, beliefs)


def _expected_logs(problem: Problem, beliefs: Beliefs) -> Logs:
    log_prior = problem.states.expected_log(beliefs.alpha)
    log_table = problem.workers.log_table(beliefs.beta, problem.n_threads)
    if problem.n_states == problem.n_classes:
        return log_prior, log_table
    return rounded(log_prior, LOG_ROUNDER), rounded(log_table, LOG_ROUNDER)


def _has_confusions(problem: Problem) -> bool:
    """Say whether beliefs alone tell what to expect: a Dirichlet for each row, and for classes."""
    is_plain = type(problem.states) is ClassPrior and problem.states.read == POSTERIOR
    return is_plain and isinstance(problem.workers, ConfusionMatrices)


def update_tasks(problem: Problem, sweeper: Sweeper, beliefs: Beliefs) -> Swept:
    """Update q, given the beliefs; return what it implies.

    The free tasks are updated and counted in one pass; linked tasks are scored in it, updated
    by the link model, and counted after. `Swept.entropy` holds the value of the linked tasks too.
    """
    n_tasks = problem.tasks.n_tasks
    links = problem.links
    logs = expected_logs(problem, beliefs)
    if links is None:
        return sweeper.sweep(logs)
    nobody = np.empty((0, problem.n_states))
    if problem.elsewhere is None and problem.n_pooled == n_tasks:
        return links.sweep(sweeper, nobody, logs)
    has_scores = not problem.n_pooled and bool((problem.tasks.role == LINKED).any())
    scores = np.empty((n_tasks, problem.n_states)) if has_scores else nobody
    swept = sweeper.sweep(logs, scores)
    return swept.plus(links.sweep(sweeper, scores, logs))


def ascend(
    problem: Problem,
    q: Floats,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    accelerate: bool = False,
    implied: Beliefs | None = None,
    entropy: float | None = None,
    first: Callable[[Sweeper, Beliefs], Beliefs] | None = None,
    elsewhere: Any = None,
    may_overwrite: bool = False,
) -> Run:
    """Climb the bound by turns: tasks, then beliefs; stop when no q moves by `tol`.

    Where simultaneous updates of linked tasks swap between two states, the run stops there.
    `implied` is what q implies, where that is known, and `entropy` that of q; `first` is a step
    before the first sweep, and returns the beliefs after it.
    `accelerate` lets SQUAREM extrapolate where that is safe: towards a tolerance, and without links
    whose model remembers more than beliefs. `elsewhere` says where tasks on
    other machines start, as a run left them; None: at the votes. `may_overwrite`: nobody else needs
    this q, so that it is not copied first.
    """
    q = np.array(q, dtype=np.float64, order="C", copy=None if may_overwrite else True)
    sweeper = problem.open(q, elsewhere)
    beliefs = update_beliefs(problem, *sweeper.tally()) if implied is None else implied
    value = value_of_tasks(problem, sweeper) if entropy is None else entropy
    bounds = [] if value is None else [bound_after_update(problem, beliefs, value)]
    if first is not None:
        beliefs = first(sweeper, beliefs)
    remembers = problem.links is not None and problem.links.remembers
    step = _step_elsewhere(problem, sweeper)
    before: list[Floats] = []  # q of the last two sweeps, kept only where a cycle can occur

    def sweep(at: Parameters) -> Sweep:
        if step is not None:
            return Sweep(*step(at))
        if may_cycle:
            before[:] = [*before[-1:], sweeper.q().copy()]
        swept = update_tasks(problem, sweeper, Beliefs(*at))
        counts, totals, change, entropy = swept
        implied = update_beliefs(problem, counts, totals)
        del swept, counts  # as large as the beliefs
        return Sweep(implied, bound_after_update(problem, implied, entropy), change)

    def has_cycled() -> bool:
        return len(before) == 2 and bool(np.abs(sweeper.q() - before[0]).max() < tol)

    may_cycle = problem.links is not None and problem.links.may_cycle
    climbed = climb(
        sweep,
        beliefs if step is None else step.begin(*beliefs),
        tol=tol,
        max_iter=max_iter,
        extrapolate=accelerate and tol > 0.0 and not remembers and _is_positive(beliefs),
        has_cycled=has_cycled if may_cycle else None,
    )
    ended = climbed.implied if step is None else step.end(climbed.implied)
    run = Run(
        sweeper.q(),
        Beliefs(*ended),
        bounds + climbed.bounds,
        len(climbed.bounds),
        climbed.converged,
        sweeper.elsewhere(),
    )
    sweeper.close()
    return run


def _is_positive(beliefs: Beliefs) -> bool:
    """Say whether all parameters have logs: counts without a prior may be zero."""
    return bool((beliefs.alpha > 0.0).all() and (beliefs.beta > 0.0).all())


def _step_elsewhere(problem: Problem, sweeper: Sweeper) -> DirichletStep | None:
    """Return sweeps whose parameters are kept where q is; None: they are kept here."""
    if not _has_confusions(problem) or problem.links is not None or problem.carried is not None:
        return None
    return sweeper.dirichlet_step(problem.states.prior, problem.workers.prior)


def class_probabilities(problem: Problem, q: Floats) -> Floats:
    """Return the probability of each class, (n_tasks, n_classes), from that of each state."""
    return to_classes(problem.states, q)


def confusion(problem: Problem, beliefs: Beliefs) -> Floats:
    """Return the expected confusion matrices, (worker, truth, answer)."""
    by_state = problem.workers.confusion(beliefs.beta)
    if problem.n_states == problem.n_classes:
        return by_state
    share = within_classes(problem.states, beliefs.alpha)
    weighed = by_state * share[None, :, None]
    n_workers = len(by_state)
    return np.asarray(
        weighed.reshape(n_workers, problem.n_classes, -1, problem.n_classes).sum(axis=2)
    )


def value_of_tasks(problem: Problem, sweeper: Sweeper) -> float | None:
    """Return H(y) and, with links, the expected link term; None before joint beliefs exist."""
    linked = 0.0 if problem.links is None else problem.links.value(sweeper.q())
    return None if linked is None else sweeper.entropy() + linked


def bound_after_update(problem: Problem, beliefs: Beliefs, value_of_tasks: float) -> float:
    """Return the bound right after the beliefs were updated: [eq:bound-after-update].

    log B(α) − log B(α₀) + Σ_wk [log B(β_wk) − log B(β₀_wk)] + H(y) (+ the link term)
    """
    of_classes = problem.states.log_evidence(beliefs.alpha)
    of_workers = problem.workers.log_evidence(beliefs.beta, problem.n_threads)
    bound = of_classes + of_workers + value_of_tasks
    if problem.elsewhere is not None:
        problem.elsewhere.watch(bound)
    return bound
