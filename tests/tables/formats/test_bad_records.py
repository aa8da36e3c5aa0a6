"""Every format: one record of few or of many is broken; file, record and cause are said.

A key is missing, a value has the wrong type, the file ends in the middle. Whatever else a record
holds, no reader ends otherwise than by an error of ours.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from commands import tiebreak
from pyarrow import parquet

import tiebreak as tb
from tiebreak.tables import formats, plain, read_export

MANY = 10_000
BROKEN = 7_777  # of so many


class Sample(NamedTuple):
    """Records of a small file, and how to write a file that has others."""

    records: list[Any]
    write: Callable[[Path, list[Any]], None]
    noun: str = "record"
    first: int = 1  # the number of the first record, as errors count


def load(path: Path) -> Sample:
    if path.suffix in (".csv", ".tsv", ".txt"):
        return _delimited(path)
    if path.suffix == ".zip":
        return _archive(path)
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text().splitlines()]
        noun = "line" if path.name == "judges.jsonl" else "record"  # a plain table has lines
        return Sample(records, lambda out, new: _write(out, map(json.dumps, new)), noun)
    return _document(json.loads(path.read_text()))


def _write(out: Path, lines: Iterator[str]) -> None:
    out.write_text("".join(f"{line}\n" for line in lines))


def _document(document: Any) -> Sample:
    """A JSON list, or a log whose samples are such a list."""
    steps = [] if isinstance(document, list) else [key for key in KEYS if key in document]
    if steps == ["results"]:
        steps = ["results", "results"]

    def write(out: Path, new: list[Any]) -> None:
        whole = copy.deepcopy(document)
        if not steps:
            whole = new
        else:
            _at(whole, steps[:-1])[steps[-1]] = new
        out.write_text(json.dumps(whole))

    return Sample(_at(document, steps), write)


KEYS = ("samples", "results")


def _delimited(path: Path) -> Sample:
    encoding = "utf-16" if path.name.startswith("utf-16") else "utf-8"
    text = path.read_text(encoding=encoding)
    before = text[: text.index("\n") + 1] if text.startswith("sep=") else ""
    text = text.removeprefix(before)
    mark = max(",\t;|", key=text.partition("\n")[0].count)
    header, *rows = csv.reader(io.StringIO(text), delimiter=mark)

    def write(out: Path, new: list[Any]) -> None:
        made = io.StringIO()
        csv.writer(made, delimiter=mark, lineterminator="\n").writerows([header, *new])
        out.write_text(before + made.getvalue(), encoding=encoding)

    rows = [row for row in rows if any(row)]
    return Sample(rows, write, "line", 3 if before else 2)


def _archive(path: Path) -> Sample:
    """The first file of an archive; the others stay."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    first, *_ = members

    def write(out: Path, new: list[Any]) -> None:
        lines = "".join(json.dumps(record) + "\n" for record in new)
        with zipfile.ZipFile(out, "w") as archive:
            for name, text in (members | {first: lines}).items():
                archive.writestr(name, text)

    return Sample([json.loads(line) for line in members[first].splitlines()], write)


def _parquet(path: Path) -> Sample:
    table = parquet.read_table(path)

    def write(out: Path, new: list[Any]) -> None:
        parquet.write_table(pa.Table.from_pylist(new, schema=table.schema), out)

    return Sample(table.to_pylist(), write, "row")


def _at(record: Any, path: list[Any]) -> Any:
    for step in path:
        record = record[step]
    return record


NEEDED: dict[str, list[Any]] = {  # by file: what each record must have
    "label-studio.json": ["annotations", 0, "completed_by"],
    "label-studio-min.json": ["annotator"],
    "argilla.json": ["responses", "sentiment", 0, "value"],
    "argilla-flat.json": ["sentiment.responses.users"],
    "prodigy-choice.jsonl": ["_input_hash"],
    "prodigy-binary.jsonl": ["_task_hash"],
    "batch-api.jsonl": ["response", "body", "model"],
    "batch-api-messages.jsonl": ["result", "message", "content"],
    "mt-bench.jsonl": ["winner"],
    "arena-hard.jsonl": ["games", 0, "score"],
    "inspect.json": ["scores"],
    "promptfoo.json": ["gradingResult"],
    "doccano.zip": ["label"],
    "list-columns.parquet": ["annotators"],
    "judges.jsonl": ["item"],
    "records.json": ["worker"],
}
ANY_LABEL = {"argilla.json"}  # the value is a label, of whatever type
DELIMITED = (
    *("mturk.csv", "mturk-task-answers.csv", "mturk-items.csv", "toloka.tsv"),
    *("label-studio-min.csv", "judges-order.csv", "utf-16.csv", "pipes.txt", "sep.csv", "wide.csv"),
)
FILES = (*NEEDED, *DELIMITED)


def refused(path: Path) -> str:
    """Run fuse, which must end with exit code 2 and no output; return what it says."""
    options = (
        (
            "--set",
            "wide",
        )
        if path.name == "wide.csv"
        else ()
    )
    result = tiebreak("fuse", str(path), *options)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return str(result.stderr)


