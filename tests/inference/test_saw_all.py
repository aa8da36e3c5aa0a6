"""Workers who saw every task: their silence counts, under every worker model."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from inference.test_worker_models import _log_joint, problem_of
from properties.strategies import Crowd, crowds
from scipy.special import betaln, psi

import tiebreak as tb
from tiebreak.errors import OptionError
from tiebreak.ids import Ids
from tiebreak.inference import calibration, silence, vb
from tiebreak.inference.kept.streaming import Stream
from tiebreak.inference.response_patterns import LEAST_TASKS
from tiebreak.inference.worker_models import MODELS
from tiebreak.inference.worker_models.saw_all import SawAll
from tiebreak.kernels.layout import Floats
from tiebreak.responses import Responses

EVERY = pytest.mark.parametrize("name", MODELS)


def heard_problem(crowd: Crowd, name: str, n_saw: int) -> tuple[vb.Problem, list[int]]:
    saw = list(range(crowd.responses.n_workers))[:n_saw]
    problem = problem_of(crowd, name)
    return silence.with_silence(problem, saw, crowd.responses.workers, 1.0), saw


def spoke(responses: Responses) -> Floats:
    """Return who spoke to which task, (n_tasks, n_workers)."""
    table = np.zeros((responses.n_tasks, responses.n_workers))
    table[responses.task_of_each(), responses.worker_of_each()] = 1.0
    return table


def log_joint(problem: vb.Problem, crowd: Crowd, name: str, states: Any, saw: list[int]) -> float:
    """Return log p(states, responses, silence), everything but the states integrated out."""
    value = _log_joint(problem, crowd, name, states)
    table = spoke(crowd.responses)
    for w, k in product(saw, range(problem.n_states)):
        here = np.asarray(states) == k
        n_spoke = table[here, w].sum()
        value += float(betaln(1.0 + n_spoke, 1.0 + here.sum() - n_spoke))
    return value


@EVERY
@given(crowd=crowds())
def test_the_bound_never_falls(name: str, crowd: Crowd) -> None:
    problem, _ = heard_problem(crowd, name, 2)
    votes = vb.majority(problem.responses, problem.n_classes)
    run = vb.ascend(problem, vb.to_states(problem, votes), tol=0.0, max_iter=25)
    assert np.diff(run.bounds).min() >= -1e-9


@EVERY
@given(crowd=crowds())
def test_the_bound_of_a_labelling_is_its_integrated_probability(name: str, crowd: Crowd) -> None:
    problem, saw = heard_problem(crowd, name, 2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        states = rng.integers(0, problem.n_states, problem.tasks.n_tasks)
        q = np.eye(problem.n_states)[states]
        bound = vb.bound_after_update(problem, vb.implied_beliefs(problem, q), 0.0)
        assert bound == pytest.approx(log_joint(problem, crowd, name, states, saw), abs=1e-9)


@EVERY
@given(crowd=crowds(max_tasks=4))
def test_the_bound_stays_below_the_evidence(name: str, crowd: Crowd) -> None:
    problem, saw = heard_problem(crowd, name, 4)
    if problem.tasks.n_tasks * np.log(problem.n_states) > np.log(1_000):
        return
    votes = vb.majority(problem.responses, problem.n_classes)
    run = vb.ascend(problem, vb.to_states(problem, votes), tol=1e-9)
    every = product(range(problem.n_states), repeat=problem.tasks.n_tasks)
    joint = [log_joint(problem, crowd, name, np.array(each), saw) for each in every]
    assert run.bounds[-1] <= np.logaddexp.reduce(joint) + 1e-9


@given(crowd=crowds())
def test_scores_are_those_of_one_code_a_task_and_worker(crowd: Crowd) -> None:
    """The short form, "seen" and "spoke", against silence written down task by task."""
    problem, saw = heard_problem(crowd, "confusion", 3)
    said = silence.without_silence(problem)
    assert isinstance(problem.workers, SawAll)
    q = vb.majority(said.tasks, problem.n_classes)
    beliefs = vb.implied_beliefs(problem, q)
    scores = problem.backend.score_tasks(problem.tasks, *vb.expected_logs(problem, beliefs))
    inner = beliefs._replace(beta=problem.workers.of_inner(beliefs.beta))
    plain = said.backend.score_tasks(said.tasks, *vb.expected_logs(said, inner))
    table = spoke(crowd.responses)
    for w in saw:
        n_spoke = 1.0 + table[:, w] @ q
        n_silent = 1.0 + (1.0 - table[:, w]) @ q
        logs = psi(np.stack([n_silent, n_spoke])) - psi(n_spoke + n_silent)
        plain = plain + logs[table[:, w].astype(int)]
    assert scores == pytest.approx(plain, abs=1e-9)


@EVERY
def test_without_such_workers_nothing_changes_to_the_last_digit(name: str) -> None:
    crowd = tb.simulate.crowd(120, 6, 3, responses_per_task=4, random_state=1)
    plain = tb.VariationalBayes(worker_model=name).fit(crowd.responses)
    nobody: tuple[Any, ...] = (None, False, [])
    for saw_all in nobody:
        model = tb.VariationalBayes(worker_model=name, saw_all=saw_all).fit(crowd.responses)
        assert np.array_equal(model.probabilities_, plain.probabilities_)
        assert model.bounds_ == plain.bounds_


def rules(n_tasks: int = 400, seed: int = 0) -> tuple[Responses, tb.Gold]:
    """Draw twelve rules of one class each; silence tells the last class, which has two only."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_tasks, p=[0.4, 0.3, 0.3])
    own = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 2, 2])
    chance = np.where(truth[:, None] == own, 0.4, 0.05)
    task, worker = np.nonzero(rng.random((n_tasks, 12)) < chance)
    tasks = Ids([f"t{i:05d}" for i in range(n_tasks)])
    names = Ids([f"rule{w:02d}" for w in range(12)])
    responses = Responses.from_codes(
        task.astype(np.int32),
        worker.astype(np.int32),
        own[worker].astype(np.int32),
        tasks,
        names,
        Ids(["a", "b", "c"]),
    )
    return responses, tb.Gold.from_dict(
        dict(zip(tasks, np.array(["a", "b", "c"])[truth], strict=True))
    )


