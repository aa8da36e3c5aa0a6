"""The panel's report: accuracies, shared errors, smaller panels, and what is said without gold."""

from __future__ import annotations

import json
import os
from typing import Any, Self

import numpy as np
import pytest
from juries.crowds import family, fitted, jury, made, position_biased

import tiebreak as tb

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
JURIES = os.environ.get("TIEBREAK_JURIES", "")
REAL = ("llmbar", "rewardbench2", "tc_toxicity_zh", "tc_policy_en")


def test_accuracies_are_counted() -> None:
    crowd = made()
    report = tb.judges.panel_report(fitted(crowd.responses), crowd.some)
    said = {
        (crowd.responses.tasks[int(t)], crowd.responses.workers[int(w)]): crowd.responses.classes[
            int(k)
        ]
        for t, w, k in zip(
            crowd.responses.task_of_each(),
            crowd.responses.worker_of_each(),
            crowd.responses.label_of_each(),
            strict=True,
        )
    }
    for judge in report.judges:
        right = [said[task, judge.worker] == label for task, label in crowd.some.items()]
        assert judge.accuracy == pytest.approx(np.mean(right))
        assert judge.interval[0] < judge.accuracy < judge.interval[1]


def test_correlation_is_that_of_numpy_for_two_judges() -> None:
    """With errors less the rate of each judge on each class."""
    crowd = made(n_judges=2, n_known=300)
    responses = crowd.responses
    label = responses.label_of_each().reshape(-1, 2)
    truth = responses.classes.codes([crowd.gold[task] for task in responses.tasks])
    known = np.isin(np.arange(400), responses.tasks.codes(list(crowd.some)))
    r = (label != truth[:, None]).astype(float)
    for k in (0, 1):
        rows = known & (truth == k)
        r[rows] = (r[rows] - r[rows].mean(axis=0)) * np.sqrt(rows.sum() / (rows.sum() - 1.0))
    r = r[known]
    found = tb.judges.panel_report(fitted(responses), crowd.some, sub_panels=False).shared
    assert found is not None
    expected = (r[:, 0] * r[:, 1]).sum() / (np.square(r).sum() / 2.0)
    assert found.correlation == pytest.approx(expected)


def test_errors_apart_have_no_correlation_and_shared_ones_do() -> None:
    for shared, low, high in ((0.0, -0.1, 0.1), (0.6, 0.3, 1.0)):
        crowd = made(n_tasks=1500, shared=shared, n_known=1500)
        found = tb.judges.panel_report(fitted(crowd.responses), crowd.some).shared
        assert found is not None
        assert low < found.correlation < high
        assert found.interval[0] <= found.correlation <= found.interval[1]


def test_clusters_find_the_family() -> None:
    responses, gold = family()
    found = tb.judges.panel_report(fitted(responses), gold)
    assert found.shared is not None
    names = {found.workers[j] for j in found.shared.clusters[0]}
    assert names == {f"gpt {j}" for j in range(4)}


def test_a_model_is_not_praised_for_the_gold_it_was_told() -> None:
    """Labels drawn by lot: a panel that was told them is no better on them than chance."""
    crowd = made(n_tasks=300, n_known=150)
    rng = np.random.default_rng(0)
    lots = {task: ("c0", "c1")[int(rng.integers(0, 2))] for task in crowd.some}
    report = tb.judges.panel_report(fitted(crowd.responses, lots), lots)
    assert report.versus is not None
    assert 0.3 < report.versus.panel_accuracy < 0.7


def test_a_panel_of_many_equals_is_better_than_one() -> None:
    crowd = made(n_tasks=800, n_judges=9, shared=0.0, n_known=300)
    report = tb.judges.panel_report(fitted(crowd.responses), crowd.some)
    assert report.versus is not None
    assert report.versus.probability_better > 0.5
    assert "Is the panel better than its best judge?" in str(report)


def test_the_smallest_panel_leaves_out_noise() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 600)
    rows = []
    for i in range(600):
        rows += [(i, f"good {j}", int(truth[i] ^ (rng.random() < 0.1))) for j in range(3)]
        rows += [(i, f"coin {j}", int(rng.integers(0, 2))) for j in range(5)]
    gold = dict(enumerate(truth.tolist()))
    report = tb.judges.panel_report(
        fitted(tb.Responses.from_rows(rows)),
        gold,
        prices={f"good {j}": 1.0 for j in range(3)} | {f"coin {j}": 0.5 for j in range(5)},
    )
    assert report.smallest is not None
    assert sorted(map(str, report.smallest.workers)) == ["good 0", "good 1", "good 2"]
    assert report.cheapest is not None
    assert report.cheapest.price == pytest.approx(3.0)
    assert report.cheapest.whole_price == pytest.approx(5.5)


