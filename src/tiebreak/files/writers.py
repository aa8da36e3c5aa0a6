"""Writers: labels, workers, links, gold and responses into files.

The format follows from the name: .csv, .tsv, .jsonl, .parquet, and .gz after the first three;
any other name is CSV. A file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import FLAG, MAPPING, PATH, TEXT, checks, having, optional
from tiebreak.errors import FileError, InputError, OptionError
from tiebreak.files.atomic_write import Target, open_target
from tiebreak.files.content import Format, checked_format, format_of_name, is_packed
from tiebreak.files.encoding import CodedColumn, encoded, write_parquet
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Column, Ids
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.labels import Labels
from tiebreak.links import Links
from tiebreak.responses import Responses

NOT_WRITTEN = {  # and what may be done instead
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "; spreadsheets open .csv"),
    ".json": "; .jsonl has one object per line",
    ".tbm": "; --save names the file of a model",
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst"), ", with .gz after it if it shall be small"),
    **dict.fromkeys((".db", ".sqlite", ".feather", ".arrow", ".pkl", ".pickle", ".tb"), ""),
}


class WithWorkers(Protocol):
    """A fitted estimator that knows what each worker confuses with what."""

    workers_: Ids
    classes_: Ids
    confusion_: Floats  # (n_workers, n_classes, n_classes): worker, truth, answer
    responses_: Responses


@checks(labels=Labels, probabilities=FLAG)
def write_labels(
    target: Target,
    labels: Labels,
    *,
    probabilities: bool = False,
    vote: npt.NDArray[np.int32] | None = None,
    format: str | None = None,
) -> None:
    """Write task, label, probability and, if asked, one ``probability_<class>`` per class.

    `vote`, the class of most votes by its code, is written as a column where it is given; −1 is
    left empty.
    `target` is a path, or "-" for standard output; `format` overrules what its name says.

    Examples
    --------
    >>> q = np.array([[0.9, 0.1], [0.25, 0.75]])
    >>> labels = Labels.from_probabilities(Ids(["a", "b"]), Ids(["cat", "dog"]), q)
    >>> write_labels("-", labels)
    task,label,probability
    a,cat,0.9
    b,dog,0.75
    """
    label = CodedColumn(labels.classes, labels.label)
    columns = {"task": labels.tasks.values, "label": label, **labels.numbers(probabilities)}
    if vote is not None:
        columns["vote"] = vote_column(labels.classes, vote)
    write_table(target, columns, format=format)


def vote_column(classes: Ids, vote: npt.NDArray[np.int32]) -> CodedColumn:
    """Return the names of classes by code, and nothing where the code is −1."""
    names = Ids([*map(str, classes), ""])
    return CodedColumn(names, np.where(vote < 0, len(classes), vote).astype(np.int32))


@checks(model=having("workers_", "classes_", "confusion_"), counts=optional(np.ndarray))
def write_workers(
    target: Target,
    model: WithWorkers,
    *,
    format: str | None = None,
    counts: npt.NDArray[np.int64] | None = None,
) -> None:
    """Write how probably each worker gives each answer to each true class.

    One row per worker, truth and answer; `responses` is how often the worker gave that answer.
    `counts`, (n_workers, n_classes), says so where the responses are not with the model.
    """
    confusion = model.confusion_
    classes = model.classes_
    worker, truth, answer = np.indices(confusion.shape).reshape(3, -1)
    if counts is None:
        counts = np.zeros(confusion.shape[:2], dtype=np.int64)
        counts[:, classes.codes(model.responses_.classes)] = model.responses_.count_labels()
    elif counts.shape != confusion.shape[:2]:
        raise OptionError(f"counts must be {confusion.shape[:2]}; got {counts.shape}.")
    columns = {
        "worker": model.workers_.take(worker),
        "truth": classes.take(truth),
        "answer": classes.take(answer),
        "probability": confusion.ravel(),
        "responses": counts[worker, answer],
    }
    write_table(target, columns, format=format)


@checks(links=Links)
def write_links(target: Target, links: Links, *, format: str | None = None) -> None:
    """Write left, right, link (must or cannot), and weight and who where links have them."""
    write_table(target, links.columns(), format=format)


@checks(gold=Gold)
def write_gold(target: Target, gold: Gold, *, format: str | None = None) -> None:
    """Write task and label of every known task."""
    columns = {"task": gold.tasks.values, "label": gold.classes.take(gold.label)}
    write_table(target, columns, format=format)


@checks(target=PATH, responses=Responses)
def write_responses(target: Target, responses: Responses, *, format: str | None = None) -> None:
    """Write task, worker and label of every response, and weight where responses have one.

    A task without responses, or a worker without labels, gets a row with an empty label, so
    that it still exists when the file is read. Classes that nobody chose are not written.

    A name that ends in ``.tb`` makes a folder of plain arrays instead, which keeps everything and
    is read again without hashing and sorting.
    """
    if format is None and is_packed(target):
        from tiebreak.files.packed import write_packed

        write_packed(target, responses)
        return
    rows = _rows_to_write(responses)
    columns: dict[str, Column] = {
        "task": responses.tasks.take(rows.task),
        "worker": responses.workers.take(rows.worker),
        "label": _take_known(responses.classes, rows.label),
    }
    if rows.weight is not None:
        columns["weight"] = rows.weight
    write_table(target, columns, format=format)


@checks(target=PATH, columns=MAPPING, format=optional(TEXT))
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


def refuse_unwritable_name(target: Target) -> None:
    """Refuse a name that ends like a format which is not written: it would hold CSV."""
    suffix = Path(target).suffix.lower()
    if suffix in NOT_WRITTEN:
        raise FileError(
            f"{os.fspath(target)} cannot be written: {suffix} files are not made here. Name one "
            f"that ends in .csv, .tsv, .jsonl or .parquet{NOT_WRITTEN[suffix]}."
        )


def _format_for(target: Target, asked: str | None) -> tuple[Format, bool]:
    if asked is None:
        refuse_unwritable_name(target)
    form, packed = format_of_name(os.fspath(target))
    return (form if asked is None else checked_format(asked)), packed


@contextlib.contextmanager
def _packing(out: BinaryIO) -> Iterator[BinaryIO]:
    # Neither name nor time goes into the file: the same table gives the same bytes.
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed:
        yield packed  # type: ignore[misc]  # a binary file in all but its declared type


def _take_known(known: Ids, codes: Codes) -> Column:
    """Return the names for codes, nothing where a code is missing."""
    if not np.any(codes == MISSING):
        return known.take(codes)
    return [None if code == MISSING else known[code] for code in codes.tolist()]


class RowsToWrite(NamedTuple):
    """Rows of a file of responses, in codes; a label or weight may be missing."""

    task: Codes
    worker: Codes
    label: Codes
    weight: Floats | None  # NaN where a row has no label


def _rows_to_write(responses: Responses) -> RowsToWrite:
    """Return rows such that tasks and workers all appear, in their order, when they are read.

    A task without responses and a worker without labels get a row without a label, beside the
    first worker or task. Rows come by task, but no worker before those of lower code: a worker
    first met on task t waits for the tasks at which all workers before it are met.
    """
    no_response = np.flatnonzero(np.diff(responses.start) == 0).astype(np.int32)
    no_label = np.setdiff1d(np.arange(responses.n_workers), responses.worker_of_each()).astype(
        np.int32
    )
    silent = np.full(len(no_response) + len(no_label), MISSING, dtype=np.int32)
    task = np.concatenate([responses.task_of_each(), no_response, np.zeros_like(no_label)])
    worker = np.concatenate([responses.worker_of_each(), np.zeros_like(no_response), no_label])
    label = np.concatenate([responses.label_of_each(), silent])
    first_task = np.full(responses.n_workers, responses.n_tasks, dtype=np.int32)
    np.minimum.at(first_task, worker, task)
    turn = np.maximum(task, np.maximum.accumulate(first_task)[worker])
    order = np.lexsort((task, worker, turn))
    weight = responses.weight
    if weight is not None:
        weight = np.concatenate([weight, np.full(len(silent), np.nan)])[order]
    return RowsToWrite(task[order], worker[order], label[order], weight)
