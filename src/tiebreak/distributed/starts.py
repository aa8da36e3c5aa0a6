"""Where fits over partitions start: at the votes, or where an earlier model would label tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.distributed.partitions import Crowd
from tiebreak.errors import OptionError
from tiebreak.inference import vb
from tiebreak.inference.estimator import Estimator, require_fitted
from tiebreak.inference.kept.prediction import knowledge_of
from tiebreak.inference.worker_models import N_SUBTYPES
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Floats, Offsets
from tiebreak.kernels.sweeper import Logs


class StartOf(NamedTuple):
    """Where q of the driver's own tasks starts."""

    tables: Logs | None  # by which tasks start; None: at the votes
    places: Offsets  # of these tasks among all

    def q(self, tasks: ByTask, n_classes: int, backend: Backend) -> Floats:
        """Return q by class."""
        if self.tables is None:
            return vb.majority(tasks, n_classes)
        return softmax(backend.score_tasks(tasks, *self.tables))


def n_states(model: Estimator, crowd: Crowd) -> int:
    """Return how many states a task may be in."""
    has_subtypes = "subtypes" in getattr(model, "worker_model", "")
    return len(crowd.classes) * (N_SUBTYPES if has_subtypes else 1)


def start_tables(start: Any, crowd: Crowd, model: Estimator) -> Logs:
    """Return the tables by which tasks start where a model would label them.

    Workers whom it has not seen count as its prior says, classes that it does not know as the
    least likely of those it knows.
    """
    require_fitted(start)
    knowledge = knowledge_of(start)
    is_split = n_states(model, crowd) > len(crowd.classes)
    if knowledge is None or is_split or knowledge.workers.n_states != len(start.classes_):
        raise OptionError(
            "Over partitions a fit starts from a model of workers with one state a class: "
            "VariationalBayes or DawidSkene, without subtypes."
        )
    former = len(start.classes_)
    table = knowledge.workers.table.reshape(-1, former, former)
    log_prior = knowledge.states.expected_log(knowledge.alpha)
    worker = start.workers_.codes(crowd.workers)
    label = start.classes_.codes(crowd.classes)
    seen = np.flatnonzero(label >= 0)
    prior = np.full(len(crowd.classes), log_prior.min())
    prior[seen] = log_prior[label[seen]]
    mine = np.full((len(worker), len(label), len(label)), table.min())
    mine[np.ix_(np.arange(len(worker)), seen, seen)] = table[worker][:, label[seen]][
        :, :, label[seen]
    ]
    return prior, mine.reshape(-1, len(label))
