"""Auto: gold chooses among methods, says what each scored, and little gold does no harm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak import simulate
from tiebreak.gold import GoldCodes
from tiebreak.inference import comparison
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.comparison import Member
from tiebreak.inference.folds import deal
from tiebreak.inference.stages import lay_out


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


def _right(model: Any, truth: dict[str, str], known: Any) -> float:
    best = model.labels_.best()
    return float(np.mean([best[task] == k for task, k in truth.items() if task not in known]))


def test_where_a_herd_of_copies_is_wrong_the_best_judge_or_the_pool_is_used() -> None:
    rows, truth = _jury(300, [0.9, 0.45], n_copies=8)
    known = dict(list(truth.items())[:60])
    auto = tb.Auto().fit(rows, gold=known)
    assert auto.chosen_ in ("pool", "best worker")
    assert auto.best_worker_ == "j0"
    assert _right(auto, truth, known) > 0.85
    chosen = [member for member in auto.members_ if member.is_chosen]
    assert [member.name for member in chosen] == [auto.chosen_]
    assert chosen[0].lead > chosen[0].lead_error > 0.0


def test_where_workers_err_apart_vb_is_kept_and_is_what_vb_alone_gives() -> None:
    crowd = simulate.crowd(300, 12, 3, responses_per_task=6, random_state=4)
    known = dict(list(crowd.gold.to_dict().items())[:40])
    auto = tb.Auto().fit(crowd.responses, gold=known)
    assert auto.chosen_ == "vb"
    alone = tb.VariationalBayes().fit(crowd.responses, gold=known)
    assert (auto.probabilities_ == alone.probabilities_).all()
    assert isinstance(auto.model_, tb.VariationalBayes)


def test_the_rule_keeps_vb_unless_another_leads_by_a_standard_error() -> None:
    def member(name: str, lead: float, error: float) -> Member:
        return Member(name, 0.8, (0.7, 0.9), 0.5, lead, error)

    vb = member("vb", 0.0, 0.0)
    assert comparison.choose([vb, member("pool", 0.10, 0.11)]) == "vb"
    assert comparison.choose([vb, member("pool", 0.12, 0.11)]) == "pool"
    assert comparison.choose([vb, member("pool", 0.12, 0.11), member("mv", 0.2, 0.3)]) == "pool"
    assert comparison.choose([vb, member("pool", 0.12, 0.1), member("mv", 0.2, 0.1)]) == "mv"


def test_every_member_foretells_tasks_whose_label_it_has_not_seen() -> None:
    """A member that echoes what it knows scores as one that knows nothing."""
    label = np.array([0, 1] * 20, dtype=np.int32)
    gold = GoldCodes(np.arange(40, dtype=np.int32), label)

    def echo(known: GoldCodes, asked: Any) -> Any:
        assert not set(known.task.tolist()) & set(asked.tolist())
        assert len(known.task) + len(asked) == 40
        return np.full((len(asked), 2), 0.5)

    found = comparison.compare({"vb": echo, "other": echo}, gold, None)
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


@pytest.mark.parametrize("name", ["best worker", "mv"])
def test_links_join_the_best_worker_and_votes_too(name: str, monkeypatch: Any) -> None:
    rows, truth = _jury(120, [0.8, 0.7, 0.7])
    known = dict(list(truth.items())[:30])
    links = simulate.links(tb.Gold.from_dict(truth), 60, random_state=1)
    monkeypatch.setattr(comparison, "choose", lambda found: name)
    alone = tb.Auto().fit(rows, gold=known)
    linked = tb.Auto().fit(rows, gold=known, links=links)
    assert linked.chosen_ == name
    assert linked.violations_ is not None
    assert len(linked.violations_) == 0
    assert _right(linked, truth, known) > _right(alone, truth, known)


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


def test_parameters_are_kept_and_given_to_what_is_chosen() -> None:
    from sklearn.base import clone

    rows, truth = _jury(100, [0.8, 0.7, 0.7])
    auto = clone(tb.Auto(gold_weight=1, dependence=0.5, tol=1e-4))
    assert auto.get_params()["gold_weight"] == 1
    auto.fit(rows, gold=dict(list(truth.items())[:5] + list(truth.items())[10:15]))
    assert auto.model_ is None or auto.model_.get_params()["dependence"] == 0.5
    with pytest.raises(tb.OptionError, match="Auto infers links exactly"):
        tb.Auto(link_options=tb.MeanFieldOptions()).fit(rows)
