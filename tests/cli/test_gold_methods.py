"""fuse with gold: members and weights, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def jury(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    truth = {f"t{i}": "xy"[rng.integers(2)] for i in range(120)}
    with (tmp_path / "responses.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["task", "worker", "label"])
        for task, k in truth.items():
            for judge, right in (("a", 0.9), ("b", 0.6), ("c", 0.6)):
                out.writerow([task, judge, k if rng.random() < right else "xy"[k == "x"]])
    with (tmp_path / "gold.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["task", "label"])
        out.writerows(list(truth.items())[:50])
    return tmp_path


def test_gold_moves_the_default_and_the_summary_says_how_it_differs(run: Any, jury: Path) -> None:
    found = run(
        "fuse", jury / "responses.csv", "--gold", jury / "gold.csv",
        "-o", jury / "labels.csv", "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    summary = json.loads(found.stdout)
    assert summary["method"] == "auto"
    names = [member["name"] for member in summary["members"]]
    assert names == ["votes", "first-step", "even", "kinds"]
    assert summary["from_vote"]["n_differ"] > 0
    assert summary["from_vote"]["expected_right"] is None  # three workers: it cannot be told
    with (jury / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (jury / "gold.csv").open(newline="") as file:
        known = {row["task"] for row in csv.DictReader(file)}
    differ = [row for row in rows if row["vote"] not in ("", row["label"])]
    n_differ = sum(row["task"] not in known for row in differ)
    assert n_differ == summary["from_vote"]["n_differ"]


def test_members_are_chosen_on_the_command_line(run: Any, jury: Path) -> None:
    base = ("fuse", jury / "responses.csv", "-o", jury / "labels.csv", "--json")
    found = json.loads(run(*base, "--set", "members=votes, first-step").stdout)
    assert [member["name"] for member in found["members"]] == ["votes", "first-step"]
    refused = run(*base, "--set", "members=votes,best")
    assert refused.exit_code == 2
    assert "first-step" in refused.stderr


def test_gold_weight_is_read_and_checked(run: Any, jury: Path) -> None:
    base = ("fuse", jury / "responses.csv", "--gold", jury / "gold.csv", "-o", jury / "l.csv")
    assert run(*base, "--set", "gold_weight=1").exit_code == 0
    assert run(*base, "--set", "gold_weight=auto", "--method", "ds").exit_code == 0
    assert run(*base, "--set", "gold_weight=much").exit_code == 2
    refused = run(*base, "--set", "gold_weight=0")
    assert refused.exit_code == 2
    assert "above 0" in refused.stderr
    assert run(*base, "--set", "gold_weight=2", "--method", "mv").exit_code == 2
