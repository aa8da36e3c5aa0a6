"""Growth: a stream meets workers and classes that its model has never seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.errors import ResponseError
from tiebreak.inference import dirichlet
from tiebreak.inference.workers import AnswerCounts, CrowdFacts, CrowdModel
from tiebreak.inference.workers.base import NEW
from tiebreak.life.batches import StreamCounts

if TYPE_CHECKING:
    from tiebreak.life.streaming import Stream


def add_workers(stream: Stream, n_former: int) -> None:
    """Give workers who came after the first `n_former` a prior and empty counts."""
    n_new = len(stream.workers) - n_former
    at = np.concatenate([np.arange(n_former), np.full(n_new, NEW)]).astype(np.int32)
    chosen = stream.crowd_model.workers.select(at)
    stream.crowd_model = stream.crowd_model._replace(workers=chosen)
    stream.counts = _with_workers(stream.counts, n_new)
    stream.settled = _with_workers(stream.settled, n_new)


def _with_workers(counts: StreamCounts, n_new: int) -> StreamCounts:
    more = np.zeros((n_new, *counts.of_workers.shape[1:]))
    return counts._replace(of_workers=np.concatenate([counts.of_workers, more]))


def add_classes(stream: Stream, classes: list[Hashable]) -> None:
    """Let a stream go on with more classes, the new ones at the end."""
    n_former = len(stream.classes)
    n_classes = len(classes)
    model = _with_classes(stream, classes)
    n_subtypes = model.workers.n_states // n_classes
    n_new_states = (n_classes - n_former) * n_subtypes
    worker, label = np.divmod(stream.tasks.code.now, n_former)
    is_one = stream.tasks.code.now >= 0
    stream.tasks.code.now[is_one] = (worker * n_classes + label)[is_one]
    stream.tasks.widen(n_new_states)
    stream.counts = _with_labels(stream.counts, n_classes - n_former, n_new_states)
    stream.settled = _with_labels(stream.settled, n_classes - n_former, n_new_states)
    stream.crowd_model = model
    stream.classes = classes


def _with_labels(counts: StreamCounts, n_labels: int, n_states: int) -> StreamCounts:
    wider = np.pad(counts.of_workers, [(0, 0), (0, n_labels), (0, n_states)])
    return StreamCounts(wider, np.pad(counts.of_states, (0, n_states)))


def _with_classes(stream: Stream, classes: list[Hashable]) -> CrowdModel:
    """Return the model of the stream's workers for these classes, as its options say."""
    template = stream.template
    n_classes = len(classes)
    by_label = stream.counts.of_workers.sum(axis=2)
    by_label = np.pad(by_label, [(0, 0), (0, n_classes - by_label.shape[1])])
    crowd = CrowdFacts(
        Ids(stream.workers),
        n_classes,
        template.confusion_prior,
        dirichlet.class_prior(template.class_prior, n_classes),
        template.trust,
        answers=AnswerCounts(by_label, None),
    )
    model = stream.crowd_model.workers.with_classes(crowd)
    if model is None:
        unseen = [label for label in classes if label not in stream.classes]
        raise ResponseError(
            f"Label {unseen[0]!r} is a new class, and what was learnt of this crowd's workers as "
            "a whole does not tell how they give it. Fit the model again with all responses."
        )
    return model
