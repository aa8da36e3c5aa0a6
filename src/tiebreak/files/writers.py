"""Writers: labels, workers, links, gold and responses into files.

The format follows from the name: .csv, .tsv, .jsonl, .parquet, and .gz after the first three;
any other name is CSV. A file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.errors import InputError
from tiebreak.files.content import Format, checked_format, format_of_name
from tiebreak.files.encoding import encoded, write_parquet
from tiebreak.files.replacing import Target, open_target
from tiebreak.gold import Gold
from tiebreak.labels import Labels
from tiebreak.links import Links
from tiebreak.names import MISSING, Codes, Column, Names
from tiebreak.responses import Responses


class WithWorkers(Protocol):
    """A fitted estimator that knows what each worker confuses with what."""

    workers_: Names
    classes_: Names
    confusion_: npt.NDArray[np.float64]  # (n_workers, n_classes, n_classes): worker, truth, answer
    responses_: Responses


def write_labels(
    target: Target, labels: Labels, *, probabilities: bool = False, format: str | None = None
) -> None:
    """Write task, label, probability and, if asked, one ``probability_<class>`` a class.

    `target` is a path, or "-" for standard output; `format` overrules what its name says.

    Examples
    --------
    >>> q = np.array([[0.9, 0.1], [0.25, 0.75]])
    >>> labels = Labels.from_probabilities(Names(["a", "b"]), Names(["cat", "dog"]), q)
    >>> write_labels("-", labels)
    task,label,probability
    a,cat,0.9
    b,dog,0.75
    """
    write_table(target, labels.columns(probabilities=probabilities), format=format)


def write_workers(target: Target, model: WithWorkers, *, format: str | None = None) -> None:
    """Write how probably each worker gives each answer to each true class.

    One row per worker, truth and answer; `responses` is how often the worker gave that answer.
    """
    confusion, classes = model.confusion_, model.classes_
    n_workers, n_classes, _ = confusion.shape
    worker, truth, answer = np.indices(confusion.shape).reshape(3, -1)
    given = classes.codes(model.responses_.classes)[model.responses_.label]
    pair = model.responses_.worker.astype(np.int64) * n_classes + given
    counts = np.bincount(pair, minlength=n_workers * n_classes)
    columns = {
        "worker": model.workers_.take(worker),
        "truth": classes.take(truth),
        "answer": classes.take(answer),
        "probability": confusion.ravel(),
        "responses": counts[worker * n_classes + answer],
    }
    write_table(target, columns, format=format)


def write_links(target: Target, links: Links, *, format: str | None = None) -> None:
    """Write left, right, link (must or cannot), and weight and who where links have them."""
    write_table(target, links.columns(), format=format)


def write_gold(target: Target, gold: Gold, *, format: str | None = None) -> None:
    """Write task and label of every known task."""
    columns = {"task": gold.tasks.values, "label": gold.classes.take(gold.label)}
    write_table(target, columns, format=format)


def write_responses(target: Target, responses: Responses, *, format: str | None = None) -> None:
    """Write task, worker and label of every response.

    A task without responses, or a worker without labels, gets a row with an empty label, so
    that it still exists when the file is read. Classes that nobody chose are not written.
    """
    task, worker, label = _with_silent_rows(responses)
    columns = {
        "task": responses.tasks.take(task),
        "worker": responses.workers.take(worker),
        "label": _take_known(responses.classes, label),
    }
    write_table(target, columns, format=format)


def write_table(
    target: Target, columns: Mapping[str, Column], *, format: str | None = None
) -> None:
    """Write columns of equal length; in CSV, what is not text is written as Python prints it.

    Examples
    --------
    >>> write_table("-", {"task": ["a", "b, c"], "n": [1, 2]})
    task,n
    a,1
    "b, c",2
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"A table needs columns of equal length; got {lengths or 'none'}.")
    form, packed = _format_for(target, format)
    with open_target(target) as out:
        if form == "parquet":
            write_parquet(out, columns)
            return
        with _packing(out) if packed else contextlib.nullcontext(out) as sink:
            for piece in encoded(columns, form):
                sink.write(piece)


def _format_for(target: Target, asked: str | None) -> tuple[Format, bool]:
    form, packed = format_of_name(os.fspath(target))
    return (form if asked is None else checked_format(asked)), packed


@contextlib.contextmanager
def _packing(out: BinaryIO) -> Iterator[BinaryIO]:
    # Neither name nor time goes into the file: the same table gives the same bytes.
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed:
        yield packed  # type: ignore[misc]  # a binary file in all but its declared type


def _take_known(known: Names, codes: Codes) -> Column:
    """Return the names for codes, nothing where a code is missing."""
    if not np.any(codes == MISSING):
        return known.take(codes)
    return [None if code == MISSING else known[code] for code in codes.tolist()]


def _with_silent_rows(responses: Responses) -> tuple[Codes, Codes, Codes]:
    """Add rows without a label, such that tasks and workers all appear, tasks in their order."""
    no_response = np.setdiff1d(np.arange(responses.n_tasks), responses.task)
    no_label = np.setdiff1d(np.arange(responses.n_workers), responses.worker)
    n_more = max(len(no_response), len(no_label))
    if not n_more:
        return responses.task, responses.worker, responses.label
    more_task = np.zeros(n_more, dtype=np.int32)
    more_task[: len(no_response)] = no_response
    more_worker = np.zeros(n_more, dtype=np.int32)
    more_worker[: len(no_label)] = no_label
    # A task first appears after all tasks of lower code: sort by the highest code so far.
    highest = np.maximum.accumulate(responses.task)
    order = np.argsort(np.concatenate([highest, more_task]), kind="stable")
    return (
        np.concatenate([responses.task, more_task])[order],
        np.concatenate([responses.worker, more_worker])[order],
        np.concatenate([responses.label, np.full(n_more, MISSING, dtype=np.int32)])[order],
    )
