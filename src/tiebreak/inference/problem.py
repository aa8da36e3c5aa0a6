"""The shapes of a fit: what stays fixed, what is believed, where it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tiebreak.inference.class_prior import StatePrior
from tiebreak.inference.worker_models import AnswerCounts, WorkerModel
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper


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
    places: Offsets  # where the tasks that are here stand among all
    # Where linked tasks are swept elsewhere too: returns what infers them jointly there, of
    # (links, merged tasks, gold, options), with the methods of `ExactLinks` that a fit calls.
    join: Callable[..., Any] | None

    @property
    def answers(self) -> AnswerCounts:
        """What all workers said, on tasks here too."""

    def backend(self, name: str, n_responses: int, n_linked: int) -> Backend:
        """Return a backend whose sweeps are of these tasks too, for so many responses here."""

    def log_norm(self, logs: Logs) -> float:
        """Return the log-likelihood of the responses on these tasks."""

    def watch(self, bound: float) -> None:
        """Be told the bound after each update."""


class Problem(NamedTuple):
    """Everything that stays fixed while a model is fitted.

    Where equal response patterns were made one, a task here is a pattern, and `copies` says for how
    many tasks it counts.
    """

    tasks: ByTask
    states: StatePrior
    workers: WorkerModel
    backend: Backend
    n_threads: int = 1
    links: LinkModel | None = None
    n_pooled: int = 0  # tasks that the model of links keeps apart, in nodes
    copies: Floats | None = None  # (n_tasks,); None: one each
    gold_weight: Floats | None = None  # (n_workers, n_classes); None: known tasks count once
    given: ByTask | None = None  # the responses alone, where tasks hold silence too
    elsewhere: TasksElsewhere | None = None  # beside `tasks`; None: all tasks are here

    @property
    def responses(self) -> ByTask:
        """What workers said of each task, without their silence."""
        return self.tasks if self.given is None else self.given

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
        """Open a sweeper on a start of q, which it then owns; `elsewhere` as in `Run`."""
        sweeper = self.backend.open(self.tasks, q, self.n_threads, self.copies)
        if elsewhere is not None:
            sweeper.go_to(elsewhere)
        return sweeper


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
    cycled: bool = False  # q alternates between two states (simultaneous updates only)
    elsewhere: Any = None  # where q of tasks on other machines stands; None: at the votes


class Stopping(NamedTuple):
    """When an ascent ends, and whether SQUAREM may shorten it."""

    tol: float
    max_iter: int
    accelerate: bool