SPREAD = {"a": 0.9, "b": 0.85, "c": 0.8, "d": 0.7, "e": 0.6}
JURIES_MADE = {
    "spread": {"accuracy": SPREAD},
    "alike": {"accuracy": SPREAD, "shared": 0.9},
    "apart": {"accuracy": SPREAD, "shared": 0.0},
    "few known": {"accuracy": SPREAD, "n_known": 50},
    "close": {"accuracy": {"a": 0.8, "b": 0.79, "c": 0.78, "d": 0.77, "e": 0.6}, "n_known": 200},
    "issue": {
        "accuracy": {"gpt": 0.71, "falcon": 0.69, "llama": 0.69, "yi": 0.59},
        "n_tasks": 900,
        "n_known": 750,
    },
}


def named(report: tb.judges.PanelReport) -> set[Any]:
    """Return who is to be looked at or left out."""
    kept = report.workers if report.smallest is None else report.smallest.workers
    looked_at = {each.worker for each in report.look_at}
    return set(report.outdone) | looked_at | (set(report.workers) - set(kept))


def n_named_of_the_best(kind: str, seeds: range) -> tuple[int, int]:
    """Return in how many juries one of the two best judges is named, and in how many the last."""
    given: Any = JURIES_MADE[kind]
    names = list(given["accuracy"])
    crowds = [jury(seed, **given) for seed in seeds]
    found = [named(tb.judges.panel_report(fitted(each.responses, each.some))) for each in crowds]
    return sum(bool(each & set(names[:2])) for each in found), sum(
        names[-1] in each for each in found
    )


@pytest.mark.parametrize("kind", JURIES_MADE)
def test_the_two_best_judges_are_not_named_to_go(kind: str) -> None:
    best, last = n_named_of_the_best(kind, range(4))
    assert best == 0
    assert last == 4 or kind == "few known"


@pytest.mark.long
@pytest.mark.parametrize("kind", JURIES_MADE)
def test_the_two_best_judges_are_named_to_go_in_one_jury_of_twenty_at_most(kind: str) -> None:
    best, last = n_named_of_the_best(kind, range(100, 200))
    assert best <= 5
    assert last >= 95 or kind == "few known"


def test_a_judge_who_prefers_the_first_answer_is_named() -> None:
    """With the class that it says too often; of the two best judges neither is named."""
    for seed in range(10):
        crowd = position_biased(seed)
        report = tb.judges.panel_report(fitted(crowd.responses, crowd.some))
        found = report.look_at[0]
        assert (found.worker, found.label) == ("first", "A"), seed
        assert found.said > found.true + 0.2
        assert found.behind.high < 0.0
        assert "Look at first" in str(report)
        assert not named(report) & {"ann", "bob"}


def test_equal_judges_are_not_called_worse_than_each_other() -> None:
    """Of 60 juries of eight equals, somebody is named in one of twenty at most."""
    wrong = 0
    for seed in range(60):
        crowd = jury(seed, {f"w{j}": 0.75 for j in range(8)}, n_tasks=100, n_known=100)
        report = tb.judges.panel_report(fitted(crowd.responses), crowd.some, sub_panels=False)
        wrong += bool(report.outdone) or bool(report.look_at)
    assert wrong <= 3


