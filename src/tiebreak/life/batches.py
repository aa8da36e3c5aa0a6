"""Batches: some tasks of a stream, fitted while the counts of all others stay as they are.

The sufficient statistics of a batch are what its tasks add to the counts of workers and classes.
They are taken out of the counts, the tasks are fitted with the rest as their prior, and what they
add now is put in. Revisiting a batch so corrects it; the bound of the whole cannot fall.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling.ascents import Ascents
from tiebreak.inference.tasks.coupling.fit import joint_labels, joint_probabilities
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.inference.workers import CrowdModel
from tiebreak.inference.workers.base import ExtraCodes
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import likeliest, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask
from tiebreak.life.open_tasks import ResponseChains
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions


class StreamCounts(NamedTuple):
    """What some tasks add: by worker, label and state, and by state."""

    of_workers: Floats  # (n_workers, n_classes, n_states)
    of_states: Floats  # (n_states,)


class StreamBatch(NamedTuple):
    """Some tasks with all that is known of them, numbered from 0."""

    chains: ResponseChains  # codes are those of the stream
    n_former: Codes  # (n_tasks,) how many responses of each are counted already: its last ones
    n_given: Floats  # (n_tasks,) how many it has had, those that were dropped among them
    q: Floats  # (n_tasks, n_states); zeros: never visited
    evidence: Floats | None  # (n_tasks, n_states) of responses that were dropped; zeros: none
    gold: GoldCodes | None
    links: LinkCodes | None
    implied: Implications | None


class FittedBatch(NamedTuple):
    """Where the fit of a batch ended."""

    q: Floats  # (n_tasks, n_states)
    workers: Codes  # those who answered its tasks
    before: StreamCounts  # what the tasks added, by these workers
    after: StreamCounts  # what they add now
    label: Codes
    probabilities: Floats  # (n_tasks, n_classes), calibrated
    bounds: list[float]


class StreamCrowd(NamedTuple):
    """Workers and classes as a stream has them now."""

    model: CrowdModel
    counts: StreamCounts  # of all tasks, those of the batch among them
    calibration: Calibration | None
    options: ExactLinkOptions
    backend: Backend


def fit_batch(crowd: StreamCrowd, batch: StreamBatch, stopping: Stopping) -> FittedBatch:
    """Fit the tasks of a batch, with the counts of all others as they are."""
    n_classes = crowd.model.workers.n_classes
    worker, label = np.divmod(batch.chains.code, n_classes)
    workers, local = _numbered(worker, crowd.model.workers.n_workers)
    code = (local[worker] * n_classes + label).astype(np.int32)
    tasks = _lay_out(crowd, batch, code, len(workers))
    before = _counted(crowd, batch, tasks, len(workers))
    problem = _problem(crowd, batch, tasks, workers, before)
    q = _start(crowd, batch, problem, workers)
    if batch.links is not None and batch.implied is not None:
        fitted = _fit_linked(crowd, batch, problem, q, stopping)
    else:
        fitted = _fit_alone(crowd, batch, problem, q, stopping)
    run, decided, probabilities = fitted
    counts, totals = problem.open(run.q).tally()
    n_own = len(workers) * n_classes
    after = StreamCounts(_by_worker(counts[:n_own], len(workers)), totals)
    return FittedBatch(run.q, workers, before, after, decided, probabilities, run.bounds)


def _numbered(worker: Codes, n_workers: int) -> tuple[Codes, Codes]:
    """Return the workers that are named, sorted, and for each of all workers its place there."""
    is_named = np.zeros(n_workers, dtype=bool)
    is_named[worker] = True
    place = np.cumsum(is_named, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(is_named).astype(np.int32), place


class _Found(NamedTuple):
    run: Run
    label: Codes
    probabilities: Floats


def _fit_alone(
    crowd: StreamCrowd, batch: StreamBatch, problem: Problem, q: Floats, stopping: Stopping
) -> _Found:
    known = vb.with_known(problem, batch.gold)
    run = vb.ascend(known, clamp(q, batch.gold, problem.n_classes), **stopping._asdict())
    by_class = vb.class_probabilities(problem, run.q)
    label, _ = likeliest(by_class)
    if crowd.calibration is not None:
        by_class = calibration.probabilities(problem, run.beliefs, crowd.calibration, batch.n_given)
    return _Found(run, label, clamp(by_class, batch.gold))


def _fit_linked(
    crowd: StreamCrowd, batch: StreamBatch, problem: Problem, q: Floats, stopping: Stopping
) -> _Found:
    assert batch.links is not None
    assert batch.implied is not None
    ascents = Ascents(problem, batch.links, batch.implied, batch.gold, crowd.options, stopping)
    end = ascents.ascend_warm(Run(q, vb.implied_beliefs(problem, q), [], 0, converged=False))
    run = end.run
    probabilities = joint_probabilities(
        problem, ascents.setup, run, crowd.calibration, batch.n_given
    )
    label, _ = likeliest(probabilities)
    decoded = joint_labels(ascents.setup, crowd.options)
    if decoded is not None:
        label[ascents.setup.exact.task] = decoded
    return _Found(run, label, probabilities)


def _lay_out(crowd: StreamCrowd, batch: StreamBatch, code: Codes, n_workers: int) -> ByTask:
    """Lay out the responses of a batch in local codes, with kept evidence as one more response."""
    start = batch.chains.start
    weight = batch.chains.weight
    n_codes = n_workers * crowd.model.workers.n_classes
    rows = _with_evidence(batch)
    if rows is not None:
        task = np.flatnonzero(rows)
        more = n_codes + np.arange(len(task), dtype=np.int32)
        start, code, weight = layout.with_more_codes(start, code, weight, task, more)
        n_codes += len(task)
    role = np.full(len(batch.q), FREE, dtype=np.int8)
    return layout.lay_out(start, code, role, n_codes, crowd.model.workers.n_states, weight)


def _with_evidence(batch: StreamBatch) -> Mask | None:
    """Say which tasks have evidence of responses that were dropped; None: none has."""
    if batch.evidence is None:
        return None
    has_some = np.asarray(batch.evidence.any(axis=1))
    return has_some if has_some.any() else None


def count_batch(
    batch: StreamBatch, n_workers: int, n_classes: int, backend: Backend
) -> StreamCounts:
    """Return what the tasks of a batch add to the counts of all workers."""
    tasks = lay_out_votes(batch, n_workers, n_classes)
    counts, totals = backend.open(tasks, batch.q).tally()
    return StreamCounts(counts.reshape(n_workers, n_classes, -1), totals)


def lay_out_votes(batch: StreamBatch, n_workers: int, n_classes: int) -> ByTask:
    """Lay out the responses of a batch in the codes of the stream."""
    chains = batch.chains
    role = np.full(len(batch.q), FREE, dtype=np.int8)
    n_codes = n_workers * n_classes
    n_states = batch.q.shape[1]
    return layout.lay_out(chains.start, chains.code, role, n_codes, n_states, chains.weight)


def _counted(crowd: StreamCrowd, batch: StreamBatch, tasks: ByTask, n_workers: int) -> StreamCounts:
    """Return what the tasks add to the counts before the fit: their former responses, at q."""
    n_classes = crowd.model.workers.n_classes
    n_all = np.diff(batch.chains.start)
    n_new = np.repeat(n_all - batch.n_former, n_all)
    depth = np.arange(len(batch.chains.code)) - np.repeat(batch.chains.start[:-1], n_all)
    is_former = depth >= n_new  # chains begin with the last response
    if tasks.n_codes > n_workers * n_classes or not is_former.all():
        own = tasks.code[tasks.code < n_workers * n_classes]
        start = np.concatenate([[0], np.cumsum(is_former)])[batch.chains.start]
        weight = None if batch.chains.weight is None else batch.chains.weight[is_former]
        n_codes = n_workers * n_classes
        tasks = layout.lay_out(start, own[is_former], tasks.role, n_codes, batch.q.shape[1], weight)
    counts, totals = crowd.backend.open(tasks, batch.q).tally()
    return StreamCounts(_by_worker(counts, n_workers), totals)


def _by_worker(counts: Floats, n_workers: int) -> Floats:
    n_states = counts.shape[1]
    return counts.reshape(n_workers, -1, n_states) if n_workers else counts.reshape(0, 1, n_states)


def _problem(
    crowd: StreamCrowd, batch: StreamBatch, tasks: ByTask, workers: Codes, before: StreamCounts
) -> Problem:
    """Return the fit of the batch: the counts of all other tasks are part of the prior."""
    chosen = crowd.model.workers.select(workers)
    others = np.maximum(crowd.counts.of_workers[workers] - before.of_workers, 0.0)
    n_states = crowd.model.workers.n_states
    carried = (
        chosen.collect(others.reshape(-1, n_states)),
        np.maximum(crowd.counts.of_states - before.of_states, 0.0),
    )
    rows = _with_evidence(batch)
    if rows is not None and batch.evidence is not None:
        chosen = ExtraCodes(chosen, batch.evidence[rows])
    return Problem(tasks, crowd.model.states, chosen, crowd.backend, 1, carried=carried)


def _start(crowd: StreamCrowd, batch: StreamBatch, problem: Problem, workers: Codes) -> Floats:
    """Return where q starts: tasks with new responses at what these say now, the rest as it was."""
    is_new = (np.diff(batch.chains.start) > batch.n_former) | (batch.q.sum(axis=1) == 0.0)
    if not is_new.any():
        return batch.q
    n_states = crowd.model.workers.n_states
    chosen = crowd.model.workers.select(workers)
    now = chosen.collect(crowd.counts.of_workers[workers].reshape(-1, n_states))
    beliefs = Beliefs(
        crowd.model.states.prior + crowd.counts.of_states,
        np.broadcast_to(chosen.prior, now.shape) + now,
    )
    at = np.flatnonzero(is_new).astype(np.int32)
    part = layout.part_of(problem.tasks, at, n_states)
    logs = vb.expected_logs(problem, beliefs)
    q = batch.q.copy()
    q[at] = softmax(problem.backend.score_tasks(part, *logs))
    return q
