"""Growth: a stream meets workers and classes that its model has never seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.errors import ResponseError
from tiebreak.ids import MISSING, Ids
from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import ClassPrior, KnownShares, SubtypePrior
from tiebreak.inference.kept.batches import StreamCounts
from tiebreak.inference.kept.prediction import base_prior
from tiebreak.inference.worker_models import (
    COMMUNITIES,
    N_SUBTYPES,
    ConfusionMatrices,
    CrowdModel,
    WorkerModel,
)
from tiebreak.inference.worker_models.coin import Coins
from tiebreak.inference.worker_models.kinds import Kinds, three_kinds
from tiebreak.inference.worker_models.selected import select_workers
from tiebreak.kernels.layout import Floats

if TYPE_CHECKING:
    from tiebreak.inference.kept.streaming import Stream
    from tiebreak.inference.variational_bayes import VariationalBayes


def add_workers(stream: Stream, n_former: int) -> None:
    """Give workers who came after the first `n_former` a prior and empty counts."""
    n_new = len(stream.workers) - n_former
    at = np.concatenate([np.arange(n_former), np.full(n_new, MISSING)]).astype(np.int32)
    chosen = select_workers(stream.crowd_model.workers, at, stream.base)
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
    stream.base = base_prior(stream.template.confusion_prior, n_classes)
    stream.classes = classes


def _with_labels(counts: StreamCounts, n_labels: int, n_states: int) -> StreamCounts:
    wider = np.pad(counts.of_workers, [(0, 0), (0, n_labels), (0, n_states)])
    return StreamCounts(wider, np.pad(counts.of_states, (0, n_states)))


def _with_classes(stream: Stream, classes: list[Hashable]) -> CrowdModel:
    """Return the model of the stream's workers for these classes, as its options say."""
    template = stream.template
    name = template.worker_model_
    if name == COMMUNITIES or isinstance(stream.crowd_model.states, KnownShares):
        unseen = [label for label in classes if label not in stream.classes]
        raise ResponseError(
            f"Label {unseen[0]!r} is a new class, and what was learnt of this crowd's workers as "
            "a whole does not tell how they give it. Fit the model again with all responses."
        )
    n_classes = len(classes)
    workers = Ids(stream.workers)
    prior = dirichlet.confusion_prior(template.confusion_prior, workers, n_classes)
    of_class = dirichlet.class_prior(template.class_prior, n_classes)
    trusted = None
    if template.trust is not None:
        trusted = dirichlet.trusted_answers(template.trust, workers, n_classes)
    made = _make_workers(name, prior, trusted, _answer_shares(stream, n_classes), len(workers))
    if "subtypes" in name:
        return CrowdModel(SubtypePrior(of_class, N_SUBTYPES), made)
    return CrowdModel(ClassPrior(of_class), made)


def _make_workers(
    name: str, prior: Floats, trusted: Floats | None, share: Floats, n_workers: int
) -> WorkerModel:
    """Make the workers of a model by name, as `worker_models.MODELS` does from responses."""
    if "kinds" in name:
        weight = np.full(3, 1.0 / 3.0)
        kinds = Kinds(three_kinds(prior[0], share), weight, n_workers, trusted)
        return kinds.with_subtypes(N_SUBTYPES) if "subtypes" in name else kinds
    own = prior if trusted is None else prior + trusted
    if name == "coin":
        return Coins.from_matrices(own, n_workers)
    if name == "subtypes":
        own = np.repeat(own, N_SUBTYPES, axis=2)
    return ConfusionMatrices(own, n_workers)


def _answer_shares(stream: Stream, n_classes: int) -> Floats:
    """Return the share of each label among all responses so far."""
    by_label = stream.counts.of_workers.sum(axis=(0, 2))
    by_label = np.pad(by_label, (0, n_classes - len(by_label)))
    return np.asarray(by_label / max(by_label.sum(), 1.0))


def base_of(model: VariationalBayes) -> Floats:
    """Return the prior of a worker of whom nothing is known, (1, answer, class)."""
    return base_prior(model.confusion_prior, len(model.classes_))