def test_silence_helps_where_rules_fire_by_class() -> None:
    for seed in range(3):
        responses, gold = rules(seed=seed)
        plain = tb.VariationalBayes().fit(responses)
        heard = tb.VariationalBayes(saw_all=True).fit(responses)
        gain = tb.evaluate.accuracy(heard.labels_, gold) - tb.evaluate.accuracy(plain.labels_, gold)
        assert gain > 0.05
        loss = [tb.evaluate.log_loss(m.labels_, gold, floor=1e-4) for m in (plain, heard)]
        assert loss[1] < loss[0]


def test_a_task_that_nobody_spoke_to_is_not_left_at_the_prior() -> None:
    responses, _ = rules()
    silent = np.flatnonzero(np.diff(responses.start) == 0)
    assert len(silent) > 3
    model = tb.VariationalBayes(saw_all=True, calibrate="none").fit(responses)
    q = model.probabilities_[silent]
    assert (q[:, 2] > 0.5).all()  # the other classes would have been spoken to


@EVERY
def test_links_gold_weights_and_asking_work_with_every_model(name: str) -> None:
    crowd = tb.simulate.crowd(80, 6, 3, responses_per_task=4, random_state=2)
    links = tb.simulate.links(crowd.gold, 30, random_state=2)
    known = {crowd.gold.tasks[i]: crowd.gold.classes[crowd.gold.label[i]] for i in range(10)}
    weighed = Responses.from_codes(
        crowd.responses.task_of_each(),
        crowd.responses.worker_of_each(),
        crowd.responses.label_of_each(),
        crowd.responses.tasks,
        crowd.responses.workers,
        crowd.responses.classes,
        weight=np.linspace(0.5, 3.0, crowd.responses.n_responses),
    )
    saw_all = list(crowd.responses.workers)[:3]
    every = (tb.ExactLinkOptions(), tb.ExactLinkOptions(error=0.05), tb.MeanFieldOptions())
    for responses, gold_weight in ((crowd.responses, "auto"), (weighed, 1), (weighed, 2.5)):
        for options in every[: 2 if "subtypes" in name else 3]:
            model = tb.VariationalBayes(
                worker_model=name, link_options=options, saw_all=saw_all, gold_weight=gold_weight
            )
            model.fit(responses, links=links, gold=known)
            assert np.diff(model.bounds_).min() >= -1e-9
            assert tb.evaluate.accuracy(model.labels_, crowd.gold) > 0.8
    exact = tb.VariationalBayes(worker_model=name, saw_all=True).fit(crowd.responses, links=links)
    assert exact.violations_ is not None
    assert not len(exact.violations_)
    assert len(tb.selection.pairs(exact, 5, random_state=0)) == 5
    assert len(exact.workers_table().columns()["worker"]) == 6


