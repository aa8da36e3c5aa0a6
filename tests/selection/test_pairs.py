"""The next pairs: never in vain, best first, and right about a crowd that is sure and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import noted, refused

import tiebreak as tb
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.estimators import base
from tiebreak.links import graph as link_graph
from tiebreak.selection import state

SEEDS = st.integers(0, 10_000)


def crowd(seed: int, n_classes: int, n_tasks: int = 40) -> Any:
    return tb.simulate.crowd(
        n_tasks=n_tasks, n_workers=6, n_classes=n_classes, responses_per_task=3, random_state=seed
    )


def links_of(made: Any, n: int, seed: int) -> tb.Links:
    return tb.simulate.links(made.gold, n, random_state=seed)


def implied(model: Any, pair: list[int], links: tb.Links) -> bool:
    """Say whether what follows from links, written out, settles a pair."""
    closed = link_graph.close(len(model.tasks_), links.on(model.tasks_))
    a, b = closed.group[pair].tolist()
    apart = set(zip(closed.left.tolist(), closed.right.tolist(), strict=True))
    return a == b or (min(a, b), max(a, b)) in apart


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.sampled_from([2, 3]), st.sampled_from(tb.selection.STRATEGIES), st.booleans())
def test_no_pair_is_known_or_asked_twice(seed: int, k: int, strategy: Any, soft: bool) -> None:
    made = crowd(seed, k, n_tasks=25)
    links = links_of(made, 12, seed)
    model = tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=0.05 if soft else None)).fit(
        made.responses, links=links
    )
    pairs = list(tb.selection.pairs(model, 30, strategy, random_state=seed))
    asked = {frozenset(pair[:2]) for pair in pairs}
    assert len(asked) == len(pairs) > 0
    assert all(len(pair) == 2 for pair in asked)
    given_pairs = {frozenset(pair) for pair in zip(*_ends(links), strict=True)}
    assert not asked & given_pairs
    if not soft:
        for left, right, _ in pairs:
            codes = model.tasks_.codes([left, right]).tolist()
            assert not implied(model, codes, links)


def _ends(links: tb.Links) -> tuple[list[Any], list[Any]]:
    columns = links.columns()
    return list(map(str, columns["left"])), list(map(str, columns["right"]))


@settings(deadline=None, max_examples=15)
@given(SEEDS, st.sampled_from([2, 4]), st.sampled_from(tb.selection.STRATEGIES))
def test_only_tasks_among_those_named_are_asked(seed: int, k: int, strategy: Any) -> None:
    made = crowd(seed, k)
    model = tb.VariationalBayes().fit(made.responses)
    among = set(list(model.tasks_)[::3])
    pairs = tb.selection.pairs(model, 10, strategy, among, random_state=seed)
    assert {*pairs.left, *pairs.right} <= among


@settings(deadline=None, max_examples=15)
@given(SEEDS, st.sampled_from([2, 4]))
def test_a_batch_asks_no_doubtful_group_twice(seed: int, k: int) -> None:
    made = crowd(seed, k, n_tasks=80)
    links = links_of(made, 30, seed)
    model = tb.VariationalBayes().fit(made.responses, links=links)
    pairs = tb.selection.pairs(model, 15, random_state=seed)
    group = link_graph.components(
        len(model.tasks_), *(links.on(model.tasks_).keep(links.on(model.tasks_).must))[:2]
    )
    doubtful = group[model.tasks_.codes(list(pairs.left))]
    counts = np.bincount(doubtful)
    # a core may be checked as the left end and serve as a partner; doubtful groups come once
    assert (counts <= k).all()
    assert (counts > 1).sum() <= k


def test_known_labels_settle_pairs_and_serve_as_partners() -> None:
    made = crowd(3, 3, n_tasks=60)
    names = list(made.gold.tasks)
    classes = made.gold.classes
    known = [(names[i], classes[int(made.gold.label[i])]) for i in range(0, 60, 4)]
    model = tb.VariationalBayes().fit(made.responses, gold=known)
    pairs = list(tb.selection.pairs(model, 20, random_state=0))
    labelled = {name for name, _ in known}
    assert not any({left, right} <= labelled for left, right, _ in pairs)
    assert sum(bool({left, right} & labelled) for left, right, _ in pairs) >= len(pairs) // 2


def right_answers(model: Any, made: Any) -> float:
    return tb.evaluate.accuracy(model.labels_, made.gold)


def ask(made: Any, strategy: Any, n_rounds: int, n: int, seed: int) -> Any:
    truth = dict(zip(made.gold.tasks, made.gold.label.tolist(), strict=True))
    model = tb.VariationalBayes().fit(made.responses)
    must: list[Any] = []
    cannot: list[Any] = []
    for _ in range(n_rounds):
        for left, right, _gain in tb.selection.pairs(model, n, strategy, random_state=seed):
            (must if truth[left] == truth[right] else cannot).append((left, right))
        links = tb.Links.from_pairs(must, cannot)
        model = tb.VariationalBayes().fit(made.responses, links=links, start=model)
    return model


@pytest.mark.parametrize("n_classes", [2, 4])
def test_adaptive_puts_more_labels_right_than_the_others(n_classes: int) -> None:
    found: dict[str, list[float]] = {name: [] for name in tb.selection.STRATEGIES}
    for seed in range(4):
        made = tb.simulate.crowd(
            n_tasks=150, n_workers=8, n_classes=n_classes, responses_per_task=3, random_state=seed
        )
        for name, scores in found.items():
            scores.append(right_answers(ask(made, name, 4, 10, seed), made))
    means = {name: np.mean(scores) for name, scores in found.items()}
    assert means["adaptive"] > means["bvsb"] + 0.02
    assert means["adaptive"] > means["random"] + 0.02


def test_a_core_that_is_another_class_is_found_out() -> None:
    """Two classes that the crowd calls by one name come apart once cores are checked."""
    rng = np.random.default_rng(0)
    truth: list[Any] = np.repeat([0, 1, 2], 40).tolist()
    rows = []
    for task, k in enumerate(truth):
        for worker in range(4):
            said = k if rng.random() < 0.9 else int(rng.integers(3))
            if k == 1 and rng.random() < 0.6:
                said = 2  # most of class 1 is called 2
            rows.append((task, worker, said))
    made = tb.read_responses(rows)
    gold = list(enumerate(truth))
    model = tb.VariationalBayes().fit(made)
    before = tb.evaluate.accuracy(model.labels_, gold)
    must: list[Any] = []
    cannot: list[Any] = []
    for _ in range(8):
        pairs: Any = tb.selection.pairs(model, 6, random_state=1)
        for left, right, _gain in pairs:
            (must if truth[left] == truth[right] else cannot).append((left, right))
        model = tb.VariationalBayes().fit(
            made, links=tb.Links.from_pairs(must, cannot), start=model
        )
    assert tb.evaluate.accuracy(model.labels_, gold) > before + 0.1


def test_a_model_can_go_on_from_another() -> None:
    made = crowd(5, 3, n_tasks=60)
    links = links_of(made, 20, 5)
    cold = tb.VariationalBayes(tol=1e-10).fit(made.responses, links=links)
    first = tb.VariationalBayes(tol=1e-10).fit(made.responses, links=links.select(np.arange(12)))
    warm = tb.VariationalBayes(tol=1e-10).fit(made.responses, links=links, start=first)
    assert warm.calibration_ == pytest.approx(cold.calibration_, abs=1e-6)
    assert warm.labels_.best() == cold.labels_.best()
    assert np.abs(warm.probabilities_ - cold.probabilities_).max() < 1e-5


def test_a_model_that_was_not_fitted_is_no_start() -> None:
    one = crowd(1, 2)
    with pytest.raises(NotFittedError):
        tb.VariationalBayes().fit(one.responses, start=tb.VariationalBayes())
    with refused(OptionError, "start-not-init"):
        tb.VariationalBayes(init=tb.VariationalBayes()).fit(one.responses)  # type: ignore[arg-type]


def test_votes_can_be_drawn_from_without_a_worker_model() -> None:
    made = crowd(7, 3)
    model = tb.MajorityVote().fit(made.responses)
    assert len(tb.selection.pairs(model, 9, "bvsb", random_state=0)) == 9
    with refused(OptionError, "no-question-state"):
        tb.selection.pairs(model, 9)


def test_what_cannot_be_asked_is_said() -> None:
    made = crowd(8, 2)
    model = tb.VariationalBayes().fit(made.responses)
    with refused(OptionError, "wrong-value strategy"):
        tb.selection.pairs(model, 5, "best")  # type: ignore[arg-type]
    with refused(OptionError, "among-unknown-tasks"):
        tb.selection.pairs(model, 5, among=["nobody"])
    with refused(OptionError, "wrong-value n"):
        tb.selection.pairs(model, -1)
    with noted("one-class"):
        alone = tb.VariationalBayes().fit([("a", "ann", "x"), ("b", "ann", "x")])
    with refused(OptionError, "nothing-to-ask"):
        tb.selection.pairs(alone, 5)


def test_all_pairs_known_leaves_nothing_to_ask() -> None:
    rows = [("a", "ann", "x"), ("b", "ann", "y"), ("a", "bob", "x"), ("b", "bob", "y")]
    links = tb.Links.from_pairs(cannot=[("a", "b")])
    model = tb.VariationalBayes().fit(rows, links=links)
    for strategy in tb.selection.STRATEGIES:
        assert len(tb.selection.pairs(model, 5, strategy, random_state=0)) == 0


class Copied(base.Estimator):
    """An estimator of another type, with what a fitted model found."""

    supports_adaptive_selection = True

    def __init__(self, model: tb.VariationalBayes) -> None:
        vars(self).update(vars(model))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_questions_do_not_depend_on_the_type_of_an_estimator(n_classes: int) -> None:
    made = crowd(5, n_classes)
    model = tb.VariationalBayes().fit(made.responses, links=links_of(made, 15, 5))
    expected = list(tb.selection.pairs(model, 10, random_state=0))
    assert list(tb.selection.pairs(Copied(model), 10, random_state=0)) == expected
    kinds = ("same", "label", "vote")
    offers = tb.selection.questions(model, 5, kinds, random_state=0)
    assert tb.selection.questions(Copied(model), 5, kinds, random_state=0) == offers


def test_an_estimator_that_models_no_workers_draws_by_bvsb_only() -> None:
    model = tb.DawidSkene().fit(crowd(5, 3).responses)
    assert (model.calibration_, model.doubtful_links_, model.links_may_err) == (None, None, False)
    assert len(tb.selection.pairs(model, 3, "bvsb", random_state=0)) == 3
    with refused(OptionError, "no-question-state"):
        tb.selection.pairs(model, 3)


@pytest.mark.parametrize("calibrate", ["auto", "none"])
def test_questions_scale_by_weight_as_fits_do(calibrate: str) -> None:
    once = crowd(1, 3).responses
    columns = (once.task_of_each(), once.worker_of_each(), once.label_of_each())
    ids = (once.tasks, once.workers, once.classes)
    by_weight = tb.Responses.from_codes(*columns, *ids, weight=np.full(once.n_responses, 8.0))
    task, worker, label = (np.repeat(each, 8) for each in columns)
    repeated = tb.Responses.from_codes(task, worker, label, *ids)
    one, other = (
        tb.VariationalBayes(calibrate=calibrate).fit(each) for each in (by_weight, repeated)
    )
    assert np.abs(state.own_probabilities(one) - state.own_probabilities(other)).max() < 1e-9
    assert np.abs(state.tempered(one) - state.tempered(other)).max() < 1e-9


def test_questions_expect_the_dependence_that_was_given() -> None:
    made = crowd(1, 3).responses
    models = [tb.VariationalBayes(calibrate="none", dependence=d).fit(made) for d in (0.0, 0.5)]
    assert np.abs(state.tempered(models[0]) - models[0].probabilities_).max() < 1e-9
    scale = 1.0 / (1.0 + 0.5 * (3 - 1))
    expected = models[1].probabilities_ ** scale
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(state.tempered(models[1]) - expected).max() < 1e-9
