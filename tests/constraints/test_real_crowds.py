"""Constraints on real crowds: what one-to-one gives on Product, and that ZenCrowd loses nothing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import InputNote

pytestmark = [pytest.mark.data, pytest.mark.long]
SETS = ("product", "zencrowd_india", "zencrowd_us")
Rows = list[tuple[str, str]]


def read(name: str, data: Path, sets: Path) -> tuple[tb.Responses, tb.Gold, Rows]:
    responses = tb.read_responses(data / name / "responses.csv")
    file = f"{'product' if name == 'product' else 'zencrowd'}_groups.csv"
    with (sets / "data-constraints" / file).open(encoding="utf-8") as lines:
        rows = [(row["task"], row["group"]) for row in csv.DictReader(lines)]
    known = set(responses.tasks)
    return (
        responses,
        tb.read_gold(data / name / "gold.csv"),
        [row for row in rows if row[0] in known],
    )


def figures(model: Any, gold: tb.Gold) -> tuple[float, float, float]:
    """Return accuracy, F of "1" and log-loss."""
    names = [str(name) for name in tb.evaluate.f_by_class(model.labels_, gold)]
    f = dict(zip(names, tb.evaluate.f_by_class(model.labels_, gold).values(), strict=True))["1"]
    loss = tb.evaluate.log_loss(model.labels_, gold, floor=1e-4)
    return tb.evaluate.accuracy(model.labels_, gold), f, loss


def test_one_to_one_on_product(data_dir: Path, sets_dir: Path) -> None:
    responses, gold, rows = read("product", data_dir, sets_dir)
    rules = tb.Constraints.groups(rows, "at most one", "1")
    accuracy, _, loss = figures(tb.VariationalBayes().fit(responses, constraints=rules), gold)
    assert accuracy >= 0.942
    assert loss <= 0.17
    learnt = tb.Constraints.groups(rows, "at most one", "1", none="learn")
    accuracy, f, loss = figures(tb.VariationalBayes().fit(responses, constraints=learnt), gold)
    assert accuracy >= 0.965
    assert f >= 0.855
    assert loss <= 0.11


@pytest.mark.parametrize("name", ["zencrowd_india", "zencrowd_us"])
def test_where_nothing_is_broken_nothing_is_lost(name: str, data_dir: Path, sets_dir: Path) -> None:
    responses, gold, rows = read(name, data_dir, sets_dir)
    rules = tb.Constraints.groups(rows, "at most one", "1")
    model: Any = tb.VariationalBayes().fit(responses, constraints=rules)
    plain = figures(tb.VariationalBayes().fit(responses), gold)
    found = figures(model, gold)
    assert len(model.violations_) == 0
    assert found[0] >= plain[0] - 0.005
    assert found[1] >= plain[1] - 0.005
    assert found[2] <= plain[2] + 0.005


@pytest.mark.parametrize("name", SETS)
def test_evidence_tells_true_groups_from_random_ones(
    name: str, data_dir: Path, sets_dir: Path
) -> None:
    responses, _, rows = read(name, data_dir, sets_dir)
    model: Any = tb.VariationalBayes().fit(
        responses, constraints=tb.Constraints.groups(rows, "at most one", "1")
    )
    assert model.constraint_report_.evidence > 0.0
    for seed in range(2 if name == "product" else 10):
        rng = np.random.default_rng(seed)
        dealt = []
        for side in sorted({group[0] for _, group in rows}):  # each side of Product on its own
            own = [row for row in rows if row[1][0] == side]
            tasks = rng.permutation([task for task, _ in own]).tolist()
            dealt += list(zip(tasks, [group for _, group in own], strict=True))
        rules = tb.Constraints.groups(dealt, "at most one", "1")
        with pytest.warns(InputNote) as raised:
            model = tb.VariationalBayes().fit(responses, constraints=rules)
        assert model.constraint_report_.evidence < 0.0
        assert "constraints-against-responses" in [each.message.code for each in raised]  # type: ignore[union-attr]
