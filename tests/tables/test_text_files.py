"""Text files: what is a field, what is missing, which delimiter, which line."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tables.crowd import COLUMNS, ROWS, all_of, rows_of
from tables.said import noted, refused

from tiebreak.data import Responses, ids
from tiebreak.errors import OptionError
from tiebreak.tables import plain, read_gold, read_links, read_responses

HEADER = "task,worker,label\n"
BODY = "".join(",".join(row) + "\n" for row in ROWS)
EXPECTED = all_of(Responses.from_rows(ROWS))
JSON_LINES = "".join(f'{{"task": "{t}", "worker": "{w}", "label": "{k}"}}\n' for t, w, k in ROWS)


def _tsv(text: str) -> str:
    return text.replace(",", "\t")


def _parquet() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(COLUMNS), sink)
    return sink.getvalue()


def _file(folder: Path, content: str | bytes, name: str = "responses.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", ["r.csv", "r.txt", "r", "r.tsv", "r.jsonl", "r.parquet", "r.gz"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("content", [JSON_LINES.encode(), _parquet()], ids=["jsonl", "parquet"])
def test_content_that_speaks_for_itself_wins_over_the_name(
    tmp_path: Path, name: str, packed: bool, content: bytes
) -> None:
    path = _file(tmp_path, gzip.compress(content) if packed else content, name)
    assert all_of(read_responses(path)) == EXPECTED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", HEADER + BODY),
        ("r.CSV", HEADER + BODY),
        ("r", HEADER + BODY),
        ("r.csv", (HEADER + BODY).removesuffix("\n")),
        ("r.csv", "\ufeff" + HEADER + BODY),
        ("r.csv", "\n\n" + HEADER + "\n" + BODY.replace("\n", "\n\n")),
        ("r.csv", (HEADER + BODY).replace("\n", "\r\n")),
        ("r.csv", (HEADER + BODY).replace("\n", "\r")),
        ("r.csv", (HEADER + BODY).replace(",", ";")),
        ("r.csv", _tsv(HEADER + BODY)),
        ("r.tsv", _tsv(HEADER + BODY)),
        ("r.tab", "\ufeff" + _tsv(HEADER + BODY)),
        ("r.csv", '"task","worker","label"\n' + BODY),
        ("r.csv", '" Task ",WORKER,Label\n' + BODY),
        ("r.jsonl", "\ufeff" + JSON_LINES),
        ("r.jsonl", JSON_LINES.replace("\n", "\n\n")),
        ("r.jsonl", JSON_LINES.replace(", ", ",\n ")),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_read_whatever_its_dress(
    tmp_path: Path, name: str, text: str, packed: bool
) -> None:
    content = gzip.compress(text.encode()) if packed else text.encode()
    path = _file(tmp_path, content, name + ".gz" if packed else name)
    assert all_of(read_responses(path)) == EXPECTED


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_the_format_may_be_given(tmp_path: Path, form: str) -> None:
    content = {
        "csv": (HEADER + BODY).encode(),
        "tsv": _tsv(HEADER + BODY).encode(),
        "jsonl": JSON_LINES.encode(),
        "parquet": _parquet(),
    }[form]
    assert all_of(read_responses(_file(tmp_path, content, "r.dat"), format=form)) == EXPECTED


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with refused("wrong-value", OptionError, name="format", value="'xlsx'"):
        read_responses(_file(tmp_path, HEADER + BODY), format="xlsx")


@pytest.mark.parametrize("name", ["r.tsv", "r.tab", "r.TSV"])
def test_a_tsv_file_may_hold_commas(tmp_path: Path, name: str) -> None:
    text = "task,x\tworker,y,z\tlabel\na\tb\tc\n"
    path = _file(tmp_path, text, name)
    found = read_responses(path, columns={"task": "task,x", "worker": "worker,y,z"})
    assert rows_of(found) == [("a", "b", "c")]


class TestFields:
    """In CSV every field is text, and only an empty one is missing."""

    def test_ids_that_look_like_numbers_stay_text(self, tmp_path: Path) -> None:
        path = _file(tmp_path, HEADER + "007,1,1.0\n7,01,1\n")
        with noted("labels-alike", labels=["1", "1.0"]):
            responses = read_responses(path)
        assert rows_of(responses) == [("007", "1", "1.0"), ("7", "01", "1")]

    @pytest.mark.parametrize("word", ["NA", "NaN", "nan", "null", "None", "N/A", "#N/A", "-"])
    @pytest.mark.filterwarnings("ignore:The label:tiebreak.errors.InputNote")
    def test_words_for_nothing_are_words(self, tmp_path: Path, word: str) -> None:
        path = _file(tmp_path, HEADER + f"a,{word},{word}\n{word},w,x\n")
        assert rows_of(read_responses(path)) == [("a", word, word), (word, "w", "x")]

    @pytest.mark.parametrize("nothing", ["", '""'])
    def test_an_empty_label_is_no_answer(self, tmp_path: Path, nothing: str) -> None:
        path = _file(tmp_path, HEADER + f"a,w,{nothing}\nb,w,x\n")
        with noted("empty-labels", n=1):
            responses = read_responses(path)
        assert list(responses.tasks) == ["a", "b"]
        assert rows_of(responses) == [("b", "w", "x")]

    def test_quoted_fields_hold_anything(self, tmp_path: Path) -> None:
        text = HEADER + '"a,b","say ""hi""","two\r\nlines"\n"😀",w,"\r"\n'
        assert rows_of(read_responses(_file(tmp_path, text))) == [
            ("a,b", 'say "hi"', "two\r\nlines"),
            ("😀", "w", "\r"),
        ]

    def test_a_quote_inside_a_plain_field_is_a_character(self, tmp_path: Path) -> None:
        path = _file(tmp_path, HEADER + 'a,w,5" disk\nb,w,x\n')
        assert rows_of(read_responses(path)) == [("a", "w", '5" disk'), ("b", "w", "x")]

    def test_a_record_may_be_longer_than_a_block(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plain, "BLOCK_SIZE", 1 << 10)
        long = "x\n" * 5000
        path = _file(tmp_path, HEADER + f'a,w,"{long}"\nb,w,x\n')
        assert rows_of(read_responses(path)) == [("a", "w", long), ("b", "w", "x")]

    def test_a_name_of_a_column_may_have_several_lines(self, tmp_path: Path) -> None:
        text = '"a very, very\nlong name",task,worker,label\n1,a,w,x\n'
        assert rows_of(read_responses(_file(tmp_path, text))) == [("a", "w", "x")]


