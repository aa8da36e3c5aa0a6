"""Worker models: one list of checks for all of them, and exact answers for each."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from properties.strategies import Crowd, crowds
from scipy.special import betaln, gammaln

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.inference import (
    MODELS,
    CrowdFacts,
    FitState,
    Independent,
    Kinds,
    Problem,
    Stopping,
    climb,
    crowd_model,
    lay_out,
)
from tiebreak.kernels import Floats, reference

EVERY = pytest.mark.parametrize("name", MODELS)


def problem_of(crowd: Crowd, name: str) -> Problem:
    responses = crowd.responses
    model = crowd_model(name, CrowdFacts.of_responses(responses, (2.5, 1.5), crowd.class_prior))
    return Problem(lay_out(responses), Independent(model.states), model.workers, reference)


@EVERY
@given(crowd=crowds())
def test_the_bound_never_falls(name: str, crowd: Crowd) -> None:
    problem = problem_of(crowd, name)
    state = climb(problem, FitState(q=problem.votes()), Stopping(0.0, 25))
    assert np.diff(state.bounds).min() >= -1e-9


@EVERY
@given(crowd=crowds())
def test_parameters_are_the_prior_plus_what_is_counted(name: str, crowd: Crowd) -> None:
    problem = problem_of(crowd, name)
    _, beta = problem.implied(problem.votes())
    assert (beta > 0.0).all()
    logs = problem.workers.log_table(beta)
    assert logs.shape == (problem.rows.n_codes, problem.n_states)
    confusion = problem.workers.confusion(beta)
    assert np.allclose(confusion.sum(axis=2), 1.0)
    assert (np.exp(logs) <= confusion.transpose(0, 2, 1).reshape(logs.shape) + 1e-12).all()


@EVERY
@given(crowd=crowds())
def test_the_bound_of_a_labelling_is_its_integrated_probability(name: str, crowd: Crowd) -> None:
    """Where q is certain, nothing is approximate: parameters are integrated out exactly."""
    problem = problem_of(crowd, name)
    rng = np.random.default_rng(0)
    for _ in range(5):
        states = rng.integers(0, problem.n_states, problem.rows.n_tasks)
        q = np.eye(problem.n_states)[states]
        bound = problem.bound(problem.implied(q), 0.0)
        assert bound == pytest.approx(_log_joint(problem, crowd, name, states), abs=1e-9)


@EVERY
@given(crowd=crowds())
def test_the_bound_stays_below_the_evidence(name: str, crowd: Crowd) -> None:
    """All labellings are enumerated; workers and class prior are integrated out exactly."""
    problem = problem_of(crowd, name)
    if problem.rows.n_tasks * np.log(problem.n_states) > np.log(3_000):
        return
    state = climb(problem, FitState(q=problem.votes()), Stopping(1e-9))
    every = product(range(problem.n_states), repeat=problem.rows.n_tasks)
    evidence = np.logaddexp.reduce([_log_joint(problem, crowd, name, each) for each in every])
    assert state.bounds[-1] <= evidence + 1e-9


def _log_joint(problem: Problem, crowd: Crowd, name: str, states: Any) -> float:
    """Return log p(states, responses), with shares, subtypes and workers integrated out."""
    responses = crowd.responses
    each = (responses.task_of_each(), responses.worker_of_each(), responses.label_of_each())
    counts = np.zeros((responses.n_workers, problem.n_states, problem.n_classes))
    for task, worker, label in zip(*each, strict=True):
        counts[worker, states[task], label] += 1.0  # [worker, state, answer]
    totals = np.bincount(states, minlength=problem.n_states).astype(float)
    by_class = totals.reshape(problem.n_classes, -1)
    value = _dirichlet(crowd.class_prior, by_class.sum(axis=1))
    n_subtypes = by_class.shape[1]
    if n_subtypes > 1:
        value += sum(_dirichlet(np.full(n_subtypes, 0.1 / n_subtypes), row) for row in by_class)
    share = np.bincount(each[2], minlength=problem.n_classes) / max(len(each[2]), 1)
    return value + sum(_integrated(name, of_worker, n_subtypes, share) for of_worker in counts)


def _integrated(name: str, counts: Floats, n_subtypes: int, share: Floats) -> float:
    """Return the log probability of one worker's answers, (state, answer), in any state."""
    n_classes = counts.shape[1]
    is_right = np.eye(n_classes, dtype=bool)
    if name == "coin":
        right = float(np.trace(counts))
        wrong = float(counts.sum()) - right
        prior = (2.5, 1.5 * (n_classes - 1))
        gain = betaln(prior[0] + right, prior[1] + wrong) - betaln(*prior)
        return float(gain - wrong * np.log(n_classes - 1))
    middling = np.where(is_right, 2.5, 1.5)  # [class, answer]
    good = middling * np.where(is_right, 4.5, 0.5)
    flat = np.tile(n_classes * share + 0.2, (n_classes, 1))
    is_of_kinds = "kinds" in name or name == "communities"
    kinds = (good, middling, flat) if is_of_kinds else (middling,)
    logs = [
        sum(
            _dirichlet(*row)
            for row in zip(np.repeat(kind, n_subtypes, axis=0), counts, strict=True)
        )
        for kind in kinds
    ]
    return float(np.logaddexp.reduce(logs) - np.log(len(kinds)))


def _dirichlet(prior: Floats, counts: Floats) -> float:
    """Return the log probability of what was counted, with shares integrated out."""
    after = prior + counts
    return float(
        (gammaln(after) - gammaln(prior)).sum() + gammaln(prior.sum()) - gammaln(after.sum())
    )


