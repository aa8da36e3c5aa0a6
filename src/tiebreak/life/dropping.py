"""Dropping responses: what stays of settled tasks are counts, and what each task is believed to be.

Beliefs of workers are a prior plus counts, so that a worker loses nothing. A task keeps its q; what
its responses said is then `log q − E[log π]`, as of now: later it moves by new responses and links
alone, and not because its workers turn out to be other than was believed.
"""

from __future__ import annotations

import copy
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tiebreak.data.ids import as_list
from tiebreak.data.labels import Labels
from tiebreak.errors import OptionError
from tiebreak.inference import calibration
from tiebreak.inference.vb import lay_out
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats
from tiebreak.options import require_word

if TYPE_CHECKING:
    from tiebreak.data import Responses
    from tiebreak.data.ids import Ids
    from tiebreak.estimators.base import Estimator

Fitted = TypeVar("Fitted", bound="Estimator")
KEEPS = ("responses", "counts")
CHUNK = 1 << 20  # responses at a time


class Carried(NamedTuple):
    """What stays of responses that were dropped."""

    counts: Floats  # (n_codes, n_states) how often each worker gave each label in each state
    totals: Floats  # (n_states,) tasks that are gone wholly
    n_dropped: Floats  # (n_tasks,) responses that were dropped, by weight; 0: none


def digest(responses: Responses) -> str:
    """Return a short name of what responses say; the order of rows and of ids does not count.

    >>> from tiebreak.data import Responses
    >>> rows = [("a", "ann", "x"), ("b", "bob", "y"), ("b", "ann", "x")]
    >>> digest(Responses.from_rows(rows)) == digest(Responses.from_rows(rows[::-1]))
    True
    """
    names = (responses.tasks, responses.workers, responses.classes)
    marks = [_marks(each, salt) for salt, each in enumerate(names)]
    total = 0
    for at in range(0, responses.n_responses, CHUNK):
        part = slice(at, at + CHUNK)
        task = (
            np.searchsorted(responses.start, np.arange(at, at + len(responses.code[part])), "right")
            - 1
        )
        worker, label = np.divmod(responses.code[part], responses.n_classes)
        of_each = _mix(marks[0][task] + _mix(marks[1][worker] + _mix(marks[2][label])))
        if responses.weight is not None:
            of_each = _mix(of_each + np.ascontiguousarray(responses.weight[part]).view(np.uint64))
        total += int(of_each.sum(dtype=np.uint64))
    return f"{responses.n_responses}-{total % (1 << 64):016x}"


def batches_of(model: Estimator) -> tuple[str, ...]:
    """Return what a model was given so far: that of its fit, where it was never updated."""
    return model._batches or (digest(model.responses_),)


def _marks(names: Ids, salt: int) -> npt.NDArray[np.uint64]:
    """Return a number for each id; 7 of one table is "7" of another."""
    text = (zlib.crc32(str(name).encode(), salt) for name in as_list(names.values))
    return _mix(np.fromiter(text, dtype=np.uint64, count=len(names)))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread 64 bits so that sums of them tell sets apart (the last steps of MurmurHash3)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(x ^ (x >> np.uint64(33)))


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
    made._batches = batches_of(model)
    made.responses_ = empty
    made._carried = Carried(counts, totals, n_dropped)
    if warm is not None:
        vars(made)["_warm_start"] = warm._replace(responses=empty, tasks=lay_out(empty))
    return made
