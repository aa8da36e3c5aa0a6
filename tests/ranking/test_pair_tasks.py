"""Labels of pairs: a ranking as the prior of each task, and judges who saw pairs in two orders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking.arenas import codes, drawn, named
from refusals import refused

import tiebreak as tb
from tiebreak.data import TIE, Ids, PairVerdicts, pair_tasks
from tiebreak.inference import Known, read_and_check_inputs, rows_of
from tiebreak.inference.tasks.ranked import learn
from tiebreak.inference.workers.turned import Turned
from tiebreak.kernels.layout import Floats

pytestmark = [
    pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote"),
    pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning"),
]


def fitted(pairs: Any, **given: Any) -> Any:
    return tb.VariationalBayes(tol=1e-9).fit(pairs, pairs=True, **given)


def juried(seed: int, n_each: int = 3, first_judges: int = 0) -> tuple[PairVerdicts, Floats]:
    """Draw the verdicts of a jury on pairs that each have one true class; return also that."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0.0, 1.5, 8)
    a, b = np.triu_indices(8, 1)
    low, high = (np.tile(end, 6) for end in (a, b))
    prompt = np.repeat(np.arange(6), len(a))
    half = (strength[low] - strength[high]) / 2.0
    scores = np.stack([half, -half, np.full(len(half), -0.5)], axis=1)
    truth = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    judge = np.concatenate([rng.permutation(6)[:n_each] for _ in truth])
    task = np.repeat(np.arange(len(truth)), n_each)
    turned = rng.random(len(task)) < 0.5
    shown = np.where(turned & (truth[task] != TIE), 1 - truth[task], truth[task])
    errs = rng.random(len(task)) < 0.35
    verdict = np.where(errs, rng.integers(0, 3, len(task)), shown)
    verdict = np.where(judge < first_judges, rng.random(len(task)) < 0.1, verdict)
    first, second = np.where(turned, high[task], low[task]), np.where(turned, low[task], high[task])
    who: Any = codes(judge), named("judge", 6), codes(prompt[task]), named("q", 6)
    found = codes(first), codes(second), codes(verdict), named("item", 8)
    return PairVerdicts(*found, *who), truth


def accuracy(model: Any, pairs: PairVerdicts, truth: Floats) -> float:
    """Tasks are numbered as they are met, and truth is drawn in that order."""
    return float((model.labels_.label == truth).mean())


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_the_bound_never_falls(seed: int) -> None:
    pairs = drawn(seed, n_items=4, n_prompts=4).pairs
    crowd, about = pair_tasks(pairs)
    model = fitted(pairs)
    plain = model._plain_problem("confusion", *_rows(crowd, about))
    found = learn(about, plain, Known.of(None), crowd.tasks)
    steps = np.diff(found.bounds)
    assert len(steps) > 0
    assert (steps >= -1e-9 * abs(found.bounds[0])).all()
    assert model.strengths_ == pytest.approx(found.strengths, abs=1e-9)


def _rows(crowd: tb.Responses, about: Any) -> Any:
    inputs = read_and_check_inputs(crowd, None, None)._replace(pairs=about)
    return rows_of(inputs, alone=True), inputs


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_names_and_order_of_rows_do_not_matter(seed: int) -> None:
    pairs = drawn(seed, n_items=4, n_prompts=5).pairs
    model = fitted(pairs)
    moved = fitted(pairs.take(np.random.default_rng(seed).permutation(len(pairs))))
    at = model.tasks_.codes(moved.tasks_)
    assert moved.probabilities_ == pytest.approx(model.probabilities_[at], abs=1e-6)
    # Other names turn every task round, and with it what its classes mean.
    turned = fitted(replace(pairs, items=Ids([f"x{9 - k}" for k in range(4)])))
    assert turned.probabilities_ == pytest.approx(model.probabilities_[:, [1, 0, 2]], abs=1e-6)
    assert turned.strengths_ == pytest.approx(model.strengths_, abs=1e-6)


@pytest.mark.parametrize("estimator", [tb.VariationalBayes, tb.Auto])
def test_a_ranking_as_prior_labels_better_than_class_shares_do(estimator: Any) -> None:
    gained = []
    for seed in range(6):
        pairs, truth = juried(seed, n_each=2)
        model = estimator().fit(pairs, pairs=True)
        alone = estimator().fit(model.responses_)
        gained.append(accuracy(model, pairs, truth) - accuracy(alone, pairs, truth))
    assert np.mean(gained) > 0.02


