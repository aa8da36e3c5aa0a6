"""Advice that can be followed, names that are known, ids that are split, cells that do not run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of
from commands import tiebreak as _run

import tiebreak as tb

ODD = ("=1+1", "+cmd", "-x", "@sum", "\tx")


@pytest.fixture
def two_questions(tmp_path: Path) -> Path:
    def given(i: int, j: int) -> list[dict[str, Any]]:
        said = {"mood": "ab"[(i + j // 3) % 2], "tone": "xy"[i % 2]}
        return [
            {"from_name": q, "to_name": "text", "type": "choices", "value": {"choices": [label]}}
            for q, label in said.items()
        ]

    tasks = [
        {
            "id": i,
            "data": {"text": f"t{i}"},
            "annotations": [{"completed_by": j, "result": given(i, j)} for j in range(4)],
        }
        for i in range(40)
    ]
    path = tmp_path / "two.json"
    path.write_text(json.dumps(tasks))
    return path


@pytest.mark.parametrize("command", ["panel", "rate", "route"])
def test_commands_about_judges_choose_a_question(
    two_questions: Path, tmp_path: Path, command: str
) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)))
    more = ("-o", tmp_path / "routes") if command == "route" else ()
    arguments = ("judges", command, two_questions, "--gold", gold, *more)
    refused = _run(*arguments)
    assert (refused.exit_code, code_of(refused)) == (2, "several-questions")
    assert "--set question=mood" in refused.stderr
    result = _run(*arguments, "--set", "question=mood")
    assert result.exit_code == 0, result.stderr


def test_an_empty_name_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("task,worker,label\na,w,x\n")
    for arguments in (("fuse", ""), ("describe", ""), ("fuse", "r.csv", "--gold", "")):
        result = _run(*arguments)
        assert (result.exit_code, code_of(result)) == (2, "file-name-empty"), arguments


@pytest.mark.parametrize(
    ("worker", "label"),
    [
        ("judge_model", "score"),
        ("judge_name", "rating"),
        ("evaluator", "score"),
        ("grader", "outcome"),
        ("grader_model", "assessment"),
        ("scorer", "judgment"),
        ("evaluator_id", "preference"),
    ],
)
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_names_of_columns_that_files_of_judges_have(
    tmp_path: Path, worker: str, label: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"item,{worker},{label}\nq1,gpt,4\nq2,gpt,5\n")
    responses = tb.read_responses(path)
    assert list(responses.workers) == ["gpt"]
    assert list(responses.classes) == ["4", "5"]


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_score_beside_a_verdict_is_not_the_label(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,judge,verdict,score\nq1,gpt,yes,4\nq2,gpt,no,5\nq2,ann,no,4\n")
    assert list(tb.read_responses(path).classes) == ["no", "yes"]


def _batch(path: Path, ids: list[str]) -> Path:
    def line(name: str) -> str:
        answer = {"message": {"content": "yes" if "q1" in name else "no"}}
        body = {"model": "gpt", "choices": [answer]}
        return json.dumps({"custom_id": name, "response": {"status_code": 200, "body": body}})

    path.write_text("\n".join(map(line, ids)) + "\n")
    return path


def test_ids_of_a_batch_are_split_into_task_order_and_run(tmp_path: Path) -> None:
    ids = [f"q{q}__order-{o}__run-{r}" for q in (1, 2) for o in ("ab", "ba") for r in (1, 2)]
    path, out = _batch(tmp_path / "b.jsonl", ids), tmp_path / "r.csv"
    pattern = r"(?P<task>.+)__order-(?P<order>\w+)__run-(?P<run>\d+)"
    result = _run("convert", path, "--set", f"task_pattern={pattern}", "-o", out)
    assert result.exit_code == 0, result.stderr
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["task"] for row in rows} == {"q1", "q2"}
    assert {(row["order"], row["run"]) for row in rows} == {
        (o, r) for o in ("ab", "ba") for r in ("1", "2")
    }
    fused = _run("fuse", path, "--set", r"task_pattern=^(.+?)__", "-o", out)
    assert fused.exit_code == 0, fused.stderr
    with out.open(newline="") as file:
        assert [row["task"] for row in csv.DictReader(file)] == ["q1", "q2"]


def test_a_pattern_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = _batch(tmp_path / "b.jsonl", ["q1__run-1", "other"])
    for pattern, word in (
        (r"(?P<task>.+)__run-(?P<run>\d+)", "other"),
        ("(", "regular"),
        ("x", "group"),
    ):
        result = _run("fuse", path, "--set", f"task_pattern={pattern}")
        assert result.exit_code == 2
        assert word in result.stderr
    plain = tmp_path / "r.csv"
    plain.write_text("task,worker,label\na,w,x\n")
    assert _run("fuse", plain, "--set", "task_pattern=(.+)").exit_code == 2


def test_cells_that_a_spreadsheet_would_run_are_defused_on_request(tmp_path: Path) -> None:
    path, out = tmp_path / "r.csv", tmp_path / "o.csv"
    with path.open("w", newline="") as file:
        rows = [(task, "w", label) for task in (*ODD, "-1.5e3", "plain") for label in ("=x", "-1")]
        csv.writer(file).writerows([("task", "worker", "label"), *rows])

    def cells(*options: str) -> tuple[list[str], list[str]]:
        result = _run("convert", path, "-o", out, *options)
        assert result.exit_code == 0, result.stderr
        with out.open(newline="") as file:
            found = list(csv.DictReader(file))
        return [row["task"] for row in found[::2]], [row["label"] for row in found[:2]]

    assert cells() == ([*ODD, "-1.5e3", "plain"], ["=x", "-1"])
    safe = [*(f"'{name}" for name in ODD), "-1.5e3", "plain"]  # a number is no formula
    assert cells("--safe-csv") == (safe, ["'=x", "-1"])
    assert cells() == ([*ODD, "-1.5e3", "plain"], ["=x", "-1"])  # the option is of one command
    assert _run("fuse", path, "-o", out, "--safe-csv").exit_code == 0
    assert "\n'=1+1," in out.read_text()
    parquet = tmp_path / "o.parquet"
    assert _run("convert", path, "-o", parquet, "--safe-csv").exit_code == 0
    with pytest.warns(tb.InputNote):
        assert "=1+1" in tb.read_responses(parquet).tasks
    shards = _run("fuse", path, "-o", tmp_path / "folder", "--safe-csv", "--out-of-core")
    assert shards.exit_code == 2


def test_one_file_has_one_size_everywhere(tmp_path: Path) -> None:
    path, model = tmp_path / "runs.csv", tmp_path / "m.tbm"
    path.write_text(
        "task,judge,label,run\n"
        + "".join(
            f"q{i},g{j},{'xy'[(i + (i * j + r) % 5 // 4) % 2]},{r}\n"
            for i in range(50)
            for j in range(5)
            for r in range(3)
        )
    )
    size = "750 responses by 5 workers on 50 tasks, 3 runs each"
    fused = _run("fuse", path, "-o", tmp_path / "o.csv", "--save", model)
    assert fused.exit_code == 0, fused.stderr
    described = _run("describe", path)
    assert described.stdout.startswith(f"{size}, 2 classes\n")
    for said in (fused.stderr, described.stdout, _run("describe", model).stdout):
        assert size in said
    for arguments in (("fuse", path, "-o", tmp_path / "o.csv"), ("describe", path)):
        assert json.loads(_run(*arguments, "--json").stdout)["responses"] == 750
    assert tb.load(model).responses_.runs is not None


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_judges_whose_runs_differ_have_a_size_too() -> None:
    rows = [("a", "gpt", "x"), ("a", "gpt", "y"), ("b", "gpt", "x"), ("a", "ann", "x")]
    crowd = tb.Responses.from_rows([*rows, ("c", "ann", "y")], repeats="runs")
    assert crowd.size() == "5 responses by 2 workers on 3 tasks, 1 to 2 runs each"
