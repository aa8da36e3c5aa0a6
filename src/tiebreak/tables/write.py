"""Writers: labels, workers, links, gold and responses into files, each whole or not at all.

The format follows from the name: .csv, .tsv, .jsonl, .parquet, and .gz after the first three;
any other name is CSV.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import FLAG, MAPPING, PATH, TEXT, checks, having, optional
from tiebreak.data import Responses, ids
from tiebreak.data.ids import Column, Ids, is_missing
from tiebreak.data.labels import Labels
from tiebreak.errors import FileError, InputError, OptionError
from tiebreak.tables.source import checked_format, format_of_name, is_packed
from tiebreak.tables.table import half_character

Target = str | os.PathLike[str]
Codes = npt.NDArray[np.int32]

BATCH = 1 << 16  # rows turned into bytes at a time
GROUP = 1 << 20  # rows of a group in Parquet
FORMULA = r"^[=+\-@\t\r]"  # what spreadsheets take for the start of a formula
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
NOT_WRITTEN = {  # and what may be done instead
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "; spreadsheets open .csv"),
    ".json": "; .jsonl has one object per line",
    ".tbm": "; --save names the file of a model",
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst"), ", with .gz after it if it shall be small"),
    **dict.fromkeys((".db", ".sqlite", ".feather", ".arrow", ".pkl", ".pickle", ".tb"), ""),
}
_SAFE_CELLS: ContextVar[bool] = ContextVar("safe cells", default=False)


@checks(labels=Labels, probabilities=FLAG)
def write_labels(
    target: Target,
    labels: Labels,
    *,
    probabilities: bool = False,
    vote: Codes | None = None,
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
    label = names_of_codes(labels.classes, labels.label)
    columns = {"task": labels.tasks.values, "label": label, **labels.numbers(probabilities)}
    if vote is not None:
        columns["vote"] = names_of_codes(labels.classes, vote)
    write_table(target, columns, format=format)


def names_of_codes(names: Ids, codes: Codes) -> Column:
    """Return a column of names, which takes no more memory than its codes; −1 is missing."""
    import pyarrow as pa

    indices = pa.array(codes, pa.int32(), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, names.values)


@checks(model=having("workers_", "classes_", "confusion_"), counts=optional(np.ndarray))
def write_workers(
    target: Target,
    model: Any,
    *,
    format: str | None = None,
    counts: npt.NDArray[np.int64] | None = None,
) -> None:
    """Write how probably each worker gives each answer to each true class.

    One row per worker, truth and answer; `responses` is how often the worker gave that answer.
    `counts`, (n_workers, n_classes), says so where the responses are not with the model.
    """
    confusion, classes = model.confusion_, model.classes_
    worker, truth, answer = np.indices(confusion.shape).reshape(3, -1)
    if counts is None:
        counts = np.zeros(confusion.shape[:2], dtype=np.int64)
        counts[:, classes.codes(model.responses_.classes)] = model.responses_.count_labels()
    elif counts.shape != confusion.shape[:2]:
        raise OptionError("counts-shape", expected=confusion.shape[:2], shape=counts.shape)
    columns = {
        "worker": model.workers_.take(worker).values,
        "truth": classes.take(truth).values,
        "answer": classes.take(answer).values,
        "probability": confusion.ravel(),
        "responses": counts[worker, answer],
    }
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
        from tiebreak.tables.array_folder import write_packed

        write_packed(target, responses)
    else:
        write_table(target, _rows_of(responses), format=format)


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
        raise InputError("unequal-columns", table="A table to write", lengths=lengths)
    if format is None:
        refuse_unwritable_name(target)
    form, packed = format_of_name(os.fspath(target))
    form = form if format is None else checked_format(format)
    try:
        is_text = form in ("csv", "tsv")
        arrays = {name: _to_arrow(column, is_text=is_text) for name, column in columns.items()}
        with open_target(target) as out:
            if form == "parquet":
                _write_parquet(out, arrays)
                return
            # Neither name nor time goes into the file: the same table gives the same bytes.
            level: dict[str, Any] = {"filename": "", "mtime": 0, "compresslevel": 6}
            gz: Any = gzip.GzipFile(fileobj=out, mode="wb", **level) if packed else None
            with gz or contextlib.nullcontext(out) as sink:
                for piece in _encoded(arrays, form):
                    sink.write(piece)
    except UnicodeEncodeError as error:
        raise half_character(error) from None


def refuse_unwritable_name(target: Target) -> None:
    """Refuse a name that ends like a format which is not written: it would hold CSV."""
    suffix = Path(target).suffix.lower()
    if suffix in NOT_WRITTEN:
        name = os.fspath(target)
        raise FileError("name-unwritable", file=name, suffix=suffix, hint=NOT_WRITTEN[suffix])


@contextlib.contextmanager
def safe_cells() -> Iterator[None]:
    """Defuse, in CSV and TSV written meanwhile, texts that a spreadsheet would run."""
    token = _SAFE_CELLS.set(True)
    try:
        yield
    finally:
        _SAFE_CELLS.reset(token)


# Whole or not at all


@contextlib.contextmanager
def open_target(target: Target) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `target` once it is complete; "-" is standard output.

    The old file stays untouched until then, and whatever goes wrong leaves nothing behind.
    """
    if isinstance(target, str) and target == "-":
        with _standard_output() as out:
            yield out
        return
    path = Path(os.path.realpath(target))  # a link keeps pointing where it points
    try:
        mode = _mode_of(path)
        if mode is not None and not stat.S_ISREG(mode):  # a device or a pipe has no old content
            with path.open("wb") as out:
                yield out
            return
        beside = _beside(path)
        try:
            with beside.open("xb") as out:
                if mode is not None:
                    beside.chmod(stat.S_IMODE(mode))
                yield out
                out.flush()
                os.fsync(out.fileno())
            os.replace(beside, path)  # noqa: PTH105 - one name that tests can make fail
        except BaseException:  # Ctrl-C too
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise not_written(target, path, error) from None


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[Path]:
    """Make a folder that takes its name, which is free or that of an empty one, once complete."""
    beside = _beside(path)
    try:
        beside.mkdir()
        yield beside
        beside.rename(path)
    except OSError as error:
        raise not_written(path, path, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def not_written(target: Target, path: Path, error: OSError) -> FileError:
    """Say which file could not be written, and why."""
    if isinstance(error, FileError):
        return error
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        reason = f"you may not write into the folder {path.parent}"
    return FileError("not-written", file=target, reason=reason)


def _mode_of(path: Path) -> int | None:
    """Return the mode of the old file, None where there is none; refuse folders early."""
    if path.is_dir():
        raise FileError("target-is-folder", folder=path)
    if not path.parent.is_dir():
        raise FileError("target-folder-missing", file=path, folder=path.parent)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not os.access(path, os.W_OK):  # renaming over it would work all the same
        raise FileError("write-protected", file=path)
    return mode


def _beside(path: Path) -> Path:
    return path.with_name(f".tiebreak-{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Write to standard output; a reader that has had enough (`| head`) is no error."""
    if sys.stdout is None:
        raise FileError("stdout-closed")
    buffer: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    out = buffer or io.BytesIO()  # a notebook's standard output takes text only
    try:
        sys.stdout.flush()  # what was printed before stays before
        yield out
        if isinstance(out, io.BytesIO) and buffer is None:
            sys.stdout.write(out.getvalue().decode())
        out.flush()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit; let that go nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# Columns as bytes


def _to_arrow(column: Column, *, is_text: bool) -> Any:
    """Make a column one Arrow array; values that none can hold together become text.

    `is_text`: it goes into a file of text, where ids that are fractions stay as Python writes them.
    """
    import pyarrow as pa

    try:
        made = ids.arrow(column)
    except InputError:
        made = pa.array([_text(value) for value in column], pa.string())
    is_id = pa.types.is_floating(made.type) and not isinstance(column, np.ndarray)
    return ids.as_text(made) if is_text and is_id else made


def _pieces(arrays: Mapping[str, Any], size: int) -> Iterator[list[Any]]:
    """Yield all columns, some rows at a time; codes become names here."""
    import pyarrow as pa

    for start in range(0, max(map(len, arrays.values())), size):
        pieces = [array[start : start + size] for array in arrays.values()]
        yield [p.dictionary_decode() if isinstance(p, pa.DictionaryArray) else p for p in pieces]


def _encoded(arrays: Mapping[str, Any], form: str) -> Iterator[bytes]:
    """Yield the bytes of a text format, piece by piece."""
    if form == "jsonl":
        encode = json.JSONEncoder(ensure_ascii=False).encode
        for piece in _pieces(arrays, BATCH):
            rows = zip(*(map(_json_value, column.to_pylist()) for column in piece), strict=True)
            yield "".join(f"{encode(dict(zip(arrays, r, strict=True)))}\n" for r in rows).encode()
        return
    import pyarrow as pa

    delimiter = "\t" if form == "tsv" else ","
    yield _lines([pa.array([name], pa.large_string()) for name in arrays], delimiter)
    for piece in _pieces(arrays, BATCH):
        yield _lines([_as_text(column) for column in piece], delimiter)


def _lines(texts: list[Any], delimiter: str) -> bytes:
    """Write texts as CSV; Arrow does it where no field needs quotes, which is twice as fast."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    if _SAFE_CELLS.get():  # an apostrophe before what a spreadsheet would run; not before numbers
        for i, column in enumerate(texts):
            is_number = pc.match_substring_regex(column, NUMBER)
            runs = pc.and_not(pc.match_substring_regex(column, FORMULA), is_number)
            marked = pc.binary_replace_slice(column, start=0, stop=0, replacement="'")
            texts[i] = pc.if_else(runs, marked, column)
    how = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    sink = pa.BufferOutputStream()
    # A row of one empty field would be a blank line, which readers skip.
    is_bare = len(texts) > 1 or not pc.any(pc.equal(pc.fill_null(texts[0], ""), "")).as_py()
    with contextlib.suppress(pa.ArrowInvalid):
        if is_bare:
            csv.write_csv(pa.table(texts, [str(i) for i in range(len(texts))]), sink, how)
            return bytes(sink.getvalue())
    special = re.compile(f'["\r\n{delimiter}]' if len(texts) > 1 else f'["\r\n{delimiter}]|^$')

    def field(text: str | None) -> str:
        text = text or ""
        return '"' + text.replace('"', '""') + '"' if special.search(text) else text

    rows = zip(*(map(field, column.to_pylist()) for column in texts), strict=True)
    return "".join(delimiter.join(row) + "\n" for row in rows).encode()


def _as_text(column: Any) -> Any:
    """Write numbers in the shortest exact form, and all else as Python does."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or ids.is_text(kind):
        return column.cast(pa.large_string())
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return None if is_missing(value) else str(value)


def _json_value(value: Any) -> Any:
    """Keep numbers that JSON has; write anything else as text, and what is missing as null."""
    is_number = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number else _text(value)


def _write_parquet(sink: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write typed columns.

    Ids that are numbers, and probabilities, hardly ever repeat: to look for a dictionary costs
    labels a third of their time. Numbers in order are small differences, and take half the bytes.
    """
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {name: getattr(array.type, "value_type", array.type) for name, array in arrays.items()}
    whole = [name for name, kind in kinds.items() if pa.types.is_integer(kind)]
    real = [name for name, kind in kinds.items() if pa.types.is_floating(kind)]
    how: dict[str, Any] = {
        "use_dictionary": [name for name in kinds if name not in {*whole, *real}],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }
    schema = pa.schema(list(kinds.items()))
    with parquet.ParquetWriter(sink, schema, **how) as writer:
        for group in _pieces(arrays, GROUP):
            writer.write_table(pa.table(dict(zip(arrays, group, strict=True)), schema))


def _rows_of(responses: Responses) -> dict[str, Column]:
    """Return columns such that tasks and workers all appear, in their order, when they are read.

    A task without responses and a worker without labels get a row without a label, beside the
    first worker or task. Rows come by task, but no worker before those of lower code: a worker
    first met on task t waits for the tasks at which all workers before it are met.
    """
    no_response = np.flatnonzero(np.diff(responses.start) == 0)
    no_label = np.setdiff1d(np.arange(responses.n_workers), responses.worker_of_each())
    n_silent = len(no_response) + len(no_label)
    task = np.concatenate([responses.task_of_each(), no_response, np.zeros_like(no_label)])
    worker = np.concatenate([responses.worker_of_each(), np.zeros_like(no_response), no_label])
    label = np.concatenate([responses.label_of_each(), np.full(n_silent, -1, np.int32)])
    first_task = np.full(responses.n_workers, responses.n_tasks)
    np.minimum.at(first_task, worker, task)
    turn = np.maximum(task, np.maximum.accumulate(first_task)[worker])
    order = np.lexsort((task, worker, turn))
    columns: dict[str, Column] = {
        "task": responses.tasks.take(task[order]).values,
        "worker": responses.workers.take(worker[order]).values,
        "label": names_of_codes(responses.classes, label[order]),
    }
    if responses.weight is not None:  # NaN where a row has no label
        weight = np.concatenate([responses.weight, np.full(n_silent, np.nan)])
        columns["weight"] = weight[order]
    return columns
