"""Repeated runs, orders and stated confidence: what each response is worth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import noted

import tiebreak as tb
from tiebreak.data import Extras, Responses, runs, weigh

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
JURIES = os.environ.get("TIEBREAK_JURIES", "")


def panel(
    n_tasks: int = 300,
    n_judges: int = 5,
    n_runs: int = 6,
    repeat: float = 0.6,
    right: float = 0.75,
    seed: int = 0,
) -> tuple[list[tuple[int, str, int, int]], np.ndarray[Any, Any]]:
    """Make judges of whom two runs are one and the same thought with chance `repeat`."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_tasks)
    rows = []
    for i in range(n_tasks):
        for j in range(n_judges):
            drawn = rng.random(n_runs + 1) < right
            wrong = (truth[i] + rng.integers(1, 3, n_runs + 1)) % 3
            label = np.where(drawn, truth[i], wrong)
            label[rng.random(n_runs + 1) < repeat**0.5] = label[-1]
            rows += [(i, f"judge {j}", int(label[r]), r) for r in range(n_runs)]
    return rows, truth


def table_of(rows: list[tuple[Any, ...]], *more: str) -> dict[str, list[Any]]:
    names = ("task", "worker", "label", "run", *more)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("repeat", [0.4, 0.6, 0.9])
def test_the_correlation_of_runs_is_found(repeat: float) -> None:
    """It may be too high, where others vote badly, never too low."""
    rows, _ = panel(n_tasks=1500, right=0.8, repeat=repeat)
    found = tb.read_responses(table_of(rows))
    assert found.runs is not None
    assert repeat - 0.03 < found.runs.run_correlation < repeat + 0.2


def test_runs_that_never_change_are_one_vote() -> None:
    rows, _ = panel(repeat=1.0)
    found = tb.read_responses(table_of(rows))
    assert found.weight is not None
    assert found.n_responses == 300 * 5
    assert np.all((found.weight >= 1.0) & (found.weight < 1.2))


def test_the_weight_of_a_run_is_the_design_effect() -> None:
    rows, _ = panel(n_tasks=50, repeat=0.5)
    found = tb.read_responses(table_of(rows))
    assert found.runs is not None
    assert found.weight is not None
    rho = np.array([row.run_correlation for row in found.runs.workers])
    worker = found.worker_of_each()
    pair = found.task_of_each() * 5 + worker
    total = np.bincount(pair, weights=found.weight)
    expected = 6.0 / (1.0 + 5.0 * np.tile(rho, 50))
    assert total == pytest.approx(expected)


def test_agreement_with_oneself_is_confidence() -> None:
    """A judge that says the same eight times moves a task more than one that is of two minds."""
    rows, _ = panel(n_tasks=400, n_judges=3, n_runs=8, repeat=0.3)
    model = tb.VariationalBayes().fit(tb.read_responses(table_of(rows)))
    crowd = model.responses_
    assert crowd.weight is not None
    lone = np.bincount(crowd.task_of_each(), minlength=400) == 3
    sure = model.probabilities_.max(axis=1)
    assert sure[lone].mean() > sure[~lone].mean()


def test_order_of_rows_does_not_matter() -> None:
    rows, _ = panel(n_tasks=60)
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    one = tb.VariationalBayes().fit(tb.read_responses(table_of(rows)))
    other = tb.VariationalBayes().fit(tb.read_responses(table_of(shuffled)))
    best = other.labels_.best()
    assert one.labels_.best() == {task: best[task] for task in one.labels_.best()}


def test_cutting_tasks_into_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = panel(n_tasks=80)
    order = [row[3] % 2 for row in rows]
    table = table_of(rows) | {"order": [("AB", "BA")[o] for o in order]}
    whole = tb.read_responses(table)
    monkeypatch.setattr(runs, "CELLS_AT_ONCE", 100)
    monkeypatch.setattr(runs, "MOST_PARTS", 10**9)
    parts = tb.read_responses(table)
    assert whole.weight == pytest.approx(parts.weight)


def test_no_repeats_leave_responses_as_they_are() -> None:
    rows, _ = panel(n_runs=1)
    found = tb.read_responses(table_of(rows))
    assert found.weight is None
    assert found.runs is None


