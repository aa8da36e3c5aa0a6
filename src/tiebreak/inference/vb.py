"""Variational Bayes: what stays fixed in a fit, what is believed, ascend, bound.

Letters: q, class probabilities of tasks; α, parameters of the class prior π; β, parameters of the
workers, as their model has them (`workers/`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.inference.climb import Parameters, Sweep, climb
from tiebreak.inference.dirichlet import POSTERIOR, ClassPrior, StatePrior
from tiebreak.inference.known import clamp, weigh_known
from tiebreak.inference.workers import AnswerCounts, ConfusionMatrices, Workers
from tiebreak.inference.workers.base import ExtraCodes
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import majority as majority
from tiebreak.kernels.contract import Backend
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
    rounder_for,
)
from tiebreak.kernels.sweeper import DirichletStep, Logs, Sweeper
from tiebreak.links.graph import Implications

if TYPE_CHECKING:
    from tiebreak.inference.calibration import Calibration
    from tiebreak.inference.tasks.coupling.link_errors import Rates
    from tiebreak.inference.tasks.coupling.plan import LinkReport

# With subtypes logs are multiples of 2^-36, so that sums over the responses on a task are exact up
# to 131,072: [eq:exact-sums]. q moves by some 1e-11 for it, and the bound by the square of that.
LOG_ROUNDER = 1.5 * 2.0**16


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

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the linked tasks and return what they imply.

        They are rows of the sweeper's q, with these scores, or are kept apart by the model.
        `Swept.entropy` is their part of the bound.
        """

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound; None before joint beliefs exist."""


class TasksElsewhere(Protocol):
    """Tasks on other machines: without links, and none of them known."""

    n_tasks: int
    n_responses: float  # by weight
    n_given: Floats  # (n_workers,) responses of each, by weight, on tasks here too

    @property
    def answers(self) -> AnswerCounts:
        """What all workers said, on tasks here too."""

    def backend(self, name: str, n_responses: int, n_linked: int) -> Backend:
        """Return a backend whose sweeps are of these tasks too, for so many responses here."""

    def watch(self, bound: float) -> None:
        """Be told the bound after each update."""


class Problem(NamedTuple):
    """Everything that stays fixed while a model is fitted.

    Where equal response patterns were made one, a task here is a pattern, and `copies` says for how
    many tasks it counts.
    """

    tasks: ByTask
    states: StatePrior
    workers: Workers
    backend: Backend
    n_threads: int = 1
    links: LinkModel | None = None
    n_pooled: int = 0  # tasks that the model of links keeps apart, in nodes
    copies: Floats | None = None  # (n_tasks,); None: one each
    gold_weight: Floats | None = None  # (n_workers, n_classes); None: known tasks count once
    elsewhere: TasksElsewhere | None = None  # beside `tasks`; None: all tasks are here
    # Counts of workers and of states that stay as they are and are added to the priors: those of
    # tasks in other batches, or whose responses were dropped. As `added` gives them.
    carried: tuple[Floats, Floats] | None = None

    @property
    def n_tasks(self) -> float:
        """How many tasks there are, copies and those elsewhere too."""
        n_here = self.tasks.n_tasks if self.copies is None else float(self.copies.sum())
        return n_here if self.elsewhere is None else n_here + self.elsewhere.n_tasks

    @property
    def n_classes(self) -> int:
        return self.workers.n_classes

    @property
    def n_states(self) -> int:
        return self.workers.n_states

    def open(self, q: Floats, elsewhere: Any = None) -> Sweeper:
        """Open a sweeper on a start of q, which it then owns; `elsewhere` as in `Run`.

        With subtypes sums are exact, [eq:exact-sums]: they start near a saddle, where rounding
        grows, so that another order of the same tasks would lead elsewhere.
        """
        tasks = self.tasks
        if self.n_states > self.n_classes:
            tasks = tasks._replace(rounder=rounder_for(self.n_tasks))
        sweeper: Sweeper = self.backend.open(tasks, q, self.n_threads, self.copies)
        if elsewhere is not None:
            sweeper.go_to(elsewhere)
        return sweeper


class Patterns(NamedTuple):
    """Tasks by response pattern. Where patterns do not pay, each task is one: the rest is None."""

    tasks: ByTask  # one per pattern
    copies: Floats | None = None  # (n_patterns,) how many tasks have this pattern
    pattern: Codes | None = None  # (n_tasks,) the pattern of each task
    representative: Codes | None = None  # (n_patterns,) the first task of each pattern

    def to_tasks(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each task the value of its pattern."""
        return values if self.pattern is None else values[self.pattern]

    def to_patterns(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each pattern the value of its representative."""
        return values if self.representative is None else values[self.representative]

    def mean(self, values: Floats) -> Floats:
        """Return for each pattern the mean over its tasks."""
        if self.pattern is None or self.copies is None:
            return values
        sums = np.empty((len(self.copies), values.shape[1]))
        for k, column in enumerate(values.T):
            sums[:, k] = np.bincount(self.pattern, column, len(self.copies))
        return np.asarray(sums / self.copies[:, None])

    def gold(self, gold: GoldCodes | None) -> GoldCodes | None:
        """Return gold by pattern."""
        if gold is None or self.pattern is None:
            return gold
        return gold._replace(task=self.pattern[gold.task])

    def implied(self, implied: Implications | None) -> Implications | None:
        """Return what links imply by row: each task that has a link has a row of its own."""
        if implied is None or self.pattern is None:
            return implied
        return implied.renumbered(self.pattern)


class Beliefs(NamedTuple):
    """Parameters of the class prior and of the workers; all are positive."""

    alpha: Floats  # (n_states,)
    beta: Floats  # as the worker model has them


class PlainBeliefs(Beliefs):
    """Beliefs of plain VB: fits with more and more links and gold ask them what they expect.

    What they expect is kept, since each time it takes as long as a sweep's.
    """

    logs: Logs | None = None  # as `expected_logs` found them, for confusion matrices


class Run(NamedTuple):
    """Where the ascent ended, and the bound at its start and after each sweep.

    Joint inference of links has no bound before its first sweep.
    """

    q: Floats
    beliefs: Beliefs
    bounds: list[float]
    n_sweeps: int
    converged: bool
    elsewhere: Any = None  # where q of tasks on other machines stands; None: at the votes


class Stopping(NamedTuple):
    """When an ascent ends, and whether SQUAREM may shorten it."""

    tol: float
    max_iter: int
    accelerate: bool


class GridPoint(NamedTuple):
    """One strength of the grid of mean-field links, and how its labels do."""

    strength: float
    violated: int  # given links that the labels break
    converged: bool


class Fit(NamedTuple):
    """Where a fit ended, and what it found on the way."""

    run: Run  # q by state, where the ascent ended
    q: Floats  # (n_tasks, n_classes) probabilities as reported
    calibration: Calibration | None = None  # how scores became probabilities
    decoded: GoldCodes | None = None  # linked tasks and their labels, where decoded jointly
    link_report: LinkReport | None = None
    rates: Rates | None = None  # error rates of links by source, estimated or learnt
    wrong: Floats | None = None  # (n_links,) probability that each link is wrong; 0 for hard ones
    uncertain: tuple[Codes, ...] = ()  # tasks of linked groups that another mode calls otherwise
    link_strength: float | None = None
    link_grid: tuple[GridPoint, ...] | None = None


def roles(n_tasks: int, gold: GoldCodes | None, linked: Codes | None) -> Roles:
    """Say of each task whether it is free, linked or known; known wins."""
    role = np.full(n_tasks, FREE, dtype=np.int8)
    if linked is not None:
        role[linked] = LINKED
    if gold is not None:
        role[gold.task] = KNOWN
    return role


def lay_out(responses: Responses, role: Roles | None = None) -> ByTask:
    """Cut the responses, which are sorted by task, into chunks for the kernels.

    Without roles nothing is known yet, and nothing linked.
    """
    n_classes = responses.n_classes
    role = roles(responses.n_tasks, None, None) if role is None else role
    n_codes = responses.n_workers * n_classes
    return layout.lay_out(
        responses.start, responses.code, role, n_codes, n_classes, responses.weight
    )


def to_states(problem: Problem, q: Floats) -> Floats:
    """Return q by state, where it is by class: subtypes start by votes, [eq:subtype-start]."""
    if q.shape[1] == problem.n_states:
        return q
    votes = majority(problem.tasks, problem.n_classes)
    return split_into_subtypes(q, votes, problem.n_states // problem.n_classes)


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
        tasks = weigh_known(tasks, gold, problem.gold_weight, problem.n_states)
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
    n_classes = problem.n_classes
    if q.shape[1] == n_classes:
        return q
    n_subtypes = q.shape[1] // n_classes  # reshape cannot tell -1 where there is no task
    return np.asarray(q.reshape(len(q), n_classes, n_subtypes).sum(axis=2))


def confusion(problem: Problem, beliefs: Beliefs) -> Floats:
    """Return the expected confusion matrices, (worker, truth, answer)."""
    by_state = problem.workers.confusion(beliefs.beta)
    if problem.n_states == problem.n_classes:
        return by_state
    by_class = beliefs.alpha.reshape(problem.n_classes, -1)
    share = (by_class / by_class.sum(axis=1, keepdims=True)).ravel()  # of a state in its class
    weighed = by_state * share[None, :, None]
    shape = (len(by_state), problem.n_classes, -1, problem.n_classes)
    return np.asarray(weighed.reshape(shape).sum(axis=2))


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
