"""The shapes of a fit: what stays fixed, what is believed, where it ended, what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.dirichlet import StatePrior
from tiebreak.inference.workers import AnswerCounts, Workers
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    Swept,
    rounder_for,
)
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.links.graph import Implications, LinkCodes

if TYPE_CHECKING:
    from tiebreak.inference.calibration import Calibration
    from tiebreak.inference.tasks.coupling.link_errors import Rates
    from tiebreak.inference.tasks.coupling.plan import LinkReport


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
    # tasks in other batches, or whose responses were dropped. As `vb.added` gives them.
    carried: tuple[Floats, Floats] | None = None

    @property
    def n_tasks(self) -> float:
        """How many tasks there are, copies and those elsewhere too."""
        n_here = self.tasks.n_tasks if self.copies is None else float(self.copies.sum())
        return n_here if self.elsewhere is None else n_here + self.elsewhere.n_tasks

    @property
    def n_classes(self) -> int:
        """How many classes there are: what is said, and what is reported."""
        return self.workers.n_classes

    @property
    def n_states(self) -> int:
        """How many states a task may be in: columns of q."""
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

    def links(self, links: LinkCodes | None) -> LinkCodes | None:
        """Return links by pattern; these stand in the order of their tasks, so left stays left."""
        if links is None or self.pattern is None:
            return links
        return links._replace(left=self.pattern[links.left], right=self.pattern[links.right])

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

    logs: Logs | None = None  # as `vb.expected_logs` found them, for confusion matrices


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