def test_known_tasks_count_as_often_for_silence_as_for_one_who_answered_all() -> None:
    crowd = tb.simulate.crowd(100, 4, 2, responses_per_task=4, random_state=0)  # all answer all
    model = tb.VariationalBayes(saw_all=True)
    model.worker_model_ = "confusion"
    gold = {crowd.gold.tasks[0]: crowd.gold.classes[crowd.gold.label[0]]}
    from tiebreak.inference.inputs import read_and_check_inputs
    from tiebreak.inference.problem import Patterns
    from tiebreak.inference.stages import lay_out

    inputs = read_and_check_inputs(crowd.responses, None, gold)
    table = model._problem(Patterns(lay_out(crowd.responses)), inputs).gold_weight
    assert table is not None
    assert len(table) == 5
    assert np.allclose(table[4], table[0])


def test_silence_is_no_vote_in_honest_probabilities() -> None:
    responses, _ = rules()
    model = tb.VariationalBayes(saw_all=True).fit(responses)
    raw = tb.VariationalBayes(saw_all=True, calibrate="none").fit(responses)
    scale = tb.inference.calibration.Calibration().scale(np.diff(responses.start).astype(float))
    powered = np.exp(scale[:, None] * np.log(raw.probabilities_))
    expected = powered / powered.sum(axis=1, keepdims=True)
    assert model.probabilities_ == pytest.approx(expected, abs=1e-4)


def test_kinds_spectral_and_warm_starts_work() -> None:
    responses, gold = rules()
    crowd = tb.simulate.crowd(300, 8, 3, responses_per_task=5, random_state=4)
    model = tb.VariationalBayes(saw_all=True, worker_model="kinds").fit(crowd.responses)
    assert tb.evaluate.accuracy(model.labels_, crowd.gold) > 0.8
    plain = tb.VariationalBayes().fit(responses)
    known = {gold.tasks[i]: gold.classes[gold.label[i]] for i in range(20)}
    cold = tb.VariationalBayes(saw_all=True).fit(responses, gold=known)
    for start in (plain, tb.VariationalBayes(saw_all=True).fit(responses)):
        warm = tb.VariationalBayes(saw_all=True).fit(responses, gold=known, start=start)
        assert (warm.labels_.label == cold.labels_.label).mean() > 0.99


def test_equal_patterns_are_fitted_as_one() -> None:
    responses, _ = rules(n_tasks=LEAST_TASKS + 500)
    model = tb.VariationalBayes(saw_all=True, calibrate="none").fit(responses)
    assert model._warm_start.has_patterns
    apart = tb.VariationalBayes(saw_all=True, calibrate="none", init=votes_of(responses))
    start = apart.fit(responses).probabilities_
    assert model.probabilities_ == pytest.approx(start, abs=1e-3)


def votes_of(responses: Responses) -> Floats:
    """Return votes, moved a little apart so that no two tasks start alike."""
    from tiebreak.inference.stages import lay_out

    q = vb.majority(lay_out(responses), responses.n_classes)
    q = q + 1e-9 * np.random.default_rng(0).random(q.shape)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