def test_weighing_twice_is_weighing_once() -> None:
    rows, _ = panel(n_tasks=20)
    once = tb.read_responses(table_of(rows))
    assert weigh(once) is once


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method", ["mv", "ds", "vb"])
def test_ten_runs_of_one_judge_never_beat_three_unanimous_people(noise: float, method: str) -> None:
    rng = np.random.default_rng(0)
    rows: list[tuple[Any, ...]] = []
    for task in range(60):
        truth = int(rng.integers(0, 2))
        verdict = 1 - truth if task % 2 else truth
        for run in range(10):
            label = int(rng.integers(0, 2)) if rng.random() < noise else verdict
            rows.append((task, "judge", label, run))
        rows += [(task, who, truth, 0) for who in ("ann", "bob", "cat")]
    crowd = tb.read_responses(table_of(rows))
    models: dict[str, Any] = {
        "mv": tb.MajorityVote(),
        "ds": tb.DawidSkene(),
        "vb": tb.VariationalBayes(),
    }
    found = models[method].fit(crowd).labels_.best()
    people = {task: label for task, who, label, _ in rows if who == "ann"}
    assert found == people


def both_orders(bias: float, seed: int = 0) -> dict[str, list[Any]]:
    """Judges see each pair both ways, and take the first with chance `bias` whatever it is."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(400):
        truth = int(rng.integers(1, 3))
        for judge in range(4):
            for order in ("12", "21"):
                label = truth if rng.random() < 0.8 else 3 - truth
                label = int(order[0]) if rng.random() < bias else label
                rows.append((task, f"judge {judge}", str(label), 0, order))
    return table_of(rows, "order")


def test_flip_rate_and_preference_for_the_first() -> None:
    biased = tb.read_responses(both_orders(0.5)).runs
    fair = tb.read_responses(both_orders(0.0)).runs
    assert biased is not None
    assert fair is not None
    for row in biased.workers:
        assert row.n_both == 400
        assert row.first_preference == pytest.approx(0.75, abs=0.04)
        assert row.flip_rate == pytest.approx(0.25 + 0.5 * 0.5 + 0.25 * 0.32 - 0.0, abs=0.08)
    for row in fair.workers:
        assert row.first_preference == pytest.approx(0.5, abs=0.04)


def stated(informative: bool) -> tuple[dict[str, list[Any]], dict[int, str]]:
    rng = np.random.default_rng(7)
    rows = []
    gold = {}
    for task in range(500):
        truth = int(rng.integers(0, 2))
        gold[task] = "ab"[truth]
        for judge in range(4):
            chance = rng.choice([0.55, 0.95])
            label = truth if rng.random() < chance else 1 - truth
            said = 0.99 if (chance > 0.9 if informative else rng.random() < 0.5) else 0.9
            rows.append((task, f"judge {judge}", "ab"[label], 0, said))
    return table_of(rows, "confidence"), gold


def test_confidence_counts_as_far_as_it_predicts() -> None:
    table, gold = stated(informative=True)
    used = tb.read_responses(table)
    assert used.runs is not None
    assert min(row.slope for row in used.runs.workers) > 0.3
    fitted = tb.VariationalBayes().fit(used)
    table.pop("confidence")
    plain = tb.VariationalBayes().fit(tb.read_responses(table))
    log_loss = tb.evaluate.log_loss
    assert log_loss(fitted.labels_, gold) < log_loss(plain.labels_, gold)


def test_confidence_that_tells_nothing_is_hardly_used() -> None:
    table, _ = stated(informative=False)
    found = tb.read_responses(table)
    assert found.runs is not None
    assert max(row.slope for row in found.runs.workers) < 0.3


@pytest.mark.parametrize("values", [["high"] * 6, [-1.0] * 6, [1000] * 6])
def test_confidence_that_is_no_scale_is_told(values: list[Any]) -> None:
    table = {"task": [1, 1, 2, 2, 3, 3], "worker": ["a", "b"] * 3, "label": [0, 1, 0, 0, 1, 1]}
    with noted("confidence-unused"):
        found = tb.read_responses(table | {"confidence": values})
    assert found.weight is None


def test_groups_are_kept() -> None:
    table = {"task": [1, 1], "worker": ["a", "b"], "label": [0, 1], "family": ["x", "y"]}
    found = tb.read_responses(table)
    assert found.runs is not None
    assert found.runs.groups() == {"a": "x", "b": "y"}
    assert found.weight is None


def test_packing_keeps_weights_and_what_runs_showed(tmp_path: Path) -> None:
    rows, _ = panel(n_tasks=20)
    made = tb.read_responses(table_of(rows))
    made.write(tmp_path / "x.tb")
    back = tb.read_responses(tmp_path / "x.tb")
    assert back.weight is not None
    assert (back.weight == made.weight).all()
    assert str(back.runs) == str(made.runs)
    assert back.runs is not None
    assert made.runs is not None
    assert str(back.runs.workers) == str(made.runs.workers)


def test_other_classes_keep_weights_in_place() -> None:
    crowd = Responses.from_codes(
        [0, 0],
        [0, 0],
        [0, 1],
        tb.Responses.from_rows([("t", "w", "x")]).tasks,
        tb.Responses.from_rows([("t", "w", "x")]).workers,
        tb.Responses.from_rows([("t", "w", "x"), ("u", "w", "y")]).classes,
        weight=[1.0, 2.0],
    )
    turned = crowd.with_class_order(tb.Responses.from_rows([("t", "w", "y")]).classes)
    assert turned.weight is not None
    assert dict(zip(turned.label_of_each().tolist(), turned.weight.tolist(), strict=True)) == {
        0: 2.0,
        1: 1.0,
    }
    assert Extras().is_given is False


@pytest.mark.data
@pytest.mark.skipif(not JURIES, reason="TIEBREAK_JURIES is not set")
@pytest.mark.parametrize(
    ("name", "accuracy", "loss"), [("rewardbench2", 0.893, 0.36), ("llmbar", 0.83, 0.6)]
)
def test_real_juries_as_their_files_are(name: str, accuracy: float, loss: float) -> None:
    crowd = tb.read_responses(f"{JURIES}/{name}/responses.csv")
    gold = tb.read_gold(f"{JURIES}/{name}/gold.csv")
    labels = tb.VariationalBayes(dependence=0.5).fit(crowd).labels_
    assert tb.evaluate.accuracy(labels, gold) >= accuracy
    assert tb.evaluate.log_loss(labels, gold, floor=1e-4) <= loss


def test_soft_votes_count_as_far_as_they_predict() -> None:
    rng = np.random.default_rng(0)
    task, worker, yes = [], [], []
    gold = {}
    for i in range(400):
        truth = int(rng.integers(0, 2))
        gold[i] = ("no", "yes")[truth]
        for j in range(3):
            score = (2 * truth - 1) + rng.normal() * 1.2
            task.append(i)
            worker.append(f"judge {j}")
            yes.append(float(1.0 / (1.0 + np.exp(-score * (1 + 2 * j)))))
    no = [1.0 - p for p in yes]
    table = {"task": task, "worker": worker}
    soft = tb.read_responses(table | {"probability_no": no, "probability_yes": yes})
    hard = tb.read_responses(table | {"label": ["yes" if p > 0.5 else "no" for p in yes]})
    log_loss = tb.evaluate.log_loss
    fits = [tb.VariationalBayes().fit(crowd).labels_ for crowd in (soft, hard)]
    assert log_loss(fits[0], gold) < log_loss(fits[1], gold)
    assert soft.runs is not None
    slopes = [row.slope for row in soft.runs.workers]
    assert slopes[0] > slopes[2]  # the judge that is the surest of itself is taken down the most


def test_soft_votes_must_be_probabilities() -> None:
    table = {"task": [1], "worker": ["w"], "probability_no": [0.3], "probability_yes": [0.3]}
    with pytest.raises(tb.InputError, match="do not sum to 1"):
        tb.read_responses(table)


def test_agreement_and_dependence_see_each_judge_once() -> None:
    rows, truth = panel(n_tasks=200, repeat=0.6)
    crowd = tb.read_responses(table_of(rows))
    voted = tb.read_responses(table_of(rows), repeats="vote")
    assert tb.judges.agreement_report(crowd).percent == tb.judges.agreement_report(voted).percent
    gold = dict(enumerate(truth.tolist()))
    found = tb.judges.error_dependence(tb.VariationalBayes().fit(crowd), gold)
    assert 4.0 < found.n_responses <= 5.0
