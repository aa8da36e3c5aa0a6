"""Dropping responses: what stays of settled tasks are counts, and what each task is believed to be.

Beliefs of workers are a prior plus counts, so that a worker loses nothing. A task keeps its q; what
its responses said is then `log q − E[log π]`, as of now: later it moves by new responses and links
alone, and not because its workers turn out to be other than was believed.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import calibration
from tiebreak.inference.silence import refuse_silence
from tiebreak.inference.stages import lay_out
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats
from tiebreak.labels import Labels
from tiebreak.options import require_word

if TYPE_CHECKING:
    from tiebreak.inference.estimator import Estimator
    from tiebreak.responses import Responses

Fitted = TypeVar("Fitted", bound="Estimator")
KEEPS = ("responses", "counts")


class Carried(NamedTuple):
    """What stays of responses that were dropped."""

    counts: Floats  # (n_codes, n_states) how often each worker gave each label in each state
    totals: Floats  # (n_states,) tasks that are gone wholly
    n_dropped: Floats  # (n_tasks,) responses that were dropped, by weight; 0: none


def require_keep(keep: str) -> None:
    """Refuse a word that says nothing of what to keep."""
    require_word("keep", keep, KEEPS)


def drop_tasks(model: Estimator, empty: Responses, n_states: int) -> None:
    """Let a model of counts keep no task: `empty` has its workers and classes alone."""
    none = np.zeros((0, empty.n_classes))
    model.responses_ = empty
    model.tasks_ = empty.tasks
    model.probabilities_ = none
    model.labels_ = Labels.from_probabilities(empty.tasks, empty.classes, none)
    warm = getattr(model, "_warm_start", None)
    if warm is not None:
        q = np.zeros((0, n_states))
        vars(model)["_warm_start"] = warm._replace(
            responses=empty, tasks=lay_out(empty), q=q, plain_logs=None
        )


def drop_responses(model: Fitted) -> Fitted:
    """Return the model with counts in the place of all its responses."""
    refuse_silence(model, "A model of counts")
    if "_opinions" in vars(model):
        raise OptionError(
            "Auto needs the responses: a vote cannot be told from counts. Keep the responses, or "
            "use VariationalBayes (--method vb)."
        )
    crowd = model.responses_
    former = model._carried
    warm = getattr(model, "_warm_start", None)
    q = model.probabilities_ if warm is None else warm.q
    tasks = lay_out(crowd)
    backend = choose_backend("auto", crowd.n_responses)
    counts, _ = backend.open(tasks, np.ascontiguousarray(q), default_threads()).tally()
    n_dropped = calibration.n_responses(tasks)
    totals = np.zeros(counts.shape[1])
    if former is not None:
        counts = counts + former.counts
        n_dropped = n_dropped + former.n_dropped
        totals = former.totals
    empty = replace(
        crowd, start=np.zeros_like(crowd.start), code=crowd.code[:0].copy(), weight=None
    )
    made = copy.copy(model)
    made.responses_ = empty
    made._carried = Carried(counts, totals, n_dropped)
    if warm is not None:
        vars(made)["_warm_start"] = warm._replace(responses=empty, tasks=lay_out(empty))
    return made
