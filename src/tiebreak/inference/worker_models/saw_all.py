"""Workers who saw every task: their silence counts as well.

A rule that saw a task and did not fire has said something about it. Such a worker first speaks or
stays silent, with a chance of its own in each state, and where it speaks it answers as the model
inside says: [eq:silence].

Written down task by task, that is one code for each such worker and task. It need not be: silence
is what is common. One code says "nobody spoke" and stands at every task; one more at each task that
a worker spoke to says how much more likely that is than its silence.

    workers a, b saw all; a answers tasks 0 and 2, b answers task 2
    task 0   seen, a spoke            log (1 − s_a) (1 − s_b) + log s_a / (1 − s_a)
    task 1   seen                     log (1 − s_a) (1 − s_b)
    task 2   seen, a spoke, b spoke

So the cost is one code a task and one an answer of theirs, not one a task and worker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.inference.worker_models.wrapper import ModelWrapper
from tiebreak.kernels import layout
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask

SPOKE = 0
SILENT = 1
EVEN = 1.0  # pseudo-counts of speaking and of silence: any chance is as likely as any other


@dataclass(frozen=True)
class SawAll(ModelWrapper):
    """A `WorkerModel` around another, with codes "w spoke" of some workers, and "seen" at the end.

    Parameters are a row a worker: those of the model inside, one after the other, and then the
    counts of speaking and of silence in each state. Workers who may not have seen all tasks have
    these too, and they stay at the prior.
    """

    saw: Mask  # (n_workers,) who saw every task

    @property
    def prior(self) -> Floats:
        """Parameters before any response, (n_workers or 1, n_parameters)."""
        inner = self.inner.prior
        even = np.full((len(inner), 2 * self.n_states), EVEN)
        return np.concatenate([inner.reshape(len(inner), -1), even], axis=1)

    @property
    def n_extra(self) -> int:
        """How many codes there are beside those of responses."""
        return int(self.saw.sum()) + 1

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add: who was seen and did not speak was silent."""
        spoke = np.zeros((self.n_workers, self.n_states))
        spoke[self.saw] = counts[-self.n_extra : -1]
        silent = np.where(self.saw[:, None], counts[-1] - spoke, 0.0)
        inner = self.inner.collect(counts[: -self.n_extra])
        return np.concatenate([inner.reshape(self.n_workers, -1), spoke, silent], axis=1)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table, with E[log s − log (1 − s)] of each who saw all, and Σ E[log (1 − s)].

        The last row is that of "seen".
        """
        logs = dirichlet.expected_log(self._of_silence(parameters)[self.saw], axis=1)
        spoke = logs[:, SPOKE] - logs[:, SILENT]
        seen = logs[:, SILENT].sum(axis=0, keepdims=True)
        inner = self.inner.log_table(self.of_inner(parameters), n_threads)
        return np.concatenate([inner, spoke, seen])

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return that of the model inside, and Σ_wk log B(a_wk) − log B(a₀)."""
        counts = self._of_silence(parameters)[self.saw]
        of_silence = dirichlet.log_beta(counts, axis=1) - dirichlet.log_beta(np.full(2, EVEN))
        inner = self.inner.log_evidence(self.of_inner(parameters), n_threads)
        return inner + float(of_silence.sum())

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices of answers, (worker, state, answer)."""
        return self.inner.confusion(self.of_inner(parameters))

    def of_inner(self, parameters: Floats) -> Floats:
        """Return the parameters of the model inside."""
        inner = parameters[:, : -2 * self.n_states]
        return np.ascontiguousarray(inner).reshape(len(parameters), *self.inner.prior.shape[1:])

    def _of_silence(self, parameters: Floats) -> Floats:
        """Return the counts of speaking and of silence, (n_workers, 2, n_states)."""
        return parameters[:, -2 * self.n_states :].reshape(len(parameters), 2, self.n_states)


def add_silence(tasks: ByTask, saw: Mask, n_classes: int, n_states: int) -> ByTask:
    """Return the tasks with the codes of `SawAll` after those of responses.

    Whoever answers a task several times spoke once.

    >>> start, code, role = np.array([0, 1, 1]), np.array([1], np.int32), np.zeros(2, np.int8)
    >>> tasks = layout.lay_out(start, code, role, n_codes=2, n_classes=2)
    >>> add_silence(tasks, np.array([True]), 2, 2).code.tolist()
    [1, 2, 3, 3]
    """
    task, rank = _spoken(tasks, saw, n_classes)
    n_codes = tasks.n_codes
    seen = np.int32(n_codes + saw.sum())
    of_each = np.concatenate([task, np.arange(tasks.n_tasks)])
    more = np.concatenate([n_codes + rank, np.full(tasks.n_tasks, seen)]).astype(np.int32)
    start, code, weight = layout.with_more_codes(
        tasks.start, tasks.code, tasks.weight, of_each, more
    )
    return layout.lay_out(start, code, tasks.role, int(seen) + 1, n_states, weight)


def _spoken(tasks: ByTask, saw: Mask, n_classes: int) -> tuple[Codes, Codes]:
    """Return each task that one who saw all answered, once, and the place of who did."""
    place = np.cumsum(saw) - 1
    n_saw = max(int(saw.sum()), 1)
    worker = tasks.code // n_classes
    known = np.flatnonzero(np.append(saw, False)[np.minimum(worker, len(saw))])
    task = tasks.task_of_each()[known]
    pairs = np.unique(task * n_saw + place[worker[known]])
    return pairs // n_saw, pairs % n_saw
