"""From a model to a stream, and from a stream back to a model."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Label, Labels
from tiebreak.errors import InputNote
from tiebreak.inference import vb
from tiebreak.inference.stages import WarmStart
from tiebreak.inference.vb import Beliefs, Problem, Stopping, lay_out
from tiebreak.kernels.layout import Codes
from tiebreak.life.batches import StreamCounts
from tiebreak.life.dropping import Carried, batches_of
from tiebreak.life.open_tasks import GrowingArray
from tiebreak.life.stream_links import LinkRows
from tiebreak.links import Links
from tiebreak.links.graph import violated

if TYPE_CHECKING:
    from tiebreak.estimators.variational_bayes import VariationalBayes
    from tiebreak.life.streaming import Stream

LAST = Stopping(1e-3, 1, accelerate=False)  # of all open tasks, before a model is made of them
TINY = 1e-300


def take_over(stream: Stream, model: VariationalBayes) -> None:
    """Fill a new stream with the tasks, links and gold of a model."""
    crowd = model.responses_
    tasks = stream.tasks
    tasks.slots(list(crowd.tasks))
    tasks.add(crowd.task_of_each(), crowd.code.astype(np.int32), crowd.weight)
    tasks.q.now[:] = model._warm_start.q
    tasks.reported.now[:] = model.labels_.label
    tasks.counted.now[:] = np.diff(crowd.start)
    if model.gold_ is not None:
        known = model.gold_.on(crowd.tasks, crowd.classes)
        tasks.known.now[known.task] = known.label
    everyone = np.arange(len(tasks), dtype=np.int32)
    counts = stream.count(stream.batch(everyone))
    carried = model._carried
    if carried is not None:
        of_workers = carried.counts.reshape(stream.counts.of_workers.shape)
        stream.settled = StreamCounts(of_workers.copy(), carried.totals.copy())
        counts = StreamCounts(counts.of_workers + of_workers, counts.of_states + carried.totals)
        tasks.n_dropped.now[:] = carried.n_dropped
        _take_evidence(stream, model)
    if model.links_ is not None and len(model.links_):
        _take_links(stream, model, model.links_)
    stream.counts = counts


def _take_evidence(stream: Stream, model: VariationalBayes) -> None:
    """Keep what dropped responses said, links and gold of then among it: log q − E[log π]."""
    tasks = stream.tasks
    logs = np.log(np.maximum(tasks.q.now, TINY))
    log_prior = stream.crowd_model.states.expected_log(model._beliefs.alpha)
    tasks.evidence = GrowingArray(np.float64, 0.0, (tasks.q.now.shape[1],))
    rows = np.where(tasks.n_dropped.now[:, None] > 0.0, logs - log_prior, 0.0)
    tasks.evidence.extend(rows)


def _take_links(stream: Stream, model: VariationalBayes, links: Links) -> None:
    """Take over links; what dropped responses said has those of their tasks in it already."""
    code = model.tasks_.codes(links.tasks)
    stream.links.sources = [] if links.sources is None else list(links.sources)
    if model._carried is None:
        inputs = model._read_inputs(model.responses_, links, model.gold_)
        if inputs.link_codes is not None:
            chosen = np.unique(inputs.link_codes.row)
            stream.links.add(_rows(links.select(chosen), code))
        return
    links = links.select((code[links.left] >= 0) & (code[links.right] >= 0))
    n_dropped = model._carried.n_dropped
    is_open = (n_dropped[code[links.left]] == 0.0) & (n_dropped[code[links.right]] == 0.0)
    stream.links.add(_rows(links.select(is_open), code))
    stream.links.settle(_rows(links.select(~is_open), code))


def _rows(links: Links, code: Codes) -> LinkRows:
    n = len(links)
    return LinkRows(
        code[links.left],
        code[links.right],
        links.must,
        np.full(n, np.nan) if links.weight is None else links.weight,
        np.zeros(n, dtype=bool) if links.duplicate is None else links.duplicate,
        np.full(n, -1, dtype=np.int32) if links.who is None else links.who,
    )


def to_model(stream: Stream) -> VariationalBayes:
    """Visit all open tasks once, and return a model of what the stream knows."""
    return publish(stream)[0]


def publish(stream: Stream) -> tuple[VariationalBayes, list[Label]]:
    """Return a model of what the stream knows, and the labels that changed on the way there."""
    model = copy.copy(stream.template)
    slots = np.arange(len(stream.tasks), dtype=np.int32)
    fitted, changed = stream.fit_and_report(slots, LAST)
    crowd = _responses(stream)
    model.responses_ = crowd
    model.tasks_ = crowd.tasks
    model.workers_ = crowd.workers
    model.classes_ = crowd.classes
    model.gold_ = _gold(stream, crowd)
    model.links_ = _links(stream, crowd)
    model.probabilities_ = fitted.probabilities
    model.labels_ = Labels.from_probabilities(
        crowd.tasks, crowd.classes, fitted.probabilities, label=fitted.label, frame=crowd.frame
    )
    model.violations_ = None
    if model.links_ is not None:
        codes = model.links_.on(crowd.tasks)
        model.violations_ = model.links_.select(codes.row[violated(fitted.label, codes)])
    model.bounds_ = fitted.bounds
    model.n_iter_ = len(fitted.bounds)
    model.converged_ = True
    model.doubtful_links_ = None
    model.link_report_ = None
    model.uncertain_groups_ = []
    _set_beliefs(model, stream, crowd)
    model._carried = _carried(stream)
    if model._carried is not None:
        model._batches = batches_of(stream.template)
    return model, changed


def _set_beliefs(model: VariationalBayes, stream: Stream, crowd: Responses) -> None:
    states, workers = stream.crowd_model
    counts = stream.counts
    n_states = workers.n_states
    added = workers.collect(counts.of_workers.reshape(-1, n_states))
    of_workers = np.broadcast_to(workers.prior, added.shape) + added
    beliefs = Beliefs(states.prior + counts.of_states, of_workers)
    tasks = lay_out(crowd)
    problem = Problem(tasks, states, workers, stream.crowd().backend)
    model._crowd_model = stream.crowd_model
    model._beliefs = beliefs
    model.class_prior_ = states.mean(beliefs.alpha)
    model.confusion_ = vb.confusion(problem, beliefs)
    model._warm_start = WarmStart(
        crowd,
        tasks,
        beliefs,
        stream.tasks.q.now.copy(),
        (added, counts.of_states.copy()),
        model.worker_model_,
        False,
    )


def _responses(stream: Stream) -> Responses:
    slots = np.arange(len(stream.tasks), dtype=np.int32)
    chains = stream.tasks.chains(slots)
    worker, label = np.divmod(chains.code, len(stream.classes))
    former = stream.template.responses_
    made = Responses.from_codes(
        np.repeat(slots, np.diff(chains.start)),
        worker,
        label,
        Ids(stream.tasks.names),
        Ids(stream.workers),
        Ids(stream.classes),
        weight=chains.weight,
    )
    has_grown = len(stream.classes) > former.n_classes  # new classes stand at the end
    return replace(made, frame=former.frame, is_class_ordered=former.is_class_ordered or has_grown)


def _gold(stream: Stream, crowd: Responses) -> Gold | None:
    known = stream.tasks.known.now
    slots = np.flatnonzero(known >= 0)
    if not len(slots):
        return None
    return Gold(Ids(crowd.tasks.take(slots)), known[slots].copy(), crowd.classes, slots)


def _links(stream: Stream, crowd: Responses) -> Links | None:
    former = stream.template.links_ if stream.template._carried is not None else None
    if former is not None:  # those to tasks that are gone are gone too
        code = crowd.tasks.codes(former.tasks)
        former = former.select((code[former.left] >= 0) & (code[former.right] >= 0))
    if not len(stream.links):
        return former
    rows = stream.links.rows
    has_weight = not np.isnan(rows.weight).all()
    made = Links(
        rows.left.copy(),
        rows.right.copy(),
        rows.must.copy(),
        crowd.tasks,
        np.arange(len(rows.left)),
        rows.weight.copy() if has_weight else None,
        rows.who.copy() if stream.links.sources else None,
        Ids(stream.links.sources) if stream.links.sources else None,
        duplicate=rows.duplicate.copy() if rows.duplicate.any() else None,
    )
    if former is None:
        return made
    with warnings.catch_warnings(action="ignore", category=InputNote):  # told when they came
        return former + made


def _carried(stream: Stream) -> Carried | None:
    """Return what only counts remember; None where all responses are kept."""
    n_dropped = stream.tasks.n_dropped.now
    settled = stream.settled
    if not (settled.of_workers.any() or settled.of_states.any() or n_dropped.any()):
        return None
    n_states = settled.of_workers.shape[2]
    counts = settled.of_workers.reshape(-1, n_states).copy()
    return Carried(counts, settled.of_states.copy(), n_dropped.copy())
