"""A record that is not as it should be: exit 2, with the file, the record and the cause."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import tiebreak
from tables.formats.answers import read
from tables.said import refused

import tiebreak as tb

Change = Callable[[Any], Any]
MANY = 10_000

REMOVED: dict[str, list[Any]] = {  # by file: a key that each record must have, as a path
    "label-studio.json": ["annotations"],
    "label-studio-min.json": ["annotator"],
    "argilla.json": ["responses", "sentiment", 0, "user_id"],
    "argilla-flat.json": ["sentiment.responses.users"],
    "prodigy-choice.jsonl": ["answer"],
    "prodigy-binary.jsonl": ["label"],
    "batch-api.jsonl": ["response", "body", "choices"],
    "batch-api-messages.jsonl": ["result", "message", "model"],
    "mt-bench.jsonl": ["judge"],
    "arena-hard.jsonl": ["model"],
}


def _records(path: Path) -> list[Any]:
    text = path.read_text()
    return (
        json.loads(text) if path.suffix == ".json" else [json.loads(x) for x in text.splitlines()]
    )


def _written(path: Path, records: list[Any]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(records))
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _at(record: Any, path: list[Any]) -> Any:
    for step in path:
        record = record[step]
    return record


def _refused(path: Path, *options: str) -> str:
    """Run fuse, which must end with exit code 2; return what it says."""
    command = ["fuse", str(path), *options]
    result = tiebreak(*command)
    assert result.exit_code == 2, result.stderr
    assert not result.stdout
    return str(result.stderr)


def _many(records: list[Any]) -> list[Any]:
    """Repeat records until there are many, with copies that can be changed."""
    times = -(-MANY // len(records))
    return json.loads(json.dumps((records * times)[:MANY]))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", REMOVED)
def test_a_key_is_missing(data: Path, tmp_path: Path, name: str) -> None:
    records = _records(data / name)
    *path, key = REMOVED[name]
    del _at(records[2], path)[key]
    said = _refused(_written(tmp_path / name, records))
    assert f"{name}, record 3: " in said
    assert f"{key!r} is missing" in said


@pytest.mark.parametrize("name", REMOVED)
def test_a_value_has_the_wrong_type(data: Path, tmp_path: Path, name: str) -> None:
    records = _records(data / name)
    *path, key = REMOVED[name]
    _at(records[2], path)[key] = 1.5
    said = _refused(_written(tmp_path / name, records))
    assert f"{name}, record 3: {key!r} must be " in said
    assert "got 1.5" in said


@pytest.mark.parametrize("name", REMOVED)
def test_one_of_many_records_is_broken(data: Path, tmp_path: Path, name: str) -> None:
    records = _many(_records(data / name))
    *path, key = REMOVED[name]
    at = next(i for i in range(7_776, MANY) if _has(records[i], REMOVED[name]))
    del _at(records[at], path)[key]
    said = _refused(_written(tmp_path / name, records))
    assert f"{name}, record {at + 1:,}: " in said


def _has(record: Any, path: list[Any]) -> bool:
    try:
        return _at(record, path) is not None and record.get("answer") != "ignore"
    except (KeyError, TypeError, IndexError):
        return False


@pytest.mark.parametrize("name", REMOVED)
def test_half_a_record(data: Path, tmp_path: Path, name: str) -> None:
    text = (data / name).read_text()
    path = tmp_path / name
    path.write_text(text[: int(len(text) * 0.9)])
    said = _refused(path)
    assert f"{name}, record " in said
    assert "the file ends inside it" in said or "is not JSON" in said


@pytest.mark.parametrize("name", REMOVED)
def test_a_record_that_is_no_object(data: Path, tmp_path: Path, name: str) -> None:
    records = _records(data / name)
    records[1] = 7
    said = _refused(_written(tmp_path / name, records))
    assert f"{name}, record 2" in said
    assert ": expected a JSON object, got int" in said


@pytest.mark.parametrize("name", ["mturk.csv", "toloka.tsv", "label-studio-min.csv"])
def test_a_row_is_cut(data: Path, tmp_path: Path, name: str) -> None:
    lines = (data / name).read_text().splitlines()
    mark = "\t" if name.endswith("tsv") else ","
    lines[3] = lines[3].rpartition(mark)[0]
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    said = _refused(path)
    assert f"{name}, line 4: expected {len(lines[0].split(mark))} columns" in said


def test_one_row_of_many_names_no_worker(data: Path, tmp_path: Path) -> None:
    header, *rows = (data / "mturk.csv").read_text().splitlines()
    many = (rows * MANY)[:MANY]
    many[8_000] = many[8_000].replace('"ANN"', '""').replace('"BOB"', '""').replace('"CAT"', '""')
    path = tmp_path / "mturk.csv"
    path.write_text("\n".join([header, *many]) + "\n")
    assert "mturk.csv, line 8,002: the answer names no worker" in _refused(path)


def test_task_answers_that_are_no_json(data: Path, tmp_path: Path) -> None:
    text = (data / "mturk-task-answers.csv").read_text().replace("[{", "[", 1)
    path = tmp_path / "mturk.csv"
    path.write_text(text)
    assert "mturk.csv, line 2: Answer.taskAnswers is not JSON" in _refused(path)


def test_a_worker_column_that_toloka_left_out(data: Path, tmp_path: Path) -> None:
    text = (data / "toloka.tsv").read_text().replace("ASSIGNMENT:worker_id", "ASSIGNMENT:who")
    path = tmp_path / "toloka.tsv"
    path.write_text(text)
    assert "line 2: 'ASSIGNMENT:worker_id' is missing" in _refused(path)


@pytest.mark.parametrize(
    ("name", "path", "key"),
    [
        ("inspect.json", ["samples", 2], "id"),
        ("promptfoo.json", ["results", "results", 2], "gradingResult"),
    ],
)
def test_a_sample_of_a_log_is_broken(
    data: Path, tmp_path: Path, name: str, path: list[Any], key: str
) -> None:
    log = json.loads((data / name).read_text())
    del _at(log, path)[key]
    file = tmp_path / name
    file.write_text(json.dumps(log))
    assert f"{name}, record 3: {key!r} is missing" in _refused(file)


def test_a_file_in_an_archive_is_broken(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "doccano.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", '{"id": 1, "text": "x", "label": ["a"]}\n')
        archive.writestr("bob.jsonl", '{"id": 1, "text": "x", "label": ["a"]}\n{"id": 2}\n')
    assert "doccano.zip (bob.jsonl), record 2: 'label' is missing" in _refused(path)


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    assert "is an Excel workbook or a zip archive" in _refused(path)


def test_doccano_without_users(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text('{"id": 1, "text": "x", "label": ["a"], "Comments": []}\n')
    assert "does not say who gave which label" in _refused(path)


def test_boxes_in_images_are_refused_by_name(data: Path, tmp_path: Path) -> None:
    text = (data / "label-studio.json").read_text().replace('"choices",', '"rectanglelabels",')
    path = tmp_path / "boxes.json"
    path.write_text(text)
    assert "not one class per task: 'sentiment' (rectanglelabels)" in _refused(path)


def test_two_known_labels_of_a_task_that_differ(data: Path, tmp_path: Path) -> None:
    text = (data / "toloka.tsv").read_text().replace("pos\tpos", "pos\tneg", 1)
    path = tmp_path / "toloka.tsv"
    path.write_text(text)
    said = _refused(path)
    assert "task 't4' is known to be 'pos' here and 'neg' in" in said
    assert "line 14" in said


def test_lists_of_unequal_length(tmp_path: Path) -> None:
    frame = [{"id": 1, "annotators": ["a", "b"], "labels": ["x"]}]
    with refused("lists-unequal", labels="labels"):
        read(frame)


def test_a_list_without_records(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text("[]")
    with refused("no-rows"):
        read(path)


@pytest.mark.parametrize(
    "text",
    ['[{"task": 1} {"task": 2}]', '[{"task": 1},', '[{"task": 1}] x', '[{"task": 1]'],
)
def test_a_list_that_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(text)
    with refused("bad-json", record=1, line=1):
        read(path)


def test_an_odd_separator_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("sep=^\ntask^worker^label\na^b^c\n")
    assert "says that '^' separates its fields" in _refused(path)


def test_a_winner_that_is_neither_model(data: Path, tmp_path: Path) -> None:
    records = _records(data / "mt-bench.jsonl")
    records[4]["winner"] = "nobody"
    path = _written(tmp_path / "pairs.jsonl", records)
    assert "pairs.jsonl, record 5: the winner is 'nobody'" in _refused(path)


def test_errors_after_reading_name_the_record(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text('[{"task": "a", "worker": "w", "label": 1}, {"worker": "w", "label": 1}]')
    with pytest.raises(tb.errors.ResponseError) as caught:
        read(path)
    assert f"{path}, record 2" in str(caught.value)
