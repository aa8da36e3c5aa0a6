"""Local updates: the tasks that are touched first, then all until nothing moves.

What a few responses change, they change most where they fall. Their tasks are fitted with all
others as they are, which costs what these few tasks do, and a fit of everything starts there. It
ends where a fit does that starts from the model itself, after fewer sweeps over all tasks.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.gold import Gold, GoldCodes
from tiebreak.ids import MISSING
from tiebreak.inference import vb
from tiebreak.inference.kept import growth
from tiebreak.inference.kept.batches import StreamBatch, StreamCounts, StreamCrowd, fit_batch
from tiebreak.inference.kept.open_tasks import ResponseChains
from tiebreak.inference.stages import WarmStart, lay_out
from tiebreak.inference.vb import Problem, Stopping
from tiebreak.inference.worker_models import COMMUNITIES, CrowdModel
from tiebreak.inference.worker_models.selected import UNKNOWN, select_workers
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import default_threads, softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import ByTask, Codes, Floats
from tiebreak.options import ExactLinkOptions
from tiebreak.responses import Responses

if TYPE_CHECKING:
    from tiebreak.inference.variational_bayes import VariationalBayes

LARGEST_SHARE = 0.1  # of responses on touched tasks: with more, sweeps over all are as cheap


def start_of(
    model: VariationalBayes, crowd: Responses, new: Responses, gold: Gold | None
) -> VariationalBayes:
    """Return where a fit of `crowd` starts: the model, with touched tasks where they settle.

    `crowd` is `join_responses` of the model's and new ones, so that old tasks and workers keep
    their codes. Where much is touched, or more than tasks may change, that is the model as it is.
    """
    tasks = lay_out(crowd)
    touched = np.unique(crowd.tasks.codes(new.tasks)).astype(np.int32)
    n_touched = int(np.diff(tasks.start)[touched].sum())
    may_change = (
        model.worker_model_ == COMMUNITIES  # learnt anew from all responses
        or crowd.n_classes > model.responses_.n_classes
        or model._warm_start.q.shape[1] > crowd.n_classes  # subtypes have many modes
    )
    if may_change or n_touched > LARGEST_SHARE * crowd.n_responses:
        return model
    known = None if gold is None else gold.on(crowd.tasks, crowd.classes)
    q = _settle(model, crowd, tasks, touched, known)
    start = copy.copy(model)
    start.responses_ = crowd
    warm = model._warm_start
    start._warm_start = WarmStart(
        crowd, tasks, None, q, warm.added, warm.worker_model, warm.has_patterns
    )
    return start


def _settle(
    model: VariationalBayes,
    crowd: Responses,
    tasks: ByTask,
    touched: Codes,
    known: GoldCodes | None,
) -> Floats:
    """Return q of all tasks, touched ones fitted while the counts of all others stay."""
    former = model._warm_start.q
    q = np.zeros((crowd.n_tasks, former.shape[1]))
    q[: len(former)] = former
    backend = choose_backend(model.backend, crowd.n_responses)
    base = growth.base_of(model)
    at = np.arange(crowd.n_workers, dtype=np.int32)
    at[model.responses_.n_workers :] = UNKNOWN
    workers = select_workers(model._crowd_model.workers, at, base)
    others = np.ones(crowd.n_tasks, dtype=bool)
    others[touched] = False
    n_threads = model.n_threads or default_threads()
    counts, totals = backend.open(tasks, q, n_threads).tally(others)
    by_worker = counts.reshape(crowd.n_workers, crowd.n_classes, -1)
    stream = StreamCrowd(
        CrowdModel(model._crowd_model.states, workers),
        base,
        StreamCounts(by_worker, totals),
        None,
        ExactLinkOptions(),
        backend,
    )
    batch = _batch(tasks, touched, q, known)
    fitted = fit_batch(stream, batch, Stopping(model.tol, model.max_iter, accelerate=True))
    q[touched] = fitted.q
    if model._warm_start.has_patterns:  # tasks with equal responses must start alike
        problem = Problem(tasks, stream.model.states, workers, backend, n_threads)
        beliefs = vb.implied_beliefs(problem, q)
        q = softmax(backend.score_tasks(tasks, *vb.expected_logs(problem, beliefs)))
    return q


def _batch(tasks: ByTask, touched: Codes, q: Floats, known: GoldCodes | None) -> StreamBatch:
    """Return the touched tasks, none of which is counted."""
    part = layout.part_of(tasks, touched, q.shape[1])
    place = np.full(len(q), MISSING, dtype=np.int32)
    place[touched] = np.arange(len(touched), dtype=np.int32)
    gold = None
    if known is not None:
        of_touched = place[known.task] != MISSING
        gold = GoldCodes(place[known.task[of_touched]], known.label[of_touched])
    return StreamBatch(
        ResponseChains(part.start, np.empty(0, dtype=np.int64), part.code, part.weight),
        np.zeros(len(touched), dtype=np.int32),
        layout.total_weights(part.start, part.weight),
        q[touched],
        None,
        gold if gold is not None and len(gold.task) else None,
        None,
        None,
    )
