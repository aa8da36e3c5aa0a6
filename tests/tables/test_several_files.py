"""Several files are one table: the same responses as of the one file with all their rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import pickle
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs, parquet
from tables.crowd import HARD_IDS, all_of, gold_of, links_of
from tables.said import noted, refused

import tiebreak as tb
from tiebreak import tables
from tiebreak.data import REPEATS, Responses
from tiebreak.errors import FileError, GoldError, InputNote, TiebreakError
from tiebreak.tables import source

HEADER = "task,worker,label\n"
FORMATS = ("csv", "tsv", "jsonl", "parquet", "csv.gz", "semicolons")
NAMES = ("task", "worker", "label", "weight")

Columns = dict[str, list[Any]]


def write(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_columns(path: Path, form: str, columns: Columns) -> str:
    """Write a table in a format; as CSV also with semicolons, and packed with gzip."""
    if form == "semicolons":
        target = path.with_name(f"{path.name}.csv")
        with target.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, delimiter=";", quoting=csv.QUOTE_ALL)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return str(target)
    target = path.with_name(f"{path.name}.{form.removesuffix('.gz')}")
    tables.write_table(target, columns)
    if form.endswith(".gz"):
        packed = target.with_name(f"{target.name}.gz")
        packed.write_bytes(gzip.compress(target.read_bytes()))
        target.unlink()
        return str(packed)
    return str(target)


def everything(responses: Responses) -> tuple[Any, ...]:
    weight = None if responses.weight is None else responses.weight.tolist()
    runs = None if responses.runs is None else responses.runs.to_dict()
    counts = responses.n_empty, responses.n_repeats, responses.is_class_ordered
    return (*all_of(responses), weight, runs, *counts, responses.start.tolist())


def outcome(source: Any, **options: Any) -> Any:
    """Return all that was read, or the words of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        try:
            return everything(tb.read_responses(source, **options))
        except TiebreakError as error:
            return type(error), str(error)


