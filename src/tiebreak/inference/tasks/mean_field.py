"""What links say about a task, the paper's way: linked labels are independent under q.

Link strength η multiplies what a task's neighbours believe. The grid of [eq:grid] tries twelve
strengths and keeps the one whose labels break the fewest links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Honesty
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling.ascents import known_tasks
from tiebreak.inference.tasks.coupling.nodes import units_of_copies
from tiebreak.inference.vb import Fit, GridPoint, LinkStep, Problem, Run, Stopping
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import entropy, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import LINKED, ByGroup, Codes, Floats, Offsets, Roles, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import MeanFieldOptions

GRID = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 100.0, 500.0)
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
    unpaid: Floats | None = None  # (n_tasks,) the part of its prior that a task's copies pay

    remembers = True  # updated from the q before

    @property
    def may_cycle(self) -> bool:
        """Whether updates can swap between two states for ever."""
        return self.schedule == "parallel"

    def value(self, q: Floats) -> float:
        """Return the entropy of the linked tasks plus η Σ w_ij ⟨q_i, q_j⟩: [eq:link-bound]."""
        link_term: float = self.backend.link_term(q, self.groups)
        return entropy(q[self.role == LINKED]) + self.strength * link_term

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the linked tasks in place, and count them."""
        if self.unpaid is not None:  # copies have no draws of their own: [eq:sampling]
            is_open = np.flatnonzero((self.unpaid > 0.0) & (self.role == LINKED))
            scores[is_open] -= self.unpaid[is_open, None] * logs[0]
        step = self.update(sweeper.q(), scores)
        counts, totals = sweeper.tally(sweeper.tasks.role == LINKED)
        if self.unpaid is not None:
            totals = totals - self.unpaid @ sweeper.q()
        return Swept(counts, totals, step.change, step.value)

    def update(self, q: Floats, u: Floats) -> LinkStep:
        """Update the linked tasks in place: [eq:link-update]."""
        if self.schedule == "in-turn":
            turns = self.turns(q)
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
        log_new = score - np.logaddexp.reduce(score, axis=1, keepdims=True)
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

    def turns(self, q: Floats) -> Offsets:
        """Return the order of turns: the least sure group first, its members together.

        Margins are rounded to 1e-9, ties go by index, so that rounding does not decide. Members
        of one group follow each other, so that neighbours are updated from all of them.
        """
        groups = self.groups
        waits = self.role[groups.task] == LINKED
        top_two = np.partition(q[groups.task], -2, axis=1)[:, -2:]
        margin = np.round(top_two[:, 1] - top_two[:, 0], 9)
        margin[~waits] = 2.0  # a known task does not make its group unsure
        of_group = np.full(groups.n_groups, 2.0)
        np.minimum.at(of_group, groups.group, margin)
        order = np.lexsort((margin, groups.group, of_group[groups.group]))
        return np.asarray(order[waits[order]])


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


def fit(
    plain: Problem,
    start: Run,
    implied: Implications,
    options: MeanFieldOptions,
    stopping: Stopping,
    honesty: Honesty,
) -> Fit:
    """Fit the paper's way from where plain VB ended, at one strength or at the best of the grid."""
    n_tasks = plain.tasks.n_tasks
    links = implied.given
    gold = implied.gold
    closure = options.closure and links.weight is None
    if closure and gold is not None:
        gold = known_tasks(implied)
    groups = closed_groups(implied) if closure else given_groups(links)
    role = vb.roles(n_tasks, gold, groups.task)
    unpaid = _unpaid(links, len(role))
    problem = plain._replace(tasks=plain.tasks._replace(role=role))

    def ascent(strength: float, q: Floats) -> Run:
        model = MeanField(groups, strength, role, plain.backend, options.schedule, unpaid)
        return vb.ascend(problem._replace(links=model), q, **stopping._asdict())

    q = clamp(start.q, gold)
    in_turn = options.schedule == "in-turn"
    if options.strength is None or isinstance(options.strength, str):
        run, strength, grid = choose_strength(ascent, q, links, warm=in_turn)
        return _calibrated(plain, run, gold, honesty)._replace(
            link_strength=strength, link_grid=grid
        )
    strength = float(options.strength)
    run = approach_strength(ascent, q, strength) if in_turn else ascent(strength, q)
    return _calibrated(plain, run, gold, honesty)._replace(link_strength=strength)


def _unpaid(links: LinkCodes, n_tasks: int) -> Floats | None:
    """Return how much of the prior of each task its copies pay; None where no link says so."""
    unit = units_of_copies(links, n_tasks)
    return None if unit is None else np.asarray(1.0 - 1.0 / np.bincount(unit)[unit])


def _calibrated(plain: Problem, run: Run, gold: GoldCodes | None, honesty: Honesty) -> Fit:
    """Scale what each task believes, links included, as its number of responses says."""
    found = calibration.choose(plain, run.beliefs, honesty, None)
    if found is None:
        return Fit(run, run.q)
    scale = found.scale(calibration.n_responses(plain.tasks))
    logs = np.log(np.maximum(run.q, np.finfo(np.float64).tiny))
    return Fit(run, clamp(softmax(scale[:, None] * logs), gold), found)
