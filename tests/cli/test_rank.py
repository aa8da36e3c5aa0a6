"""tiebreak rank."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli.running import code_of
from commands import tiebreak
from ranking.arenas import drawn

HEADER = "first,second,verdict,worker,task\n"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    found = drawn(3, n_items=5, n_prompts=10, n_each=20).pairs
    words = ("first", "second", "tie")
    path = tmp_path / "pairs.csv"
    columns = (found.first, found.second, found.verdict, found.worker, found.prompt)
    rows = (
        f"item{a},item{b},{words[v]},judge{w},q{q}\n"
        for a, b, v, w, q in zip(
            *(each.tolist() for each in columns if each is not None), strict=True
        )
    )
    path.write_text(HEADER + "".join(rows))
    return path


def test_a_ranking_is_written_with_all_that_was_asked(pairs: Path, tmp_path: Path) -> None:
    out, judges, plot = (tmp_path / name for name in ("r.csv", "j.csv", "r.svg"))
    done = tiebreak("rank", pairs, "-o", out, "--judges", judges, "--plot", plot, "--next", 3)
    assert done.exit_code == 0, done.stderr
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert set(rows[0]) == {
        *("item", "rank", "rank_low", "rank_high", "strength", "low", "high"),
        *("probability_best", "tier", "verdicts", "win_share"),
    }
    of_judges = judges.read_text().splitlines()[0].split(",")
    assert {"worker", "verdicts", "first_place", "ties", "cycles"} <= set(of_judges)
    assert len(list(csv.DictReader(done.stdout.splitlines()))) == 3
    assert plot.read_text().startswith("<svg")


def test_the_ranking_goes_to_stdout_and_its_summary_to_json(pairs: Path, tmp_path: Path) -> None:
    done = tiebreak("rank", pairs)
    assert done.exit_code == 0
    assert done.stdout.startswith("item,rank")
    done = tiebreak("rank", pairs, "-o", tmp_path / "r.csv", "--json", "--set", "judges=no")
    found = json.loads(done.stdout)
    assert found["items"] == 5
    assert found["spread_of_ties"] is None
    assert found["spread_on_prompts"] > 0.0


def test_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("one,two,who won\nx,y,x\ny,x,tie\n")
    done = tiebreak("rank", path, "--columns", "first=one,second=two,verdict=who won")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("rows", "words", "code"),
    [
        ("x,x,first,ann,q\n", [], "item-against-itself"),
        ("x,y,nobody,ann,q\n", [], "no-verdict"),
        ("x,y,first,ann,q\n", ["--next", "3"], "option-needs"),
        ("x,y,first,ann,q\n", ["--json"], "json-needs-out"),
        ("x,y,first,ann,q\n", ["--set", "colour=red"], "unknown-setting"),
        ("x,y,first,ann,q\n", ["--set", "covariates=length"], "no-side"),
        ("x,y,first,ann,q\n", ["--set", "level=2"], "wrong-value"),
        ("", [], "no-rows"),
    ],
)
def test_wrong_input_ends_with_2(tmp_path: Path, rows: str, words: list[str], code: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(HEADER + rows)
    done = tiebreak("rank", path, *words)
    assert done.exit_code == 2
    assert code_of(done) == code
    assert "Traceback" not in done.stderr


def test_pairs_are_labelled_with_their_ranking_as_prior(pairs: Path, tmp_path: Path) -> None:
    out, workers = tmp_path / "labels.csv", tmp_path / "workers.csv"
    done = tiebreak("fuse", pairs, "--pairs", "-o", out, "--workers", workers, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["workers"], found["classes"]) == (5, 3)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == found["tasks"]
    assert all(row["task"].endswith(f"{row['model_a']} vs {row['model_b']}") for row in rows)
    assert {row["label"] for row in rows} <= {"model_a", "model_b", "tie"}
    gold = tmp_path / "gold.csv"
    gold.write_text(f"task,label\n{rows[0]['task']},tie\n")
    done = tiebreak("fuse", pairs, "--pairs", "--gold", gold)
    assert next(csv.DictReader(done.stdout.splitlines()))["label"] == "tie"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--method", "ds"], "method-without-pairs"),
        (["--scale", "1..5"], "option-without-pairs"),
        (["--out-of-core"], "not-over-shards"),
    ],
)
def test_what_pairs_cannot_be_labelled_with_ends_with_2(
    pairs: Path, tmp_path: Path, words: list[str], code: str
) -> None:
    done = tiebreak("fuse", pairs, "--pairs", "-o", tmp_path / "out", *words)
    assert done.exit_code == 2
    assert code_of(done) == code


def test_the_report_of_pairs_says_who_is_best(pairs: Path, tmp_path: Path) -> None:
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    done = tiebreak("report", pairs, "--set", "pairs", "-o", page, "--json", numbers)
    assert done.exit_code == 0, done.stderr
    found = json.loads(numbers.read_text())["sections"]["ranking"]
    ranked = tiebreak("rank", pairs).stdout
    rows = list(csv.DictReader(ranked.splitlines()))
    assert [each["item"] for each in found["items"]] == [row["item"] for row in rows]
    assert found["items"][0]["strength"] == pytest.approx(float(rows[0]["strength"]), abs=1e-6)
    assert found["n_judges"] == 5
    assert "Who is best" in page.read_text()
