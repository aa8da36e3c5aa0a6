"""Auto: members as their equations say, pooled, moved by gold, joined by links."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import noted, refused
from scipy.special import digamma

import tiebreak as tb
from tiebreak.data import GoldCodes, Ids
from tiebreak.errors import OptionError
from tiebreak.estimators import committee, gold_stage
from tiebreak.inference import lay_out

Rows = list[tuple[str, str, str]]


def drawn(seed: int, n_tasks: int = 60, n_workers: int = 8, n_classes: int = 3) -> Any:
    return tb.simulate.crowd(n_tasks, n_workers, n_classes, responses_per_task=4, random_state=seed)


def rows_of(crowd: Any) -> Rows:
    given = crowd.responses
    return [
        (given.tasks[int(t)], given.workers[int(w)], given.classes[int(k)])
        for t, w, k in zip(
            given.task_of_each(), given.worker_of_each(), given.label_of_each(), strict=True
        )
    ]


def some_of(crowd: Any, n: int) -> dict[Any, Any]:
    return dict(list(crowd.gold.to_dict().items())[:n])


# Members


def test_members_are_as_their_equations_say() -> None:
    crowd = drawn(3)
    responses = crowd.responses
    n_classes = responses.n_classes
    votes = np.zeros((responses.n_tasks, n_classes))
    np.add.at(votes, (responses.task_of_each(), responses.label_of_each()), 1.0)
    shares = votes / votes.sum(axis=1, keepdims=True)
    beta = np.ones((responses.n_workers, n_classes, n_classes)) + (n_classes - 1) * np.eye(
        n_classes
    )
    for task, worker, label in zip(
        responses.task_of_each(), responses.worker_of_each(), responses.label_of_each(), strict=True
    ):
        beta[worker, :, label] += shares[task]
    logs = digamma(beta) - digamma(beta.sum(axis=2, keepdims=True))
    scores = np.zeros_like(votes)
    for task, worker, label in zip(
        responses.task_of_each(), responses.worker_of_each(), responses.label_of_each(), strict=True
    ):
        scores[task] += logs[worker, :, label]
    alpha = 1.0 + shares.sum(axis=0)

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    expected = {
        "votes": (votes + 1.0 / n_classes) / (votes.sum(axis=1, keepdims=True) + 1.0),
        "first-step": softmax(scores + digamma(alpha) - digamma(alpha.sum())),
        "even": softmax(scores),
        "kinds": tb.VariationalBayes(worker_model="kinds", calibrate="none")
        .fit(responses)
        .probabilities_,
    }
    for name, q in expected.items():
        alone = tb.Auto(members=(name,)).fit(responses)
        assert np.abs(alone.probabilities_ - q).max() < 1e-9, name
    pooled = tb.Auto().fit(responses).probabilities_
    assert np.abs(pooled - sum(expected.values()) / 4.0).max() < 1e-9


def test_a_task_without_responses_has_even_votes() -> None:
    rows = [("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "x")]
    wider = tb.Responses.from_rows(rows).with_tasks(Ids(["c"]))
    q = committee.by_votes(lay_out(wider), 2)
    assert q.tolist() == [[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]]


def test_members_are_named_or_refused() -> None:
    rows = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
    with refused(OptionError, "wrong-value Each of members"):
        tb.Auto(members=("votes", "best")).fit(rows)
    with refused(OptionError, "no-members"):
        tb.Auto(members=()).fit(rows)
    with refused(OptionError, "no-auto-model"):
        tb.VariationalBayes(worker_model="auto").fit(rows)
    careful = tb.Auto(members=("first-step", "votes")).fit(rows)
    assert [each.name for each in careful.members_] == ["votes", "first-step"]


def test_how_labels_differ_from_the_vote_is_counted() -> None:
    votes = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    q = np.array([[0.3, 0.3, 0.4], [0.4, 0.6, 0.0], [0.1, 0.9, 0.0]])
    label = np.array([2, 1, 1], dtype=np.int32)
    nobody = np.zeros(3, dtype=bool)
    found = committee.compare_with_votes(votes, q, label, nobody)
    assert found.n_differ == 2  # the label of the first is none of the tied
    assert found.expected_right == pytest.approx((0.4 - 0.3) + (0.6 - 0.4))
    assert committee.compare_with_votes(votes, q, label, ~nobody).n_differ == 0


def test_rules_that_speak_for_one_class_are_no_reason_to_leave_the_vote() -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice(2, size=400, p=[0.8, 0.2])
    rows = []
    for rule in range(8):
        says = rule % 2
        fires = rng.random(400) < np.where(truth == says, 0.35, 0.05)
        rows += [(f"t{task:03}", f"rule{rule}", "xy"[says]) for task in np.flatnonzero(fires)]
    responses = tb.Responses.from_rows(rows)
    for name in ("first-step", "even", "kinds"):
        model = tb.Auto(members=(name,)).fit(responses)
        at = np.array([int(str(task)[1:]) for task in model.tasks_])
        right = float((model.labels_.label == truth[at]).mean())
        assert right > 0.75, name


# Gold


def test_gold_that_is_left_out_is_predicted_as_by_a_fit_without_it() -> None:
    """One Newton step stands for a fit: their log-losses are alike at every width of the prior."""
    crowd = drawn(5, n_tasks=80)
    tasks = lay_out(crowd.responses)
    codes = crowd.gold.on(crowd.responses.tasks, crowd.responses.classes)
    gold = GoldCodes(codes.task[:30], codes.label[:30])
    q = tb.Auto().fit(crowd.responses).probabilities_
    words = gold_stage.LikelyBest.of(tasks, 3, gold).words_without_own(tasks, 3, gold)
    laid = gold_stage.KnownTasks.of(
        [q[gold.task], words],
        tasks,
        gold,
        np.tile(gold_stage.VOTE * (np.eye(3) - 1 / 3), (tasks.n_codes // 3, 1)),
    )
    for ridge in gold_stage.RIDGES:
        known = laid.with_ridge(ridge)
        x = known.minimum(known.centre)
        by_step = known.left_out_loss(x, known.inverse(x))
        exact = 0.0
        for out in range(30):
            kept = np.arange(30) != out
            rows = np.repeat(kept, 3)
            rest = known._replace(design=known.design[rows], label=known.label[kept])
            at = rest.minimum(x)
            scores = known.design[3 * out : 3 * out + 3] @ at
            p = np.exp(scores - np.logaddexp.reduce(scores))[known.label[out]]
            exact -= np.log(max(p, gold_stage.LEAST_LEFT_OUT))
        assert by_step / 30.0 == pytest.approx(exact / 30.0, abs=0.005), ridge  # nats a task


def test_no_gold_and_empty_gold_are_the_committee() -> None:
    crowd = drawn(7)
    plain = tb.Auto().fit(crowd.responses)
    assert np.array_equal(
        tb.Auto().fit(crowd.responses, gold={}).probabilities_, plain.probabilities_
    )
    assert plain.weights_ is None
    assert plain.best_worker_ is None


def test_gold_of_one_class_says_how_sure_to_be_and_nothing_of_workers() -> None:
    crowd = drawn(8)
    one = {task: label for task, label in crowd.gold.to_dict().items() if label == "c0"}
    with noted("gold-of-one-class"):
        model = tb.Auto().fit(crowd.responses, gold=dict(list(one.items())[:5]))
    assert model.weights_ is not None
    assert np.abs(model.weights_).max() < 1e-6
    plain = tb.Auto().fit(crowd.responses)
    others = ~np.isin(np.arange(60), model.tasks_.codes(list(one)[:5]))
    assert (model.labels_.label == plain.labels_.label)[others].all()


@pytest.mark.parametrize("n_known", [5, 10, 25, 50])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_against_the_crowd_labels_are_as_sure_as_so_few_known_ones_can_make_them(
    n_known: int, n_classes: int
) -> None:
    """Gold turns the classes round; the rule of succession allows (n + 2) / (n + 3)."""
    most = (n_known + 2.0) / (n_known + 3.0)
    for seed in range(2):
        crowd = tb.simulate.crowd(
            400, 7, n_classes, responses_per_task=7, accuracy=(0.8, 0.95), random_state=seed
        )
        truth: Any = crowd.gold.to_dict()
        names = sorted(set(truth.values()))
        turned = {a: names[(i + 1) % n_classes] for i, a in enumerate(names)}
        gold = {task: turned[label] for task, label in list(truth.items())[:n_known]}
        model = tb.Auto().fit(crowd.responses, gold=gold)
        against = tb.MajorityVote().fit(crowd.responses).labels_.label != model.labels_.label
        against[model.tasks_.codes(list(gold))] = False
        sure = model.labels_.probability
        assert sure is not None
        assert against.mean() > 0.7
        assert sure[against].mean() < most
        assert sure[against].max() < most + 0.02


def test_where_a_herd_of_copies_is_wrong_gold_finds_the_good_judge() -> None:
    rng = np.random.default_rng(0)
    truth = {f"t{i}": "xy"[rng.integers(2)] for i in range(300)}
    rows = []
    for task, k in truth.items():
        other = "y" if k == "x" else "x"
        rows.append((task, "good", k if rng.random() < 0.9 else other))
        said = k if rng.random() < 0.45 else other
        rows += [(task, f"copy{n}", said) for n in range(8)]
    known = dict(list(truth.items())[:60])
    model = tb.Auto().fit(rows, gold=known)
    best = model.labels_.best()
    right = np.mean([best[task] == k for task, k in truth.items() if task not in known])
    assert model.best_worker_ == "good"
    assert right > 0.85
    assert model.weights_ is not None
    assert model.weights_.argmax() == list(model.workers_).index("good")
    assert model.weight_intervals_ is not None
    low, high = model.weight_intervals_.T
    assert (low < model.weights_).all()
    assert (model.weights_ < high).all()


def test_the_likely_best_is_heard_as_often_as_it_is_the_best() -> None:
    """Against draws of the accuracies."""
    right, wrong = np.array([45.0, 44.0, 30.0]), np.array([5.0, 6.0, 20.0])
    rows = [("a", "u", "x"), ("a", "v", "y"), ("a", "w", "z")]
    tasks = lay_out(tb.Responses.from_rows(rows))
    words = gold_stage.LikelyBest(right, wrong).words(tasks, 3)[0]
    mean = (right.sum() + 1.0) / ((right + wrong).sum() + 2.0)
    rng = np.random.default_rng(0)
    draws = rng.beta(right + 4.0 * mean, wrong + 4.0 * (1.0 - mean), size=(200_000, 3))
    chance = np.bincount(draws.argmax(axis=1), minlength=3) / 200_000
    assert words == pytest.approx(0.95 * chance + 0.05 / 3.0, abs=0.01)


def test_where_members_disagree_on_many_tasks_it_is_said_with_tasks_to_label() -> None:
    """Two camps of workers who say the opposite: one of them is taken for wrong by kinds."""
    rng = np.random.default_rng(2)
    rows = []
    for task in range(200):
        truth = int(rng.random() < 0.5)
        for worker in range(5):
            right = rng.random() < (0.95 if worker < 2 else 0.25)
            rows.append((f"t{task}", f"w{worker}", "xy"[truth if right else 1 - truth]))
    with noted("members-disagree"):
        tb.Auto().fit(rows)


# Links


def test_must_linked_tasks_are_one_and_no_link_breaks() -> None:
    crowd = drawn(11)
    truth = crowd.gold.to_dict()
    alike = [task for task, label in truth.items() if label == "c1"][:6]
    pairs = list(truth)[20:40]
    apart = [(a, b) for a, b in zip(pairs[::2], pairs[1::2], strict=True) if truth[a] != truth[b]]
    links = tb.Links.from_pairs(must=list(itertools.pairwise(alike)), cannot=apart)
    for gold in (None, some_of(crowd, 15)):
        model = tb.Auto().fit(crowd.responses, links=links, gold=gold)
        assert model.violations_ is not None
        assert len(model.violations_) == 0
        best = model.labels_.best()
        assert len({best[task] for task in alike}) == 1
        at = model.tasks_.codes(alike)
        assert np.ptp(model.probabilities_[at], axis=0).max() < 1e-9


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # repeats are said
def test_a_must_linked_group_is_what_one_task_with_all_its_responses_is() -> None:
    crowd = drawn(12)
    rows = rows_of(crowd)
    group = list(crowd.responses.tasks)[:3]
    merged = [(group[0] if task in group else task, worker, label) for task, worker, label in rows]
    links = tb.Links.from_pairs(must=[(group[0], group[1]), (group[1], group[2])])
    near = ("votes", "first-step", "even")
    linked = tb.Auto(members=near).fit(rows, links=links)
    one = tb.Auto(members=near).fit(tb.Responses.from_rows(merged, repeats="count"))
    kept = [task for task in linked.tasks_ if task not in group[1:]]
    q = linked.probabilities_[linked.tasks_.codes(kept)]
    assert np.abs(q - one.probabilities_[one.tasks_.codes(kept)]).max() < 1e-9


def test_links_raise_the_weight_of_the_model_that_they_teach() -> None:
    assert committee.weight_of_kinds(0.0) == 1.0
    assert committee.weight_of_kinds(0.4) == pytest.approx(2.0)
    assert committee.weight_of_kinds(1.0) == 3.0


# What nothing may depend on


def _turned(rows: Rows, gold: dict[str, str] | None, seed: int) -> tuple[Rows, Any, Any]:
    """Shuffle rows and gold, and rename tasks, workers and classes so that all sort otherwise."""
    rng = np.random.default_rng(seed)
    names: dict[str, str] = {}
    for words in ({t for t, *_ in rows}, {w for _, w, _ in rows}, {k for *_, k in rows}):
        ordered = sorted(words)
        for new, old in zip(rng.permutation(len(ordered)), ordered, strict=True):
            names[old] = f"n{new:04}"
    if gold is not None:
        for label in sorted(set(gold.values())):
            names.setdefault(label, f"z{label}")
    moved = [
        (names[t], names[w], names[k]) for t, w, k in (rows[i] for i in rng.permutation(len(rows)))
    ]
    known = None
    if gold is not None:
        items = list(gold.items())
        known = {names[items[i][0]]: names[items[i][1]] for i in rng.permutation(len(items))}
    return moved, known, names


def _check_invariance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    n_workers = int(rng.integers(3, 9))
    crowd = tb.simulate.crowd(
        int(rng.integers(8, 60)),
        n_workers,
        n_classes,
        responses_per_task=int(rng.integers(2, n_workers + 1)),
        class_prior=rng.dirichlet(np.full(n_classes, 3.0)),
        random_state=seed,
    )
    rows = rows_of(crowd)
    said = {label for *_, label in rows}
    every: Any = crowd.gold.to_dict().items()
    truth: dict[str, str] = {task: label for task, label in every if label in said}
    tasks = sorted(truth)
    links = None
    kind = seed % 3
    gold = {task: truth[task] for task in tasks[: int(rng.integers(1, 8))]} if kind == 1 else None
    pairs = list(zip(tasks[::2], tasks[1::2], strict=False))[:3] if kind == 2 else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if pairs:
            must = [pair for pair in pairs if truth[pair[0]] == truth[pair[1]]]
            cannot = [pair for pair in pairs if truth[pair[0]] != truth[pair[1]]]
            links = tb.Links.from_pairs(must=must, cannot=cannot)
        base = tb.Auto().fit(rows, gold=gold, links=links)
        moved, known, names = _turned(rows, gold, seed)
        if pairs:
            links = tb.Links.from_pairs(
                must=[(names[b], names[a]) for a, b in must],
                cannot=[(names[b], names[a]) for a, b in cannot],
            )
        found = tb.Auto().fit(moved, gold=known, links=links)
    task = found.tasks_.codes([names[name] for name in base.tasks_])
    label = found.classes_.codes([names[name] for name in base.classes_])
    q = found.probabilities_[task][:, label]
    assert np.abs(q - base.probabilities_).max() < 1e-9
    ordered = np.sort(base.probabilities_, axis=1)
    sure = ordered[:, -1] - ordered[:, -2] > 1e-9
    if links is None:
        same = base.labels_.label == np.argsort(label)[found.labels_.label[task]]
        assert same[sure].all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_order_and_names_do_not_matter(seed: int) -> None:
    _check_invariance(seed)


@pytest.mark.long
def test_order_and_names_do_not_matter_to_500_crowds() -> None:
    for seed in range(500):
        _check_invariance(seed)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # repeats are said
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_a_weight_of_two_is_the_row_twice(seed: int) -> None:
    crowd = drawn(seed, n_tasks=20, n_workers=5)
    rows = rows_of(crowd)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(rows))
    columns = [list(column) for column in zip(*rows, strict=True)]
    once = tb.Responses.from_columns(*columns, weight=weight.astype(float))
    repeated = [row for row, n in zip(rows, weight, strict=True) for _ in range(n)]
    often = tb.Responses.from_rows(repeated, repeats="count")
    for gold in (None, some_of(crowd, 8)):
        a, b = (tb.Auto().fit(each, gold=gold) for each in (once, often))
        assert np.abs(a.probabilities_ - b.probabilities_).max() < 1e-9
