"""Methods, cells of a method and a crowd, and runs that keep a record of them."""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib.util
import inspect
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak import datasets
from tiebreak._version import __version__
from tiebreak.arguments import (
    FLAG,
    FUNCTION,
    PATH,
    SEVERAL,
    checks,
    has_parts,
    number,
    optional,
    whole,
)
from tiebreak.bench.results import (
    KEY,
    BenchResults,
    Cell,
    append_cell,
    pack,
    read_record,
    write_record,
)
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Ids
from tiebreak.errors import GoldError, InputError, OptionError, register
from tiebreak.estimators.auto import Auto
from tiebreak.estimators.dawid_skene import DawidSkene
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.evaluate import Comparison
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.tables import read_gold, read_responses

register(
    {
        "method-not-loaded": "{file} is no method: {reason}.\nA method is a file with a function "
        "aggregate(crowd) or aggregate(crowd, seed) that returns one row of scores per task.",
        "gold-of-other-tasks": "No task of {name} has a known label. Gold begins with {gold}, the "
        "responses with {tasks}.\nGive both the same task ids.",
    }
)

OWN: dict[str, Any] = {
    "mv": MajorityVote(),
    "ds": DawidSkene(),
    "ds-coin": DawidSkene(worker_model="coin"),
    "vb": VariationalBayes(),
    "vb-coin": VariationalBayes(worker_model="coin"),
    "vb-kinds": VariationalBayes(worker_model="kinds"),
    "vb-subtypes": VariationalBayes(worker_model="subtypes"),
    "auto": Auto(),
}


LOG_LOSS_FLOOR = 1e-4  # a truth held impossible costs 9.2, as in published tables
SAME = 1e-12  # scores this close are tied
SHOWN = 5  # ids in a message
OVER = "over {:g} s"


# Methods


class Aggregator(NamedTuple):
    """A method: responses, known labels and a seed in; scores, (n_tasks, n_classes), out.

    `source` tells its versions apart. Only rows that are probabilities are scored as such.
    """

    name: str
    source: str
    scores: Callable[[Responses, Gold | None, int], Floats]
    is_probability: bool = True
    draws: bool = False
    is_foreign: bool = False
    only_classes: int | None = None  # how many classes it takes, where that is one number


def find(given: Any) -> Aggregator:
    """Return the method that a name, an estimator, a function or a file stands for."""
    if isinstance(given, str) and given in OWN:
        return _of_estimator(given, OWN[given])
    if isinstance(given, str | Path) and str(given).endswith(".py"):
        return _of_file(Path(given))
    if hasattr(given, "fit"):
        return _of_estimator(repr(given), given)
    if callable(given):
        code = getattr(given, "__code__", None)
        return _of_function(given, given.__name__, str(getattr(code, "co_code", b"")))
    raise OptionError.unknown("method", given, (*OWN, "FILE.py"))


def _of_estimator(name: str, estimator: Any) -> Aggregator:
    draws = hasattr(estimator, "random_state")

    def scores(crowd: Responses, gold: Gold | None, seed: int) -> Floats:
        model = copy.copy(estimator)
        if draws:
            model.random_state = seed
        found: Floats = model.fit(crowd, gold=gold).probabilities_
        return found

    return Aggregator(name, f"tiebreak {__version__}", scores, draws=draws)


def _of_function(function: Callable[..., Any], name: str, source: str) -> Aggregator:
    """Return the method of a function, which draws where it takes a seed beside the crowd.

    `PROBABILITIES` and `CLASSES` of its module say what its scores are, and for how many classes.
    """
    draws = len(inspect.signature(function).parameters) > 1
    module = getattr(function, "__globals__", {})

    def scores(crowd: Responses, gold: Gold | None, seed: int) -> Floats:
        found = function(crowd, seed) if draws else function(crowd)
        return np.asarray(found, dtype=np.float64)

    is_probability = bool(module.get("PROBABILITIES", False))
    source = hashlib.sha256(source.encode()).hexdigest()[:12]
    return Aggregator(name, source, scores, is_probability, draws, True, module.get("CLASSES"))


