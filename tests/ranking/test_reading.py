"""Files of verdicts on pairs, as tools write them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import noted, refused

import tiebreak as tb
from tiebreak.data import FIRST, SECOND, TIE, PairVerdicts
from tiebreak.tables import pairs as tables_of_pairs

pytestmark = pytest.mark.filterwarnings("ignore:.*read column:tiebreak.errors.InputNote")


def said(pairs: PairVerdicts) -> list[tuple[object, ...]]:
    """Return rows by name: first, second, verdict, worker, prompt."""
    words = {FIRST: "first", SECOND: "second", TIE: "tie"}
    columns = [
        list(pairs.items.take(pairs.first)),
        list(pairs.items.take(pairs.second)),
        [words[int(v)] for v in pairs.verdict],
    ]
    for ids, code in ((pairs.workers, pairs.worker), (pairs.prompts, pairs.prompt)):
        if code is not None:
            columns.append(list(ids.take(code)))
    return list(zip(*columns, strict=True))


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


FILES = {  # as the tool writes it, and what it says
    "mt-bench.csv": (
        "question_id,model_a,model_b,winner,judge,turn\n81,x,y,model_a,ann,1\n81,y,x,tie,bob,2\n",
        [("x", "y", "first", "ann", "81"), ("y", "x", "tie", "bob", "81")],
    ),
    "mt-bench.jsonl": (
        '{"question_id": 81, "model_a": "x", "model_b": "y", "winner": "model_b", '
        '"judge": ["gpt-4", "pair-v2"], "turn": 1}\n',
        [("x", "y", "second", "gpt-4 | pair-v2", "81")],
    ),
    "two-games.jsonl": (
        '{"question_id": 81, "model_1": "x", "model_2": "y", "g1_winner": "model_1", '
        '"g2_winner": "model_1", "judge": ["gpt-4", "v2"], "turn": 1}\n',
        [("x", "y", "first", "gpt-4 | v2", "81"), ("y", "x", "second", "gpt-4 | v2", "81")],
    ),
    "arena.jsonl": (  # without a judge
        '{"question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie (bothbad)"}\n',
        [("x", "y", "tie", "q")],
    ),
    "crowd-kit.csv": (
        "left,right,label,performer\nx,y,x,p1\ny,x,x,p2\n",
        [("x", "y", "first", "p1"), ("y", "x", "second", "p2")],
    ),
    "crowd-kit-worker.csv": (
        "worker,left,right,label\np1,x,y,y\n",
        [("x", "y", "second", "p1")],
    ),
    "evalica.csv": (
        "left,right,winner\nTacos,Sushi,left\nSushi,Tacos,tie\nTacos,Pizza,right\n",
        [
            ("Tacos", "Sushi", "first"),
            ("Sushi", "Tacos", "tie"),
            ("Tacos", "Pizza", "second"),
        ],
    ),
    "words.csv": (
        "first,second,verdict\nx,y,A>B\nx,y,[[B]]\nx,y,second\ny,x,x\n",
        [
            ("x", "y", "first"),
            ("x", "y", "second"),
            ("x", "y", "second"),
            ("y", "x", "second"),
        ],
    ),
}


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("name", FILES)
def test_files_of_tools_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    text, expected = FILES[name]
    assert said(tables_of_pairs.read_pairs(written(tmp_path, name, text))) == expected


def test_arena_hard_shows_the_baseline_first_then_second(tmp_path: Path) -> None:
    record = {"question_id": "q", "model": "x", "judge": "gpt"}
    games = [{"score": "A>>B"}, {"score": "A>B"}]
    path = written(tmp_path, "arena-hard.jsonl", json.dumps(record | {"games": games}))
    with refused(tb.InputError, "no-baseline"):
        tables_of_pairs.read_pairs(path)
    with noted("verdicts-plain"):
        found = tables_of_pairs.read_pairs(path, baseline="base")
    assert said(found) == [
        ("base", "x", "first", "gpt", "q"),
        ("x", "base", "first", "gpt", "q"),
    ]


ROW = "first,second,verdict,worker,task\n"
WRONG = {
    "item-against-itself": "x,y,first,ann,1\nx,x,tie,ann,2\n",
    "no-verdict": "x,y,better,ann,1\nx,y,first,ann,2\n",
    "value-missing": "x,,first,ann,1\n",
    "no-rows": "x,y,,ann,1\n",
}


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("code", WRONG)
def test_what_is_no_verdict_is_refused(tmp_path: Path, code: str) -> None:
    with refused(tb.InputError, code) as error:
        tables_of_pairs.read_pairs(written(tmp_path, "p.csv", ROW + WRONG[code]))
    if "shown" in error.value.fields:
        assert "line" in str(error.value.fields["shown"])


def test_the_first_few_wrong_verdicts_are_shown(tmp_path: Path) -> None:
    rows = "".join(f"x,y,bad{i},ann,{i}\n" for i in range(9))
    with refused(tb.InputError, "no-verdict") as error:
        tables_of_pairs.read_pairs(written(tmp_path, "p.csv", ROW + rows))
    assert error.value.fields["n"] == 9
    assert str(error.value.fields["shown"]).count("line") >= 3


@pytest.mark.parametrize("weight", ["0", "-1", "x"])
def test_weights_are_above_zero(weight: str) -> None:
    table = {"first": ["x"], "second": ["y"], "verdict": ["tie"], "weight": [weight]}
    with pytest.raises(tb.InputError):
        tables_of_pairs.read_pairs(table)


def test_rows_without_a_verdict_are_left_out() -> None:
    with noted("verdicts-empty"):
        found = tables_of_pairs.read_pairs(
            [("x", "y", "first"), ("x", "y", None), ("y", "x", "error")]
        )
    assert len(found) == 1


def test_the_last_of_two_verdicts_of_a_judge_counts() -> None:
    rows = [("x", "y", "first", "q", "ann"), ("x", "y", "tie", "q", "ann")]
    rows += [("y", "x", "first", "q", "ann"), ("x", "y", "first", "q", "bob")]
    names = ("first", "second", "verdict", "task", "worker")
    table = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    with noted("repeats-last"):
        found = tables_of_pairs.read_pairs(table)
    assert sorted(said(found), key=str) == [
        ("x", "y", "first", "bob", "q"),
        ("x", "y", "tie", "ann", "q"),
        ("y", "x", "first", "ann", "q"),
    ]
    with noted("repeats-counted"):
        assert len(tables_of_pairs.read_pairs(table, repeats="count")) == 4
    with refused(tb.errors.ResponseError, "repeats"):
        tables_of_pairs.read_pairs(table, repeats="error")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_runs_of_a_judge_count_less_each() -> None:
    n = 40
    table = {
        "first": ["x", "y"] * n,
        "second": ["y", "x"] * n,
        "verdict": ["x"] * (2 * n),
        "worker": ["ann"] * n + ["bob"] * n,
        "task": [f"q{i // 4}" for i in range(n)] * 2,
        "run": [i % 2 for i in range(n)] * 2,
    }
    found = tables_of_pairs.read_pairs(table)
    assert found.weight is not None
    assert found.weight.sum() < 2 * n * 0.8


def test_covariates_have_a_column_for_each_side() -> None:
    table = {"first": ["x", "y"], "second": ["y", "x"], "verdict": ["x", "tie"]}
    with refused(tb.InputError, "no-side"):
        tables_of_pairs.read_pairs(table, covariates=("length",))
    found = tables_of_pairs.read_pairs(
        table | {"length_first": [10, 5], "length_second": [4, 9]}, covariates=("length",)
    )
    assert found.sides is not None
    np.testing.assert_array_equal(found.sides[:, 0], [6.0, -4.0])
