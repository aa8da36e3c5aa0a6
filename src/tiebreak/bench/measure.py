"""One cell of a comparison: a method on a crowd, scored on its known labels, in limited time."""

from __future__ import annotations

import base64
import hashlib
import signal
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tiebreak._version import __version__
from tiebreak.bench import methods
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Ids
from tiebreak.errors import GoldError, register
from tiebreak.evaluate import Comparison
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.tables import read_gold, read_responses

register(
    {
        "gold-of-other-tasks": "No task of {name} has a known label. Gold begins with {gold}, the "
        "responses with {tasks}.\nGive both the same task ids."
    }
)

LOG_LOSS_FLOOR = 1e-4  # a truth held impossible costs 9.2, as in published tables
SAME = 1e-12  # scores this close are tied
SHOWN = 5  # ids in a message
OVER = "over {:g} s"

Cell = dict[str, Any]


class LabelledCrowd(NamedTuple):
    """Responses, gold, and a checksum of both."""

    name: str
    responses: Responses
    gold: Gold
    checksum: str


class CellOptions(NamedTuple):
    """How every cell of a run is measured."""

    gold_share: float = 0.0
    limit: float = 60.0
    with_labels: bool = False

    def head(self, crowd: LabelledCrowd, method: methods.Aggregator, seed: int) -> Cell:
        """Return what a cell begins with: of what it is."""
        found: Cell = {"set": crowd.name, "data": crowd.checksum, "method": method.name}
        found |= {"source": method.source, "seed": seed, "gold_share": self.gold_share}
        return found | {"version": __version__}


def label_crowd(name: str, responses: Any, gold: Any) -> LabelledCrowd:
    """Read responses and gold, which must share a task."""
    crowd: Responses = read_responses(responses)
    known: Gold = read_gold(gold)
    truth = truth_of(crowd, known)
    if not (truth >= 0).any():
        of_gold, of_crowd = (list(ids)[:SHOWN] for ids in (known.tasks, crowd.tasks))
        raise GoldError("gold-of-other-tasks", name=name, gold=of_gold, tasks=of_crowd)
    names = "\0".join(map(str, (*crowd.tasks, *crowd.workers, *crowd.classes)))
    arrays = (crowd.start, crowd.code, crowd.weight_of_each(), truth)
    content = b"".join(np.asarray(each, np.float64).tobytes() for each in arrays)
    checksum = hashlib.sha256(names.encode() + content).hexdigest()[:12]
    return LabelledCrowd(name, crowd, known, checksum)


def truth_of(crowd: Responses, gold: Gold) -> Codes:
    """Return the class of each task; −1: not known. A class that nobody answered is n_classes."""
    task = crowd.tasks.codes(gold.tasks)
    code = crowd.classes.codes(gold.classes)
    code = np.where(code == MISSING, crowd.n_classes, code)
    truth = np.full(crowd.n_tasks, -1)
    truth[task[task != MISSING]] = code[gold.label[task != MISSING]]
    return truth


def measure(
    crowd: LabelledCrowd, given: Any, seed: int, options: CellOptions, is_checked: bool
) -> tuple[Cell, Ids | None]:
    """Run a method and score it; return its cell and, if asked, the labels.

    What goes wrong in the method stands in the cell. `is_checked`: it runs twice, and must give the
    same scores.
    """
    method = methods.find(given)
    cell = options.head(crowd, method, seed)
    responses, gold, truth = _split_gold(crowd, seed, options.gold_share)
    scored = np.flatnonzero(truth >= 0)
    cell["n_scored"] = len(scored)
    began = time.process_time()
    try:
        with limited(options.limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = method.scores(responses, gold, seed)
            cell["cpu"] = round(time.process_time() - began, 3)
            refuse_bad(scores, responses, method.is_probability)
            if is_checked and method.is_foreign:
                again = method.scores(responses, gold, seed)
                if not np.array_equal(scores, again):
                    raise ValueError("two calls with one seed gave different scores")
    except OutOfTimeError:
        return cell | {"cpu": options.limit, "error": OVER.format(options.limit)}, None
    except Exception as error:  # whatever a method raises: the run goes on, and tells it
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return cell | {"error": words}, None
    labels = responses.classes.take(scores.argmax(axis=1)) if options.with_labels else None
    return cell | score(scores[scored], truth[scored], method.is_probability), labels


def _split_gold(crowd: LabelledCrowd, seed: int, share: float) -> tuple[Responses, Any, Codes]:
    """Return responses, the gold that methods are given, and the truth of the tasks that score."""
    if not share:
        return crowd.responses, None, truth_of(crowd.responses, crowd.gold)
    responses = crowd.responses.with_classes(crowd.gold.classes)
    truth = truth_of(responses, crowd.gold)
    known = np.random.default_rng(seed).permutation(np.flatnonzero(truth >= 0))
    given = known[: min(round(share * len(known)), len(known) - 1)]
    tasks, labels = responses.tasks.take(given), responses.classes.take(truth[given])
    truth[given] = -1
    return responses, Gold.from_columns(tasks, labels) if len(given) else None, truth


def refuse_bad(scores: Floats, responses: Responses, is_probability: bool) -> None:
    """Refuse what are no scores of these tasks."""
    expected = (responses.n_tasks, responses.n_classes)
    if scores.shape != expected:
        raise ValueError(f"scores have the shape {scores.shape} in place of {expected}")
    if np.isnan(scores).any():
        raise ValueError("some scores are NaN")
    if is_probability and not np.allclose(scores.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError("rows are said to be probabilities, and do not add up to 1")


def score(scores: Floats, truth: Codes, is_probability: bool) -> Cell:
    """Score rows of scores; the highest share what one would count.

    `credit` says of each task how many classes are highest, where the truth is one of them, else 0.

    >>> found = score(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 1]), is_probability=True)
    >>> found["accuracy"], round(found["log_loss"], 4), unpack(found["credit"]).tolist()
    (0.25, 1.4979, [0.5, 0.0])
    """
    n, n_classes = scores.shape
    top = scores >= scores.max(axis=1, keepdims=True) - SAME
    top = np.pad(top, ((0, 0), (0, 1)))  # a class that nobody answered
    share = top / top.sum(axis=1, keepdims=True)
    credit = share[np.arange(n), truth]
    right = np.bincount(truth, weights=credit, minlength=n_classes + 1)
    used = share.sum(axis=0) + np.bincount(truth, minlength=n_classes + 1)
    ties = np.where(credit > 0.0, top.sum(axis=1), 0).astype(np.uint8)
    cell: Cell = {
        "accuracy": float(credit.mean()),
        "macro_f": float((2.0 * right[used > 0.0] / used[used > 0.0]).mean()),
    }
    if is_probability:
        q = np.pad(scores, ((0, 0), (0, 1)))
        stated = Comparison(truth, q.argmax(axis=1), n_classes + 1, q.max(axis=1), q)
        cell["log_loss"] = stated.log_loss(LOG_LOSS_FLOOR)
        cell["calibration_error"] = stated.calibration_error()
    return cell | {"credit": base64.b64encode(zlib.compress(ties.tobytes(), 9)).decode()}


def unpack(credit: str) -> Floats:
    """Return what each scored task counts: 1 where it is right, a share of it on ties, else 0."""
    ties = np.frombuffer(zlib.decompress(base64.b64decode(credit)), np.uint8)
    return np.where(ties > 0, 1.0 / np.maximum(ties, 1), 0.0)


class OutOfTimeError(BaseException):
    """No Exception, so that it passes what methods catch."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError after so much processor time, between two steps of Python.

    Only the main thread of a Unix process can be told; elsewhere nothing is limited.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)