@st.composite
def cut_rows(draw: st.DrawFn) -> tuple[Columns, list[tuple[str, list[str], Columns]]]:
    """Draw columns, and the same in 1 to 5 pieces, each with a format and an order of columns."""
    n = draw(st.integers(1, 14))
    is_text = draw(st.booleans())
    ids = st.sampled_from([*HARD_IDS[:12], "007", "x"] if is_text else [0, 7, -3, 2**40])
    label = st.sampled_from(["y", "n", "maybe"] if is_text else [0, 1, 2])
    columns: Columns = {
        "task": draw(st.lists(ids, min_size=n, max_size=n)),
        "worker": draw(st.lists(ids, min_size=n, max_size=n)),
        "label": draw(st.lists(st.none() | label, min_size=n, max_size=n)),
    }
    columns["label"][draw(st.integers(0, n - 1))] = draw(label)
    if draw(st.booleans()):
        weight = st.sampled_from([0.25, 1, 2, 3.5])
        columns["weight"] = draw(st.lists(weight, min_size=n, max_size=n))
    ends = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    forms = st.sampled_from(FORMATS if is_text else ("jsonl", "parquet"))
    pieces = []
    for low, high in zip([0, *ends], [*ends, n], strict=True):
        form = draw(forms)
        if low == high and form == "jsonl":
            form = "parquet"  # JSON lines without a line have no columns either
        order = draw(st.permutations(list(columns)))
        pieces.append((form, order, {name: columns[name][low:high] for name in order}))
    return columns, pieces


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_rows_cut_into_files_of_any_format_are_the_rows_of_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cut_rows(), st.sampled_from(REPEATS))
    def is_same(drawn: Any, repeats: Any) -> None:
        columns, pieces = drawn
        folder = tmp_path_factory.mktemp("cut")
        one = write_columns(folder / "one", "parquet", columns)
        paths = [
            write_columns(folder / f"p{i}", form, cut) for i, (form, _, cut) in enumerate(pieces)
        ]
        assert outcome(paths, repeats=repeats) == outcome(one, repeats=repeats)

    is_same()


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("more", ["run", "order", "confidence", "group"])
def test_columns_of_juries_are_read_as_in_one_file(tmp_path: Path, more: str) -> None:
    values: Columns = {"run": [1, 2, 3], "order": ["AB", "BA"], "confidence": [0.9, 0.5, 0.7]}
    some = values.get(more, ["big", "small"])
    columns: Columns = {
        "task": [f"t{i // 6}" for i in range(60)],
        "worker": [f"w{i % 3}" for i in range(60)],
        "label": ["yes" if i % 5 else "no" for i in range(60)],
        more: [some[i // 3 % len(some)] for i in range(60)],
    }
    one = write_columns(tmp_path / "one", "csv", columns)
    forms = ("csv", "jsonl", "parquet")  # of which CSV has text, where others have numbers
    cuts = [
        {name: column[20 * i : 20 * i + 20] for name, column in columns.items()} for i in range(3)
    ]
    paths = [write_columns(tmp_path / f"p{i}", forms[i], cuts[i]) for i in range(3)]
    for repeats in REPEATS:
        assert outcome(paths, repeats=repeats) == outcome(one, repeats=repeats)


def test_a_list_a_pattern_a_folder_an_address_and_an_iterator_name_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(
        tmp_path / "in",
        {"p1.csv": HEADER + "a,ann,x\n", "p2.csv": "label,task,worker\ny,b,bob\n"},
    )
    write(folder, {".hidden.csv": "no table", "_SUCCESS": "", "about.txt": "", "info.json": "{}"})
    expected = outcome([("a", "ann", "x"), ("b", "bob", "y")])
    monkeypatch.chdir(folder)
    for each in (
        ["p1.csv", "p2.csv"],
        (Path("p1.csv"), "p2.csv"),
        "p*.csv",
        Path("p?.csv"),
        f"{folder}/p[12].csv",
        folder,
        f"{tmp_path}/**/p*.csv",
        iter(sorted(folder.glob("p*.csv"))),
        f"file://{folder}/p*.csv",
        f"file://{folder}",
        [f"file://{folder}/p1.csv", "p2.csv"],
    ):
        assert outcome(each) == expected
    assert outcome(["p2.csv", "p1.csv"]) == outcome([("b", "bob", "y"), ("a", "ann", "x")])
    assert outcome(f"file://{folder}/p1.csv") == outcome([("a", "ann", "x")])
    assert outcome(["p1.csv"]) == outcome([("a", "ann", "x")])
    Path("p1.csv.gz").write_bytes(gzip.compress(Path("p1.csv").read_bytes()))
    assert outcome(f"file://{folder}/p1.csv.gz") == outcome([("a", "ann", "x")])


def test_a_file_that_is_called_as_a_pattern_is_that_file(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "in",
        {
            "p*.csv": HEADER + "a,ann,x\n",
            "p1.csv": HEADER + "b,ann,y\n",
            "q[1].csv": HEADER + "c,u,x\n",
        },
    )
    assert list(tb.read_responses(folder / "p*.csv").tasks) == ["a"]
    assert list(tb.read_responses(folder / "q[1].csv").tasks) == ["c"]
    assert list(tb.read_responses([folder / "p*.csv", folder / "q[1].csv"]).tasks) == ["a", "c"]


def test_rows_stay_rows() -> None:
    assert tb.read_responses([("a", "ann", "x"), ["b", "ann", "y"]]).n_tasks == 2
    assert tables.read_tasks(["a.csv", "b.csv"]).to_pylist() == ["a.csv", "b.csv"]
    with refused("file-missing", FileError, file=Path("abc"), is_row=True):
        tb.read_responses(["abc", "ann", "cat"])


def test_json_counts_in_a_folder_without_other_tables(tmp_path: Path) -> None:
    rows = [
        {"task": "a", "worker": "ann", "label": "x"},
        {"task": "b", "worker": "bob", "label": "x"},
    ]
    write(tmp_path, {f"p{i}.json": json.dumps([row]) for i, row in enumerate(rows)})
    assert tb.read_responses(tmp_path).n_tasks == 2
    write(tmp_path, {"p.csv": HEADER + "c,cy,x\n"})
    assert list(tb.read_responses(tmp_path).tasks) == ["c"]


def test_what_names_no_table_is_said(tmp_path: Path) -> None:
    with refused("no-tables", FileError, folder=tmp_path, names=[]):
        tb.read_responses(tmp_path)
    write(tmp_path, {"a.txt": "", "b.docx": ""})
    with refused("no-tables", FileError, names=["a.txt", "b.docx"]):
        tb.read_responses(tmp_path)
    with refused("no-match", FileError):
        tb.read_responses(tmp_path / "q*.csv")
    (tmp_path / "sub").mkdir()
    with refused("no-match", FileError):
        tb.read_responses(tmp_path / "s*")
    with refused("file-missing", FileError, file=tmp_path / "nope.csv"):
        tb.read_responses([tmp_path / "a.txt", tmp_path / "nope.csv"])
    with refused("address-empty", FileError, pattern="q*.csv"):
        tb.read_responses(f"file://{tmp_path}/q*.csv")
    with refused("address-empty", FileError):
        tb.read_responses(f"file://{tmp_path}")
    with refused("file-unreadable", FileError):
        tb.read_responses("nosuch://bucket/x.csv")
    with refused("file-named-twice", file=str(tmp_path / "a.txt")):
        tb.read_responses([tmp_path / "a.txt", tmp_path / "sub" / ".." / "a.txt"])
    with refused("stdin-among-files"):
        tb.read_responses([tmp_path / "a.txt", "-"])


def test_empty_files_are_left_out_and_said(tmp_path: Path) -> None:
    one_line = '{"task": "b", "worker": "ann", "label": "y"}'
    write(
        tmp_path,
        {
            "p1.csv": HEADER + "a,ann,x\n",
            "p2.csv": HEADER + "\n",
            "p3.csv": "",
            "p4.jsonl": one_line,
            "p5.jsonl": "[]",
        },
    )
    parquet.write_table(pa.table({"task": [], "worker": [], "label": []}), tmp_path / "p6.parquet")
    with noted("some-files-empty", n=4, of=6):
        found = tb.read_responses(tmp_path)
    assert list(found.tasks) == ["a", "b"]
    with refused("no-rows", table=f"{tmp_path / 'p2.csv'} and 1 other file"):
        tb.read_responses([tmp_path / "p2.csv", tmp_path / "p3.csv"])
    with refused("file-empty", file=str(tmp_path / "p3.csv")):
        tb.read_responses([tmp_path / "p3.csv"])


def test_messages_name_the_file_and_the_line(tmp_path: Path) -> None:
    header = "task,worker,label,weight\n"
    good = header + "a,ann,x,1\nb,ann,x,1\n"
    bad = {
        "p2.csv": header + "c,ann,x,1\n,ann,x,1\n",
        "p2.jsonl": '{"task": "c", "worker": "u", "label": "x", "weight": "1"}\n'
        '{"task": null, "worker": "u", "label": "x", "weight": "1"}\n',
    }
    for name, text in bad.items():
        write(tmp_path, {"p1.csv": good, name: text, "p3.csv": good})
        line = 3 if name == "p2.csv" else 2
        with (
            noted("weights-found", table=f"{tmp_path / 'p1.csv'} and 2 other files"),
            refused("no-id-in-row", n=1, place=f"{name}, line {line}"),
        ):
            tb.read_responses([tmp_path / "p1.csv", tmp_path / name, tmp_path / "p3.csv"])
    write(tmp_path, {"p2.csv": header + "c,ann,x,1\nd,ann,x,heavy\n"})
    with pytest.warns(InputNote), refused("bad-weight-in-row", place="p2.csv, line 3"):
        tb.read_responses([tmp_path / "p1.csv", tmp_path / "p2.csv", tmp_path / "p3.csv"])
    write(tmp_path, {"p2.csv": header + "c,ann,x,1\nd,ann\n"})
    path = str(tmp_path / "p2.csv")
    with pytest.warns(InputNote), refused("ragged-row", file=path, line=3, expected=4, n=2):
        tb.read_responses(tmp_path / "p*.csv")


def test_places_of_rows_pickle(tmp_path: Path) -> None:
    write(tmp_path, {"p1.csv": "task,label\na,x\n", "p2.csv": "task,label\nb,x\n\nc,x\n"})
    source = pickle.loads(pickle.dumps(tb.read_gold(tmp_path / "p*.csv"))).source
    assert source.where(0) == f"{tmp_path}/p1.csv, line 2"
    assert source.where(2) == f"{tmp_path}/p2.csv, line 4"


def test_columns_are_told_by_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "p1.csv": "Item, Worker,label,note\na,ann,x,n\n",
            "p2.csv": "worker,extra,item,label\nbob,1,b,y\n",
        },
    )
    both = tmp_path / "p*.csv"
    with noted("columns-read-as", pairs=[("Item", "task")]):
        assert tb.read_responses(both).n_tasks == 2
    assert outcome(both) == outcome([("a", "ann", "x"), ("b", "bob", "y")])
    assert tb.read_responses(both, columns={"task": "ITEM"}).n_tasks == 2
    with refused("column-in-one-file", column="extra", owner=str(tmp_path / "p2.csv")):
        tb.read_responses(both, columns={"task": "extra"})
    write(tmp_path, {"p2.csv": HEADER + "b,bob,y\n"})
    with refused("column-in-one-file", column="task", owner=str(tmp_path / "p2.csv")):
        tb.read_responses(both)
    with_weight = "task,worker,label,weight\nb,bob,y,2\n"
    write(tmp_path, {"p1.csv": HEADER + "a,ann,x\n", "p2.csv": with_weight})
    with (
        pytest.warns(InputNote),
        refused("column-in-one-file", column="weight", owner=str(tmp_path / "p2.csv")),
    ):
        tb.read_responses(both)
    write(tmp_path, {"p2.csv": "task,label,worker,label\nb,y,bob,y\n"})
    with refused("columns-alike", table=str(tmp_path / "p2.csv"), column="label", n=2):
        tb.read_responses(both)