class TestTyped:
    """JSON lines and Parquet keep the types of their values."""

    def test_json_numbers_stay_numbers(self, tmp_path: Path) -> None:
        lines = (
            '{"task": 7, "worker": 1.5, "label": true}\n{"task": 8, "worker": 2, "label": false}'
        )
        rows = rows_of(read_responses(_file(tmp_path, lines, "r.jsonl")))
        assert rows == [(7, 1.5, True), (8, 2.0, False)]
        assert [type(value) for value in rows[0]] == [int, float, bool]

    def test_json_text_that_looks_like_a_date_stays_text(self, tmp_path: Path) -> None:
        lines = '{"task": "2020-01-01", "worker": "2020-01-01 10:00:00", "label": "1"}\n'
        expected = [("2020-01-01", "2020-01-01 10:00:00", "1")]
        assert rows_of(read_responses(_file(tmp_path, lines, "r.jsonl"))) == expected

    def test_json_rows_need_not_be_alike(self, tmp_path: Path) -> None:
        lines = (
            '{"worker": "w", "task": "a", "note": [1, {"x": null}]}\n'
            '{"task": "b", "worker": "w", "label": "x", "extra": 5}\n'
            '{"task": "c", "worker": null, "label": "x", "worker": "v"}\n'
        )
        with noted("empty-labels", n=1):
            responses = read_responses(_file(tmp_path, lines, "r.jsonl"))
        assert list(responses.tasks) == ["a", "b", "c"]
        assert rows_of(responses) == [("b", "w", "x"), ("c", "v", "x")]

    def test_ids_of_several_types_are_refused(self, tmp_path: Path) -> None:
        lines = '{"task": "a", "label": "x"}\n{"task": null, "label": "x"}\n{"task": 3}\n'
        path = _file(tmp_path, lines, "g.jsonl")
        with refused("mixed-types", column="task", where=f"{path}, line 1", other=3):
            read_gold(path)

    def test_json_may_not_hold_half_a_character(self, tmp_path: Path) -> None:
        lines = '{"task": "\\ud800", "label": "x"}\n'
        with refused("half-character", text="\ud800"):
            read_gold(_file(tmp_path, lines, "g.jsonl"))

    def test_json_keys_may_first_appear_in_a_later_row(self, tmp_path: Path) -> None:
        lines = (
            '{"left": "a", "right": "b", "link": "must"}\n'
            '{"left": "a", "right": "c", "link": "must", "weight": 2}\n'
        )
        links = read_links(_file(tmp_path, lines, "l.jsonl"))
        assert links.weight is not None
        assert links.weight.tolist()[1] == 2.0

    def test_json_rows_that_are_alike_are_parsed_by_arrow_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plain, "columns_of", None)  # the slow way fails
        path = _file(tmp_path, JSON_LINES + JSON_LINES.replace("t1", "t3"), "r.jsonl")
        with noted("repeats-last"):
            assert read_responses(path).n_tasks == 3

    def test_json_numbers_may_be_nan(self, tmp_path: Path) -> None:
        lines = '{"task": 1, "label": 1.5}\n{"task": 2, "label": NaN}\n'
        with noted("empty-gold", n=1):
            gold = read_gold(_file(tmp_path, lines, "g.jsonl"))
        assert gold.to_dict() == {1: 1.5}

    def test_parquet_keeps_types_and_needs_only_its_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "r.parquet"
        columns: dict[str, Any] = {
            "my.task": pa.array([3, 1], pa.uint8()),
            "worker": pa.array(["w", "v"]).dictionary_encode(),
            "label": pa.array([b"x", b"y"]),
            "nested": pa.array([[1], [2]]),
        }
        parquet.write_table(pa.table(columns), path)
        responses = read_responses(path, columns={"task": "my.task"})
        assert rows_of(responses) == [(3, "w", "x"), (1, "v", "y")]

    def test_a_nested_column_cannot_be_an_id(self, tmp_path: Path) -> None:
        path = tmp_path / "r.parquet"
        parquet.write_table(pa.table({"task": [["a"]], "worker": ["w"], "label": ["x"]}), path)
        with refused("no-id", column="task", value=["a"], where=f"{path}, row 1"):
            read_responses(path)