def test_sub_panels_are_scored_by_the_method_that_will_be_used() -> None:
    """Every fit is of the model's class and parameters, to some judges, told some gold."""
    crowd = jury(0, {"a": 0.9, "b": 0.85, "c": 0.8, "d": 0.5})
    seen: list[tuple[set[Any], int]] = []

    class Watched(tb.DawidSkene):
        def fit(self, responses: Any, **given: Any) -> Self:
            assert self.max_iter == 7
            answers = np.bincount(responses.worker_of_each(), minlength=4) > 0
            names = {responses.workers[int(j)] for j in np.flatnonzero(answers)}
            seen.append((names, len(tb.read_gold(given["gold"]))))
            return super().fit(responses, **given)

    model = Watched(max_iter=7).fit(crowd.responses, gold=crowd.some)
    seen.clear()
    report = tb.judges.panel_report(model)
    assert report.outdone == ("d",)
    n = len(crowd.some)
    assert seen.count(({"a", "b", "c", "d"}, n * 3 // 4)) == 4
    assert seen.count(({"a", "b", "c"}, n * 3 // 4)) == 4
    assert len(seen) == 12, "four fits for the panel, for what is left of it, for half of the gold"
    halves = [known for names, known in seen if known < n * 3 // 4]
    assert len(halves) == 4
    assert all(known == pytest.approx(n * 3 / 8, abs=2) for known in halves)
    seen.clear()
    without = tb.judges.panel_report(model, sub_panels=False)
    assert len(seen) == 4
    assert without.smallest is None
    assert without.gold_gain is None
    assert without.versus == report.versus


def test_no_order_changes_the_report() -> None:
    """Rows, gold, and names of tasks: folds go by what is said of a task and its class.

    By an estimator on which they have no influence either.
    """
    crowd = jury(3, SPREAD | {"e": 0.5}, n_tasks=200, n_known=200)
    responses = crowd.responses
    rows = [
        (responses.tasks[int(t)], responses.workers[int(w)], responses.classes[int(k)])
        for t, w, k in zip(
            responses.task_of_each(),
            responses.worker_of_each(),
            responses.label_of_each(),
            strict=True,
        )
    ]
    rng = np.random.default_rng(0)
    new = {f"t{i}": f"x{rng.integers(1 << 40)}" for i in range(200)}
    reports = []
    for place in (np.arange(len(rows)), rng.permutation(len(rows))):
        for names in ({name: name for name in new}, new):
            some = [(names[task], label) for task, label in crowd.some.items()]
            gold = dict(some if place[0] == 0 else some[::-1])
            these = [(names[rows[i][0]], *rows[i][1:]) for i in place]
            model = tb.DawidSkene().fit(these, gold=gold)
            reports.append(tb.judges.panel_report(model, gold))
    first = reports[0]
    assert first.smallest is not None
    assert first.gold_gain is not None
    for other in reports[1:]:
        assert other.outdone == first.outdone
        assert other.smallest is not None
        assert other.gold_gain is not None
        assert set(other.smallest.workers) == set(first.smallest.workers)
        assert other.smallest.log_loss == pytest.approx(first.smallest.log_loss, abs=1e-9)
        assert other.gold_gain.half == pytest.approx(first.gold_gain.half, abs=1e-9)
        assert other.gold_gain.all == pytest.approx(first.gold_gain.all, abs=1e-9)


def test_many_tasks_are_not_all_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiebreak.judges.panel.MOST_TASKS", 150)
    crowd = jury(0, SPREAD, n_tasks=400, n_known=100)
    sizes = []

    class Watched(tb.MajorityVote):
        def fit(self, responses: Any, **given: Any) -> Self:
            sizes.append(responses.n_tasks)
            return super().fit(responses, **given)

    model = Watched().fit(crowd.responses)
    sizes.clear()
    assert tb.judges.panel_report(model, crowd.some).gold_gain is not None
    assert 150 <= max(sizes) <= 250


def test_gold_that_teaches_is_worth_more() -> None:
    """Judges who say the opposite: the more gold, the more of that is known."""
    crowd = jury(1, {"a": 0.85, "b": 0.2, "c": 0.8}, shared=0.0, n_tasks=200, n_known=160)
    found = tb.judges.panel_report(fitted(crowd.responses), crowd.some).gold_gain
    assert found is not None
    assert found.n_known == 160
    assert found.all <= found.half + 0.01
    assert found.change.low <= found.all - found.half <= found.change.high


def test_equal_judges_are_not_beaten_for_erring_in_turn() -> None:
    """Five judges err on two other tasks each, of fifteen: the panel is not surely better.

    The judge that is best on the other tasks is always one of those that err on this one.
    """
    other = {"yes": "no", "no": "yes"}
    truth = {i: "yes" if i < 40 else "no" for i in range(60)}
    rows = [
        (i, f"judge {j}", other[label] if i in (j, j + 5) else label)
        for i, label in truth.items()
        for j in range(5)
    ]
    gold = {i: truth[i] for i in [*range(10), *range(40, 45)]}
    report = tb.judges.panel_report(fitted(tb.Responses.from_rows(rows)), gold)
    assert report.versus is not None
    assert report.versus.best_accuracy == pytest.approx(13 / 15)
    assert 0.5 < report.versus.probability_better < 0.95


def test_a_probability_is_never_said_to_be_one() -> None:
    crowd = made(n_tasks=800, n_judges=9, shared=0.0, n_known=600)
    report = tb.judges.panel_report(fitted(crowd.responses), crowd.some)
    assert report.versus is not None
    assert report.versus.probability_better > 0.995
    assert "probability > .99 that" in str(report)


def test_unanimous_and_wrong() -> None:
    rows = [(i, f"judge {j}", "yes") for i in range(30) for j in range(3)]
    gold = dict.fromkeys(range(29), "yes") | {29: "no"}
    report = tb.judges.panel_report(fitted(tb.Responses.from_rows(rows)), gold)
    assert report.unanimous_wrong == (29,)
    assert report.n_unanimous == 30


def test_self_preference() -> None:
    rng = np.random.default_rng(2)
    rows = []
    systems = {}
    for i in range(600):
        systems[i] = ("gpt", "claude")[i % 2]
        good = rng.random() < 0.5
        for judge in ("gpt", "claude", "gemini"):
            own = judge == systems[i] and judge == "gpt" and rng.random() < 0.3
            rows.append((i, judge, "good" if own or good ^ (rng.random() < 0.1) else "bad"))
    report = tb.judges.panel_report(
        fitted(tb.Responses.from_rows(rows)), systems=systems, accepts="good"
    )
    found = {each.worker: each for each in report.self_preference}
    assert found["gpt"].interval[0] > 0.05
    assert found["claude"].interval[0] < 0.05


def test_without_gold_it_names_tasks_to_label() -> None:
    crowd = made()
    report = tb.judges.panel_report(fitted(crowd.responses))
    assert len(report.to_label) == 50
    assert len(set(report.to_label)) == 50
    assert "cannot be seen without gold" in str(report)
    json.dumps(report.to_dict())


def test_chances_of_the_sample_add_up() -> None:
    crowd = made()
    model = fitted(crowd.responses)
    drawn = np.zeros(crowd.responses.n_tasks)
    chance = np.zeros(crowd.responses.n_tasks)
    for seed in range(400):
        found = tb.judges.sample_tasks(model, 40, random_state=seed)
        assert len(found.task) == 40
        drawn[found.task] += 1.0 / 400
        chance[found.task] = found.probability
    seen = chance > 0
    assert np.abs(drawn - chance)[seen].max() < 0.12
    assert chance.sum() == pytest.approx(40, rel=0.1)


def test_one_discount_for_a_family() -> None:
    responses, _ = family(n_tasks=40)
    groups = {f"gpt {j}": "gpt" for j in range(4)}
    weighted = tb.judges.share_discount(responses, groups, 1.0)
    assert weighted.weight is not None
    assert weighted.weight.sum() == pytest.approx(40 * 5)


class TestBadInput:
    """Clear words, no crash, no over-confident answer."""

    def test_gold_of_one_class(self) -> None:
        crowd = made()
        same = {task: label for task, label in crowd.gold.items() if label == "c0"}
        report = tb.judges.panel_report(fitted(crowd.responses), same)
        assert report.shared is not None

    def test_five_gold_labels(self) -> None:
        crowd = made(n_known=5)
        report = tb.judges.panel_report(fitted(crowd.responses), crowd.some)
        assert report.shared is not None
        assert report.shared.effective_interval[1] - report.shared.effective_interval[0] > 1.0
        assert report.smallest is None
        assert report.outdone == ()
        assert report.look_at == ()
        assert report.gold_gain is None

    def test_gold_of_one_class_answers_no_question_about_all(self) -> None:
        crowd = made()
        one = {task: label for task, label in crowd.gold.items() if label == "c0"}
        report = tb.judges.panel_report(fitted(crowd.responses), one)
        assert report.versus is None
        assert report.smallest is None
        assert report.outdone == ()
        assert report.look_at == ()
        assert "Is the panel better" not in str(report)
        assert report.judges[0].n_known > 0

    def test_identical_judges(self) -> None:
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 2, 200)
        said = truth ^ (rng.random(200) < 0.2)
        rows = [(i, f"judge {j}", int(said[i])) for i in range(200) for j in range(5)]
        gold = dict(enumerate(truth.tolist()))
        report = tb.judges.panel_report(fitted(tb.Responses.from_rows(rows)), gold)
        assert report.shared is not None
        assert report.shared.effective == pytest.approx(1.0, abs=0.05)
        assert report.versus is not None
        assert report.versus.probability_better == pytest.approx(0.5, abs=0.01)

    def test_one_judge(self) -> None:
        rows = [(i, "only", i % 2) for i in range(40)]
        gold = {i: i % 2 for i in range(30)}
        report = tb.judges.panel_report(fitted(tb.Responses.from_rows(rows)), gold)
        assert report.shared is not None
        assert report.shared.effective == 1.0
        assert report.judges[0].accuracy == 1.0
        assert report.judges[0].interval[0] < 0.95
        assert "nothing to share" in str(report)
        assert "One more judge like these" not in str(report)

    def test_a_judge_that_always_abstains(self) -> None:
        crowd = made()
        columns = {
            "task": [crowd.responses.tasks[int(t)] for t in crowd.responses.task_of_each()],
            "worker": [crowd.responses.workers[int(w)] for w in crowd.responses.worker_of_each()],
            "label": [crowd.responses.classes[int(k)] for k in crowd.responses.label_of_each()],
        }
        columns["task"] += list(crowd.gold)[:20]
        columns["worker"] += ["silent"] * 20
        columns["label"] += [None] * 20
        responses = tb.read_responses(columns)
        assert "silent" in list(responses.workers)
        report = tb.judges.panel_report(fitted(responses), crowd.some)
        silent = next(judge for judge in report.judges if judge.worker == "silent")
        assert silent.n_known == 0
        assert silent.accuracy != silent.accuracy
        assert "silent" in str(report)
        assert "silent" not in report.outdone
        if report.smallest is not None:
            assert "silent" not in report.smallest.workers

    def test_gold_that_contradicts_all(self) -> None:
        crowd = made(shared=0.0)
        other = {"c0": "c1", "c1": "c0"}
        turned = {task: other[label] for task, label in crowd.some.items()}
        report = tb.judges.panel_report(fitted(crowd.responses), turned)
        assert all(judge.accuracy < 0.6 for judge in report.judges)
        assert report.versus is not None
        assert report.versus.panel_accuracy < 0.4

    def test_gold_of_other_tasks_and_classes(self) -> None:
        crowd = made()
        task = next(iter(crowd.gold))
        report = tb.judges.panel_report(fitted(crowd.responses), crowd.some | {task: "c9"})
        assert report.n_known >= 80


@pytest.mark.data
@pytest.mark.skipif(not JURIES, reason="TIEBREAK_JURIES is not set")
@pytest.mark.parametrize("name", REAL)
def test_fifty_labels_show_shared_errors(name: str) -> None:
    """φ and n_eff of all gold lie in the intervals of 50 labels, in 90 % of draws."""
    model = tb.MajorityVote().fit(tb.read_responses(f"{JURIES}/{name}/responses.csv"))
    gold = tb.read_gold(f"{JURIES}/{name}/gold.csv").to_dict()

    def shared(known: list[Any]) -> Any:
        given = {task: gold[task] for task in known}
        return tb.judges.panel_report(model, given, sub_panels=False).shared

    answered = [task for task in gold if len(model.responses_.of(_code(model, task))[0])]
    whole = shared(answered)
    hits = 0
    for seed in range(30):
        drawn = np.random.default_rng(seed).choice(len(answered), 50, replace=False)
        found = shared([answered[i] for i in drawn.tolist()])
        inside = found.interval[0] <= whole.correlation <= found.interval[1]
        low, high = found.effective_interval
        hits += inside and low <= whole.effective <= high
    assert hits >= 27


def _code(model: Any, task: Any) -> int:
    return int(model.tasks_.codes([task])[0])


@pytest.mark.parametrize("name", ["Auto", "DawidSkene", "MajorityVote"])
def test_every_estimator_can_be_reported_on(name: str) -> None:
    crowd = made()
    takes_gold = name == "Auto"
    gold = {"gold": crowd.some} if takes_gold else {}
    model = getattr(tb, name)().fit(crowd.responses, **gold)
    report = tb.judges.panel_report(model, crowd.some)
    assert report.versus is not None
    assert report.versus.panel_accuracy < 1.0  # not praised for labels that it was told
    rate = tb.judges.estimate_rates(model, crowd.some).of("c0")
    assert rate.low < rate.rate < rate.high