def test_text_in_one_and_numbers_in_another_are_refused(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"task": [1], "worker": ["u"], "label": [True]}), tmp_path / "p1.parquet"
    )
    write(tmp_path, {"p2.csv": HEADER + "1,u,True\n"})
    files = {"file": str(tmp_path / "p1.parquet"), "other_file": str(tmp_path / "p2.csv")}
    with refused("other-kind", column="task", kind="numbers", other="text", **files):
        tb.read_responses(tmp_path / "p*")
    parquet.write_table(
        pa.table({"task": ["1"], "worker": ["u"], "label": [True]}), tmp_path / "p1.parquet"
    )
    with refused("other-kind", column="label", kind="true or false", other="text"):
        tb.read_responses(tmp_path / "p*")


def test_numbers_of_other_widths_and_columns_without_a_value_join(tmp_path: Path) -> None:
    kinds = [(pa.int8(), None), (pa.int64(), 1), (pa.float64(), 0), (pa.uint16(), None)]
    for i, (kind, label) in enumerate(kinds):
        task = pa.array([i, 2**40 if kind == pa.int64() else i], kind)
        labels = pa.array([label, label], pa.int32())
        table = pa.table({"task": task, "worker": pa.array([7, 8], kind), "label": labels})
        parquet.write_table(table, tmp_path / f"p{i}.parquet")
    with noted("empty-labels", n=4):
        found = tb.read_responses(tmp_path)
    assert list(found.tasks) == [0, 1, 2**40, 2, 3]
    assert list(found.workers) == [7, 8]
    assert list(found.classes) == [0, 1]


