"""Auto: gold weighs methods, says what each scored, and little gold does no harm."""

from __future__ import annotations

import csv
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak import simulate
from tiebreak.gold import GoldCodes
from tiebreak.inference import comparison, stacking
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.folds import deal
from tiebreak.inference.stages import lay_out

JURIES = os.environ.get("TIEBREAK_JURIES", "")


def _jury(
    n_tasks: int, rights: list[float], n_copies: int = 0, seed: int = 0
) -> tuple[list[Any], dict[str, str]]:
    """Make judges who are right so often; the last one has copies that say what it says."""
    rng = np.random.default_rng(seed)
    truth = {f"t{i}": "xy"[rng.integers(2)] for i in range(n_tasks)}
    rows = []
    for task, k in truth.items():
        for j, right in enumerate(rights):
            said = k if rng.random() < right else ("y" if k == "x" else "x")
            rows.append((task, f"j{j}", said))
        rows += [(task, f"copy{n}", said) for n in range(n_copies)]
    return rows, truth


def _right(model: Any, truth: Any, known: Any) -> float:
    best = model.labels_.best()
    return float(np.mean([best[task] == k for task, k in truth.items() if task not in known]))


def test_where_a_herd_of_copies_is_wrong_the_best_judge_or_the_pool_counts_most() -> None:
    rows, truth = _jury(300, [0.9, 0.45], n_copies=8)
    known = dict(list(truth.items())[:60])
    auto = tb.Auto().fit(rows, gold=known)
    assert auto.chosen_ in ("pool", "best worker", "best+crowd")
    assert auto.best_worker_ == "j0"
    assert _right(auto, truth, known) > 0.85
    chosen = [member for member in auto.members_ if member.is_chosen]
    assert [member.name for member in chosen] == [auto.chosen_]
    assert chosen[0].lead > chosen[0].lead_error > 0.0
    assert sum(member.weight for member in auto.members_) == pytest.approx(1.0)
    assert chosen[0].weight == max(member.weight for member in auto.members_)


def test_where_workers_err_apart_vb_counts_most_and_its_labels_stand() -> None:
    crowd = simulate.crowd(300, 12, 3, responses_per_task=6, random_state=4)
    known = dict(list(crowd.gold.to_dict().items())[:40])
    auto = tb.Auto().fit(crowd.responses, gold=known)
    assert auto.chosen_ == "vb"
    alone = tb.VariationalBayes().fit(crowd.responses, gold=known)
    truth = crowd.gold.to_dict()
    assert _right(auto, truth, known) >= _right(alone, truth, known) - 0.01
    np.testing.assert_allclose(auto.confusion_, alone.confusion_)
    assert (auto.model_.probabilities_ == alone.probabilities_).all()


def test_the_probabilities_are_the_log_pool_of_the_methods_by_their_weights() -> None:
    """Where one method has all the weight, Auto is that method: [eq:stack]."""
    rows, truth = _jury(150, [0.85, 0.7, 0.7, 0.6])
    known = dict(list(truth.items())[:40])
    vb = tb.VariationalBayes().fit(rows, gold=known)
    pool = tb.LogOpinionPool().fit(rows, gold=known)
    for name, alone in (("vb", vb), ("pool", pool), ("both", None)):

        def weigh(predicted: Any, *_: Any, name: str = name) -> Any:
            weights = np.zeros(len(predicted))
            weights[:2] = {"vb": (1.0, 0.0), "pool": (0.0, 1.0), "both": (0.5, 0.5)}[name]
            return weights

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stacking, "weigh", weigh)
            auto = tb.Auto().fit(rows, gold=known)
        rest = [i for i, task in enumerate(auto.tasks_) if task not in known]
        expected = (
            np.sqrt(vb.probabilities_ * pool.probabilities_)
            if alone is None
            else alone.probabilities_
        )
        expected = np.maximum(expected, 1e-9)
        expected = expected / expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(auto.probabilities_[rest], expected[rest], atol=2e-3)