def _of_file(path: Path) -> Aggregator:
    """Load a file as a script is: what it imports may lie beside it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        source = "".join(_texts(path))
        return _of_function(_load(path, source), path.stem, source)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError("method-not-loaded", file=str(path), reason=reason) from error
    finally:
        sys.path.remove(folder)


@functools.cache
def _load(path: Path, source: str) -> Any:
    """Return the function of a file; once for each state of its source."""
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.aggregate


def _texts(path: Path) -> list[str]:
    """Return the text of a file, and of what it imports from its folder."""
    files, texts = [path], []
    for file in files:  # which grows
        texts.append(file.read_text("utf-8"))
        for name in re.findall(r"^(?:from|import) (\w+)", texts[-1], re.MULTILINE):
            other = path.parent / f"{name}.py"
            if other.is_file() and other not in files:
                files.append(other)
    return texts


# Cells


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

    def head(self, crowd: LabelledCrowd, method: Aggregator, seed: int) -> Cell:
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
    method = find(given)
    cell = options.head(crowd, method, seed)
    responses, gold, truth = _split_gold(crowd, seed, options.gold_share)
    scored = np.flatnonzero(truth >= 0)
    cell["n_scored"] = len(scored)

    def ask() -> Floats:
        with limited(options.limit), warnings.catch_warnings(action="ignore"):
            return method.scores(responses, gold, seed)

    began = time.process_time()
    try:
        scores = ask()
        cell["cpu"] = round(time.process_time() - began, 3)
        refuse_bad(scores, responses, method.is_probability)
        if is_checked and method.is_foreign and not np.array_equal(scores, ask()):
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
    """Score rows of scores; the highest of a row share what one would count.

    >>> found = score(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 1]), is_probability=True)
    >>> found["accuracy"], round(found["log_loss"], 4)
    (0.25, 1.4979)
    """
    n, n_classes = scores.shape
    top = scores >= scores.max(axis=1, keepdims=True) - SAME
    top = np.pad(top, ((0, 0), (0, 1)))  # a class that nobody answered
    share = top / top.sum(axis=1, keepdims=True)
    credit = share[np.arange(n), truth]
    right = np.bincount(truth, weights=credit, minlength=n_classes + 1)
    used = share.sum(axis=0) + np.bincount(truth, minlength=n_classes + 1)
    cell: Cell = {
        "accuracy": float(credit.mean()),
        "macro_f": float((2.0 * right[used > 0.0] / used[used > 0.0]).mean()),
    }
    if is_probability:
        q = np.pad(scores, ((0, 0), (0, 1)))
        stated = Comparison(truth, q.argmax(axis=1), n_classes + 1, q.max(axis=1), q)
        cell["log_loss"] = stated.log_loss(LOG_LOSS_FLOOR)
        cell["calibration_error"] = stated.calibration_error()
    return cell | {"credit": pack(np.where(credit > 0.0, top.sum(axis=1), 0))}


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

    def stop(number: int, frame: object) -> None:
        raise OutOfTimeError

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)


# Runs

Key = tuple[Any, ...]
Task = tuple[LabelledCrowd, Any, int, CellOptions, bool]  # the arguments of `measure`


@checks(
    sets=SEVERAL,
    methods=SEVERAL,
    seeds=whole(1, 10_000),
    gold_share=number("a share below 1", least=0.0, below=1.0),
    limit=number("a number of seconds above 0", above=0.0, most=1e8),
    jobs=whole(1, 1_000),
    record=optional(PATH),
    resume=FLAG,
    with_labels=FLAG,
    progress=optional(FUNCTION),
)
def run(
    sets: Mapping[str, tuple[Any, Any]] | Iterable[str],
    methods: Iterable[Any] = tuple(OWN),
    *,
    seeds: int = 5,
    gold_share: float = 0.0,
    limit: float = 60.0,
    jobs: int = 1,
    record: str | os.PathLike[str] | None = None,
    resume: bool = False,
    with_labels: bool = False,
    progress: Callable[[str], None] | None = None,
) -> BenchResults:
    """Run methods on labelled crowds and score them.

    Parameters
    ----------
    sets
        Responses and gold by name; or names of `tiebreak.datasets`.
    methods
        Names of `OWN`, estimators, functions of responses that return a row of scores per task, or
        files with such a function `aggregate`. One that takes a second argument, a seed, draws.
    seeds
        How often methods that draw are run.
    gold_share
        This share of the gold, drawn by each seed, is given to estimators; the rest scores all.
    limit
        Seconds of processor time for a cell.
    jobs
        Processes that measure cells. With more than one, functions must be importable.
    record, resume
        The file that takes each cell as it ends, as a line of JSON; with `resume`, cells that it
        holds of the same data and method are not measured again.
    with_labels
        Keep the labels of the first seed, by set and method; every cell is measured for them.
    """
    crowds = sorted(_read(sets), key=lambda crowd: crowd.responses.n_responses)
    options = CellOptions(gold_share, limit, with_labels)
    wanted: dict[Key, tuple[Cell, Task]] = {}
    for crowd in crowds:
        for given in methods:
            method = find(given)
            if method.only_classes in (None, crowd.responses.n_classes):
                for seed in range(seeds if method.draws or gold_share else 1):
                    head = options.head(crowd, method, seed)
                    task = crowd, given, seed, options, crowd is crowds[0]
                    wanted[_key(head)] = head, task
    cells: dict[Key, Cell] = {}
    if record is not None and resume and Path(record).exists():
        cells = {_key(cell): cell for cell in read_record(record)}
    missing = []
    for key, (head, _) in wanted.items():
        if with_labels or not _holds(cells.get(key), head, limit):
            missing.append(key)
            cells.pop(key, None)
    if record is not None:
        write_record(record, cells.values())
    labels: dict[tuple[str, str], Ids] = {}
    measured = _measure_all([wanted[key][1] for key in missing], jobs)
    for n, (key, (cell, found)) in enumerate(zip(missing, measured, strict=True), 1):
        cells[key] = cell
        if record is not None:
            append_cell(record, cell)
        if found is not None and cell["seed"] == 0:
            labels[cell["set"], cell["method"]] = found
        if progress is not None:
            progress(f"{n:,} of {len(missing):,}: {cell['method']} on {cell['set']}")
    return BenchResults(tuple(cells[key] for key in wanted), labels)


def _read(sets: Mapping[str, tuple[Any, Any]] | Iterable[str]) -> list[LabelledCrowd]:
    if not isinstance(sets, Mapping):
        sets = {name: datasets.load(name)[:2] for name in sets}
    for name, both in sets.items():
        if not has_parts(both, 2):
            raise OptionError.must_be(f"sets[{name!r}]", "responses and gold", both)
    return [label_crowd(str(name), *both) for name, both in sets.items()]


def _key(cell: Cell) -> Key:
    return tuple(cell[name] for name in KEY)


def _holds(cell: Cell | None, head: Cell, limit: float) -> bool:
    """Return whether a cell is what would be measured: of these data, method and options."""
    if cell is None or any(cell[name] != head[name] for name in ("data", "source", "gold_share")):
        return False
    ran_out = cell.get("error", "").startswith(OVER[:5])
    return not ran_out or cell["error"] == OVER.format(limit)


def _measure_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Cell, Ids | None]]:
    """Yield what each task measures, in their order."""
    if jobs == 1 or not tasks:
        yield from starmap(measure, tasks)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(measure, *zip(*tasks, strict=True))
