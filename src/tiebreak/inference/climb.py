"""The one loop of every fit: sweep over the rows, update parameters, until nothing moves.

A row is what has one q: a task, or all tasks with equal responses. A fit maximises over q

    F(q) = G_tasks(n(q)) + G_workers(n(q)) + H(q),        [eq:bound-after-update]

with n(q) the expected counts, G the log evidence of each model and H the entropy. Each G is convex
in the counts, and the log tables that rows look up are its gradient. So a sweep, which maximises
the tangent of F, never lowers the bound, whatever the models are.

Near an optimum each sweep goes a little less far than the one before, in nearly the same direction.
Two sweeps in a row say how much less, and so where many more would lead: SQUAREM (Varadhan and
Roland 2008).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.dirichlet import POSTERIOR
from tiebreak.inference.tasks import Independent, OwnRows, Parameters, Tasks
from tiebreak.inference.workers import ConfusionMatrices, Workers
from tiebreak.kernels.arrays import largest_change, majority
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Floats, Mask, Swept, rounded, rounder_for, total_weights
from tiebreak.kernels.sweeper import Logs, Sweeper

NEAR = 0.1  # extrapolate when no q moves by more: until then sweeps still choose the optimum
FARTHEST = 3.0  # that one extrapolation may change the log of a parameter
ROUNDING = 1e-14  # relative: a bound lower by less than this is not lower
HIGHER = 1e-6  # relative: bounds that differ by less are equal

# With subtypes logs are multiples of 2^-36, so that sums over the responses on a row are exact up
# to 131,072: [eq:exact-sums]. q moves by some 1e-11 for it, and the bound by the square of that.
LOG_ROUNDER = 1.5 * 2.0**16


NOTHING = np.empty((0, 0))


class Stopping(NamedTuple):
    """When a fit ends, and whether SQUAREM may shorten it."""

    tol: float = 1e-6
    max_iter: int = 500
    accelerate: bool = True


class Sums(NamedTuple):
    """What a sweep found. Those of different rows add up."""

    codes: Floats  # (n_codes, n_states) Σ copies · weight · q by code
    tasks: Parameters  # (Σ copies · draws · q, and what the task model adds to its parameters)
    value: float = 0.0  # the entropy of q and what ties rows: their part of the bound
    change: float = 0.0  # the largest of any q
    memory: Any = None
    may_cycle: bool = False


class FitState(NamedTuple):
    """Where a fit stands: at its start, at its end, in a model."""

    q: Floats  # (n_rows, n_states)
    parameters: Parameters = ()  # of tasks, then of workers: (α, …, β); none: as q implies
    memory: Any = None  # of the task model, beside parameters: messages, decoded classes
    bounds: tuple[float, ...] = ()  # at the start where it has one, and after each sweep
    n_sweeps: int = 0
    converged: bool = False
    remote: Any = None  # where q of rows on other machines stands; None: at the votes


class Problem(NamedTuple):
    """What stays the same during a fit: the rows, the two models, and where sweeps run."""

    rows: ByTask
    tasks: Tasks
    workers: Workers
    backend: Backend
    n_threads: int = 1
    copies: Floats | None = None  # (n_rows,) tasks that each row stands for; None: one
    # Counts of responses that are elsewhere or gone, as parameters have them: (α, β).
    carried: Parameters | None = None

    @property
    def n_classes(self) -> int:
        return self.tasks.shares.n_classes

    @property
    def n_states(self) -> int:
        return self.tasks.shares.n_states

    @property
    def n_tasks(self) -> float:
        """How many tasks there are, on other machines too."""
        here = self.rows.n_tasks if self.copies is None else float(self.copies.sum())
        return here + float(getattr(self.backend, "n_remote_tasks", 0))

    @property
    def mean_responses(self) -> float:
        """How many responses a task has on average, by weight."""
        n_each = total_weights(self.rows.start, self.rows.weight)
        n_here = n_each.sum() if self.copies is None else n_each @ self.copies
        return float(n_here + getattr(self.backend, "n_remote_responses", 0.0)) / self.n_tasks

    @property
    def prior(self) -> Parameters:
        """Parameters before any response, with what is carried."""
        prior = (*self.tasks.prior, self.workers.prior)
        if self.carried is None:
            return prior
        return (prior[0] + self.carried[0], *prior[1:-1], prior[-1] + self.carried[-1])

    def logs(self, parameters: Parameters) -> Logs:
        """Return E[log π], (n_states,), and E[log θ], (n_codes, n_states)."""
        log_prior = self.tasks.log_prior(parameters)
        log_table = self.workers.log_table(parameters[-1], self.n_threads)
        if self.n_states == self.n_classes:
            return log_prior, log_table
        return rounded(log_prior, LOG_ROUNDER), rounded(log_table, LOG_ROUNDER)

    def updated(self, sums: Sums) -> Parameters:
        """Add expected counts to the priors: [eq:class-prior-update], and the same of workers."""
        counts = (*sums.tasks, self.workers.collect(sums.codes))
        return tuple(prior + each for prior, each in zip(self.prior, counts, strict=True))

    def bound(self, parameters: Parameters, value: float) -> float:
        """Return the bound right after an update: [eq:bound-after-update].

        log B(α) − log B(α₀) + Σ_wk [log B(β_wk) − log B(β₀_wk)] + H(y) (+ what ties rows)
        """
        of_tasks = self.tasks.log_evidence(parameters)
        return of_tasks + self.workers.log_evidence(parameters[-1], self.n_threads) + value

    def implied(self, q: Floats, chosen: Mask | None = None) -> Parameters:
        """Return the parameters that q implies, of the chosen rows alone or of all."""
        return self.updated(Sweeps(self, q).tally(chosen))

    def votes(self) -> Floats:
        """Return shares of votes by state: where q starts, [eq:subtype-start]."""
        return self.to_states(majority(self.rows, self.n_classes))

    def to_states(self, q: Floats) -> Floats:
        """Return q by state from q by class: subtypes share a class by the votes."""
        if q.shape[1] == self.n_states:
            return q
        votes = majority(self.rows, self.n_classes)
        return split_into_subtypes(q, votes, self.n_states // self.n_classes)

    def by_class(self, q: Floats) -> Floats:
        """Return the probability of each class, (n_rows, n_classes), from that of each state."""
        return sum_subtypes(q, self.n_classes)

    def confusion(self, parameters: Parameters) -> Floats:
        """Return the expected confusion matrices, (worker, truth, answer)."""
        by_state = self.workers.confusion(parameters[-1])
        if self.n_states == self.n_classes:
            return by_state
        by_class = parameters[0].reshape(self.n_classes, -1)
        share = (by_class / by_class.sum(axis=1, keepdims=True)).ravel()  # of a state in its class
        weighed = by_state * share[None, :, None]
        shape = (len(by_state), self.n_classes, -1, self.n_classes)
        return np.asarray(weighed.reshape(shape).sum(axis=2))


def climb(
    problem: Problem,
    start: FitState,
    stopping: Stopping = Stopping(),  # noqa: B008 - immutable
    *,
    may_overwrite: bool = False,
) -> FitState:
    """Sweep from a start until no q moves by `tol`; extrapolate after every two plain sweeps.

    A sweep from an extrapolation that lowers the bound is wasted: it counts, and sweeps go on where
    they stood. So the last of `max_iter` sweeps never starts from an extrapolation. The sweep that
    ends the climb went on from where the one before ended. Task models whose bound is approximate,
    or that depend on the sweep before, get plain sweeps. `may_overwrite`: nobody else needs the q
    of the start, so that it is not copied.
    """
    tol, max_iter, accelerate = stopping
    q = np.array(start.q, dtype=np.float64, order="C", copy=None if may_overwrite else True)
    sweeps = Sweeps(problem, q, start.remote)
    if not start.parameters:
        start = start._replace(parameters=problem.updated(sweeps.tally()))
    value = sweeps.value()
    bounds = [] if value is None else [problem.bound(start.parameters, value)]
    device = _kept_on_device(problem, sweeps)
    at: Any = start.parameters if device is None else device.begin(*start.parameters)
    may_leap = accelerate and tol > 0.0 and problem.tasks.exact
    may_leap = may_leap and all((each > 0.0).all() for each in start.parameters)
    memory = start.memory
    implied = at
    path: list[Any] = []  # where the last plain sweeps in a row started
    fallback: Any = None  # where to go on if the extrapolation is taken back
    goes_on = True  # whether this sweep starts from what the q before it implies
    converged = False
    n_sweeps = 0
    while n_sweeps < max_iter and not converged:
        n_sweeps += 1
        path = path[-1:]  # parameters may be large: none is held that no step needs
        if device is None:
            after, bound, sums = step(problem, sweeps, at, memory)
        else:
            after, bound, change = device(at)
            sums = Sums(NOTHING, (), change=change)
        if fallback is not None and not bound >= bounds[-1] - ROUNDING * abs(bounds[-1]):
            bounds.append(bounds[-1])
            at, fallback, path, goes_on = fallback, None, [], False
            continue
        bounds.append(bound)
        sweeps.watch(bound)
        implied, memory = after, sums.memory
        converged = fallback is None and goes_on and sums.change < tol
        if converged or sums.may_cycle:
            break
        path = [*path, at] if may_leap and fallback is None else []
        at, fallback, goes_on = implied, None, True
        if len(path) == 2 and sums.change < NEAR and n_sweeps + 1 < max_iter:
            at, fallback = extrapolated(path[0], path[1], implied), implied
    ended = implied if device is None else device.end(implied)
    q, remote = sweeps.close()
    return FitState(q, tuple(ended), memory, tuple(bounds), n_sweeps, converged, remote)


def step(
    problem: Problem, sweeps: Sweeps, at: Parameters, memory: Any
) -> tuple[Parameters, float, Sums]:
    """Sweep once; return the parameters that the new q implies, the bound there, and the sums."""
    sums = sweeps.sweep(at, problem.logs(at), memory)
    new = problem.updated(sums)
    return new, problem.bound(new, sums.value), sums


class Sweeps:
    """All rows of a fit: a sweeper of the backend, and the task model's own rows beside it.

    The backend fuses score, softmax and counts of a row in one pass; `numpy_sweep` says what it
    means. Owns q from a start until `close`.
    """

    def __init__(self, problem: Problem, q: Floats, remote: Any = None) -> None:
        self.problem = problem
        self.own: OwnRows | None = problem.tasks.own
        rows = problem.rows
        if problem.n_states > problem.n_classes:
            # Sums are exact: fits with subtypes start near a saddle, where
            # rounding grows, so that another order of the same rows would lead elsewhere.
            rows = rows._replace(rounder=rounder_for(problem.n_tasks))
        if self.own is not None:
            rows = rows._replace(role=self.own.away(rows.role))
            self.own_rows = self.own.rows._replace(rounder=rows.rounder)
            self.own_q = q[self.own.at]
        self.inner: Sweeper = problem.backend.open(rows, q, problem.n_threads, problem.copies)
        if remote is not None:
            self.inner.go_to(remote)
        self.watch = self.inner.watch

    def sweep(
        self, parameters: Parameters, logs: Logs, memory: Any, *, alone: bool = False
    ) -> Sums:
        """Update every q by these parameters, or the own rows alone; return what it implies."""
        own, problem = self.own, self.problem
        if alone or (own is not None and own.is_all(problem)):
            n_states = len(logs[0])
            swept = Swept(np.zeros((len(logs[1]), n_states)), np.zeros(n_states), 0.0, 0.0)
        else:
            swept = self.inner.sweep(logs)
        codes, totals, change, entropy = swept
        if own is None:
            return Sums(codes, (totals,), entropy, change, memory)
        found = problem.tasks.infer(parameters, own.score(problem, logs), self.own_q, memory)
        moved = largest_change(found.q, self.own_q, problem.n_threads)
        self.own_q = found.q
        own_codes, own_totals = self.tally_own(own)
        return Sums(
            codes + own_codes,
            (totals + own_totals, *found.added),
            entropy + found.value + own.expected_fixed(found.q),
            max(change, found.change, moved),
            found.memory,
            found.may_cycle,
        )

    def tally_own(self, own: OwnRows) -> tuple[Floats, Floats]:
        """Return what the own rows imply of codes and states."""
        everyone = np.ones(len(own.at), dtype=bool)
        given = (self.own_q, self.own_rows, everyone, self.problem.n_threads)
        codes, totals = self.problem.backend.tally(*given)
        if own.draws is not None:
            totals = totals - np.einsum("i,ik", 1.0 - own.draws, self.own_q)
        return codes, totals

    def tally(self, chosen: Mask | None = None) -> Sums:
        """Return what q implies as it stands, of the chosen rows alone or of all."""
        codes, totals = self.inner.tally(chosen)
        own = self.own
        if own is None:
            return Sums(codes, (totals,))
        if own.draws is not None:
            absent = 1.0 - own.draws
            absent = absent if chosen is None else absent * chosen[own.at]
            totals = totals - np.einsum("i,ik", absent, self.own_q)
        return Sums(codes, (totals, *self.problem.tasks.tally(self.own_q)))

    def value(self) -> float | None:
        """Return the rows' part of the bound as q stands; None: a sweep must come first."""
        if self.own is None:
            return self.inner.entropy()
        of_own = self.problem.tasks.value(self.own_q)
        if of_own is None:
            return None
        return self.inner.entropy() + of_own + self.own.expected_fixed(self.own_q)

    def close(self) -> tuple[Floats, Any]:
        """Give back what the sweeper holds; return q, and where that on other machines stands."""
        q, remote = self.inner.q(), self.inner.remote()
        self.inner.close()
        if self.own is not None:
            q[self.own.at] = self.own_q
        return q, remote