def test_whole_numbers_in_one_file_and_fractions_in_another_are_fractions(tmp_path: Path) -> None:
    for i, ids in enumerate(([1, 2], [0.5, 3.0])):
        table = pa.table({"task": ids, "worker": ["u", "u"], "label": ["x", "y"]})
        parquet.write_table(table, tmp_path / f"p{i}.parquet")
    assert list(tb.read_responses(tmp_path).tasks) == [1.0, 2.0, 0.5, 3.0]


def test_values_of_several_types_in_one_of_several_files_are_refused(tmp_path: Path) -> None:
    rows = [{"task": task, "worker": "u", "label": "x"} for task in ("b", 1)]
    write(tmp_path, {"p1.csv": HEADER + "a,u,x\n", "p2.jsonl": "\n".join(map(json.dumps, rows))})
    with refused("mixed-types", column="task", value="b", other=1):
        tb.read_responses(tmp_path)


def test_ordered_categories_stay_in_order_where_all_files_agree(tmp_path: Path) -> None:
    def save(name: str, order: list[str], label: list[str]) -> None:
        codes = pa.array([order.index(each) for each in label], pa.int8())
        made = pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=True)
        table = pa.table({"task": ["a", "b"], "worker": [name, name], "label": made})
        parquet.write_table(table, tmp_path / f"{name}.parquet")

    save("p1", ["low", "mid", "high"], ["low", "high"])
    save("p2", ["low", "mid", "high"], ["high", "high"])
    found = tb.read_responses(tmp_path)
    assert list(found.classes) == ["low", "mid", "high"]
    assert found.is_class_ordered
    save("p2", ["high", "low"], ["high", "low"])
    with noted("other-category-order", column="label"):
        assert list(tb.read_responses(tmp_path).classes) == ["high", "low"]


