"""What links say about a task, the paper's way: linked labels are independent under q.

Link strength η multiplies what a task's neighbours believe. The grid of [eq:grid] tries twelve
strengths and keeps the one whose labels break the fewest links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.errors import OptionError
from tiebreak.inference.vb import LinkStep, Logs, Problem, Run, swept_linked
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import LINKED, ByGroup, Codes, Floats, Offsets, Roles, Swept
from tiebreak.kernels.reference import entropy, softmax
from tiebreak.link_graph import Implications, LinkCodes

GRID = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 100.0, 500.0)
SCHEDULES = ("in-turn", "parallel", "damped")
ORDERS = ("margin", "index")
SAFE_STRENGTH = 2.0  # up to here every schedule finds the same optimum


def closed_groups(implied: Implications) -> ByGroup:
    """Lay out what links without weights imply for the kernels.

    Must-components are groups and cannot-linked groups are one link each, so that the closure
    [eq:closure] is never written out.
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


@dataclass
class MeanField:
    """Links at one strength, updated on one schedule: a `vb.LinkModel`.

    "in-turn" raises the bound at every step; "parallel" is the paper's, all at once, and may swap
    for ever; "damped" goes from q towards the parallel update only as far as the bound rises.
    """

    groups: ByGroup
    strength: float
    role: Roles
    backend: Backend
    schedule: str = "in-turn"
    order: str = "margin"
    given: LinkCodes | None = None  # the links as given, where their weights are learnt

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise OptionError.unknown("schedule", self.schedule, SCHEDULES)
        if self.order not in ORDERS:
            raise OptionError.unknown("order", self.order, ORDERS)

    remembers = True  # updated from the q before

    @property
    def may_cycle(self) -> bool:
        """Whether updates can swap between two states for ever."""
        return self.schedule == "parallel"

    def value(self, q: Floats) -> float:
        """Return the entropy of the linked tasks plus η Σ w_ij ⟨q_i, q_j⟩: [eq:link-bound]."""
        link_term = self.backend.link_term(q, self.groups)
        return self.entropy(q) + self.strength * link_term

    def entropy(self, q: Floats) -> float:
        """Return the entropy of the linked tasks."""
        return entropy(q[self.role == LINKED])

    def agreement(self, q: Floats) -> Floats:
        """Return for each given link the probability that its two tasks agree."""
        assert self.given is not None  # asked for where weights are learnt
        return np.asarray((q[self.given.left] * q[self.given.right]).sum(axis=1))

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the weights of the given links."""
        assert self.given is not None  # asked for where weights are learnt
        signed = self.given._replace(must=log_odds > 0.0, weight=np.abs(log_odds))
        self.groups = given_groups(signed)

    def sweep(self, problem: Problem, q: Floats, u: Floats, logs: Logs) -> Swept:
        """Update the linked tasks in place, and count them."""
        return swept_linked(problem, q, self.update(q, u))

    def update(self, q: Floats, u: Floats) -> LinkStep:
        """Update the linked tasks in place: [eq:link-update]."""
        if self.schedule == "in-turn":
            turns = self._turns(q)
            change = self.backend.update_in_turn(q, u, self.groups, self.strength, turns)
        elif self.schedule == "parallel":
            waits = self._waiting()
            change = self.backend.update_together(q, u, self.groups, self.strength, waits)
        else:
            change = self._update_damped(q, u)
        return LinkStep(change, self.value(q))

    def _waiting(self) -> Codes:
        """Return the places of the tasks that are not known."""
        return np.flatnonzero(self.role[self.groups.task] == LINKED).astype(np.int32)

    def _update_damped(self, q: Floats, u: Floats) -> float:
        at = self._waiting()
        task = self.groups.task[at]
        score = u[task] + self.strength * self.backend.link_field(q, self.groups)[at]
        step = softmax(score) - q[task]
        step *= self._damping(q, score, step, at)[:, None]
        q[task] += step
        return float(np.abs(step).max(initial=0.0))

    def _damping(self, q: Floats, score: Floats, step: Floats, at: Codes) -> Floats:
        """Return for each linked task how far its component may go: [eq:link-damped]."""
        task = self.groups.task[at]
        top = score.max(axis=1, keepdims=True)
        log_new = score - top - np.log(np.exp(score - top).sum(axis=1, keepdims=True))
        log_old = np.log(np.where(q[task] > 0.0, q[task], 1.0))
        gain = (q[task] * (log_old - log_new)).sum(axis=1)
        gain = np.maximum(gain, (step**2).sum(axis=1))  # rounding near the fixed point
        steps = np.zeros_like(q)
        steps[task] = step
        curvature = (step * self.backend.link_field(steps, self.groups)[at]).sum(axis=1)
        component = self._components()[at]
        gains = np.bincount(component, weights=gain)
        losses = -self.strength * np.bincount(component, weights=curvature)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(losses > 0.0, np.minimum(1.0, gains / losses), 1.0)
        return np.asarray(share[component])

    def _components(self) -> Codes:
        """Return the connected component of each linked task, by links of either kind."""
        groups = self.groups
        ends = np.repeat(np.arange(groups.n_groups, dtype=np.int32), np.diff(groups.start))
        return link_graph.components(groups.n_groups, ends, groups.other)[groups.group]

    def _turns(self, q: Floats) -> Offsets:
        """Return the order of turns: the most doubtful group first, its members together.

        Margins are rounded to 1e-9, ties go by index, so that rounding does not decide. Members
        of one group follow each other, so that each tells its neighbours only once.
        """
        groups = self.groups
        waits = self.role[groups.task] == LINKED
        if self.order == "index":
            by_task = np.argsort(groups.task, kind="stable")
            return np.asarray(by_task[waits[by_task]])
        top_two = np.partition(q[groups.task], -2, axis=1)[:, -2:]
        margin = np.round(top_two[:, 1] - top_two[:, 0], 9)
        margin[~waits] = 2.0  # a known task does not make its group doubtful
        of_group = np.full(groups.n_groups, 2.0)
        np.minimum.at(of_group, groups.group, margin)
        order = np.lexsort((margin, groups.group, of_group[groups.group]))
        return np.asarray(order[waits[order]])


class GridPoint(NamedTuple):
    """One strength of the grid, and how its labels do."""

    strength: float
    violated: int  # given links that the labels break
    converged: bool


Ascent = Callable[[float, Floats], Run]


def choose_strength(
    ascent: Ascent, q: Floats, links: LinkCodes, *, warm: bool = True
) -> tuple[Run, float, tuple[GridPoint, ...]]:
    """Try each strength of the grid and keep the fewest violated links: [eq:grid].

    Ties go to the run that settled, then to the smaller strength. Warm starts let the strength
    grow step by step, which finds better optima; the paper starts each from the same q.
    """
    points: list[GridPoint] = []
    best: tuple[tuple[int, bool], Run, float] | None = None
    start = q
    for strength in GRID:
        run = ascent(strength, start)
        violated = int(link_graph.violated(run.q.argmax(axis=1), links).sum())
        points.append(GridPoint(strength, violated, run.converged))
        rank = violated, not run.converged
        if best is None or rank < best[0]:
            best = rank, run, strength
        if warm:
            start = run.q
    assert best is not None  # the grid is not empty
    return best[1], best[2], tuple(points)


def approach_strength(ascent: Ascent, q: Floats, strength: float) -> Run:
    """Raise the strength along the grid up to `strength`, each run starting where one ended."""
    if strength > SAFE_STRENGTH:
        for smaller in (step for step in GRID if step < strength):
            q = ascent(smaller, q).q
    return ascent(strength, q)
