"""Rates of verdicts on pairs: how often each of two systems wins, whichever side it is on."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import tiebreak
from refusals import refused

import tiebreak as tb

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


def made(
    n: int = 300,
) -> tuple[list[tuple[str, str, str]], dict[str, str], dict[str, tuple[str, str]]]:
    """Return verdicts of four judges, the truth, and the systems of each task: x wins 60 %."""
    rng = np.random.default_rng(0)
    rows, truth, systems = [], {}, {}
    for i in range(n):
        pair = ("x", "y") if rng.random() < 0.5 else ("y", "x")
        winner = rng.choice(["x", "y", "tie"], p=[0.6, 0.25, 0.15])
        right = "tie" if winner == "tie" else "model_a" if winner == pair[0] else "model_b"
        truth[f"t{i}"], systems[f"t{i}"] = right, pair
        for judge in "abcd":
            says = right if rng.random() < 0.8 else str(rng.choice(["model_a", "model_b", "tie"]))
            rows.append((f"t{i}", judge, says))
    return rows, truth, systems


def test_wins_are_counted_on_either_side() -> None:
    rows, truth, systems = made()
    known = dict(list(truth.items())[:150])
    found = tb.judges.estimate_rates(tb.VariationalBayes().fit(rows), known, systems=systems)
    assert {(rate.system, rate.label) for rate in found.rates} == {
        (system, label) for system in "xy" for label in ("win", "tie")
    }
    x, y = (found.of("win", system) for system in "xy")
    wins = [systems[task][label == "model_b"] for task, label in truth.items() if label != "tie"]
    assert x.rate == pytest.approx(wins.count("x") / 300, abs=0.05)
    assert y.rate == pytest.approx(wins.count("y") / 300, abs=0.05)
    assert x.n_tasks == y.n_tasks == 300
    ties = [found.of("tie", system).rate for system in "xy"]
    assert ties[0] == pytest.approx(ties[1], abs=0.02)
    turned = {task: pair[::-1] for task, pair in systems.items()}
    other = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    swapped = [(task, judge, other[says]) for task, judge, says in rows]
    again = tb.judges.estimate_rates(
        tb.VariationalBayes().fit(swapped),
        {task: other[label] for task, label in known.items()},
        systems=turned,
    )
    assert again.of("win", "x").rate == pytest.approx(x.rate, abs=0.01)
    differences = [each for each in found.differences if each.method == "ppi"]
    assert {each.label for each in differences} == {"win", "tie"}


def test_the_command_reads_two_systems_a_task(tmp_path: Path) -> None:
    rows, truth, systems = made(80)
    files: dict[str, tuple[str, list[Any]]] = {
        "r.csv": ("task,worker,label", [*rows]),
        "gold.csv": ("task,label", [*truth.items()][:50]),
        "by.csv": ("task,model_a,model_b", [(task, *pair) for task, pair in systems.items()]),
    }
    for name, (header, lines) in files.items():
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([header.split(","), *lines])
    responses, gold, by = (tmp_path / name for name in files)
    done = tiebreak("judges", "rate", responses, "--gold", gold, "--by", by, "--json")
    assert done.exit_code == 0, done.stderr
    assert {rate["system"] for rate in json.loads(done.stdout)["rates"]} == {"x", "y"}


def test_classes_that_are_no_sides_are_refused() -> None:
    votes = [("a", "ann", "good"), ("b", "ann", "bad")]
    model = tb.VariationalBayes().fit(votes)
    with refused(tb.InputError, "no-classes-of-pairs"):
        tb.judges.estimate_rates(model, {"a": "good", "b": "bad"}, systems={"a": ("x", "y")})