def test_spaces_around_ids_are_left_out_once_in_all_files(tmp_path: Path) -> None:
    write(tmp_path, {"p1.csv": HEADER + "a,ann,x\n", "p2.csv": HEADER + "a ,bob, x\n"})
    write(tmp_path, {"p3.jsonl": '{"task": "a", "worker": "cy", "label": "x"}'})
    with noted("spaces-stripped", n=2):
        found = tb.read_responses(tmp_path)
    assert (found.n_tasks, found.n_classes) == (1, 1)


def test_soft_votes_of_several_files(tmp_path: Path) -> None:
    header = "task,worker,probability_no,probability_yes\n"
    rows = [f"t{i},w{j},{(j + 1) / 8},{1 - (j + 1) / 8}\n" for i in range(4) for j in range(3)]
    write(tmp_path, {"one.txt": header + "".join(rows)})
    write(tmp_path, {"p1.csv": header + "".join(rows[:5]), "p2.csv": header + "".join(rows[5:])})
    assert outcome(tmp_path / "p*.csv") == outcome(tmp_path / "one.txt")
    write(tmp_path, {"p2.csv": "task,worker,probability_yes\nt9,w1,0.5\n"})
    with refused("column-in-one-file", column="probability_no"):
        tb.read_responses(tmp_path / "p*.csv")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_options_of_reading_hold_for_several_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "p1.csv": "q,turn,model,label\na,1,gpt,x\n",
            "p2.csv": "q,turn,model,label\na,2,gpt,y\n",
        },
    )
    found = tb.read_responses(
        tmp_path / "p*.csv", task_columns=["q", "turn"], worker_columns=["model"], classes=["z"]
    )
    assert list(found.tasks) == ["a | 1", "a | 2"]
    assert list(found.classes) == ["x", "y", "z"]
    wide = write(
        tmp_path / "wide", {"w1.csv": "task,ann,bob\na,x,\nb,,y\n", "w2.csv": "task,cy\na,y\n"}
    )
    assert outcome(wide, wide=True) == outcome(
        [("a", "ann", "x"), ("b", "bob", "y"), ("a", "cy", "y")]
    )
    many = write(
        tmp_path / "many",
        {"m1.csv": HEADER + 'a,u,"[""red"", ""blue""]"\n', "m2.csv": HEADER + "a,v,green\n"},
    )
    one = write(tmp_path / "one", {"m.csv": HEADER + 'a,u,"[""red"", ""blue""]"\na,v,green\n'})
    assert outcome(many, multi_label=True) == outcome(one / "m.csv", multi_label=True)
    write(many, {"m2.csv": HEADER + 'a,v,"[null]"\n'})
    with refused("null-among-labels", place="m2.csv, line 2"):
        tb.read_responses(many, multi_label=True)


