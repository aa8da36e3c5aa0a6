"""One list of checks for every estimator, and what each refuses."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from refusals import noted, refused
from sklearn.base import clone

import tiebreak as tb
from tiebreak import simulate

CROWD = simulate.crowd(60, 8, 3, responses_per_task=4, random_state=1)
LINKS = simulate.links(CROWD.gold, 20, random_state=1)
EVERY: list[Any] = [
    tb.MajorityVote(),
    tb.DawidSkene(smoothing=0.1),
    tb.DawidSkene(worker_model="coin"),
    tb.VariationalBayes(confusion_prior=(4.0, 1.0)),
    tb.VariationalBayes(worker_model="coin"),
    tb.VariationalBayes(link_options=tb.MeanFieldOptions(schedule="parallel")),
    tb.GibbsSampler(n_draws=800),
]
ESTIMATORS = pytest.mark.parametrize("model", EVERY, ids=lambda model: repr(model)[:40])


@ESTIMATORS
def test_clone_pickle_and_repr_keep_the_parameters(model: Any) -> None:
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        assert repr(copy) == repr(model)
    assert eval(repr(model), vars(tb) | {"tb": tb, **_names()}).get_params() == model.get_params()


def _names() -> dict[str, Any]:
    named = ("MajorityVote", "DawidSkene", "VariationalBayes", "MeanFieldOptions", "GibbsSampler")
    return {name: getattr(tb, name) for name in named}


@ESTIMATORS
def test_a_fitted_and_a_warm_started_model_can_be_cloned(model: Any) -> None:
    fitted = clone(model).fit(CROWD.responses)
    models = [fitted]
    if not isinstance(model, tb.MajorityVote):
        models.append(clone(model).fit(CROWD.responses, start=fitted))
    for each in models:
        again = clone(each).fit(CROWD.responses)
        assert (again.probabilities_ == fitted.probabilities_).all()


@ESTIMATORS
def test_a_start_may_know_other_tasks_and_workers(model: Any) -> None:
    """New tasks and workers start as in a cold fit, and the same optimum is found."""
    if isinstance(model, tb.MajorityVote):
        with refused(tb.errors.OptionError, "no-start"):
            clone(model).fit(CROWD.responses, start=clone(model).fit(CROWD.responses))
        return
    rows = [
        (task, worker, label)
        for task, worker, label in _rows_of(CROWD.responses)
        if task not in ("t01", "t02") and worker != "w3"
    ]
    first = clone(model).fit(rows)
    assert len(first.tasks_) < 60
    if isinstance(model, tb.GibbsSampler):  # draws differ; what they are drawn from does not
        drawn = clone(model).fit(CROWD.responses, start=first).probabilities_
        assert np.abs(drawn - clone(model).fit(CROWD.responses).probabilities_).max() < 0.1
        return
    warm = clone(model).set_params(tol=1e-10).fit(CROWD.responses, start=first)
    cold = clone(model).set_params(tol=1e-10).fit(CROWD.responses)
    assert np.abs(warm.probabilities_ - cold.probabilities_).max() < 1e-4
    assert list(warm.tasks_) == list(cold.tasks_)


def _rows_of(responses: tb.Responses) -> list[tuple[Hashable, Hashable, Hashable]]:
    return [
        (responses.tasks[int(i)], responses.workers[int(w)], responses.classes[int(k)])
        for i, w, k in zip(
            responses.task_of_each(),
            responses.worker_of_each(),
            responses.label_of_each(),
            strict=True,
        )
    ]


@ESTIMATORS
def test_results_are_named_and_add_up(model: Any) -> None:
    fitted = clone(model).fit(CROWD.responses)
    assert list(fitted.tasks_) == list(CROWD.responses.tasks)
    assert fitted.probabilities_.shape == (60, 3)
    assert np.allclose(fitted.probabilities_.sum(axis=1), 1.0)
    assert fitted.confusion_.shape == (8, 3, 3)
    assert np.allclose(fitted.confusion_.sum(axis=2), 1.0)
    assert np.allclose(fitted.class_prior_.sum(), 1.0)
    assert fitted.converged_
    assert fitted.violations_ is None
    assert fitted.responses_ is CROWD.responses


@ESTIMATORS
def test_fitting_twice_gives_the_same_and_leaves_the_input_alone(model: Any) -> None:
    before = CROWD.responses.label_of_each().copy()
    first = clone(model).fit(CROWD.responses).probabilities_
    second = clone(model).fit(CROWD.responses).probabilities_
    assert (first == second).all()
    assert (CROWD.responses.label_of_each() == before).all()


@ESTIMATORS
def test_a_result_before_fit_says_to_fit(model: Any) -> None:
    with refused(tb.errors.NotFittedError, "no-result-yet"):
        _ = clone(model).labels_


@pytest.mark.parametrize("model", [tb.MajorityVote(), tb.DawidSkene()])
def test_an_estimator_that_cannot_use_links_names_the_one_that_can(model: Any) -> None:
    with refused(tb.errors.OptionError, "no-links"):
        model.fit(CROWD.responses, links=LINKS)


@ESTIMATORS
def test_known_tasks_keep_their_class(model: Any) -> None:
    gold = dict(list(CROWD.gold.to_dict().items())[:15])
    labels = clone(model).fit(CROWD.responses, gold=gold).labels_.best()
    assert {task: labels[task] for task in gold} == gold


def test_unsettled_fits_warn_unless_their_length_was_asked_for() -> None:
    with pytest.warns(tb.errors.ConvergenceWarning, match="Not converged after 2 iterations"):
        model = tb.VariationalBayes(max_iter=2).fit(CROWD.responses)
    assert not model.converged_
    asked = tb.VariationalBayes(tol=0.0, max_iter=2).fit(CROWD.responses)
    assert asked.n_iter_ == 2
    assert len(asked.bounds_) == 3


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"tol": -1.0}, "wrong-value tol"),
        ({"max_iter": 0}, "wrong-value max_iter"),
        ({"link_options": "magic"}, "no-link-options"),
        ({"worker_model": "magic"}, "wrong-value worker_model"),
        ({"init": "random"}, "wrong-value init"),
        ({"init": np.ones((2, 2))}, "init-shape"),
        ({"calibrate": "some"}, "wrong-value calibrate"),
        ({"dependence": 1.5}, "wrong-value dependence"),
        (
            {"worker_model": "subtypes", "link_options": tb.MeanFieldOptions()},
            "subtypes-need-exact-links",
        ),
        ({"class_prior": [1.0, 2.0]}, "class-prior-shape"),
        ({"class_prior": 0.0}, "prior-not-positive class_prior"),
        ({"confusion_prior": "flat"}, "wrong-value confusion_prior"),
        ({"confusion_prior": np.ones((4, 4))}, "confusion-prior-shape"),
        ({"confusion_prior": {"nobody": np.ones((3, 3))}}, "prior-of-nobody confusion_prior"),
        ({"confusion_prior": {"w1": np.ones((2, 2))}}, "confusion-prior-of-worker-shape"),
        ({"backend": "gpu"}, "wrong-value backend"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], what: str) -> None:
    with refused(tb.errors.OptionError, what):
        tb.VariationalBayes(**options).fit(CROWD.responses)


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        (tb.MeanFieldOptions, {"schedule": "random"}, "MeanFieldOptions.schedule"),
        (tb.MeanFieldOptions, {"strength": "some"}, "MeanFieldOptions.strength"),
        (tb.MeanFieldOptions, {"strength": -1.0}, "MeanFieldOptions.strength"),
        (tb.ExactLinkOptions, {"decode": "best"}, "ExactLinkOptions.decode"),
        (tb.ExactLinkOptions, {"error": 0.7}, "ExactLinkOptions.error"),
        (tb.ExactLinkOptions, {"error": "guess"}, "ExactLinkOptions.error"),
        (tb.ExactLinkOptions, {"error_prior": (3.0, 1.0)}, "ExactLinkOptions.error_prior"),
    ],
)
def test_options_of_links_check_themselves(kind: Any, options: Any, name: str) -> None:
    with refused(tb.errors.OptionError, f"wrong-value {name}"):
        kind(**options)


def test_priors_of_all_shapes_say_the_same_thing() -> None:
    table = np.ones((3, 3)) + 2.0 * np.eye(3)
    workers = list(CROWD.responses.workers)
    same: list[Any] = [
        "diagonal",
        (3.0, 1.0),
        table,
        np.stack([table] * 8),
        dict.fromkeys(workers, table),
    ]
    fits = [tb.VariationalBayes(confusion_prior=p).fit(CROWD.responses) for p in same]
    for other in fits[1:]:
        assert np.abs(other.probabilities_ - fits[0].probabilities_).max() < 1e-12


def test_a_worker_known_from_earlier_jobs_weighs_more() -> None:
    rows = [("a", "expert", "x"), ("a", "novice", "y"), ("b", "expert", "y"), ("b", "novice", "x")]
    prior = {"expert": [[90.0, 1.0], [1.0, 90.0]]}
    assert tb.VariationalBayes(confusion_prior=prior).fit(rows).labels_.best() == {
        "a": "x",
        "b": "y",
    }


def test_a_warm_start_ends_where_the_first_fit_did() -> None:
    first = tb.VariationalBayes(calibrate="none").fit(CROWD.responses, links=LINKS)
    again = tb.VariationalBayes(init=first.probabilities_, calibrate="none")
    again.fit(CROWD.responses, links=LINKS)
    assert again.n_iter_ < first.n_iter_
    assert np.abs(again.probabilities_ - first.probabilities_).max() < 1e-4


def test_links_and_gold_together_imply_labels() -> None:
    tasks = list(CROWD.responses.tasks)
    links = tb.Links.from_pairs(must=[(tasks[0], tasks[1])], cannot=[(tasks[1], tasks[2])])
    for options in (tb.ExactLinkOptions(), tb.MeanFieldOptions()):
        model = tb.VariationalBayes(link_options=options)
        model.fit(CROWD.responses, links=links, gold={tasks[0]: "c1"})
        labels = model.labels_.best()
        assert labels[tasks[0]] == labels[tasks[1]] == "c1"
        assert labels[tasks[2]] != "c1"


def test_doubtful_links_are_ranked_and_sources_compared() -> None:
    crowd = simulate.crowd(400, 15, 3, responses_per_task=6, accuracy=0.8, random_state=5)
    good = simulate.links(crowd.gold, 200, random_state=1)
    bad = simulate.links(crowd.gold, 200, wrong=0.4, random_state=2)
    both = [(*row, "ann") for row in good.pairs()] + [(*row, "bob") for row in bad.pairs()]
    left, right, kind, who = (list(column) for column in zip(*both, strict=True))
    links = {"left": left, "right": right, "link": kind, "who": who}
    model = tb.VariationalBayes(link_options=tb.ExactLinkOptions(error="learn")).fit(
        crowd.responses, links=links
    )
    assert model.link_errors_ is not None
    rate = {who: max(errors) for who, errors in model.link_errors_.items()}
    assert rate["ann"] < 0.1 < 0.25 < rate["bob"]
    doubtful = model.doubtful_links_
    assert doubtful is not None
    assert len(doubtful) > 40
    assert (np.diff(doubtful.probability) <= 0).all()
    truth = crowd.gold.to_dict()
    pairs = doubtful.links.pairs()
    wrong = [(truth[a] == truth[b]) != (kind == "must") for a, b, kind in pairs]
    assert np.mean(wrong) > 0.9


def test_a_source_worse_than_a_coin_is_said_aloud() -> None:
    crowd = simulate.crowd(400, 15, 2, responses_per_task=6, accuracy=0.85, random_state=5)
    links = simulate.links(crowd.gold, 200, wrong=0.9, random_state=2)
    with noted("source-worse-than-a-coin"):
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error="learn")).fit(
            crowd.responses, links=links
        )


def test_weights_and_found_rates_exclude_each_other() -> None:
    link_error = "learn"
    left, right = list(CROWD.responses.tasks)[:2]
    links = {"left": [left], "right": [right], "link": ["must"], "weight": [2.0]}
    with refused(tb.errors.OptionError, "weights-leave-nothing-to-learn"):
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=link_error)).fit(
            CROWD.responses, links=links
        )


def test_gold_and_links_overrule_what_is_expected_of_probabilities() -> None:
    known = tb.VariationalBayes().fit(CROWD.responses, gold=CROWD.gold).calibration_
    hard = tb.VariationalBayes().fit(CROWD.responses, links=LINKS).calibration_
    plain = tb.VariationalBayes().fit(CROWD.responses).calibration_
    votes = tb.VariationalBayes(calibrate="votes", dependence=0.5)
    off = tb.VariationalBayes(calibrate="none").fit(CROWD.responses, gold=CROWD.gold)
    assert plain is not None
    assert plain[:2] == (0.35, 1.0)
    assert known is not None
    assert hard is not None
    assert known != plain
    assert hard != plain
    by_votes = votes.fit(CROWD.responses, gold=CROWD.gold).calibration_
    assert by_votes is not None
    assert by_votes[:2] == (0.5, 1.0)
    assert off.calibration_ is None


def test_calibration_leaves_labels_alone() -> None:
    crowd = simulate.crowd(500, 9, 3, responses_per_task=5, random_state=9)
    honest = tb.VariationalBayes().fit(crowd.responses)
    sure = tb.VariationalBayes(calibrate="none").fit(crowd.responses)
    assert (honest.labels_.label == sure.labels_.label).all()
    assert honest.probabilities_.max(axis=1).mean() < sure.probabilities_.max(axis=1).mean()


def test_an_unknown_result_of_a_fitted_model_is_not_said_to_come_with_a_fit() -> None:
    model = tb.VariationalBayes()
    with refused(tb.errors.NotFittedError, "no-result-yet"):
        _ = model.label_
    model.fit([("a", "ann", "cat"), ("a", "bob", "dog")])
    with pytest.raises(AttributeError, match="no attribute 'label_'") as caught:
        _ = model.label_
    assert not isinstance(caught.value, tb.errors.NotFittedError)
    assert (caught.value.name, caught.value.obj) == ("label_", model)  # so that Python says labels_


@pytest.mark.parametrize("name", ["probas_", "errors_", "priors_", "skills_", "fit_predict_proba"])
def test_a_name_of_crowdkit_is_answered_by_ours_fitted_or_not(name: str) -> None:
    model = tb.MajorityVote()
    for _ in range(2):
        with pytest.raises(AttributeError, match="here it is") as caught:
            getattr(model, name)
        assert not isinstance(caught.value, tb.errors.NotFittedError)
        model.fit([("a", "ann", "cat"), ("a", "bob", "dog")])
