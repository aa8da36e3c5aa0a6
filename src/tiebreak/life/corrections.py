"""Corrections: what a stream takes back of what it counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.life.batches import StreamBatch, StreamCounts, lay_out_votes
from tiebreak.life.open_tasks import GONE, ResponseChains

if TYPE_CHECKING:
    from tiebreak.life.streaming import Stream


def replace_repeats(stream: Stream, slots: Codes) -> ResponseChains:
    """Return the responses of slots; a new one replaces what its worker said there before."""
    tasks = stream.tasks
    chains = tasks.chains(slots)
    n_classes = len(stream.classes)
    row = np.repeat(np.arange(len(slots)), np.diff(chains.start))
    depth = np.arange(len(row)) - chains.start[row]
    n_new = np.diff(chains.start) - stream.counted[slots]
    is_new = depth < n_new[row]  # chains begin with the last response
    if not is_new.any():
        return chains
    pair = row * len(stream.workers) + chains.code // n_classes
    order = np.argsort(pair, kind="stable")  # the last response of a worker comes first
    is_head = np.append(True, pair[order][1:] != pair[order][:-1])
    head = np.flatnonzero(is_head)[np.cumsum(is_head) - 1]
    again = order[~is_head & is_new[order[head]]]
    if not len(again):
        return chains
    counted = again[~is_new[again]]
    worker, label = np.divmod(chains.code[counted], n_classes)
    weight = 1.0 if chains.weight is None else chains.weight[counted][:, None]
    said = tasks.q.now[slots[row[counted]]] * weight
    np.subtract.at(stream.counts.of_workers, (worker, label), said)
    np.maximum(stream.counts.of_workers, 0.0, out=stream.counts.of_workers)
    np.subtract.at(stream.counted, slots[row[counted]], 1)
    tasks.code.now[chains.response[again]] = GONE
    return tasks.chains(slots)


def start_from_votes(stream: Stream) -> None:
    """Let all open tasks start from their votes, as in a fit of all responses.

    A stream knows little of its workers when it begins, and what it believes of them then
    confirms itself.
    """
    batch = stream.batch(np.arange(len(stream.tasks), dtype=np.int32))
    start = _votes(stream, batch)
    added = stream.count(batch._replace(q=start))
    stream.counts = StreamCounts(
        stream.settled.of_workers + added.of_workers, stream.settled.of_states + added.of_states
    )
    stream.tasks.q.now[:] = start
    stream.counted[:] = np.diff(batch.chains.start)


def _votes(stream: Stream, batch: StreamBatch) -> Floats:
    """Return shares of votes by state; tasks whose responses were dropped stay as they are."""
    n_classes = len(stream.classes)
    tasks = lay_out_votes(batch, len(stream.workers), n_classes)
    votes = vb.majority(tasks, n_classes)
    n_subtypes = stream.crowd_model.workers.n_states // n_classes
    if n_subtypes > 1:
        votes = vb.split_into_subtypes(votes, votes, n_subtypes)
    votes = clamp(votes, batch.gold, n_classes)
    if batch.evidence is None:
        return votes
    is_settled = np.asarray(batch.evidence.any(axis=1))
    return np.where(is_settled[:, None], batch.q, votes)