# Files of tools


def studio(*tasks: tuple[int, str, str, bool]) -> str:
    """Write an export of Label Studio: task, worker, label, and whether it is ground truth."""
    return json.dumps(
        [
            {
                "id": task,
                "data": {"text": f"text {task}"},
                "annotations": [
                    {
                        "completed_by": who,
                        "ground_truth": is_known,
                        "result": [
                            {
                                "from_name": "sentiment",
                                "to_name": "text",
                                "type": "choices",
                                "value": {"choices": [label]},
                            }
                        ],
                    }
                ],
            }
            for task, who, label, is_known in tasks
        ]
    )


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_exports_of_a_tool_are_read_as_one(tmp_path: Path) -> None:
    rows = [(1, "ann", "pos", False), (2, "ann", "neg", True), (1, "bob", "neg", False)]
    folder = write(tmp_path / "in", {"a.json": studio(*rows[:2]), "b.json": studio(*rows[2:])})
    one = write(tmp_path / "one", {"x.json": studio(*rows)}) / "x.json"
    both = tables.read_export(folder)
    single = tables.read_export(one)
    assert everything(both.responses) == everything(single.responses)
    assert both.gold is not None
    assert single.gold is not None
    assert gold_of(both.gold) == gold_of(single.gold) == [(2, "neg")]
    assert both.form == single.form == "Label Studio"
    assert gold_of(tb.read_gold(folder)) == [(2, "neg")]
    assert outcome(folder, multi_label=True) == outcome(one, multi_label=True)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_what_exports_contradict_names_both_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.json": studio((1, "ann", "pos", True)), "b.json": studio((1, "bob", "neg", True))},
    )
    with refused("known-twice", task=1, label="neg", before="pos", place="a.json, record 1"):
        tb.read_responses(tmp_path)
    other = studio((3, "bob", "neg", False)).replace("sentiment", "topic")
    write(tmp_path, {"b.json": other})
    with refused("several-questions"):
        tb.read_responses(tmp_path)
    write(tmp_path, {"b.csv": HEADER + "1,cy,pos\n"})
    with refused("tool-and-table", plain=str(tmp_path / "b.csv"), format="Label Studio"):
        tb.read_responses([tmp_path / "a.json", tmp_path / "b.csv"])
    with refused("tool-and-table", file=str(tmp_path / "a.json"), format="Label Studio"):
        tb.read_responses([tmp_path / "b.csv", tmp_path / "a.json"])


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_exports_of_two_tools_join(tmp_path: Path) -> None:
    line = {"text": "t", "accept": ["pos"], "answer": "accept", "options": [{"id": "pos"}]}
    record = line | {"_input_hash": 9, "_annotator_id": "cy", "_task_hash": 4}
    write(tmp_path, {"a.json": studio((1, "ann", "pos", False)), "b.jsonl": json.dumps(record)})
    found = tables.read_export([tmp_path / "a.json", tmp_path / "b.jsonl"])
    assert found.form == "Label Studio and Prodigy"
    assert list(found.responses.workers) == ["ann", "cy"]


# Links and gold, packed folders, many files


