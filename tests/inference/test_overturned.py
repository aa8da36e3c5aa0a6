"""Gold that contradicts the crowd: no label is surer than so many known labels can show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.errors import InputNote
from tiebreak.inference.overturned import BEHIND, NOBODY, Overturned, crowd_class
from tiebreak.simulate import Crowd

UNSURE = 0.55  # a label that says no more than this does not claim to be right
MARGIN = 0.02

ESTIMATORS: dict[str, type[Any]] = {
    "vb": tb.VariationalBayes,
    "ds": tb.DawidSkene,
    "pool": tb.LogOpinionPool,
    "auto": tb.Auto,
}


pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


class FreeVB(tb.VariationalBayes):
    """The same without a limit."""

    _heeds_gold = False


class FreePool(tb.LogOpinionPool):
    """The same without a limit."""

    _heeds_gold = False


def crowd_of(n_classes: int, seed: int, n_tasks: int = 300) -> Crowd:
    return tb.simulate.crowd(n_tasks, 6, n_classes, accuracy=(0.8, 0.9), random_state=seed)


def renamed(crowd: Crowd, n_moved: int | None = None) -> dict[Any, Any]:
    """Return the truth with the first classes named one for the next; None: all of them."""
    names = list(crowd.gold.classes)
    moved = names[:n_moved]
    to = dict(zip(moved, moved[1:] + moved[:1], strict=True))
    return {task: to.get(label, label) for task, label in crowd.gold.to_dict().items()}


def first(truth: dict[Any, Any], n: int) -> dict[Any, Any]:
    return dict(list(truth.items())[:n])


def all_against(crowd: Crowd, truth: dict[Any, Any], n: int) -> dict[Any, Any]:
    """Return known labels that contradict the workers each time."""
    votes: Any = tb.MajorityVote().fit(crowd.responses).labels_.best()
    gold = crowd.gold.to_dict()
    return first({task: label for task, label in truth.items() if votes[task] == gold[task]}, n)


def rest_of(model: Any, known: dict[Any, Any]) -> Any:
    return np.array([task not in known for task in model.tasks_])


def are_right(model: Any, truth: dict[Any, Any]) -> Any:
    best = model.labels_.best()
    return np.array([best[task] == truth[task] for task in model.tasks_])


def share_right(model: Any, truth: dict[Any, Any], rest: Any) -> float:
    return float(are_right(model, truth)[rest].mean())


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_known", [5, 10, 50, 100])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_method_is_surer_than_its_labels_follow_gold(
    name: str, n_known: int, n_classes: int
) -> None:
    stated = []
    follow = []
    excess = []
    highest = []
    for seed in range(2):
        crowd = crowd_of(n_classes, seed)
        truth = renamed(crowd)
        known = first(truth, n_known) if n_known > 5 else all_against(crowd, truth, n_known)
        model = ESTIMATORS[name]().fit(crowd.responses, gold=known)
        rest = rest_of(model, known)
        top = model.labels_.probability[rest]
        right = are_right(model, truth)[rest]
        stated.append(top.mean())
        highest.append(top.max())
        follow.append(right.mean())
        excess.append(((top - right) * (top > UNSURE)).mean())
        assert (model.probabilities_.argmax(axis=1) == model.labels_.label).all()
        assert np.allclose(model.probabilities_.sum(axis=1), 1.0)
    assert np.mean(excess) <= MARGIN, "labels that claim to be right are"
    if np.mean(follow) > 0.9:  # not where a method cannot follow gold, or must not yet
        assert np.mean(stated) <= np.mean(follow) + MARGIN
        assert max(highest) <= (n_known + 2) / (n_known + 3)
    if name in ("vb", "auto") and n_known >= 50:
        assert np.mean(follow) > 0.9, "so that there is something to be sure of"


@pytest.mark.parametrize("name", ["vb", "ds", "auto"])
def test_two_swapped_classes_of_four_are_limited_and_the_others_are_not(name: str) -> None:
    crowd = crowd_of(4, 1, n_tasks=600)
    truth = renamed(crowd, 2)
    known = first(truth, 60)
    model = ESTIMATORS[name]().fit(crowd.responses, gold=known)
    rest = rest_of(model, known)
    assert model.overturned_ is not None
    limited = model.overturned_.is_limited
    assert limited.tolist() == [True, True, False, False]
    most = model.overturned_.most()
    votes: Any = tb.MajorityVote().fit(crowd.responses).probabilities_
    label = model.labels_.label
    said = crowd_class(votes)
    moved = rest & limited[said] & (said != NOBODY)
    top = model.labels_.probability
    assert share_right(model, truth, moved) > 0.95
    assert top[moved].mean() <= share_right(model, truth, moved) + MARGIN
    assert (top[moved] <= most[said[moved], label[moved]] + 1e-12)[top[moved] > 0.6].all()
    assert top[rest & ~limited[said] & (said != NOBODY)].max() > 0.98


def test_labels_and_what_gold_does_not_contradict_stay_to_the_last_digit() -> None:
    crowd = crowd_of(4, 2, n_tasks=600)
    known = first(renamed(crowd, 2), 60)
    model: Any = tb.VariationalBayes().fit(crowd.responses, gold=known)
    free: Any = FreeVB().fit(crowd.responses, gold=known)
    assert free.overturned_ is None
    assert (model.labels_.label == free.labels_.label).all()
    assert (model.labels_.probability <= free.labels_.probability).all()
    votes: Any = tb.MajorityVote().fit(crowd.responses).probabilities_
    said = crowd_class(votes)
    is_limited = model.overturned_.is_limited[said] & (said != NOBODY)
    same = ~(is_limited & rest_of(model, known))
    assert (model.probabilities_[same] == free.probabilities_[same]).all()
    assert not (model.probabilities_ == free.probabilities_).all()


@pytest.mark.parametrize(
    ("limited", "free"), [(tb.VariationalBayes, FreeVB), (tb.LogOpinionPool, FreePool)]
)
def test_gold_that_mostly_agrees_changes_nothing(limited: Any, free: Any) -> None:
    for seed in range(3):
        crowd = tb.simulate.crowd(300, 12, 3, responses_per_task=4, shared=0.4, random_state=seed)
        known = first(crowd.gold.to_dict(), 60)
        swapped = renamed(crowd)
        known.update(dict(list(swapped.items())[:4]))  # a few wrong ones do not matter
        model: Any = limited().fit(crowd.responses, gold=known)
        assert model.overturned_ is None
        other: Any = free().fit(crowd.responses, gold=known)
        assert (model.probabilities_ == other.probabilities_).all()


def test_the_limit_is_the_rule_of_succession() -> None:
    """Six workers who always agree, and gold that says the other class each time."""
    rows = [(f"t{i}", f"w{j}", "ab"[i % 2]) for i in range(200) for j in range(6)]
    known = {f"t{i}": "ba"[i % 2] for i in range(41)}  # 21 that workers call a, 20 that they call b
    model: Any = tb.VariationalBayes().fit(rows, gold=known)
    by_task = dict(zip(model.tasks_, model.labels_.probability, strict=True))
    assert by_task["t100"] == pytest.approx(23 / 24)
    assert by_task["t101"] == pytest.approx(22 / 23)
    assert by_task["t0"] == 1.0, "known tasks stay known"


def test_gold_of_one_class_says_nothing_of_the_other() -> None:
    """What workers call b is a by gold. Is what they call a then b? Nobody knows."""
    rows = [(f"t{i}", f"w{j}", "ab"[i % 2]) for i in range(200) for j in range(6)]
    known = {f"t{i}": "a" for i in range(1, 81, 2)}
    model: Any = tb.VariationalBayes().fit(rows, gold=known)
    best = model.labels_.best()
    by_task = dict(zip(model.tasks_, model.labels_.probability, strict=True))
    assert best["t101"] == "a"
    assert by_task["t101"] <= 42 / 43 + 1e-12
    if best["t100"] == "b":
        assert by_task["t100"] <= 2 / 3 + 1e-12


def test_a_label_against_all_gold_does_not_claim_to_be_right() -> None:
    """Five labels are too few to turn the crowd, and enough to doubt it."""
    crowd = crowd_of(2, 0)
    known = all_against(crowd, renamed(crowd), 5)
    for estimator in (tb.VariationalBayes, tb.DawidSkene, tb.Auto, tb.GibbsSampler):
        model: Any = estimator().fit(crowd.responses, gold=known)
        rest = rest_of(model, known)
        assert share_right(model, crowd.gold.to_dict(), rest) > 0.9, "the crowd's labels"
        assert model.labels_.probability[rest].max() < 0.6


@pytest.mark.parametrize("n_known", [5, 50])
@pytest.mark.parametrize("model", [tb.VariationalBayes(), tb.DawidSkene()])
def test_it_is_said_in_words(model: Any, n_known: int) -> None:
    crowd = crowd_of(2, 0)
    known = all_against(crowd, renamed(crowd), n_known)
    whose = "are still what most workers say" if n_known == 5 else "follow gold"
    expected = (
        rf"Gold contradicts most workers on {n_known} of {n_known} known tasks of 2 classes. "
        rf"Labels of others like these {whose}, and \d+ got a lower probability: so few known "
        r"labels cannot make them sure. Is gold of the same question"
    )
    with pytest.warns(InputNote, match=expected):
        model.fit(crowd.responses, gold=known)


def test_probabilities_as_the_model_says_and_shares_of_votes_are_not_limited() -> None:
    crowd = crowd_of(2, 0)
    known = first(renamed(crowd), 50)
    model: Any = tb.VariationalBayes(calibrate="none").fit(crowd.responses, gold=known)
    assert model.overturned_ is None
    assert model.labels_.probability.max() > 0.999
    votes: Any = tb.MajorityVote().fit(crowd.responses, gold=known)
    assert votes.overturned_ is None


@pytest.mark.parametrize("estimator", [tb.VariationalBayes, tb.LogOpinionPool, tb.DawidSkene])
def test_new_tasks_are_no_surer_also_when_the_model_was_saved(
    estimator: Any, tmp_path: Path
) -> None:
    crowd = crowd_of(2, 3)
    known = first(renamed(crowd), 50)
    model = estimator().fit(crowd.responses, gold=known)
    columns = (crowd.responses.task_of_each(), crowd.responses.worker_of_each())
    again = [
        (f"new {task}", crowd.responses.workers[int(worker)], crowd.responses.classes[int(label)])
        for task, worker, label in zip(*columns, crowd.responses.label_of_each(), strict=True)
    ]
    model.save(tmp_path / "crowd.tbm")
    loaded = tb.load(tmp_path / "crowd.tbm")
    assert np.array_equal(loaded.overturned_.counts, model.overturned_.counts)
    rest = rest_of(model, known)
    for each in (model, loaded):
        found = each.predict(again)
        assert np.allclose(found.probabilities[rest], model.probabilities_[rest], atol=1e-6)


def test_what_follows_from_gold_by_links_stays_certain() -> None:
    crowd = crowd_of(2, 4)
    truth = renamed(crowd)
    known = first(truth, 50)
    tasks = list(truth)
    must = [(tasks[0], task) for task in tasks[60:70] if truth[task] == truth[tasks[0]]]
    groups = [
        (a, b) for a, b in zip(tasks[100:130], tasks[130:160], strict=True) if truth[a] == truth[b]
    ]
    links = tb.Links.from_pairs(must=must + groups)
    model: Any = tb.VariationalBayes().fit(crowd.responses, links=links, gold=known)
    by_task = dict(zip(model.tasks_, model.labels_.probability, strict=True))
    assert all(by_task[task] == 1.0 for _, task in must)
    assert all(by_task[task] < 0.99 for pair in groups for task in pair)
    row = ("new", crowd.responses.workers[0], crowd.responses.classes[0])
    link = tb.Links.from_pairs(must=[("new", tasks[0])])
    more: Any = model.predict([row], links=link)
    assert more.probability.tolist() == [1.0]


def test_a_warm_refit_is_limited_alike() -> None:
    crowd = crowd_of(2, 5)
    known = first(renamed(crowd), 50)
    model: Any = tb.VariationalBayes().fit(crowd.responses, gold=known)
    again: Any = tb.VariationalBayes().fit(crowd.responses, gold=known, start=model)
    assert np.array_equal(again.overturned_.most(), model.overturned_.most())
    assert np.allclose(again.probabilities_, model.probabilities_, atol=1e-4)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_a_limit_keeps_labels_and_sums_and_lowers_only_labels_above_it(
    n_classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(n_classes, rng.choice([0.05, 0.5, 5.0])), 60)
    label = q.argmax(axis=1)
    votes = rng.dirichlet(np.ones(n_classes), 60).round(1)
    counts = rng.poisson(rng.choice([0.5, 5.0]), (n_classes, n_classes)).astype(float)
    among = rng.random(60) < 0.9
    found = Overturned(counts, rng.random(n_classes) < 0.7)
    limited = found.limit(q, label, votes, among)
    said = crowd_class(votes)
    place = np.arange(60)
    assert np.allclose(limited.sum(axis=1), 1.0)
    assert (limited >= 0.0).all()
    own = limited[place, label]
    assert (own <= q[place, label]).all()
    others = limited.copy()
    others[place, label] = 0.0
    assert (others.max(axis=1) <= own + 1e-12).all(), "the label stays the likeliest"
    free = ~(among & found.is_limited[said] & (said != NOBODY))
    assert (limited[free] == q[free]).all()
    reaches = own <= found.most()[said, label] + 1e-12
    is_close = others.max(axis=1) >= BEHIND * own - 1e-9
    assert (reaches | is_close | free).all()


CROWDS = ("bluebird", "dog", "web", "music_genre", "zencrowd_india", "zencrowd_us", "rte")
LARGE = ("sentence_polarity", "trec", "product")


@pytest.mark.data
@pytest.mark.parametrize(
    "name", [*CROWDS, *(pytest.param(each, marks=pytest.mark.long) for each in LARGE)]
)
def test_crowds_of_people_are_as_they_were_to_the_last_digit(name: str) -> None:
    data = Path(os.environ["TIEBREAK_DATA"])
    responses = tb.read_responses(data / name / "responses.csv")
    gold = tb.read_gold(data / name / "gold.csv").to_dict()
    answered = [task for task in gold if responses.tasks.codes([task])[0] >= 0]
    drawn = np.random.default_rng(0).choice(len(answered), 50, replace=False)
    known = {answered[i]: gold[answered[i]] for i in drawn}
    for limited, free in ((tb.VariationalBayes, FreeVB), (tb.LogOpinionPool, FreePool)):
        model: Any = limited().fit(responses, gold=known)
        assert model.overturned_ is None
        other: Any = free().fit(responses, gold=known)
        assert (model.probabilities_ == other.probabilities_).all()
        assert (model.labels_.label == other.labels_.label).all()


def test_labels_that_were_asked_for_limit_nothing() -> None:
    """Sessions fit with `gold_weight=1`: crowds are mostly wrong on doubtful tasks."""
    crowd = tb.simulate.crowd(300, 8, 2, accuracy=(0.8, 0.9), random_state=1)
    first, second = crowd.gold.classes
    other = {first: second, second: first}
    known = {task: other[label] for task, label in list(crowd.gold.to_dict().items())[:50]}
    assert tb.VariationalBayes().fit(crowd.responses, gold=known).overturned_ is not None
    asked = tb.VariationalBayes(gold_weight=1).fit(crowd.responses, gold=known)
    assert asked.overturned_ is None
