"""What links say about a task, the paper's way: linked labels are independent under q.

Link strength η multiplies what a task's neighbours believe. The grid of [eq:grid] tries twelve
strengths and keeps the one whose labels break the fewest links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import Independent, Inferred, OwnRows, Parameters
from tiebreak.inference.tasks.coupling.linked import known_labels, units_of_copies
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import entropy, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByGroup, Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import MeanFieldOptions

GRID = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 100.0, 500.0)
SAFE_STRENGTH = 2.0  # up to here every schedule finds the same optimum
TINY = np.finfo(np.float64).tiny


class GridPoint(NamedTuple):
    """One strength of the grid, and how its labels do."""

    strength: float
    violated: int  # given links that the labels break
    converged: bool


def closed_groups(implied: Implications) -> ByGroup:
    """Lay out what links without weights imply for the kernels.

    Must-components are groups and cannot-linked groups are one link each, so that the closure
    is never written out.
    """
    closed = implied.closure
    ends = (closed.left, closed.right, np.full(len(closed.left), -1.0))
    return layout.by_group(implied.task, closed.group, 1.0, ends, closed.n_groups)


def given_groups(links: LinkCodes) -> ByGroup:
    """Lay out links as given for the kernels: each task is a group of its own."""
    linked = links.tasks()
    weight = (
        np.ones(len(links.left)) if links.weight is None else np.nan_to_num(links.weight, nan=1)
    )
    apart = links.among(linked)
    signed = np.where(links.must, weight, -weight)
    alone = np.arange(len(linked), dtype=np.int32)
    return layout.by_group(linked, alone, 0.0, (apart.left, apart.right, signed), len(linked))


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanField(Independent):
    """Links at one strength, updated on one schedule; the own rows are all that links name.

    "in-turn" raises the bound at every step; "parallel" is the paper's, all at once, and may swap
    for ever; "damped" goes from q towards the parallel update only as far as the bound rises.
    """

    groups: ByGroup  # its tasks are numbered by their places among the own rows
    waits: Mask  # (n_own,) whose class is not known
    backend: Backend
    strength: float = 1.0
    schedule: str = "in-turn"
    tol: float = 1e-6  # within which a q comes back where parallel updates cycle

    @property
    def exact(self) -> bool:
        return False  # updated from the q before

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        """Update the linked rows once: [eq:link-update]. `memory` is the q before the last one."""
        found = q.copy()
        if self.schedule == "in-turn":
            self.backend.update_in_turn(found, score, self.groups, self.strength, self.turns(q))
        elif self.schedule == "parallel":
            at = np.flatnonzero(self.waits[self.groups.task]).astype(np.int32)
            self.backend.update_together(found, score, self.groups, self.strength, at)
        else:
            self._update_damped(found, score)
        may_cycle = False
        if self.schedule == "parallel" and memory is not None:
            moves = np.abs(found - q).max(initial=0.0) >= self.tol
            may_cycle = bool(moves and np.abs(found - memory).max(initial=0.0) < self.tol)
        return Inferred(found, (), self.value(found), q, may_cycle=may_cycle)

    def value(self, q: Floats) -> float:
        """Return the entropy of the linked rows plus η Σ w_ij ⟨q_i, q_j⟩: [eq:link-bound]."""
        link_term: float = self.backend.link_term(q, self.groups)
        return entropy(q[self.waits]) + self.strength * link_term

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        """Scale what each row believes, links included, as its number of responses says."""
        if score is None:
            return Inferred(q)
        return Inferred(softmax(scale[:, None] * np.log(np.maximum(q, TINY))))

    def _update_damped(self, q: Floats, u: Floats) -> None:
        """Go towards the parallel update, in each component as far as the bound rises."""
        at = np.flatnonzero(self.waits[self.groups.task])
        task = self.groups.task[at]
        score = u[task] + self.strength * self.backend.link_field(q, self.groups)[at]
        step = softmax(score) - q[task]
        step *= self._damping(q, score, step, at)[:, None]
        q[task] += step

    def _damping(self, q: Floats, score: Floats, step: Floats, at: Offsets) -> Floats:
        """Return for each linked row how far its component may go: [eq:link-damped]."""
        groups = self.groups
        task = groups.task[at]
        log_new = score - np.logaddexp.reduce(score, axis=1, keepdims=True)
        log_old = np.log(np.where(q[task] > 0.0, q[task], 1.0))
        gain = (q[task] * (log_old - log_new)).sum(axis=1)
        gain = np.maximum(gain, (step**2).sum(axis=1))  # rounding near the fixed point
        steps = np.zeros_like(q)
        steps[task] = step
        curvature = (step * self.backend.link_field(steps, groups)[at]).sum(axis=1)
        ends = np.repeat(np.arange(groups.n_groups, dtype=np.int32), np.diff(groups.start))
        of_group = link_graph.components(groups.n_groups, ends, groups.other)
        component = of_group[groups.group][at]
        gains = np.bincount(component, weights=gain)
        losses = -self.strength * np.bincount(component, weights=curvature)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(losses > 0.0, np.minimum(1.0, gains / losses), 1.0)
        return np.asarray(share[component])

    def turns(self, q: Floats) -> Offsets:
        """Return the order of turns: the least sure group first, its members together.

        Margins are rounded to 1e-9, ties go by index, so that rounding does not decide. Members
        of one group follow each other, so that neighbours are updated from all of them.
        """
        groups = self.groups
        waits = self.waits[groups.task]
        top_two = np.partition(q[groups.task], -2, axis=1)[:, -2:]
        margin = np.round(top_two[:, 1] - top_two[:, 0], 9)
        margin[~waits] = 2.0  # a known task does not make its group unsure
        of_group = np.full(groups.n_groups, 2.0)
        np.minimum.at(of_group, groups.group, margin)
        order = np.lexsort((margin, groups.group, of_group[groups.group]))
        return np.asarray(order[waits[order]])


def with_mean_field(
    plain: Problem,
    implied: Implications,
    options: MeanFieldOptions,
    weight: Floats | None = None,
    tol: float = 1e-6,
) -> tuple[Problem, Known]:
    """Return the problem with links as the paper has them, and what is known in it.

    `weight` is how often known rows count.
    """
    links = implied.given
    closure = options.closure and links.weight is None
    known = Known.of(implied.gold, weight)
    if closure and implied.gold is not None:
        known = Known(*known_labels(implied), weight)
    problem = known.on(plain)
    groups = closed_groups(implied) if closure else given_groups(links)
    at = groups.task
    unit = units_of_copies(links, plain.rows.n_tasks)  # copies share one draw
    draws = None if unit is None else 1.0 / np.bincount(unit)[unit[at]]
    own = OwnRows(at, layout.part_of(problem.rows, at, plain.n_states), draws)
    tasks = MeanField(
        shares=plain.tasks.shares,
        own=own,
        groups=groups._replace(task=np.arange(len(at), dtype=np.int32)),
        waits=~np.isin(at, known.task),
        backend=plain.backend,
        schedule=options.schedule,
        tol=tol,
    )
    return problem._replace(tasks=tasks), known


def climb_strengths(
    problem: Problem, start: FitState, options: MeanFieldOptions, links: LinkCodes, stop: Stopping
) -> tuple[FitState, float, tuple[GridPoint, ...] | None]:
    """Climb at the strength that options name, or at the best of the grid; return which it was.

    On the schedule "in-turn" the strength grows step by step, each climb from where one ended,
    which finds better optima; the paper starts each from the same q.
    """

    def ascent(strength: float, q: Floats) -> FitState:
        tasks = replace(problem.tasks, strength=strength)  # type: ignore[call-arg]
        return climb(problem._replace(tasks=tasks), FitState(q=q), stop)

    is_warm = options.schedule == "in-turn"
    if options.strength is None or isinstance(options.strength, str):
        return choose_strength(ascent, start.q, links, warm=is_warm)
    strength = float(options.strength)
    q = start.q
    if is_warm and strength > SAFE_STRENGTH:
        for smaller in (each for each in GRID if each < strength):
            found = ascent(smaller, q).q
            assert found is not None  # every end has one
            q = found
    return ascent(strength, q), strength, None


def choose_strength(
    ascent: Callable[[float, Floats], FitState], q: Floats, links: LinkCodes, *, warm: bool = True
) -> tuple[FitState, float, tuple[GridPoint, ...]]:
    """Try each strength of the grid and keep the fewest violated links: [eq:grid].

    Ties go to the climb that converged, then to the smaller strength.
    """
    points: list[GridPoint] = []
    best: tuple[tuple[int, bool], FitState, float] | None = None
    start = q
    for strength in GRID:
        state = ascent(strength, start)
        violated = int(link_graph.violated(state.q.argmax(axis=1), links).sum())
        points.append(GridPoint(strength, violated, state.converged))
        rank = violated, not state.converged
        if best is None or rank < best[0]:
            best = rank, state, strength
        if warm:
            start = state.q
    assert best is not None  # the grid is not empty
    return best[1], best[2], tuple(points)