@EVERY
def test_prediction_says_of_the_same_tasks_what_the_fit_said(name: str) -> None:
    crowd = tb.simulate.crowd(120, 6, 3, responses_per_task=3, random_state=5)
    saw_all = list(crowd.responses.workers)[1:4]
    model = tb.VariationalBayes(worker_model=name, saw_all=saw_all).fit(crowd.responses)
    found = model.predict(crowd.responses)
    assert found.probability == pytest.approx(model.labels_.probability, abs=1e-3)
    links = {"left": [crowd.responses.tasks[0]], "right": ["new"], "link": ["must"]}
    new = [("new", saw_all[0], crowd.responses.classes[0])]
    linked = model.predict(new, links=links).best()["new"]
    assert linked in list(crowd.responses.classes)


def test_prediction_with_links_hears_the_silence_of_old_and_new_tasks() -> None:
    responses, _ = rules()
    model = tb.VariationalBayes(saw_all=True).fit(responses)
    task = int(np.flatnonzero(np.diff(responses.start) == 1)[0])
    who, said = np.divmod(responses.code[responses.start[task]], 3)
    new = [("new", responses.workers[int(who)], responses.classes[int(said)])]
    links = {"left": [responses.tasks[task]], "right": ["new"], "link": ["must"]}
    linked = model.predict(new, links=links).probabilities
    alone = model.predict(new).probabilities
    assert alone is not None
    joint = alone[0] * alone[0]  # both tasks say the same; the prior counts for each
    assert linked is not None
    assert linked[0] == pytest.approx(joint / joint.sum(), abs=1e-6)


def test_saved_models_and_updates_keep_the_silence(tmp_path: Path) -> None:
    responses, _ = rules()
    model = tb.VariationalBayes(saw_all=["rule00", "rule01"]).fit(responses)
    model.save(tmp_path / "rules.tbm")
    again = tb.load(tmp_path / "rules.tbm")
    assert again.saw_all == ["rule00", "rule01"]
    new = [("fresh", "rule00", "a"), ("t00000", "rule04", "b")]
    assert again.predict(new).best() == model.predict(new).best()
    again.update(new)
    whole = tb.VariationalBayes(saw_all=["rule00", "rule01"]).fit(again.responses_, start=model)
    assert np.array_equal(again.probabilities_, whole.probabilities_)


def test_what_cannot_count_silence_is_refused_by_name(tmp_path: Path) -> None:
    responses, _ = rules()
    model = tb.VariationalBayes(saw_all=True).fit(responses)
    with pytest.raises(OptionError, match="A model of counts cannot count silence"):
        model.save(tmp_path / "rules.tbm", keep="counts")
    with pytest.raises(OptionError, match="cannot count silence"):
        model.update([("t00000", "rule04", "b")], forget=0.9)
    with pytest.raises(OptionError, match="A stream cannot count silence"):
        Stream(model)
    with pytest.raises(OptionError, match="saw_all names worker 'nobody', who gave no response"):
        tb.VariationalBayes(saw_all=["nobody"]).fit(responses)
    with pytest.raises(OptionError, match="saw_all takes a list of workers"):
        tb.VariationalBayes(saw_all="rule00").fit(responses)


def test_answering_twice_is_speaking_once() -> None:
    responses, _ = rules()
    first = responses.task_of_each()[0]
    twice = Responses.from_codes(
        np.append(responses.task_of_each(), first).astype(np.int32),
        np.append(responses.worker_of_each(), responses.worker_of_each()[0]).astype(np.int32),
        np.append(responses.label_of_each(), responses.label_of_each()[0]).astype(np.int32),
        responses.tasks,
        responses.workers,
        responses.classes,
    )
    model = tb.VariationalBayes(saw_all=True).fit(twice)
    workers = model._crowd_model.workers
    assert isinstance(workers, SawAll)
    n_heard = (model._beliefs.beta - workers.prior)[:, -2 * 3 :].sum(axis=1)
    assert n_heard == pytest.approx(np.full(12, responses.n_tasks))
    assert twice.n_responses == responses.n_responses + 1
    tasks = vb.lay_out(twice, vb.roles(twice.n_tasks, None, None))
    assert calibration.n_responses(tasks).sum() == twice.n_responses