def test_every_member_foretells_tasks_whose_label_it_has_not_seen() -> None:
    """A member that echoes what it knows scores as one that knows nothing."""
    label = np.array([0, 1] * 20, dtype=np.int32)
    gold = GoldCodes(np.arange(40, dtype=np.int32), label)

    def echo(known: GoldCodes, asked: Any) -> Any:
        assert not set(known.task.tolist()) & set(asked.tolist())
        assert len(known.task) + len(asked) == 40
        return np.full((len(asked), 2), 0.5)

    found = comparison.compare({"vb": echo, "other": echo}, gold, None)
    assert [each.weight for each in found] == pytest.approx([8 / 9, 1 / 9], abs=0.02), "the prior's"
    assert found[1].log_loss == pytest.approx(np.log(2.0))
    assert found[1].lead == 0.0
    fold = deal(label, 5)
    assert (np.bincount(fold) == 8).all()
    assert all(np.bincount(fold[label == k]).max() == 4 for k in (0, 1)), "classes are dealt evenly"


def test_the_best_worker_is_heard_and_where_silent_the_next() -> None:
    rows = [("a", "good", "x"), ("a", "bad", "y"), ("b", "good", "y"), ("b", "bad", "x")]
    rows += [("c", "bad", "x"), ("d", "good", "y"), ("d", "bad", "x")]
    crowd = tb.Responses.from_rows(rows)
    gold = tb.Gold.from_dict({"a": "x", "b": "y"}).on(crowd.tasks, crowd.classes)
    best = BestWorker.of(lay_out(crowd), np.array([0.5, 0.5]), gold)
    heard = [crowd.workers[int(w)] for w in best.worker]
    assert heard == ["good", "good", "bad", "good"]
    p = np.exp(best.scores())
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[3].max() == pytest.approx((2 + 4 * 0.5) / (2 + 4)), "[eq:best-worker]"


def test_held_out_tasks_come_back_in_the_order_of_gold() -> None:
    """A member that says a task's own number gets each task's label right, whatever its fold."""
    label = np.random.default_rng(0).integers(0, 2, 30).astype(np.int32)
    gold = GoldCodes(np.arange(30, dtype=np.int32)[::-1].copy(), label)
    of_task = dict(zip(gold.task.tolist(), label.tolist(), strict=True))

    def knows(_: GoldCodes, asked: Any) -> Any:
        return np.array([np.eye(2)[of_task[task]] for task in asked.tolist()])

    def blind(_: GoldCodes, asked: Any) -> Any:
        return np.full((len(asked), 2), 0.5)

    found = comparison.compare({"vb": blind, "other": knows}, gold, None)
    assert found[1].accuracy == 1.0
    assert found[1].weight > 0.5


def test_links_join_what_the_methods_say() -> None:
    rows, truth = _jury(120, [0.8, 0.7, 0.7])
    known = dict(list(truth.items())[:30])
    links = simulate.links(tb.Gold.from_dict(truth), 60, random_state=1)
    alone = tb.Auto().fit(rows, gold=known)
    linked = tb.Auto().fit(rows, gold=known, links=links)
    assert linked.violations_ is not None
    assert len(linked.violations_) == 0
    assert _right(linked, truth, known) > _right(alone, truth, known)
    vb = tb.VariationalBayes().fit(rows, gold=known, links=links)
    assert _right(linked, truth, known) >= _right(vb, truth, known) - 0.03
    learnt = tb.Auto(link_options=tb.ExactLinkOptions(error="learn"))
    assert learnt.fit(rows, gold=known, links=links).doubtful_links_ is not None


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (None, "Without gold nothing can be compared"),
        (5, "With 5 gold labels methods cannot be compared"),
        ("one class", "All gold is 'x'"),
    ],
)
def test_too_little_gold_is_vb_with_a_note(gold: Any, said: str) -> None:
    rows, truth = _jury(80, [0.8, 0.7, 0.7])
    known: dict[str, str] | None = dict(list(truth.items())[: gold if gold == 5 else 0]) or None
    if gold == "one class":
        known = {task: k for task, k in truth.items() if k == "x"}
    with pytest.warns(tb.InputNote, match=said):
        auto = tb.Auto().fit(rows, gold=known)
    assert auto.chosen_ == "vb"
    assert auto.members_ == ()
    assert len(auto.labels_) == 80