@given(crowd=crowds())
def test_one_kind_and_one_subtype_are_todays_model(crowd: Crowd) -> None:
    """To the last digit: the same sums in the same order."""
    problem = problem_of(crowd, "confusion")
    prior = problem.workers.prior
    one = problem._replace(workers=Kinds(prior, np.ones(1), problem.workers.n_workers))
    start = FitState(q=problem.votes())
    runs = [climb(each, start, Stopping(0.0, 9)) for each in (problem, one)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-13
    assert runs[0].bounds == pytest.approx(runs[1].bounds, abs=1e-10)


def test_one_task_without_a_free_parameter_is_inferred_exactly() -> None:
    """With one response the bound is the evidence: every labelling has the same counts' weight."""
    responses = Responses.from_rows([("a", "ann", "x"), ("b", "bob", "y")])
    model = tb.VariationalBayes(worker_model="coin", class_prior=[1e9, 1e9]).fit(responses)
    # E[p] is 2/3 before any answer; one answer says x with odds of about 2 to 1.
    assert model.labels_.best() == {"a": "x", "b": "y"}
    assert model.labels_.probability is not None
    assert 0.6 < model.labels_.probability[0] < 0.75


def test_a_coin_is_one_accuracy_per_worker() -> None:
    crowd = tb.simulate.crowd(300, 6, 4, responses_per_task=5, random_state=3)
    confusion = tb.VariationalBayes(worker_model="coin").fit(crowd.responses).confusion_
    diagonal = confusion[:, np.arange(4), np.arange(4)]
    assert np.ptp(diagonal, axis=1).max() < 1e-12
    off = confusion[:, ~np.eye(4, dtype=bool)]
    assert np.ptp(off, axis=1).max() < 1e-12
    truth = (crowd.confusion[:, np.arange(4), np.arange(4)] @ np.full(4, 0.25))[:6]
    assert np.abs(diagonal[:, 0] - truth).max() < 0.15


@EVERY
def test_links_gold_and_asking_work_with_every_model(name: str) -> None:
    crowd = tb.simulate.crowd(80, 6, 3, responses_per_task=4, random_state=2)
    links = tb.simulate.links(crowd.gold, 30, random_state=2)
    known = {crowd.gold.tasks[i]: crowd.gold.classes[crowd.gold.label[i]] for i in range(10)}
    every = (tb.ExactLinkOptions(), tb.ExactLinkOptions(error=0.05), tb.MeanFieldOptions())
    for options in every[: 2 if "subtypes" in name else 3]:
        model = tb.VariationalBayes(worker_model=name, link_options=options)
        model.fit(crowd.responses, links=links, gold=known)
        assert np.diff(model.bounds_).min() >= -1e-9
        assert tb.evaluate.accuracy(model.labels_, crowd.gold) > 0.8
    exact = tb.VariationalBayes(worker_model=name).fit(crowd.responses, links=links)
    assert len(tb.selection.pairs(exact, 5, random_state=0)) == 5


def em_one_coin(responses: Responses, n_sweeps: int) -> Floats:
    """Maximum likelihood with one accuracy per worker, written plainly: an oracle."""
    rows = list(
        zip(
            responses.task_of_each(),
            responses.worker_of_each(),
            responses.label_of_each(),
            strict=True,
        )
    )
    n_classes = responses.n_classes
    q = np.zeros((responses.n_tasks, n_classes))
    for task, _, label in rows:
        q[task, label] += 1.0
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(n_sweeps):
        prior = q.mean(axis=0)
        right = np.zeros(responses.n_workers)
        given = np.zeros(responses.n_workers)
        for task, worker, label in rows:
            right[worker] += q[task, label]
            given[worker] += 1.0
        accuracy = np.clip(right / given, 1e-12, 1.0 - 1e-12)
        score = np.tile(np.log(prior), (responses.n_tasks, 1))
        for task, worker, label in rows:
            wrong = np.log((1.0 - accuracy[worker]) / (n_classes - 1))
            score[task] += wrong
            score[task, label] += np.log(accuracy[worker]) - wrong
        q = np.exp(score - score.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_one_coin_dawid_skene_is_maximum_likelihood(n_classes: int) -> None:
    crowd = tb.simulate.crowd(60, 6, n_classes, responses_per_task=4, random_state=n_classes)
    model = tb.DawidSkene(worker_model="coin", smoothing=0.0, tol=0.0, max_iter=30)
    model.fit(crowd.responses)
    expected = em_one_coin(crowd.responses, 30)
    assert np.abs(model.probabilities_ - expected).max() < 1e-6


def test_a_model_is_made_with_any_shape_of_prior() -> None:
    responses = Responses.from_rows([("a", "ann", "x"), ("b", "bob", "y"), ("b", "ann", "z")])
    shapes: list[Any] = ["diagonal", (3.0, 1.0), np.ones((3, 3)) + 2.0 * np.eye(3)]
    for name in MODELS:
        made = [
            crowd_model(name, CrowdFacts.of_responses(responses, each)).workers for each in shapes
        ]
        for model in made:
            assert np.allclose(model.prior, made[0].prior)


def test_subtypes_take_links_where_the_class_of_every_task_is_known() -> None:
    crowd = tb.simulate.crowd(30, 6, 3, random_state=0)
    links = tb.simulate.links(crowd.gold, 10, random_state=1)
    model = tb.VariationalBayes(worker_model="subtypes")
    model.fit(crowd.responses, links=links, gold=crowd.gold)
    assert model.labels_.best() == crowd.gold.to_dict()