def without(name: str, record: Any) -> Any:
    """Return a record that lacks what it needs; a row of text lacks its last field."""
    record = copy.deepcopy(record)
    if name in DELIMITED:
        return record[:-1]
    *path, key = NEEDED[name]
    if name.endswith(".parquet"):
        _at(record, path)[key] = None
    else:
        del _at(record, path)[key]
    return record


def whole_records(name: str, sample: Sample) -> list[Any]:
    """Return the records that are answers: some stand for what is dropped."""
    if name in DELIMITED:
        return sample.records
    return [record for record in sample.records if _has(record, NEEDED[name])]


def _has(record: Any, path: list[Any]) -> bool:
    try:
        is_used = record.get("answer") not in ("ignore", "reject") and not record.get("error")
        return _at(record, path) is not None and is_used
    except (KeyError, TypeError, IndexError):
        return False


def test_every_format_is_broken_here(data: Path) -> None:
    opened = (plain.open_source(data / name) for name in FILES)
    found = {form.name for file in opened if (form := formats.format_of(file, None))}
    of_lines = {"conll"}  # no records: broken in test_spans.py
    assert found | of_lines == {form.name for form in formats.FORMATS}


@pytest.mark.parametrize("name", FILES)
def test_a_record_lacks_what_it_needs(data: Path, tmp_path: Path, name: str) -> None:
    sample = load(data / name)
    records = whole_records(name, sample)[:4]
    records[2] = without(name, records[2])
    sample.write(tmp_path / name, records)
    said = refused(tmp_path / name)
    assert name in said
    assert f"{sample.noun} {sample.first + 2}" in said
    if name in NEEDED and not name.endswith(".parquet"):
        assert any(words in said for words in (f"{NEEDED[name][-1]!r} is missing", "has no"))


@pytest.mark.parametrize("name", FILES)
def test_one_of_ten_thousand_lacks_what_it_needs(data: Path, tmp_path: Path, name: str) -> None:
    sample = load(data / name)
    whole = whole_records(name, sample)
    records = [whole[i % len(whole)] for i in range(MANY)]
    records[BROKEN] = without(name, records[BROKEN])
    sample.write(tmp_path / name, records)
    said = refused(tmp_path / name)
    assert name in said
    number = sample.first + BROKEN
    assert f"{sample.noun} {number:,}" in said or f"{sample.noun} {number}" in said


@pytest.mark.parametrize("name", [name for name in NEEDED if name not in ANY_LABEL])
@pytest.mark.parametrize("wrong", [1.5, True, {"a": 1}, [{"b": 2}], [None]], ids=repr)
def test_a_value_of_the_wrong_type(data: Path, tmp_path: Path, name: str, wrong: Any) -> None:
    if name.endswith(".parquet"):
        pytest.skip("columns of Parquet have one type")
    if name == "batch-api-messages.jsonl" and wrong == [{"b": 2}]:
        pytest.skip("a part of a message may be no text")
    if name in ("judges.jsonl", "records.json") and isinstance(wrong, float | bool):
        pytest.skip("an id may be a number")
    sample = load(data / name)
    records = whole_records(name, sample)[:4]
    records[2] = copy.deepcopy(records[2])
    *path, key = NEEDED[name]
    _at(records[2], path)[key] = wrong
    sample.write(tmp_path / name, records)
    said = refused(tmp_path / name)
    assert name in said
    assert any(words in said for words in ("record 3", "row 3", "line 3"))


@pytest.mark.parametrize("name", FILES)
def test_the_file_ends_in_the_middle_of_a_record(data: Path, tmp_path: Path, name: str) -> None:
    sample = load(data / name)
    if name in DELIMITED:
        last = sample.records[-1]
        sample.write(tmp_path / name, [*sample.records[:-1], last[: len(last) // 2]])
    else:
        whole = (data / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: int(len(whole) * 0.9)])
    said = refused(tmp_path / name)
    assert name in said
    if not name.endswith((".zip", ".parquet")):
        assert any(noun in said for noun in (", record ", ", line "))


# Whatever a record holds


def key_paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a record; of lists, to the first."""
    if isinstance(value, dict):
        for key in value:
            yield (*at, key)
            yield from key_paths(value[key], (*at, key))
    elif isinstance(value, list) and value:
        yield (*at, 0)
        yield from key_paths(value[0], (*at, 0))


@pytest.mark.parametrize("wrong", ["left out", None, 1.5, True, [], {}, [1], "x"], ids=repr)
@pytest.mark.parametrize("name", [name for name in NEEDED if ".json" in name])
def test_no_value_of_any_key_ends_in_an_error_of_python(
    data: Path, tmp_path: Path, name: str, wrong: Any
) -> None:
    sample = load(data / name)
    for path in key_paths(sample.records[2]):
        records = copy.deepcopy(sample.records)
        holder = _at(records[2], list(path[:-1]))
        if wrong == "left out":
            del holder[path[-1]]
        else:
            holder[path[-1]] = wrong
        sample.write(tmp_path / name, records)
        said = problem_of(tmp_path / name)
        assert said is None or name in said, path


def problem_of(path: Path) -> str | None:
    """Read a file; return what is wrong with it, None where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        try:
            read_export(path)
        except tb.TiebreakError as error:
            return str(error)
    return None