def best_of(states: Iterable[FitState]) -> FitState:
    """Return the first state unless a later one ends clearly higher: one model, the same data."""
    best, *others = states
    for other in others:
        if other.bounds[-1] > best.bounds[-1] + HIGHER * abs(best.bounds[-1]):
            best = other
    return best


def start_alone(problem: Problem, state: FitState) -> FitState:
    """Return a start at which the task model's own rows, and what they imply, are up to date.

    Where the other rows have converged and only links are new, this does what a whole sweep would,
    at the cost of the linked rows. The bound cannot fall: all else stays as it is.
    """
    sweeps = Sweeps(problem, np.array(state.q, order="C"), state.remote)
    assert sweeps.own is not None  # there are links
    codes, totals = sweeps.tally_own(sweeps.own)
    logs = problem.logs(state.parameters)
    after = sweeps.sweep(state.parameters, logs, None, alone=True)
    first, *_, last = state.parameters
    of_links = [each + n for each, n in zip(problem.prior[1:-1], after.tasks[1:], strict=True)]
    added = problem.workers.collect(after.codes - codes)
    parameters = (first + (after.tasks[0] - totals), *of_links, last + added)
    q, remote = sweeps.close()
    return FitState(q, parameters, after.memory, remote=remote)


def extrapolated(first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """Return where three parameters in a row lead, [eq:squarem].

    >>> sweeps = ([np.exp(2.0 - 2.0 * 0.5**n)] for n in range(3))
    >>> float(np.log(extrapolated(*sweeps)[0]).round(6))  # the limit of 0, 1, 1.5, …
    2.0
    """
    steps: list[tuple[Floats, Floats]] = []
    for one, two, three in zip(first, second, third, strict=True):
        middle = np.log(two)
        before = np.log(one, out=np.empty_like(one))  # `out`: what comes back can be written to
        np.subtract(middle, before, out=before)
        after = np.log(three, out=np.empty_like(three))
        after -= middle
        steps.append((before, after))
    length = np.sqrt(sum(float((before**2).sum()) for before, _ in steps))
    bend = np.sqrt(sum(float(((after - before) ** 2).sum()) for before, after in steps))
    far = float(max(1.0, length / bend) if bend > 0.0 else 1.0)
    for here, (ahead, after) in zip(third, steps, strict=True):  # in place: they may be large
        after -= ahead
        after *= far**2 - 1.0
        ahead *= 2.0 * (far - 1.0)
        ahead += after
        np.clip(ahead, -FARTHEST, FARTHEST, out=ahead)
        np.exp(ahead, out=ahead)
        ahead *= here
    return tuple(ahead for ahead, _ in steps)


def _kept_on_device(problem: Problem, sweeps: Sweeps) -> Any:
    """Return sweeps that keep parameters where q is; None: they are kept here."""
    tasks, workers = problem.tasks, problem.workers
    is_plain = type(tasks) is Independent and tasks.own is None and problem.carried is None
    if not (is_plain and isinstance(workers, ConfusionMatrices)):
        return None
    if tasks.shares.read != POSTERIOR or workers.read != POSTERIOR or tasks.shares.n_subtypes > 1:
        return None
    return sweeps.inner.dirichlet_step(tasks.shares.prior, workers.prior)


def sum_subtypes(q: Floats, n_classes: int) -> Floats:
    """Return q by class, (n_rows, n_classes), from q by state."""
    if q.shape[1] == n_classes:
        return q
    n_subtypes = q.shape[1] // n_classes  # reshape cannot tell -1 where there is no row
    return np.asarray(q.reshape(len(q), n_classes, n_subtypes).sum(axis=2))


def split_into_subtypes(q: Floats, votes: Floats, n_subtypes: int) -> Floats:
    """Return q by state from q by class, shared out by votes, (n_rows, n_classes).

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