def test_odd_juries_are_fitted_without_a_crash_and_not_too_sure() -> None:
    rows, truth = _jury(100, [0.75])
    known = dict(list(truth.items())[:40])
    same = [(t, name, k) for t, _, k in rows for name in ("a", "b", "c")]
    against = {task: "y" if k == "x" else "x" for task, k in known.items()}
    for crowd, gold in ((rows, known), (same, known), (same, against)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tb.InputNote)
            auto = tb.Auto().fit(crowd, gold=gold)
        rest = [i for i, task in enumerate(auto.tasks_) if task not in gold]
        assert auto.probabilities_[rest].max() < 0.95
        assert np.isfinite(auto.probabilities_).all()


def test_a_judge_that_always_abstains_changes_nothing() -> None:
    rows, truth = _jury(100, [0.8, 0.7])
    known = dict(list(truth.items())[:40])
    columns = {
        "task": [t for t, _, _ in rows] + list(truth),
        "worker": [w for _, w, _ in rows] + ["mute"] * len(truth),
        "label": [k for _, _, k in rows] + [None] * len(truth),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        silent = tb.Auto().fit(tb.read_responses(columns), gold=known)
        without = tb.Auto().fit(rows, gold=known)
    assert silent.labels_.best() == without.labels_.best()


def test_parameters_are_kept_and_used() -> None:
    from sklearn.base import clone

    rows, truth = _jury(100, [0.8, 0.7, 0.7])
    auto = clone(tb.Auto(gold_weight=1, dependence=0.5, tol=1e-4))
    assert auto.get_params()["gold_weight"] == 1
    auto.fit(rows, gold=dict(list(truth.items())[:5] + list(truth.items())[10:15]))
    assert auto.model_.get_params()["dependence"] == 0.5
    with pytest.warns(tb.InputNote, match="Without gold"):
        auto.fit(rows)
    assert auto.model_.get_params()["dependence"] == 0.5
    with pytest.raises(tb.OptionError, match="Auto infers links exactly"):
        tb.Auto(link_options=tb.MeanFieldOptions()).fit(rows)


def _llmbar() -> tuple[tb.Responses, dict[str, str]]:
    """Read the last verdict of each of the 65 judges, whatever the order."""
    folder = Path(JURIES) / "llmbar"
    with (folder / "responses.csv").open(encoding="utf-8") as file:
        last = {(row["task"], row["worker"]): row["label"] for row in csv.DictReader(file)}
    with (folder / "gold.csv").open(encoding="utf-8") as file:
        gold = {row["task"]: row["label"] for row in csv.DictReader(file)}
    return tb.Responses.from_rows([(*pair, label) for pair, label in last.items()]), gold


@pytest.mark.long
@pytest.mark.data
@pytest.mark.skipif(not JURIES, reason="TIEBREAK_JURIES is not set")
@pytest.mark.parametrize(("n_known", "at_least"), [(25, 0.82), (50, 0.86)])
def test_a_jury_that_errs_together_is_cured_by_gold(n_known: int, at_least: float) -> None:
    """llmbar: plain VB is right on .49 of the tasks, the best judge in hindsight on .87."""
    responses, gold = _llmbar()
    found = []
    for seed in (40, 41):
        drawn = np.random.default_rng(seed).choice(list(gold), n_known, replace=False)
        known = {str(task): gold[str(task)] for task in drawn}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tb.InputNote)
            found.append(_right(tb.Auto().fit(responses, gold=known), gold, known))
    assert np.mean(found) >= at_least
