"""fuse --method pool and auto, and --gold-weight: what the commands say and refuse."""

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


def test_auto_says_what_each_method_scored(run: Any, jury: Path) -> None:
    found = run(
        "fuse", jury / "responses.csv", "--gold", jury / "gold.csv", "--method", "auto",
        "-o", jury / "labels.csv",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    assert "with 50 gold labels: " in found.stderr
    assert "VB ." in found.stderr
    assert "best worker ." in found.stderr
    assert "; pooled, they count ." in found.stderr


def test_the_scores_of_auto_are_in_the_json_summary(run: Any, jury: Path) -> None:
    found = run(
        "fuse", jury / "responses.csv", "--gold", jury / "gold.csv", "--method", "auto",
        "-o", jury / "labels.csv", "--json",
    )  # fmt: skip
    summary = json.loads(found.stdout)
    assert summary["chosen"] in summary["members"]
    vb = summary["members"]["vb"]
    assert vb["lead"] == 0.0
    assert vb["interval"][0] < vb["accuracy"] < vb["interval"][1]


def test_pool_without_gold_is_refused_with_the_way_out(run: Any, jury: Path) -> None:
    found = run("fuse", jury / "responses.csv", "--method", "pool")
    assert found.exit_code == 2
    assert "learns weights from gold" in found.stderr


def test_gold_weight_is_read_and_checked(run: Any, jury: Path) -> None:
    base = ("fuse", jury / "responses.csv", "--gold", jury / "gold.csv", "-o", jury / "l.csv")
    assert run(*base, "--gold-weight", "1").exit_code == 0
    assert run(*base, "--gold-weight", "auto", "--method", "ds").exit_code == 0
    assert run(*base, "--gold-weight", "much").exit_code == 2
    refused = run(*base, "--gold-weight", "0")
    assert refused.exit_code == 2
    assert "above 0" in refused.stderr
    assert run(*base, "--gold-weight", "2", "--method", "mv").exit_code == 2
