"""What errors and notes say: one case of each code, so that each sentence is seen once."""

from __future__ import annotations

import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import tiebreak as tb
from tiebreak import tables
from tiebreak.cli.convert import convert
from tiebreak.data import Responses
from tiebreak.errors import Coded, InputNote, TiebreakError
from tiebreak.tables import export, locks, messages, source

HEADER = "task,worker,label\n"
ROWS = HEADER + "a,ann,x\nb,ann,y\n"
CROWD = Responses.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
LABELS = tb.Labels.from_probabilities(
    tb.Responses.from_rows([("1", "w", "x")]).tasks, CROWD.classes, np.eye(2)[:1]
)
Do = Callable[[Path], Any]


def read(name: str, content: str | bytes, **options: Any) -> Do:
    """Read responses of a file with this content."""

    def do(folder: Path) -> Any:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return tables.read_responses(folder / name, **options)

    return do


def of(given: Any, **options: Any) -> Do:
    """Read responses of something that is no file."""
    return lambda _: tables.read_responses(given, **options)


def rows(header: str, /, *values: str, **options: Any) -> Do:
    """Read responses of a CSV file."""
    return read("r.csv", "\n".join((header, *values)) + "\n", **options)


def files(**contents: str) -> Do:
    """Read responses of several files, whose names have an underscore in place of the dot."""

    def do(folder: Path) -> Any:
        paths = [folder / name.replace("_", ".") for name in contents]
        for path, content in zip(paths, contents.values(), strict=True):
            path.write_text(content)
        return tables.read_responses(paths)

    return do


def column(**values: Any) -> Do:
    """Read responses of two rows, some columns of which are given."""
    columns = {"task": ["a", "b"], "worker": ["w", "w"], "label": ["x", "y"]}
    return of(columns | values)


def records(*given: Any, **options: Any) -> Do:
    """Read responses of a JSON list."""
    return read("r.json", json.dumps(list(given)), **options)


def pairs(*rows: tuple[Any, ...], **options: Any) -> Do:
    """Read verdicts on pairs."""
    columns = dict(
        zip(("first", "second", "verdict"), map(list, zip(*rows, strict=True)), strict=True)
    )
    return lambda _: tb.BradleyTerry(**options).fit(columns)


def studio(*results: Any, **more: Any) -> dict[str, Any]:
    """Make a task of Label Studio."""
    answers = [{"completed_by": 1, "result": list(results)}]
    return {"id": 1, "data": {"text": "t"}, "annotations": answers} | more


def choice(label: Any, name: str = "q", kind: str = "choices") -> dict[str, Any]:
    return {"from_name": name, "to_name": "t", "type": kind, "value": {kind: label}}


def region(begin: int, end: int) -> dict[str, Any]:
    value = {"start": begin, "end": end, "labels": ["X"]}
    return {"from_name": "ner", "to_name": "t", "type": "labels", "value": value}


SPANS: Any = tables.read_spans(
    {
        **{name: ["a"] for name in ("sequence", "first", "last")},
        "label": ["X"],
        "begin": [0],
        "end": [1],
        "probability": [0.5],
    }
)


def convert_tokens(folder: Path) -> None:
    """Ask for the tokens of a file without spans."""
    (folder / "r.csv").write_text("task,worker,label\na,w,x\n")
    convert([str(folder / "r.csv")], str(folder / "o.csv"), sequences_out=str(folder / "t.csv"))


def known(label: str) -> dict[str, Any]:
    return {"completed_by": 1, "ground_truth": True, "result": [choice([label])]}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _touched(path: Path) -> Path:
    path.touch()
    return path


def batch(content: str) -> dict[str, Any]:
    body = {"model": "m", "choices": [{"message": {"content": content}}]}
    return {"custom_id": "1", "response": {"body": body}}


def parquet_file() -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": [1]}), out)
    return out.getvalue()


def archive(**contents: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, text in contents.items():
            file.writestr(name.replace("_", "."), text)
    return out.getvalue()


def broken_archive() -> bytes:
    data = bytearray(archive(ann_jsonl='{"id": 1, "label": ["a"]}\n'))
    data[data.index(b'"id"')] ^= 1  # the checksum tells
    return bytes(data)


def dataset(**attributes: Any) -> Any:
    kind = type("Dataset", (), attributes)
    kind.__module__ = "datasets.fake"
    return kind()


def packed(folder: Path, **changed: Any) -> Any:
    """Write packed responses, change what they say of themselves, and read them."""
    tables.write_responses(folder / "x.tb", CROWD)
    about = json.loads((folder / "x.tb" / "about.json").read_text()) | changed
    (folder / "x.tb" / "about.json").write_text(json.dumps(about))
    return tables.read_responses(folder / "x.tb")


def many(folder: Path) -> Any:
    """Read several Parquet files of which the second orders its categories differently."""
    for name, order in (("p1", ["x", "y"]), ("p2", ["y", "x"])):
        codes = pa.array([0, 1], pa.int8())
        label = pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=True)
        table = pa.table({"task": [f"{name}a", "b"], "worker": [name, name], "label": label})
        parquet.write_table(table, folder / f"{name}.parquet")
    return tables.read_responses(folder)


