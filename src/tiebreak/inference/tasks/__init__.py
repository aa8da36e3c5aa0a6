"""Task models: what tasks may be before anyone answers, and what ties them.

| model | what it says |
|---|---|
| `Independent` | each task draws its class from the class prior |
| `coupling.Linked` | links hold, or hold with a probability: exact joint inference |
| `mean_field.MeanField` | links pull and push: the paper's VB-ILC |

A new one is a subclass of `Independent`, which says what it changes. The loop (`climb.py`), worker
models and kernels know nothing of it. `tests/inference/test_tasks_seam.py` shows one in thirty
lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.inference.dirichlet import FIXED, ClassPrior
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import entropy, in_parts, softmax
from tiebreak.kernels.layout import AWAY, ByTask, Codes, Floats, Roles
from tiebreak.kernels.sweeper import Logs

if TYPE_CHECKING:
    from tiebreak.inference.climb import Problem

Parameters = tuple[Floats, ...]  # positive: a prior plus counts


class OwnRows(NamedTuple):
    """The rows whose q a task model makes itself, in its own order."""

    at: Codes  # (n_own,) their places among all rows
    rows: ByTask  # the responses on them
    draws: Floats | None = None  # (n_own,) draws of the class prior; None: 1 each. Copies share one
    fixed: Floats | None = None  # (n_own, n_states) log scores that are given; −∞: impossible
    is_prior: bool = False  # whether these are log priors: copies of one task share theirs
    unit: Codes | None = None  # (n_own,) equal for copies, which share one draw; −1: of no copy

    def away(self, role: Roles) -> Roles:
        """Return the roles of all rows for a sweeper that leaves these alone."""
        role = role.copy()
        role[self.at] = AWAY
        return role

    def is_all(self, problem: Problem) -> bool:
        """Say whether a sweeper has no other row."""
        return bool(len(self.at) == problem.rows.n_tasks and problem.backend.sweeps_here)

    def score(self, problem: Problem, logs: Logs) -> Floats:
        """Return scores, (n_own, n_states): draws · E[log π] + fixed + Σ E[log θ]."""
        log_prior, log_table = logs
        found: Floats = problem.backend.score_tasks(
            self.rows, log_prior, log_table, problem.n_threads
        )

        def add(part: slice) -> None:
            if self.draws is not None:
                found[part] += (self.draws[part] - 1.0)[:, None] * log_prior
            if self.fixed is not None:
                found[part] += self.fixed[part]

        if self.draws is not None or self.fixed is not None:
            in_parts(add, len(found), problem.n_threads)
        return found

    def fixed_of(self, tasks: Codes, n_tasks: int) -> Floats | float:
        """Return the given scores of some rows, (n, n_states); 0 of those that have none."""
        if self.fixed is None:
            return 0.0
        place = np.full(n_tasks, -1)
        place[self.at] = np.arange(len(self.at))
        found: Floats = self.fixed[place[tasks]]
        found[place[tasks] < 0] = 0.0
        return found

    def expected_fixed(self, q: Floats) -> float:
        """Return Σ ⟨q, fixed⟩, the part of the bound of scores that are given."""
        if self.fixed is None:
            return 0.0
        return float((q * np.where(q > 0.0, self.fixed, 0.0)).sum())


class Inferred(NamedTuple):
    """What a task model says of its own rows."""

    q: Floats  # (n_own, n_states)
    added: Parameters = ()  # counts for `prior[1:]`
    value: float = 0.0  # entropy of q and expected couplings, less what `log_evidence` counts
    memory: Any = None
    change: float = 0.0  # of what else must come to rest: error rates of links
    may_cycle: bool = False  # updates swap between two states


@dataclass(frozen=True, eq=False)
class Independent:
    """What tasks may be, and what ties them: the seam. Here nothing does.

    Own rows have log scores of their own beside responses and class prior: known tasks where
    classes have subtypes (all states of other classes are impossible), tasks some of whose
    responses are gone, and tasks with a prior of their own, `with_log_prior`.
    """

    shares: ClassPrior  # the states of a task, their classes, and the prior of each
    own: OwnRows | None = None  # rows that this model infers; others are softmax of their score

    @property
    def prior(self) -> Parameters:
        """Parameters before any response: of states, (n_states,), and whatever else is learnt.

        A chain adds its transitions, links that may err their error rates. All are positive counts,
        and all are extrapolated by SQUAREM.
        """
        return (self.shares.prior,)

    @property
    def exact(self) -> bool:
        """Whether the bound is a bound and sweeps depend on parameters alone.

        Then SQUAREM may extrapolate, and starts are compared by their bounds.
        """
        return True

    def log_prior(self, parameters: Parameters) -> Floats:
        """Return the expected log probability of each state, (n_states,)."""
        return self.shares.expected_log(parameters[0])

    def log_evidence(self, parameters: Parameters) -> float:
        """Return the part of the bound that parameters tell; its gradient are the logs used."""
        return self.shares.log_evidence(parameters[0])

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        """Return q of the own rows by these scores, (n_own, n_states); q is where they stand."""
        found = softmax(score)
        return Inferred(found, value=entropy(found))

    def tally(self, q: Floats) -> Parameters:
        """Return what q of the own rows adds to `prior[1:]` at a start, without joint beliefs."""
        return ()

    def value(self, q: Floats) -> float | None:
        """Return the own rows' part of the bound at a start; None: joint beliefs must exist."""
        return entropy(q)

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        """Return the class probabilities of the own rows that a fit reports, (n_own, n_classes).

        `score` has class scores, times the `scale` of each row; None: probabilities are reported
        as the fit left them. `q`, by class, and `memory` are where the fit ended.
        """
        return Inferred(q if score is None else softmax(score), memory=memory)


Tasks = Independent  # any task model is one that says what it changes


def with_log_prior(problem: Problem, log_prior: Floats) -> Problem:
    """Return the problem in which every row has class probabilities of its own before any response.

    `log_prior`, (n_rows, n_classes), takes the place of the class shares E[log π], which are known
    and even then, so that they say nothing: [eq:task-prior]. Links and known classes come after it:
    each row is a task, as tasks with equal responses differ.
    """
    assert type(problem.tasks) is Independent
    assert problem.copies is None
    shares = problem.tasks.shares
    even = shares._replace(of_class=np.ones(shares.n_classes), read=FIXED)
    at = np.arange(problem.rows.n_tasks, dtype=np.int32)
    rows = layout.part_of(problem.rows, at, shares.n_states)
    # The logs of even shares are added to every score: taken off here, the bound is exact.
    fixed = log_prior[:, shares.class_of] + np.log(shares.n_classes)
    return problem._replace(tasks=Independent(even, OwnRows(at, rows, fixed=fixed, is_prior=True)))


def of_shares(parameters: Parameters, own: ClassPrior, shares: ClassPrior) -> Parameters:
    """Return parameters with class counts on another prior of states.

    After `with_log_prior` that is of class shares again: what later tasks are believed by, which
    may have no prior of their own.
    """
    alpha, *others = parameters
    return (alpha + (shares.prior - own.prior), *others)