def test_judges_who_take_the_first_place_are_found_out() -> None:
    pairs, truth = juried(1, n_each=4, first_judges=2)
    model = fitted(pairs)
    votes = tb.MajorityVote().fit(model.responses_)
    assert accuracy(model, pairs, truth) > accuracy(votes, pairs, truth) + 0.05
    table = dict(zip(model.workers_, model.confusion_, strict=True))
    straight, turned = table["judge000"], table["judge000 [order=BA]"]
    assert straight[1, 0] > 0.6  # says "first" where the second is better
    assert turned == pytest.approx(straight[[1, 0, 2]][:, [1, 0, 2]], abs=1e-12)


def test_gold_links_and_constraints_go_on_as_ever() -> None:
    pairs, truth = juried(2)
    plain = fitted(pairs)
    tasks, classes = list(plain.tasks_), list(plain.classes_)
    known = {tasks[i]: classes[int(truth[i])] for i in range(0, len(tasks), 8)}
    model = fitted(pairs, gold=known)
    auto = tb.Auto().fit(pairs, pairs=True, gold=known)
    assert all(auto.labels_.best()[task] == label for task, label in known.items())
    assert all(model.labels_.best()[task] == label for task, label in known.items())
    links = tb.Links.from_pairs(must=[(tasks[1], tasks[2])])
    tied = fitted(pairs, links=links, gold=known)
    assert tied.labels_.best()[tasks[1]] == tied.labels_.best()[tasks[2]]
    allowed = tb.Constraints.allowed({tasks[3]: ["tie"]})
    assert fitted(pairs, constraints=allowed).labels_.best()[tasks[3]] == "tie"


@pytest.mark.parametrize("estimator", [tb.VariationalBayes, tb.Auto])
def test_a_model_of_pairs_is_saved_and_has_a_table_of_workers(
    tmp_path: Path, estimator: Any
) -> None:
    pairs, _ = juried(3)
    model = estimator().fit(pairs, pairs=True)
    model.save(tmp_path / "m.tbm")
    again = tb.load(tmp_path / "m.tbm")
    assert list(again.pairs_.items) == list(model.pairs_.items)
    assert again.strengths_ == pytest.approx(model.strengths_)
    some = model.responses_.on_tasks(np.arange(20))
    assert again.predict(some).probability == pytest.approx(model.predict(some).probability)
    table = again.workers_table()
    assert (table.accuracy_low < table.accuracy).all()
    assert model.tasks_[0] in str(model.explain(model.tasks_[0]))
    with refused(tb.errors.OptionError, "pairs-not-updated"):
        again.update(model.responses_)
    if estimator is tb.VariationalBayes:
        with refused(tb.errors.OptionError, "pairs-not-updated"):
            model.save(tmp_path / "c.tbm", keep="counts")


def test_workers_with_parameters_of_their_own_are_mirrored_alike() -> None:
    pairs, _ = juried(4)
    model = fitted(pairs)
    workers, beta = model._crowd_model.workers, model._state.parameters[-1]
    assert isinstance(workers, Turned)
    at = codes([3, 0, -1, 5])
    chosen = workers.select(at)
    own = workers.select_parameters(beta, at)
    known = [0, 1, 3]
    confusion = chosen.confusion(own)
    assert confusion[known] == pytest.approx(workers.confusion(beta)[at[known]])
    logs = chosen.log_table(own).reshape(4, 3, 3)
    assert logs[known] == pytest.approx(workers.log_table(beta).reshape(-1, 3, 3)[at[known]])


def test_what_cannot_be_fitted_with_pairs_is_refused() -> None:
    pairs, _ = juried(5)
    with refused(tb.errors.OptionError, "option-without-pairs"):
        tb.VariationalBayes(worker_model="subtypes").fit(pairs, pairs=True)
    with refused(tb.errors.OptionError, "pairs-beside-others"):
        fitted(pairs, sequences={"task": ["a"], "sequence": ["b"]})
    with refused(tb.InputError, "pairs-without-workers"):
        fitted(replace(pairs, worker=None))


def test_verdicts_without_ties_and_prompts_have_two_classes() -> None:
    rows = [("b", "a", "first", "ann"), ("a", "b", "second", "bob"), ("c", "a", "a", "ann")]
    names = ("first", "second", "verdict", "worker")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    model = fitted(table)
    assert list(model.classes_) == ["model_a", "model_b"]
    assert model.labels_.best() == {"a vs b": "model_b", "a vs c": "model_a"}
    assert model.strengths_[list(model.pairs_.items).index("b")] == model.strengths_.max()
