"""A fit that goes on from another: the same answer as from the votes, for less work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.strategies import Crowd, crowds, problem_of

import tiebreak as tb
from tiebreak.data import Ids, Responses
from tiebreak.inference import FitState, Stopping, climb
from tiebreak.inference import door as rows_module
from tiebreak.inference.climb import start_alone
from tiebreak.inference.tasks.coupling.linked import Linked, with_links
from tiebreak.kernels import compiled, reference
from tiebreak.links.graph import imply
from tiebreak.options import ExactLinkOptions

CLOSE = 1e-5
BACKENDS = st.sampled_from([reference, compiled])


def crowd(n_classes: int, n_tasks: int = 400, seed: int = 3) -> Any:
    return tb.simulate.crowd(
        n_tasks, 12, n_classes, responses_per_task=4, accuracy=(0.5, 0.9), random_state=seed
    )


def links_of(made: Any, n: int) -> tb.Links:
    return tb.simulate.links(made.gold, n, random_state=8)


def assert_same(warm: tb.VariationalBayes, cold: tb.VariationalBayes) -> None:
    assert warm.labels_.best() == cold.labels_.best()
    for name in ("probabilities_", "confusion_", "class_prior_"):
        assert np.abs(getattr(warm, name) - getattr(cold, name)).max() < CLOSE
    assert warm.bounds_[-1] == pytest.approx(cold.bounds_[-1], abs=1e-6)
    assert warm.calibration_ == pytest.approx(cold.calibration_, abs=CLOSE)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_refits_end_where_a_fit_from_the_votes_does(
    n_classes: int, knows: bool, backend: str
) -> None:
    made, names = crowd(n_classes), list(range(400))
    links = links_of(made, 18)
    gold = [(made.gold.tasks[i], made.gold.classes[made.gold.label[i]]) for i in names[:9]]
    given: dict[str, Any] = {"gold": gold} if knows else {}
    options: dict[str, Any] = {"tol": 1e-9, "backend": backend}
    model = tb.VariationalBayes(**options).fit(made.responses)
    for n in (6, 12, 18):
        so_far = links.select(np.arange(n))
        model = tb.VariationalBayes(**options).fit(
            made.responses, links=so_far, start=model, **given
        )
        assert model._state.q.shape == (400, n_classes)
        cold = tb.VariationalBayes(**options).fit(made.responses, links=so_far, **given)
        assert_same(model, cold)


@pytest.mark.parametrize("worker_model", ["confusion", "subtypes"])
@pytest.mark.parametrize("given", ["links", "gold", "both"])
def test_a_refit_leaves_the_model_it_goes_on_from_as_it_was(given: str, worker_model: str) -> None:
    made = crowd(3)
    known = dict(list(made.gold.to_dict().items())[:9])
    inputs = {
        "links": None if given == "gold" else links_of(made, 18),
        "gold": None if given == "links" else known,
    }
    first = tb.VariationalBayes(worker_model=worker_model).fit(made.responses)
    before = [first._state.q.copy(), first.probabilities_.copy()]
    init = first.probabilities_.copy()
    tb.VariationalBayes(worker_model=worker_model).fit(made.responses, start=first, **inputs)
    tb.VariationalBayes(worker_model=worker_model, init=init).fit(made.responses, **inputs)
    assert np.array_equal(first._state.q, before[0])
    assert np.array_equal(first.probabilities_, before[1])
    assert np.array_equal(init, before[1])


@given(crowds(), st.booleans(), BACKENDS)
def test_a_climb_overwrites_only_a_q_that_it_may(
    made: Crowd, may_overwrite: bool, backend: Any
) -> None:
    problem = problem_of(made, backend)
    q = problem.votes()
    before = q.copy()
    state = climb(problem, FitState(q=q), Stopping(max_iter=3), may_overwrite=may_overwrite)
    again = climb(problem, FitState(q=before), Stopping(max_iter=3))
    assert np.shares_memory(state.q, q) == may_overwrite
    assert may_overwrite or np.array_equal(q, before)
    assert np.array_equal(state.q, again.q)
    assert state.bounds == again.bounds


def test_a_refit_may_have_other_priors() -> None:
    made = crowd(3)
    links = links_of(made, 200)
    first = tb.VariationalBayes(tol=1e-9).fit(made.responses, links=links)
    options: dict[str, Any] = {"tol": 1e-9, "calibrate": "none"}
    other: dict[str, Any] = {"confusion_prior": (6.0, 0.5), "class_prior": 4.0}
    warm = tb.VariationalBayes(**options, **other)
    array = tb.VariationalBayes(init=first._state.q, **options, **other)
    warm.fit(made.responses, links=links, start=first)
    array.fit(made.responses, links=links)
    assert warm.bounds_[-1] == pytest.approx(array.bounds_[-1], rel=1e-9)


@pytest.mark.parametrize("given", ["links", "gold", "both"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("confusion", "coin"), ("coin", "confusion"), ("subtypes", "coin")),
        *(("confusion", "subtypes"), ("confusion", "kinds")),
    ],
)
def test_a_refit_may_have_another_worker_model(first: str, second: str, given: str) -> None:
    """What plain VB believed of workers belongs to its own model of them."""
    made = crowd(3, n_tasks=150)
    inputs: dict[str, Any] = {}
    if given != "gold":
        inputs["links"] = links_of(made, 12)
    if given != "links":
        inputs["gold"] = dict(list(made.gold.to_dict().items())[:9])
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 3000}
    start = tb.VariationalBayes(worker_model=first, **options).fit(made.responses)
    warm = tb.VariationalBayes(worker_model=second, **options)
    warm.fit(made.responses, **inputs, start=start)
    assert warm.worker_model_ == second
    if "subtypes" not in second:  # subtypes are many modes
        cold = tb.VariationalBayes(worker_model=second, **options).fit(made.responses, **inputs)
        assert_same(warm, cold)


def test_what_was_counted_is_not_taken_for_that_of_other_votes() -> None:
    made = crowd(3)
    links = links_of(made, 200)
    first = tb.VariationalBayes(tol=1e-9).fit(made.responses, links=links)
    was = made.responses
    label = np.where(
        np.arange(len(was.label_of_each())) % 3 == 0,
        (was.label_of_each() + 1) % 3,
        was.label_of_each(),
    )
    changed = Responses.from_codes(
        was.task_of_each(),
        was.worker_of_each(),
        label.astype(np.int32),
        was.tasks,
        was.workers,
        was.classes,
    )
    warm = tb.VariationalBayes(tol=1e-9, calibrate="none")
    array = tb.VariationalBayes(init=first._state.q, tol=1e-9, calibrate="none")
    warm.fit(changed, links=links, start=first)
    array.fit(changed, links=links)
    assert warm.bounds_[-1] == pytest.approx(array.bounds_[-1], rel=1e-9)


def test_a_refit_of_few_judges_still_collapses_equal_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tb.simulate.crowd(12_000, 4, 2, responses_per_task=4, random_state=0)
    links = links_of(made, 20)
    first = tb.VariationalBayes(tol=1e-9).fit(made.responses)
    n_rows: list[int] = []
    find_patterns = rows_module.find_patterns

    def watch(*arguments: Any) -> Any:
        rows = find_patterns(*arguments)
        n_rows.append(rows.laid.n_tasks)
        return rows

    monkeypatch.setattr(rows_module, "find_patterns", watch)
    warm = tb.VariationalBayes(tol=1e-9).fit(made.responses, links=links, start=first)
    assert n_rows[0] < 100
    assert_same(warm, tb.VariationalBayes(tol=1e-9).fit(made.responses, links=links))


def test_new_links_alone_are_inferred_before_the_first_sweep() -> None:
    """The first sweep then moves free tasks alone, by little: it is the second one otherwise."""
    made = crowd(4, n_tasks=3_000)
    links = links_of(made, 20)
    first = tb.VariationalBayes().fit(made.responses)
    options: dict[str, Any] = {"tol": 1e-3, "accelerate": False}
    warm = tb.VariationalBayes(**options).fit(made.responses, links=links, start=first)
    array = tb.VariationalBayes(init=first._state.q, **options).fit(made.responses, links=links)
    assert warm.n_iter_ == array.n_iter_ - 1
    assert warm.bounds_ == pytest.approx(array.bounds_[1:], rel=1e-9)
    assert (np.diff(warm.bounds_) > 0.0).all()


@given(drawn=crowds(), backend=BACKENDS, knows=st.booleans())
def test_updating_linked_tasks_alone_keeps_parameters_in_step(
    drawn: Crowd, backend: Any, knows: bool
) -> None:
    if not len(drawn.links.left):
        return
    links = drawn.links._replace(weight=np.full(drawn.links.n_links, 1.5))
    plain = problem_of(drawn, backend)
    implied = imply(links, plain.n_classes, gold=drawn.gold if knows else None)
    problem = with_links(plain, implied, ExactLinkOptions())
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    q = tasks.known.clamp(problem.votes())
    state = start_alone(problem, FitState(q, problem.implied(q.copy())))
    alone = np.setdiff1d(np.arange(len(q)), tasks.task)
    assert (q[alone] == state.q[alone]).all()
    for found, expected in zip(state.parameters, problem.implied(state.q), strict=True):
        assert np.abs(found - expected).max() < 1e-9


def test_tasks_that_links_make_one_are_swept_until_they_rest() -> None:
    """Where a node agrees with its first task from the start, the others still move."""
    said = ["x"] * 6 + ["y"] * 6
    rows = [(f"t{i}", f"w{j}", said[i]) for i in range(12) for j in range(40)]
    pairs = [("t0", f"t{i}") for i in (1, 2, 6)] + [(f"t{i}", f"t{i + 1}") for i in range(6, 11)]
    apart = tb.Links.from_pairs(must=[*pairs[:3], *pairs[4:]], cannot=[("t0", "t7")])
    plain = tb.VariationalBayes(calibrate="none").fit(rows)
    model = tb.VariationalBayes(calibrate="none").fit(rows, links=apart)
    first, moved = (plain.tasks_.codes([name])[0] for name in ("t0", "t6"))
    kept = np.abs(plain.probabilities_ - model.probabilities_).max(axis=1)
    assert kept[first] < 1e-9
    assert kept[moved] > 0.9
    assert model.converged_


def test_labels_are_counted_once_and_anew_for_other_responses() -> None:
    made = crowd(3).responses
    counts = made.count_labels()
    by_hand = np.zeros((made.n_workers, 3), dtype=int)
    np.add.at(by_hand, (made.worker_of_each(), made.label_of_each()), 1)
    assert counts.tolist() == by_hand.tolist()
    assert made.count_labels() is counts
    wider = made.with_classes(Ids([*made.classes, "c9"]))
    assert wider.count_labels().shape == (made.n_workers, 4)
    assert wider.count_labels().sum() == counts.sum()
