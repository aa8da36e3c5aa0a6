"""Constraints in fits: every estimator keeps them, in any order of rows; saved and updated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import tiebreak

import tiebreak as tb
from tiebreak.errors import InputNote

Rows = list[tuple[str, str, str]]
ESTIMATORS = [tb.VariationalBayes, tb.Auto, tb.DawidSkene, tb.MajorityVote]
pytestmark = pytest.mark.filterwarnings("ignore:The responses speak against")


def report_of(model: Any) -> Any:
    """Return what constraints did, of whatever type."""
    return model.constraint_report_


def crowd(n_tasks: int = 45, seed: int = 0) -> tuple[Rows, tb.Constraints]:
    """Return votes on groups of three, of which one is "1", and the rule."""
    rng = np.random.default_rng(seed)
    votes = []
    for i in range(n_tasks):
        truth = int(i % 3 == (i // 3) % 3)
        for w in rng.choice(9, 3, replace=False):
            is_right = rng.random() < 0.55 + 0.04 * w
            votes.append((f"t{i}", f"w{w}", str(truth if is_right else 1 - truth)))
    groups = [(f"t{i}", f"g{i // 3}") for i in range(n_tasks)]
    return votes, tb.Constraints.groups(groups, "exactly one", "1")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_keeps_constraints(estimator: Any) -> None:
    votes, rules = crowd()
    model = estimator().fit(votes, constraints=rules)
    assert len(model.violations_) == 0
    assert report_of(model).n_broken_before > 0
    ones = model.probabilities_[:, list(model.classes_).index("1")]
    order = model.tasks_.codes([f"t{i}" for i in range(45)])
    np.testing.assert_allclose(ones[order].reshape(-1, 3).sum(axis=1), 1.0, atol=1e-9)
    plain = estimator().fit(votes)
    np.testing.assert_array_equal(plain.confusion_, model.confusion_)  # workers hear nothing of it
    assert plain.constraint_report_ is None
    assert plain.own_probabilities_ is None


@pytest.mark.parametrize("estimator", [tb.VariationalBayes, tb.Auto])
def test_rows_of_responses_and_of_constraints_may_be_in_any_order(estimator: Any) -> None:
    votes, rules = crowd()
    rules += tb.Constraints.implies(("t0", "1"), ("t3", "0"))
    model = estimator().fit(votes, constraints=rules)
    again = estimator().fit(votes[::-1], constraints=rules.select(np.arange(len(rules))[::-1]))
    q = model.probabilities_[model.tasks_.codes(again.tasks_)]
    np.testing.assert_allclose(again.probabilities_, q, atol=1e-6)


def test_without_a_rule_on_them_tasks_are_as_before() -> None:
    votes, rules = crowd()
    few = tb.VariationalBayes().fit(votes, constraints=rules.select(np.arange(2)))
    plain = tb.VariationalBayes().fit(votes)
    free = few.tasks_.codes([f"t{i}" for i in range(6, 45)])
    np.testing.assert_allclose(few.probabilities_[free], plain.probabilities_[free], atol=1e-12)
    np.testing.assert_array_equal(few.own_probabilities_, plain.probabilities_)


def test_links_are_constraints() -> None:
    votes, _ = crowd()
    links = tb.Links.from_pairs(must=[("t0", "t3")], cannot=[("t4", "t5")], sampling="pairs")
    by_rule = tb.VariationalBayes().fit(votes, constraints=tb.Constraints.from_links(links))
    labels = by_rule.labels_.best()
    assert labels["t0"] == labels["t3"]
    assert labels["t4"] != labels["t5"]


@pytest.mark.parametrize("estimator", [tb.VariationalBayes, tb.Auto])
@pytest.mark.parametrize("is_soft", [False, True])
def test_links_and_constraints_hold_together(estimator: Any, is_soft: bool) -> None:
    votes, rules = crowd()
    weight = [None, 2.0 if is_soft else None]
    pairs: dict[str, Any] = {
        "left": ["t0", "t4"],
        "right": ["t3", "t7"],
        "link": ["must", "cannot"],
    }
    links = tb.Links.from_columns(**pairs, weight=weight, sampling="pairs")
    model = estimator().fit(votes, links=links, constraints=rules, gold={"t44": "1", "t43": "0"})
    labels = model.labels_.best()
    assert labels["t0"] == labels["t3"]
    assert (labels["t43"], labels["t44"]) == ("0", "1")
    assert all(not np.isnan(weight) for weight in model.violations_.weights())


@pytest.mark.parametrize("classes", [("0", "1"), ("0", "1", "2")])
def test_constraints_against_links_are_told(classes: tuple[str, ...]) -> None:
    votes = [("a", f"w{k}", name) for k, name in enumerate(classes)] + [("b", "w0", "0")]
    apart = tb.Links.from_pairs(cannot=[("a", "b")])
    with pytest.raises(tb.InputError) as raised:
        tb.VariationalBayes().fit(votes, links=apart, constraints=[{"same": ["a", "b"]}])
    assert raised.value.code == "constraints-contradict"
    assert sorted(raised.value.fields["kinds"]) == ["constraint", "link"]  # type: ignore[call-overload]
    soft = tb.Constraints.from_records([{"same": ["a", "b"], "weight": 1.0}])
    model: Any = tb.VariationalBayes().fit(votes, links=apart, constraints=soft)
    assert len(model.violations_) == 1


def test_a_task_without_responses_is_inferred_from_its_group() -> None:
    votes = [("a", "w", "0"), ("a", "v", "0"), ("b", "w", "1"), ("b", "v", "0")]
    rules = tb.Constraints.groups([("a", "g"), ("new", "g")], "exactly one", "1")
    with pytest.warns(InputNote) as raised:
        model = tb.VariationalBayes().fit(votes, constraints=rules)
    assert "constraints-add-tasks" in [getattr(each.message, "code", "") for each in raised]
    assert model.labels_.best()["new"] == "1"


def test_a_soft_constraint_may_be_broken_and_is_doubtful() -> None:
    votes = [(t, f"w{i}", "1") for t in "ab" for i in range(6)] + [
        (f"x{j}", f"w{i}", str(j % 2)) for j in range(30) for i in range(6)
    ]
    rules = tb.Constraints.groups([("a", "g"), ("b", "g")], "at most one", "1", weight=0.5)
    model = tb.VariationalBayes().fit(votes, constraints=rules)
    assert len(model.violations_) == 1
    assert model.doubtful_constraints_ is not None
    assert model.doubtful_constraints_.probability[0] > 0.5


def test_a_rate_is_reached_exactly() -> None:
    votes, rules = crowd()
    share = tb.Constraints.rate("1", 0.2, 0.25)
    model = tb.VariationalBayes().fit(votes, constraints=share)
    one = list(model.classes_).index("1")
    assert model.probabilities_[:, one].mean() == pytest.approx(0.25, abs=1e-6)
    with pytest.raises(tb.InputError) as raised:  # exactly one of three is
        tb.VariationalBayes().fit(votes, constraints=share + rules)
    assert raised.value.code == "constraint-rate"
    assert raised.value.fields["nearest"] == pytest.approx(1 / 3, abs=1e-6)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    votes, rules = crowd()
    rules += tb.Constraints.implies({"t0": "1", "t3": ["0", "1"]}, ("t6", "0"), weight=2.0, who="x")
    rules += tb.Constraints.order([("t1", "t2")]) + tb.Constraints.forbidden({"t9": "1"}, weight=1)
    rules += tb.Constraints.rate("1", 0.1, 0.5)
    rules.write(tmp_path / "rules.jsonl")
    again = tb.read_constraints(tmp_path / "rules.jsonl")
    assert [again.say(f) for f in range(len(again))] == [rules.say(f) for f in range(len(rules))]
    np.testing.assert_array_equal(again.weights(), rules.weights())
    model = tb.VariationalBayes().fit(votes, constraints=rules)
    model.save(tmp_path / "model.tbm")
    loaded = tb.load(tmp_path / "model.tbm")
    assert loaded.constraint_report_ == model.constraint_report_
    assert loaded.constraints_.say(16) == rules.say(16)
    np.testing.assert_array_equal(loaded.own_probabilities_, model.own_probabilities_)


def test_a_table_is_read_as_json_is(tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text(
        "constraint,task,label,count,weight,who\n"
        "g1,a,1,0-1,,\ng1,b,1,0-1,,\ng2,a,1,exactly one,2.5,ann\ng2,c,0,exactly one,2.5,ann\n"
    )
    table = tb.read_constraints(tmp_path / "rules.csv")
    assert table.say(0) == "at most one of 'a', 'b' is '1'"
    assert table.weights().tolist()[1] == 2.5
    assert table.where(1).endswith("line 4")


def test_predictions_and_updates_keep_constraints() -> None:
    votes, rules = crowd()
    model: Any = tb.VariationalBayes().fit(votes, constraints=rules)
    new = [("n1", "w8", "1"), ("n2", "w8", "1"), ("n1", "w7", "1")]
    apart = tb.Constraints.groups([("n1", "g"), ("n2", "g"), ("t0", "g")], "at most one", "1")
    found = model.predict(new, constraints=apart)
    assert list(found.best()) == ["n1", "n2"]
    assert list(found.best().values()).count("1") <= 1
    linked = model.predict(new, links=[("n1", "n2", "must")], constraints=apart)
    assert set(linked.best().values()) == {"0"}
    with pytest.raises(tb.InputError) as raised:
        model.predict(new, links=[("n1", "n2", "near")], constraints=apart)
    assert raised.value.code == "near-elsewhere"
    before = len(model.constraints_)
    model.update(new, constraints=apart)
    assert len(model.constraints_) == before + 1
    assert len(model.violations_) == 0


def test_labels_are_held_against_constraints() -> None:
    votes, rules = crowd()
    labels = tb.VariationalBayes().fit(votes).labels_
    with_rules = tb.VariationalBayes().fit(votes, constraints=rules)
    broken = tb.evaluate.broken_constraints(labels, rules)
    assert len(broken) == report_of(with_rules).n_broken_before
    assert len(tb.evaluate.broken_constraints(with_rules.labels_, rules)) == 0
    moved = [t for t, k in with_rules.labels_.best().items() if labels.best()[t] != k]
    told = with_rules.explain(moved[0])
    assert told.without == labels.best()[moved[0]]
    assert told.rules


def test_the_report_says_what_constraints_did(tmp_path: Path) -> None:
    votes, rules = crowd()
    model: Any = tb.VariationalBayes().fit(votes, constraints=rules)
    model.report(tmp_path / "page.html", json_path=tmp_path / "page.json")
    found = json.loads((tmp_path / "page.json").read_text())["sections"]["constraints"]
    assert found["n"] == len(rules)
    assert found["n_broken"] == 0
    assert len(found["tasks"]) == found["n_moved"] > 0


def test_streams_and_models_of_counts_refuse_constraints(tmp_path: Path) -> None:
    votes, rules = crowd()
    model: Any = tb.VariationalBayes().fit(votes, constraints=rules)
    with pytest.raises(tb.TiebreakError) as raised:
        model.update([("n1", "w8", "1")], forget=0.5)
    assert raised.value.code == "constraints-need-responses"
    with pytest.raises(tb.TiebreakError) as raised:
        tb.GibbsSampler().fit(votes, constraints=rules)
    assert raised.value.code == "no-constraints"


def test_known_labels_choose_how_often_groups_are_empty() -> None:
    rng = np.random.default_rng(3)
    votes, gold = [], {}
    for g in range(100):
        for j in range(3):
            truth = int(j == g % 3)
            gold[f"t{g}-{j}"] = str(truth)
            for w in rng.choice(8, 3, replace=False):
                says = truth if rng.random() < 0.62 else 0  # "1" is often missed
                votes.append((f"t{g}-{j}", f"w{w}", str(says)))
    groups = [(task, task.split("-")[0]) for task in gold]
    rules = tb.Constraints.groups(groups, "at most one", "1")
    few = dict(list(gold.items())[:90])
    model = tb.VariationalBayes().fit(votes, constraints=rules, gold=few)
    assert report_of(model).none == "learn"
    asked = tb.VariationalBayes().fit(
        votes, constraints=tb.Constraints.groups(groups, "at most one", "1", none="learn")
    )
    plain = tb.VariationalBayes().fit(votes, constraints=rules)
    assert tb.evaluate.log_loss(asked.labels_, gold) < tb.evaluate.log_loss(plain.labels_, gold)


BAD: list[tuple[str, Any]] = [
    ("constraint-odd-record", [{"task": "a"}]),
    ("constraint-odd-record", [{"label": "1", "rate": [0.9, 0.1]}]),
    ("constraint-odd-record", [{"tasks": ["a"], "label": "1", "count": 1, "wait": 2}]),
    ("constraint-odd-rule", [{"tasks": ["a"], "label": "1", "count": "some"}]),
    ("constraint-odd-weight", [{"same": ["a", "b"], "weight": -1}]),
    ("constraint-task-twice", [{"tasks": ["a", "a"], "label": "1", "count": "0-1"}]),
    ("constraint-count", [{"tasks": ["a", "b"], "label": "1", "count": 3}]),
    ("constraint-count", [{"tasks": [], "label": "1", "count": 0}]),
    ("constraint-unknown-label", [{"tasks": ["a", "b"], "label": "one", "count": 1}]),
    ("constraint-odd-none", [{"tasks": ["a"], "label": "1", "count": "0-1", "none": "often"}]),
    ("constraints-name-no-task", [{"tasks": ["p", "q"], "label": "1", "count": 1}]),
    ("constraints-contradict", [{"same": ["a", "b"]}, {"different": ["b", "a"]}]),
    ("constraints-contradict", [{"task": "a", "not": ["0", "1"]}]),
]


@pytest.mark.parametrize(("code", "records"), BAD)
def test_what_cannot_be_is_refused_in_words(code: str, records: Any) -> None:
    votes = [("a", "w", "1"), ("b", "w", "0")]
    with pytest.raises(tb.InputError) as raised:
        tb.MajorityVote().fit(votes, constraints=records)
    assert raised.value.code == code


def test_an_order_needs_ordered_classes() -> None:
    votes = [("a", "w", "low"), ("b", "w", "high")]
    with pytest.raises(tb.InputError) as raised:
        tb.MajorityVote().fit(votes, constraints=[{"order": ["a", "b"]}])
    assert raised.value.code == "constraint-no-order"
    named = tb.Constraints.order([("a", "b")], classes=["low", "high"])
    labels = tb.MajorityVote().fit(votes, constraints=named).labels_.best()
    assert (labels["a"], labels["b"]) != ("low", "high")


def test_gold_against_a_rule_is_told() -> None:
    votes = [("a", "w", "1"), ("b", "w", "0")]
    rules = tb.Constraints.groups([("a", "g"), ("b", "g")], "exactly one", "1")
    with pytest.raises(tb.InputError) as raised:
        tb.Auto().fit(votes, constraints=rules, gold={"a": "1", "b": "1"})
    assert raised.value.code == "constraints-contradict"
    assert sorted(raised.value.fields["kinds"]) == ["constraint", "gold", "gold"]  # type: ignore[call-overload]


def test_the_command_line_takes_constraints(tmp_path: Path) -> None:
    votes, rules = crowd()
    header = "task,worker,label\n"
    (tmp_path / "r.csv").write_text(header + "".join(f"{','.join(row)}\n" for row in votes))
    groups = "".join(f"t{i},g{i // 3}\n" for i in range(45))
    (tmp_path / "g.csv").write_text("task,group\n" + groups)
    rules.write(tmp_path / "rules.jsonl")
    given = ["fuse", tmp_path / "r.csv", "-o", tmp_path / "o.csv", "--json"]
    by_groups = tiebreak(*given, "--groups", tmp_path / "g.csv", "--rule", "exactly one 1")
    by_file = tiebreak(*given, "--constraints", tmp_path / "rules.jsonl")
    found = [json.loads(each.stdout)["constraints"] for each in (by_groups, by_file)]
    assert found[0] == found[1]
    assert found[0]["n_broken"] == 0
    scored = tiebreak(
        *("evaluate", tmp_path / "o.csv", tmp_path / "o.csv", "--json"),
        *("--groups", tmp_path / "g.csv", "--rule", "exactly one 1"),
    )
    assert json.loads(scored.stdout)["broken_constraints"] == 0
    alone = tiebreak(*given, "--groups", tmp_path / "g.csv")
    assert alone.exit_code == 2
