"""Baselines of the literature, an oracle where there is one, and the figures they reproduce."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import tiebreak as tb

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "accuracy" / "methods"
FILES = sorted(FOLDER.glob("[a-z]*.py"))
NOT_HERE = ("gibbs", "ebcc40", "ebcc_web")  # slow, and of one dataset
CROWD = tb.simulate.crowd(150, 8, 2, accuracy=(0.6, 0.9), random_state=2)


@pytest.fixture
def layout(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import files of the folder as they import each other."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def accuracy_driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.accuracy.__main__")


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem not in NOT_HERE], ids=lambda p: p.stem
)
def test_a_baseline_is_hardly_worse_than_the_vote_where_all_is_well(path: Path) -> None:
    found = tb.bench.run({"s": (CROWD.responses, CROWD.gold)}, ["mv", str(path)], seeds=1)
    assert found.failures == []
    table = found.table()
    assert table[path.stem]["s"] >= table["mv"]["s"] - 0.05


def test_every_baseline_says_in_its_first_line_what_it_is() -> None:
    assert len(FILES) >= 22
    for path in FILES:
        assert path.read_text("utf-8").startswith('"""'), path.name


def test_dawid_skene_is_ours_without_smoothing(layout: Any) -> None:
    theirs = layout("ds_em").aggregate(CROWD.responses)
    ours = tb.DawidSkene(smoothing=1e-9, tol=1e-9).fit(CROWD.responses).probabilities_
    assert np.abs(theirs - ours).max() < 1e-3


def test_ibcc_has_the_labels_of_plain_vb(layout: Any) -> None:
    theirs = layout("ibcc").aggregate(CROWD.responses)
    ours = tb.VariationalBayes(confusion_prior=(4.0, 1.0), calibrate="none").fit(CROWD.responses)
    assert (theirs.argmax(1) == ours.probabilities_.argmax(1)).mean() > 0.99


@pytest.mark.parametrize("seed", range(6))
def test_the_margin_of_m3v_is_the_optimum(layout: Any, seed: int) -> None:
    """Compare the dual ascent with a general solver on small crowds of three classes."""
    crowd = tb.simulate.crowd(12, 5, 3, accuracy=0.6, random_state=seed).responses
    c = layout("_layout").Layout(crowd)
    cost = 0.25
    y = c.votes(np.ones(c.n_workers)).argmax(1)
    said = np.zeros((c.n_tasks, 3, c.n_workers))
    said[c.i, c.label, c.j] = 1.0
    rows, at = np.arange(c.n_tasks), (np.arange(3)[None, :] != y[:, None]) * 1.0

    def objective(eta: Any, slack: Any) -> float:
        return float(0.5 * eta @ eta + cost * slack.sum())

    def margins(eta: Any) -> Any:
        score = said @ eta
        return at - (score[rows, y][:, None] - score)

    share = cost * np.eye(3)[y]
    eta = layout("m3v").largest_margin(c.start, c.j, c.label, y, share, c.n_workers)
    ours = objective(eta, margins(eta).max(1).clip(0.0))
    n = c.n_workers
    solved = minimize(
        lambda x: objective(x[:n], x[n:]),
        np.r_[eta, margins(eta).max(1).clip(0.0)],
        method="SLSQP",
        bounds=[(None, None)] * n + [(0.0, None)] * c.n_tasks,
        constraints={"type": "ineq", "fun": lambda x: (x[n:, None] - margins(x[:n])).ravel()},
        options={"maxiter": 500},
    )
    assert ours <= solved.fun + 3e-4


def test_a_dataset_is_a_folder_and_three_lines(
    accuracy_driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CROWD.responses.write(tmp_path / "responses.csv")
    CROWD.gold.write(tmp_path / "gold.csv")
    monkeypatch.setenv("MINE", str(tmp_path))
    monkeypatch.setitem(accuracy_driver.SETS, "mine", {"group": "datasets", "folder": "$MINE"})
    monkeypatch.setattr(accuracy_driver, "RECORD", tmp_path / "record.jsonl")
    accuracy_driver.measure(["mine"], ["mv", "wawa"])
    cells = tb.bench.read_record(tmp_path / "record.jsonl")
    assert [(cell["set"], cell["method"]) for cell in cells] == [("mine", "mv"), ("mine", "wawa")]


@pytest.mark.data
def test_published_figures_come_out_of_the_code_of_today(data_dir: Path) -> None:
    printed = {
        "ibcc": {"bluebird": 0.888889, "dog": 0.83891, "rte": 0.9275},
        "bwa": {"bluebird": 0.759259, "dog": 0.831475, "rte": 0.9275},
    }
    files = [str(FOLDER / f"{name}.py") for name in printed]
    table = tb.bench.run(["bluebird", "dog", "rte"], files).table()
    for method, figures in printed.items():
        for name, figure in figures.items():
            assert round(table[method][name], 6) == figure, json.dumps((method, name))
