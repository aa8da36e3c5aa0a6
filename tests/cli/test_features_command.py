"""Features on the command line: fuse, predict, update and report with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.running import Run, code_of

import tiebreak as tb
from tiebreak import simulate, tables

NEW = 20


@pytest.fixture
def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write responses, gold, features of all tasks and of new ones, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    made = simulate.crowd(150, 8, 2, responses_per_task=2, random_state=0)
    rng = np.random.default_rng(0)
    truth = made.gold.to_dict() | {
        f"new{i}": list(made.responses.classes)[i % 2] for i in range(NEW)
    }
    classes = list(made.responses.classes)
    sign = np.array([2.0 * classes.index(each) - 1.0 for each in truth.values()])
    loud = 2.0 * sign + rng.normal(size=len(sign))
    columns = {"task": list(truth), "loud": loud, "noise": rng.normal(size=len(sign))}
    made.responses.write("responses.csv")
    made.gold.write("gold.csv")
    tables.write_table("features.csv", columns)
    tables.write_table(
        "texts.csv",
        {"task": list(truth), "text": ["good" if s > 0 else "bad" for s in sign], "loud": loud},
    )
    np.save("features.npy", np.column_stack([loud]))
    tables.write_table("tasks.csv", {"task": list(truth)})
    return made, truth


def accuracy(path: str, truth: dict[Any, Any], *, of_new: bool) -> float:
    best = tb.read_labels(path).best()
    asked = [task for task in best if str(task).startswith("new") == of_new]
    return float(np.mean([best[task] == truth[task] for task in asked]))


def test_fuse_learns_from_features_and_predict_needs_nothing_else(run: Run, crowd: Any) -> None:
    _, truth = crowd
    options = ("--features", "features.csv", "-o", "labels.csv", "--save", "m.tbm", "--json")
    result = run("fuse", "responses.csv", *options)
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)["features"]
    model = tb.Auto().fit("responses.csv", features="features.csv")
    assert said == {
        "weight": pytest.approx(model.classifier_weight_),
        "nats": pytest.approx(model.classifier_gain_.nats),  # type: ignore[union-attr]
        "standard_errors": pytest.approx(model.classifier_gain_.standard_errors),  # type: ignore[union-attr]
    }
    assert accuracy("labels.csv", truth, of_new=True) > 0.7
    result = run("predict", "m.tbm", "--features", "features.csv", "-o", "new.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["responses"] == 0
    assert accuracy("new.csv", truth, of_new=True) > 0.7
    result = run(
        "update", "m.tbm", "--gold", "gold.csv", "--features", "features.csv", "-o", "u.csv"
    )
    assert result.exit_code == 0, result.stderr
    assert accuracy("u.csv", truth, of_new=False) == 1.0


def test_columns_are_chosen_and_rows_of_an_array_named(run: Run, crowd: Any) -> None:
    chosen = ("--features", "features.csv", "--feature-columns", "loud")
    assert run("fuse", "responses.csv", *chosen, "-o", "one.csv").exit_code == 0
    array = ("--features", "features.npy", "--set", "tasks=tasks.csv")
    result = run("fuse", "responses.csv", *array, "-o", "two.csv")
    assert result.exit_code == 0, result.stderr
    assert tb.read_labels("one.csv").best() == tb.read_labels("two.csv").best()
    text = ("--features", "texts.csv", "--feature-columns", "text")
    assert run("fuse", "responses.csv", *text, "-o", "three.csv").exit_code == 0


def test_a_report_has_a_section_of_features(run: Run, crowd: Any) -> None:
    options = ("--features", "features.csv", "-o", "r.html", "--json", "r.json")
    result = run("report", "responses.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads(Path("r.json").read_text())["sections"]["features"]["weight"] > 0.2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--features", "features.csv", "--method", "ds"), "method-without-features"),
        (("--feature-columns", "loud"), "option-needs"),
        (("--features", "texts.csv"), "text-among-numbers"),
        (("--features", "features.npy"), "npy-without-tasks"),
        (("--features", "features.csv", "--feature-columns", "lod"), "no-such-column"),
        (("--features", "features.csv", "--out-of-core"), "not-over-shards"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, crowd: Any, options: Any, code: str) -> None:
    result = run("fuse", "responses.csv", *options, "-o", "out.csv")
    assert (result.exit_code, code_of(result)) == (2, code)