def twice(folder: Path) -> Any:
    with locks.Lock(folder / "x.tb", "a test"):
        locks.Lock(folder / "x.tb", "another")


def with_texts(folder: Path, target: str) -> Any:
    with export.writing_texts(str(folder / target)):
        pass


def patched(name: str, value: Any, do: Do) -> Do:
    def run(folder: Path) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(name, value)
            return do(folder)

    return run


def forbidden(*_: Any, **__: Any) -> Any:
    raise PermissionError(13, "Permission denied")


def failing(*_: Any, **__: Any) -> Any:
    raise OSError(5, "Input/output error")


def emptied(folder: Path) -> Any:
    (folder / "p1.csv").write_text(ROWS)
    (folder / "p2.csv").write_text(ROWS)
    opened = tables.open_tables({"responses": folder}, {})["responses"]
    (folder / "p1.csv").write_text("")
    return opened.read(tables.read_responses)


PAIR = {"question_id": 1, "model_a": "m", "model_b": "n", "judge": "j"}
ARGILLA = {"id": 1, "fields": {}, "suggestions": {}}
WIDE = "task,ann,bob\na,x,y\nb,y,y\n"
PRODIGY = {"_input_hash": 1, "_task_hash": 1, "answer": "accept"}

CASES: dict[str, Do] = {
    "address-empty": lambda f: tables.read_responses(f"file://{f}"),
    "file-emptied": emptied,
    "file-empty": read("r.csv", ""),
    "file-missing": lambda f: tables.read_responses(f / "r.csv"),
    "file-name-empty": of(""),
    "file-named-twice": lambda f: tables.read_responses(
        [f, f] if (f / "a.csv").write_text(ROWS) else []
    ),
    "file-unreadable": of("a\0b"),
    "foreign-file": read("r.xlsx", b"ARROW1\0\0"),
    "gzip-broken": read("r.gz", gzip.compress(b"x" * 99)[:-4]),
    "keys-in-address": of("s3://key:secret@bucket/x.csv"),
    "no-file-name": lambda _: source.find_files([1]),
    "no-match": lambda f: tables.read_responses(f / "*.csv"),
    "no-tables": lambda f: tables.read_responses(f),
    "not-utf-8": read("r.csv", HEADER.encode() + b"\xff,w,x\n"),
    "nul-bytes": read("r.csv", b"\0\0"),
    "packed-among-tables": lambda f: (
        tables.write_responses(f / "x.tb", CROWD),
        (f / "p.csv").write_text(ROWS),
        tables.read_responses(f),
    ),
    "separator-unknown": read("r.csv", "sep=^\n" + ROWS),
    "some-files-empty": files(a_csv=ROWS, b_csv=HEADER),
    "stdin-among-files": of(["-", "b.csv"]),
    "stdin-closed": patched("sys.stdin", None, of("-")),
    "utf-16-broken": read("r.csv", b"\xff\xfea"),
    "bad-json": read("r.jsonl", '{"task": 1 2}'),
    "bad-row": of([("a", "w")]),
    "csv-broken": rows("task,worker,label", '"a"b,w'),
    "half-character": column(task=["\ud800", "b"]),
    "matrix-as-rows": of(np.array([[0, 0, 0], [1, 0, 1]])),
    "mixed-types": column(task=["a", 1]),
    "no-column": column(task="ab"),
    "no-delimiter": read("r.csv", "x" * 300_000),
    "no-frame": of(pa.chunked_array([[1, 2]])),
    "no-id": column(task=[("a", 1), ("b", 2)]),
    "no-object": read("r.json", '[{"a": 1}, 2]'),
    "no-rows": read("r.csv", HEADER),
    "no-table": of(5),
    "other-category-order": many,
    "other-kind": files(
        a_csv=ROWS, b_jsonl='{"task": 1, "worker": "w", "label": "x"}\n{"task": 2}\n'
    ),
    "other-type-of-ids": of([(1, "w", "x")], tasks=["t"]),
    "parquet-broken": read("r.parquet", b"PAR1 no"),
    "quote-unclosed": rows(HEADER.strip(), 'a,w,"x'),
    "ragged-row": rows(HEADER.strip(), "a,w"),
    "spaces-stripped": rows(HEADER.strip(), "a ,w,x"),
    "table-in-one-object": read("r.json", '{"task": ["a", "b"], "worker": ["v", "w"]}'),
    "unequal-columns": column(task=["a"]),
    "unfit-values": column(task=[10**30, 1]),
    "column-in-one-file": files(a_csv=ROWS, b_csv="task,worker,label,weight\na,w,x,1\n"),
    "column-missing": of({"task": ["a"], "label": ["x"]}),
    "columns-alike": rows("task,task,worker,label", "a,b,w,x"),
    "columns-of-packed": lambda f: (
        tables.write_responses(f / "x.tb", CROWD),
        tables.open_tables({"responses": f / "x.tb"}, {"task": "item"}),
    ),
    "columns-read-as": rows("item,worker,label", "a,w,x"),
    "header-missing": rows("a,w,x", "b,w,y"),
    "idle-option": rows(HEADER.strip(), "a,w,x", question="q"),
    "list-of-names": rows(HEADER.strip(), "a,w,x", task_columns="task"),
    "named-twice": rows(HEADER.strip(), "a,w,x", task_columns=["task"], columns={"task": "task"}),
    "no-such-column": rows(HEADER.strip(), "a,w,x", columns={"task": "itm"}),
    "two-columns": rows("item,question,worker,label", "a,b,w,x"),
    "wide-found": read("r.csv", WIDE),
    "wide-idle-tasks": read("r.csv", WIDE + "c,,\n", wide=True),
    "wide-read": read("r.csv", WIDE, wide=True),
    "wide-role": read("r.csv", WIDE, wide=True, columns={"label": "ann"}),
    "wide-shape": of(np.zeros(3), wide=True),
    "wide-strangers": rows("task,ann,bob,text", "a,x,x,one", "b,y,y,two", wide=True),
    "wide-task-twice": read("r.csv", WIDE + "a,x,x\n", wide=True),
    "wide-without-workers": rows("task", "a", wide=True),
    "answers-read": records(studio(choice(["x"]))),
    "archive-broken": read("d.zip", broken_archive()),
    "argilla-lengths": records({"id": 1, "q.responses": ["x"], "q.responses.users": []}),
    "bad-pattern": records(batch("x"), label_pattern="("),
    "bad-pointer": records(batch("x"), label_pointer="x"),
    "column-known": records(studio(choice(["x"])), columns={"task": "id"}),
    "doccano-without-users": records({"id": 1, "label": ["a"], "Comments": []}),
    "key-missing": records({"data": {}, "annotations": []}),
    "known-twice": records(studio(annotations=[known("x")]), studio(annotations=[known("y")])),
    "lists-unequal": records({"id": 1, "annotators": ["a", "b"], "labels": ["x"]}),
    "mturk-json": rows("HITId,WorkerId,Answer.taskAnswers", "1,A,["),
    "no-answers": records(studio() | {"annotations": []}),
    "no-class": records(studio(choice([{"a": 1}]))),
    "no-gold": lambda f: (
        (f / "r.json").write_text(json.dumps([studio(choice(["x"]))])),
        tables.read_gold(f / "r.json"),
    ),
    "no-label-in-text": records(batch("a long\nprose")),
    "no-list-of-workers": records(
        {"id": 1, "annotators": ["a"], "labels": ["x"]}, {"id": 2, "labels": ["x"]}
    ),
    "no-question": records(studio(choice(["x"])), question="other"),
    "no-records-of-format": of({"task": ["a"]}, format="mturk"),
    "no-winner": records(PAIR | {"winner": "nobody"}),
    "no-worker": rows("HITId,WorkerId,Answer.x", "1,,x"),
    "null-among-labels": records(studio(choice([None]))),
    "object-expected": records(studio() | {"annotations": [7]}),
    "pattern-and-pointer": records(batch("x"), label_pattern="x", label_pointer="/x"),
    "prodigy-answer": records(PRODIGY | {"answer": "maybe", "label": "x"}),
    "several-labels": records(studio(choice(["x", "y"]))),
    "several-questions": records(studio(choice(["x"], "q"), choice(["y"], "p"))),
    "spans-read": records(studio(region(0, 1))),
    "spans-without-text": records(PRODIGY | {"spans": [{"start": 0, "end": 1, "label": "X"}]}),
    "span-outside-text": records(studio(region(0, 9))),
    "spans-overlap": records(studio(region(0, 2), region(1, 3), data={"text": "a b"})),
    "spans-nested": records(
        studio(region(0, 2), region(1, 3), data={"text": "a b"}), nested="longest"
    ),
    "spans-without-token": records(studio(region(0, 1), region(1, 2), data={"text": "ab"})),
    "tags-turned": read("a.conll", "Ada I-X\nmet O\n"),
    "tokens-differ": files(a_conll="x O\ny O\n", b_conll="x O\nz O\n"),
    "tokens-dropped": files(a_conll="x O\n" * 30 + "y O\n", b_conll="x O\n" * 30 + "z O\n"),
    "conll-line": read("a.conll", "Ada B-X\nmet\n"),
    "conll-no-tags": read("a.conll", "Ada noun\nmet verb\n"),
    "no-spans-in-file": lambda f: convert_tokens(f),
    "spans-need-texts": lambda f: export.write_spans(f / "o.json", {}, "prodigy"),
    "texts-of-other-spans": lambda f: export.write_spans(
        f / "o.json", SPANS, "prodigy", texts={"b": "x"}
    ),
    "no-span-below": lambda f: export.write_spans(
        f / "o.json", SPANS, "prodigy", texts={"a": "x"}, below=0.1
    ),
    "spans-of-no-place": lambda _: tables.read_spans(
        {name: ["a"] for name in ("sequence", "first", "last", "label")}
    ),
    "task-pattern-groups": records(batch("x"), task_pattern="x"),
    "task-pattern-misses": records(batch("x"), task_pattern="(y)"),
    "toloka-task": rows("INPUT:t,OUTPUT:l", ",x"),
    "tool-and-table": files(a_json=json.dumps([studio(choice(["x"]))]), b_csv=ROWS),
    "value-empty": records(PAIR | {"judge": "", "winner": "tie"}),
    "wrong-type": records(studio() | {"annotations": 7}),
    "cannot-turn": rows("task,worker,order,label", "a,w,p,A", "a,v,q,B", turned=False),
    "gold-in-file": records(
        studio(choice(["x"])),
        studio(
            id=2, annotations=[{"completed_by": 1, "ground_truth": True, "result": [choice(["x"])]}]
        ),
    ),
    "label-for-nothing": rows(HEADER.strip(), "a,w,NA", "b,w,x"),
    "labels-alike": rows(HEADER.strip(), "a,w,cat", "b,w,Cat"),
    "labels-folded": rows(HEADER.strip(), "a,w,cat", "b,w,Cat", fold_labels=True),
    "many-classes": of([(i, "w", f"text {i}") for i in range(60)]),
    "no-order": rows("task,worker,label,position", *(f"a{i},w,x,{i}" for i in range(9))),
    "number-twins": rows(HEADER.strip(), "1,w,x", "1.0,w,y"),
    "order-found": rows("task,worker,order,label", "a,w,AB,A", "a,w,BA,B"),
    "order-not-told": rows("task,worker,order,label", "a,w,p,first", "a,v,q,second"),
    "orders-as-workers": rows("task,worker,order,label", "a,w,1,x", "a,w,2,y", repeats="last"),
    "packed-rows": lambda f: tables.read_every_row(CROWD),
    "rows-against-time": rows("task,worker,label,date", "a,w,x,2024-02-02", "a,w,y,2024-01-01"),
    "soft-votes": rows("task,worker,probability_x,probability_y", "a,w,0.4,0.6"),
    "turned-back": rows("task,worker,order,label", "a,w,AB,first", "a,v,BA,second"),
    "turned-without-order": rows(HEADER.strip(), "a,w,x", turned=True),
    "weights-found": rows("task,worker,label,weight", "a,w,x,2"),
    "no-chance": lambda _: tables.read_selection({"a": 2}),
    "no-column-of-class": lambda _: tables.read_labels(
        {"task": ["a"], "label": ["x"], "probability_y": [1.0]}
    ),
    "no-probability": lambda _: tables.read_labels([("a", "x", 2)]),
    "nothing-to-show": lambda _: tables.read_contents({"task": ["a"]}),
    "odd-sums": lambda _: tables.read_labels(
        {"task": ["a"], "label": ["x"], "probability_x": [0.5]}
    ),
    "feature-not-finite": lambda _: tables.read_features({"task": ["a"], "x": [float("nan")]}),
    "features-like-ids": lambda _: tables.read_features({"task": range(99), "x": range(99)}),
    "features-no-matrix": lambda _: tables.read_features({"a": [1.0], "b": "x"}),
    "features-twice": lambda _: tables.read_features({"task": ["a", "a"], "x": [1, 2]}),
    "features-without-task": lambda _: tables.read_features({"task": ["a", None], "x": [1, 2]}),
    "no-features": lambda _: tables.read_features({"task": ["a"]}),
    "npy-without-tasks": lambda _: tables.read_features("x.npy"),
    "tasks-without-features": lambda _: tables.read_features({"task": ["z"], "x": [1]}).on(
        CROWD.tasks
    ),
    "text-among-numbers": lambda _: tables.read_features({"task": ["a"], "x": [1], "y": ["z"]}),
    "no-baseline": records({"uid": 1, "model": "m", "judge": "j", "games": [{"score": "A>B"}]}),
    "item-against-itself": pairs(("m", "m", "first")),
    "no-verdict": pairs(("m", "n", "perhaps")),
    "no-side": pairs(("m", "n", "first"), covariates=["length"]),
    "verdicts-empty": pairs(("m", "n", "first"), ("m", "n", None)),
    "verdicts-plain": pairs(("m", "n", "A>>B")),
    "texts-twice": lambda _: tables.read_texts([("a", "x"), ("a", "y")]),
    "two-labels": lambda _: tables.read_labels([("a", "x"), ("a", "y")]),
    "value-missing": lambda _: tables.read_tasks(["a", None]),
    "counts-shape": lambda _: tables.write_workers(
        "-", tb.DawidSkene().fit(CROWD), counts=np.zeros((9, 9), dtype=int)
    ),
    "label-studio-new-tasks": lambda f: export.write_export(f / "o.json", LABELS, "label-studio"),
    "name-unwritable": lambda f: tables.write_table(f / "r.xlsx", {"a": [1]}),
    "no-known-labels": lambda f: export.write_known(str(f / "g.csv"), "r.csv", {}),
    "no-task-labelled": lambda f: export.write_export(
        f / "o.json", LABELS, "label-studio", texts=[studio(id="zz")]
    ),
    "no-texts": lambda f: with_texts(f, "t.csv"),
    "not-written": patched(
        "os.fsync", failing, lambda f: tables.write_table(f / "r.csv", {"a": [1]})
    ),
    "stdout-closed": patched("sys.stdout", None, lambda _: tables.write_table("-", {"a": [1]})),
    "target-folder-missing": lambda f: tables.write_table(f / "no" / "r.csv", {"a": [1]}),
    "target-is-folder": lambda f: tables.write_table(f, {"a": [1]}),
    "tasks-left-out": lambda f: export.write_export(
        f / "o.json",
        tb.Labels.from_probabilities(CROWD.tasks, CROWD.classes, np.eye(2)),
        "label-studio",
        texts=[studio(id="a")],
    ),
    "texts-format": lambda f: with_texts(f, "t.parquet"),
    "texts-of-other-tasks": lambda f: export.write_export(
        f / "o.json", LABELS, "prodigy", texts={"zz": "t"}
    ),
    "write-protected": patched(
        "os.access",
        lambda *_: False,
        lambda f: tables.write_table(_touched(f / "r.csv"), {"a": [1]}),
    ),
    "array-folder-damaged": lambda f: packed(f, empty=9),
    "array-folder-foreign": lambda f: (
        tables.write_table(_made(f / "x.tb") / "thesis.csv", {"a": [1]}),
        tables.write_responses(f / "x.tb", CROWD),
    ),
    "array-folder-is-file": lambda f: (tables.write_responses(_touched(f / "x.tb"), CROWD),),
    "array-folder-missing": lambda f: tables.read_responses(f / "x.tb"),
    "array-folder-of-other-kind": lambda f: packed(f, what="soup"),
    "array-folder-version": lambda f: packed(f, version=99),
    "in-use": twice,
    "no-locks": patched(
        "fcntl.flock",
        lambda *_: (_ for _ in ()).throw(OSError(38, "Function not implemented")),
        lambda f: locks.Lock(f / "x", "a test"),
    ),
    "not-locked": patched("fcntl.flock", failing, lambda f: locks.Lock(f / "x", "a test")),
}


def test_each_code_has_a_case() -> None:
    assert set(CASES) == set(messages.MESSAGES)


@pytest.mark.parametrize("code", CASES)
def test_a_code_is_said(tmp_path: Path, code: str) -> None:
    said: list[Coded] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            CASES[code](tmp_path)
        except TiebreakError as error:
            said.append(error)
    said += [each.message for each in caught if isinstance(each.message, InputNote)]
    found = [each for each in said if each.code == code]
    assert found, [(each.code, str(each)) for each in said]
    text = str(found[0])
    assert not re.search(r"\{[a-z_]+\}", text), text