def test_links_and_gold_of_several_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "l1.csv": "left,right,link\na,b,must\n",
            "l2.csv": "link,left,right\ncannot,a,c\n",
            "g1.csv": "task,label\na,x\n",
            "g2.csv": "task,label\nb,y\n",
        },
    )
    links = tb.read_links(tmp_path / "l*.csv")
    assert links_of(links) == links_of(tb.read_links([("a", "b", "must"), ("a", "c", "cannot")]))
    assert gold_of(tb.read_gold([tmp_path / "g1.csv", tmp_path / "g2.csv"])) == [
        ("a", "x"),
        ("b", "y"),
    ]
    write(
        tmp_path, {"g2.csv": "task,label\nb,y\na,y\n", "l2.csv": "left,right,link\na,c,perhaps\n"}
    )
    with refused("gold-known-twice", GoldError, task="a", place="g2.csv, line 3"):
        tb.read_gold(tmp_path / "g*.csv")
    with refused("links-odd-word", place="l2.csv, line 2"):
        tb.read_links(tmp_path / "l*.csv")


def test_packed_folders_are_read_alone(tmp_path: Path) -> None:
    rows = [("a", "ann", "x"), ("b", "ann", "y")]
    tb.Responses.from_rows(rows).write(tmp_path / "one.tb")
    assert tb.read_responses([tmp_path / "one.tb"]).n_tasks == 2
    assert tb.read_responses(tmp_path).n_tasks == 2  # the only one in its folder
    write(tmp_path, {"p.csv": HEADER + "c,u,x\n"})
    with refused("packed-among-tables", FileError, folder=str(tmp_path / "one.tb")):
        tb.read_responses([tmp_path / "one.tb", tmp_path / "p.csv"])


@contextlib.contextmanager
def few_open_files(n: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    rows = [(f"t{i}", f"w{i % 7}", "xy"[i % 2]) for i in range(600)]
    write(tmp_path, {f"p{i:03d}.csv": HEADER + ",".join(row) + "\n" for i, row in enumerate(rows)})
    with few_open_files(256):
        assert outcome(tmp_path) == outcome(rows)


def test_what_lies_elsewhere_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {f"p{i}.csv": HEADER + f"t{i} ,u,x\n" for i in range(3)})
    fetched: list[str] = []

    class Watched:
        get_file_info = fs.LocalFileSystem().get_file_info

        def open_input_file(self, path: str) -> Any:
            fetched.append(path)
            return fs.LocalFileSystem().open_input_file(path)

    def reached(address: str) -> tuple[Any, str]:
        return Watched(), address.removeprefix("s3://").partition("?")[0]

    monkeypatch.setattr(source, "_filesystem", reached)
    with noted("spaces-stripped"):  # for which files are read twice
        found = tb.read_responses(f"s3://{tmp_path}/p*.csv?endpoint_override=127.0.0.1:9000")
    assert found.n_tasks == 3
    assert len(fetched) == 3
    write(tmp_path, {"p0.csv": HEADER + "a,u,x\n", "p1.csv": HEADER + ",u,x\n"})
    (tmp_path / "p2.csv").unlink()
    with refused("no-id-in-row", place="p1.csv?endpoint_override=127.0.0.1:9000, line 2"):
        tb.read_responses(f"s3://{tmp_path}/p*.csv?endpoint_override=127.0.0.1:9000")


def test_the_host_of_an_address_stays_in_the_names_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"p1.csv": HEADER + "a,u,x\n", "p2.csv": HEADER + "b,u,x\n"})

    def reached(address: str) -> tuple[Any, str]:
        return fs.LocalFileSystem(), address.removeprefix("hdfs://node:8020")

    monkeypatch.setattr(source, "_filesystem", reached)
    for address in (f"hdfs://node:8020{tmp_path}", f"hdfs://node:8020{tmp_path}/p*.csv"):
        found = [file.path for file in source.find_files(address)]
        assert found == [f"hdfs://node:8020{tmp_path}/p{i}.csv" for i in (1, 2)]
        assert tb.read_responses(address).n_tasks == 2
