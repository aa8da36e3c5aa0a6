"""`tiebreak bench`: tables, records, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cli.running import ROWS, Write, code_of

import tiebreak as tb

GOLD = "task,label\na,x\nb,y\n"
RAISES = "def aggregate(crowd):\n    return 1 / 0\n"
SPINS = "def aggregate(crowd):\n    while True:\n        pass\n"


@pytest.fixture
def files(write: Write) -> tuple[Path, Path]:
    return write("responses.csv", ROWS), write("gold.csv", GOLD)


def test_own_methods_are_compared(run: Any, files: tuple[Path, Path], tmp_path: Path) -> None:
    responses, gold = files
    outs = [tmp_path / name for name in ("record.jsonl", "page.md", "labels.csv")]
    done = run("bench", responses, "--gold", gold, "-o", outs[0], "--page", outs[1],
               "--labels", outs[2])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"method", *tb.bench.OWN}
    with outs[2].open() as file:
        rows = list(csv.DictReader(file))
    assert {row["task"]: row["gold"] for row in rows} == {"a": "x", "b": "y"}
    assert all(row["vb"] in "xy" and 1 <= int(row["n_labels"]) <= 2 for row in rows)
    page = outs[1].read_bytes()
    again = run("bench", outs[0], "--page", outs[1])
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert outs[1].read_bytes() == page
    before = outs[0].read_bytes()
    assert run("bench", responses, "--gold", gold, "-o", outs[0], "--resume").exit_code == 0
    assert outs[0].read_bytes() == before  # with the very times


def test_json_has_a_cell_per_method_and_seed(run: Any, files: tuple[Path, Path]) -> None:
    words = ("--method", "mv", "--method", "vb", "--gold-share", 0.5, "--set", "seeds=3", "--json")
    done = run("bench", files[0], "--gold", files[1], *words)
    assert done.exit_code == 0, done.output
    cells = json.loads(done.stdout)
    assert [(cell["method"], cell["seed"]) for cell in cells] == [
        (name, seed) for name in ("mv", "vb") for seed in range(3)
    ]
    assert {cell["n_scored"] for cell in cells} == {1}


def test_a_failed_method_is_told_and_ends_with_1(
    run: Any, files: tuple[Path, Path], write: Write
) -> None:
    words = ("bench", files[0], "--gold", files[1], "--method", "mv", "--method")
    done = run(*words, write("raises.py", RAISES))
    assert done.exit_code == 1
    assert "ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.output
    assert "raises" in done.stdout
    done = run(*words, write("spins.py", SPINS), "--set", "limit=0.1")
    assert done.exit_code == 0  # out of time is a result
    assert "over 0.1 s" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["R", "--gold", "other.csv"], "gold-of-other-tasks"),
        (["R"], "no-bench-gold"),
        (["R", "--gold", "G", "--method", "empty.py"], "method-not-loaded"),
        (["R", "--gold", "G", "--method", "glad"], "wrong-value"),
        (["R", "--gold", "G", "--resume"], "option-needs"),
        (["R", "--gold", "G", "--set", "sedes=3"], "unknown-setting"),
        (["R", "--gold", "G", "--gold-share", "1.5"], "wrong-value"),
        (["R", "--gold", "G", "--dataset", "rte"], "bench-one-source"),
        ([], "bench-one-source"),
        (["--dataset", "rtee"], "unknown-dataset"),
        (["record.jsonl", "--labels", "l.csv"], "option-needs"),
        (["R", "--gold", "G", "--labels", "R"], "file-taken"),
        (["R", "--gold", "G", "-o", "R"], "file-taken"),
    ],
)
def test_wrong_input_is_refused(
    words: list[str], code: str, run: Any, files: tuple[Path, Path], write: Write
) -> None:
    named = {"R": str(files[0]), "G": str(files[1])}
    cell = '{"set": "s", "method": "mv", "seed": 0, "source": "s"}\n'
    texts = {"other.csv": "task,label\nq,x\n", "empty.py": "x = 1\n", "record.jsonl": cell}
    for name, text in texts.items():
        named[name] = str(write(name, text))
    done = run("bench", *(named.get(word, word) for word in words))
    assert done.exit_code == 2, done.output
    assert code_of(done) == code
    assert "Traceback" not in done.output


@pytest.mark.data
def test_datasets_are_named(run: Any, data_dir: Path) -> None:
    words = ("--method", "mv", "--method", "ds")
    done = run("bench", "--dataset", "bluebird", "--dataset", "rte", *words)
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert float(rows["mv"][0]) == pytest.approx((0.7593 + 0.8969) / 2, abs=6e-4)