class TestStandardInput:
    """A dash is standard input."""

    def _pipe(self, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    @pytest.mark.parametrize("content", [(HEADER + BODY).encode(), JSON_LINES.encode(), _parquet()])
    @pytest.mark.parametrize("packed", [False, True])
    def test_every_format_comes_through_a_pipe(
        self, monkeypatch: pytest.MonkeyPatch, content: bytes, packed: bool
    ) -> None:
        self._pipe(monkeypatch, gzip.compress(content) if packed else content)
        assert all_of(read_responses("-")) == EXPECTED

    def test_errors_name_the_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pipe(monkeypatch, b'task,worker,label\n\n"a\nb",w,x\n,w,x\n')
        with refused("no-id-in-row", place="standard input, line 5"):
            read_responses("-")

    def test_standard_input_may_be_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(HEADER + BODY))
        assert all_of(read_responses("-")) == EXPECTED


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(HEADER + "a,w,x\n\nb,,x\n",))
    writer.start()
    with refused("no-id-in-row", place="pipe, line 4"):
        read_responses(path)
    writer.join()


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("g.csv", "task,label\na,x\n,y\n", 3),
        ("g.csv", "\n\ntask,label\n\na,x\n\n\n,y\n", 8),
        ("g.csv", '"ta\nsk",task,label\n1,"a\nb\r\nc\rd",x\n\n2,,y\n', 8),
        ("g.csv", '\ufeff"task\n",label\na,x\n,y\n', 4),
        ("g.tsv", "task\tlabel\r\na,\tx\r\n\ty\r\n", 3),
        ("g.csv", 'task;label\n"a;\n";x\n;y\n', 4),
        ("g.jsonl", '{"task": "a", "label": "x"}\n\n{"task": null, "label": "y"}\n', 3),
        ("g.jsonl", '\ufeff{"task": "a", "label": "x"}\n\n{"label": "y"}\n', 3),
        ("g.jsonl", '{"task": "a",\n "label": "x"}\n{"label": "y"}\n', 3),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_errors_name_the_exact_line(
    tmp_path: Path, name: str, text: str, line: int, packed: bool
) -> None:
    content = gzip.compress(text.encode()) if packed else text.encode()
    path = _file(tmp_path, content, name)
    with refused("no-task-in-gold", place=f"{name}, line {line}"):
        read_gold(path)


def test_lines_are_found_after_pickling_and_guessed_when_the_file_is_gone(tmp_path: Path) -> None:
    path = _file(tmp_path, 'task,label\n"a\nb",x\n\nc,y\n', "g.csv")
    gold = pickle.loads(pickle.dumps(read_gold(path)))
    assert gold.source.where(1) == f"{path}, line 5"
    path.unlink()
    assert gold.source.where(1) == f"{path}, line 3"


def test_rows_of_typed_files_are_counted_from_one(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    parquet.write_table(pa.table({"task": ["a", None], "label": ["x", "y"]}), path)
    with refused("no-task-in-gold", place="g.parquet, row 2"):
        read_gold(path)


def test_a_million_rows_are_parsed_by_arrow_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEADER + "".join(f"t{i % 1000},w{i // 1000},x\n" for i in range(1_000_000))
    path = _file(tmp_path, text)
    seen: list[object] = []

    def look(value: object) -> bool:
        seen.append(value)
        return False

    # The step at which values would be looked at one by one.
    monkeypatch.setattr(ids, "is_missing", look)
    assert read_responses(path).n_responses == 1_000_000
    assert not seen
