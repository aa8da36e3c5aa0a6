"""Questions of several kinds: each unit once, the kind that is worth most, by gain and cost."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from selection.test_pairs import crowd

import tiebreak as tb
from tiebreak.errors import OptionError
from tiebreak.links.graph import OPEN
from tiebreak.selection import value
from tiebreak.selection.questions import (
    KINDS,
    LAST_RESORT,
    PRICES,
    SECOND,
    choose_questions,
    open_units,
)
from tiebreak.selection.state import task_state

SEEDS = st.integers(0, 10_000)


def fitted(seed: int, n_classes: int, n_known: int = 0, n_links: int = 0) -> tuple[Any, Any]:
    """Return a crowd and a model that knows some labels and links of it."""
    made = crowd(seed, n_classes)
    known = dict(list(made.gold.to_dict().items())[:n_known]) or None
    links = tb.simulate.links(made.gold, n_links, random_state=seed) if n_links else None
    return made, tb.VariationalBayes().fit(made.responses, links=links, gold=known)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_kind_prices_every_unit_and_puts_its_question(name: str, n_classes: int) -> None:
    """What any kind of question has to do: the conformance test."""
    made, model = fitted(3, n_classes, n_known=12)
    largest = 1
    if name == "which":  # groups of tasks that are not known
        known, largest = model.gold_, 3
        open_tasks = [task for task in model.tasks_ if task not in known.tasks]
        table = [(task, f"g{at // largest}") for at, task in enumerate(open_tasks)]
        rules = tb.Constraints.groups(table, "at most one", model.classes_[0])
        model = tb.VariationalBayes().fit(made.responses, gold=known, constraints=rules)
    units = open_units(task_state(model, None))
    gain, about, cost = PRICES[name](units, model, 2.5)
    assert gain.shape == about.shape == cost.shape == (len(units),)
    can_be_asked = np.flatnonzero(np.isfinite(gain))
    assert len(can_be_asked)
    assert (gain[can_be_asked] <= largest * units.stake[can_be_asked]).all()
    assert (gain[can_be_asked] >= -1e-12).all()
    assert (cost == 2.5).all()
    other = "label" if name != "label" else "is"
    offer = tb.selection.questions(model, 1, (name, other), {name: 2.5, other: 1e9})[0]
    assert offer.kind == name
    assert offer.task in [model.tasks_[int(i)] for i in units.task]
    named = (offer.other, offer.label, offer.worker)
    expected = {"same": (True, True, False), "is": (False, True, False)}
    expected |= {"label": (False, False, False), "vote": (False, False, True)}
    expected |= {"which": (False, True, False)}
    assert tuple(each is not None for each in named) == expected[name]


@settings(deadline=None, max_examples=15)
@given(SEEDS, st.sampled_from([2, 3]), st.integers(0, 10), st.sampled_from([1.0, 1.5, 2.0, 5.0]))
def test_no_unit_is_asked_about_twice_nor_one_that_is_known(
    seed: int, n_classes: int, n_known: int, cost: float
) -> None:
    made, model = fitted(seed, n_classes, n_known, n_links=8)
    rows = tb.selection.questions(model, 100, costs={"label": cost}, random_state=seed)
    group = task_state(model, None).group
    asked = group[model.tasks_.codes([row.task for row in rows])]
    assert len(set(asked.tolist())) == len(rows)
    known = list(made.gold.to_dict())[:n_known]
    if known:
        assert not set(asked.tolist()) & set(group[model.tasks_.codes(known)].tolist())


def test_a_label_gains_what_is_in_doubt_and_a_yes_or_no_the_second_class() -> None:
    """By hand: one task of three classes with probabilities p, and examples of each class."""
    _, model = fitted(5, 3, n_known=15)
    rows = {row.task: row for row in tb.selection.questions(model, 99, ("label",))}
    yes_no = {row.task: row for row in tb.selection.questions(model, 99, ("is",))}
    for task, row in rows.items():
        p = np.sort(model.probabilities_[model.tasks_.codes([task])[0]])[::-1]
        assert row.gain == pytest.approx(1.0 - p[0])
        assert row.worth == pytest.approx(row.gain / 1.5)
        if task in yes_no:
            assert yes_no[task].gain == pytest.approx(p[1])


def test_the_kind_that_is_worth_most_for_its_cost_is_asked() -> None:
    _, model = fitted(5, 3, n_known=15)
    dear = tb.selection.questions(model, 10, costs={"label": 50.0}, random_state=0)
    assert {row.kind for row in dear} == {"same"}
    cheap = tb.selection.questions(model, 10, costs={"label": 1.0}, random_state=0)
    assert {row.kind for row in cheap} == {"label"}
    margin = [
        float(tb.selection.margins(model.probabilities_[model.tasks_.codes([row.task])])[0])
        for row in cheap
    ]
    assert margin == sorted(margin)
    both = tb.selection.questions(model, 20, costs={"label": 2.0}, random_state=0)
    worth = [row.worth for row in both]
    assert worth == sorted(worth, reverse=True)


def test_an_example_is_of_the_class_and_known() -> None:
    made, model = fitted(5, 3, n_known=15)
    known = dict(list(made.gold.to_dict().items())[:15])
    for row in tb.selection.questions(model, 20, costs={"label": 50.0}, random_state=0):
        assert known[row.other] == row.label


def test_two_classes_need_one_label_and_the_rest_is_compared_with_it() -> None:
    _, model = fitted(7, 2)
    rows = tb.selection.questions(model, 10, costs={"label": 2.0}, random_state=0)
    assert [row.kind for row in rows] == ["label"] + ["same"] * 9
    assert {row.other for row in rows[1:]} == {rows[0].task}


def asked_of_people(model: Any, n_classes: int, error: float) -> Any:
    """Return the state of tasks of which nothing is known for good, with task 0 as an example."""
    state = task_state(model, None)
    open_to_all = np.full(len(model.tasks_), OPEN, dtype=np.int32)
    example = open_to_all.copy()
    example[0] = 0
    q = state.q.copy()
    q[0] = 0.02 / (n_classes - 1)
    q[0, 0] = 0.98
    return replace(state, q=q, known=open_to_all, example=example, error=error)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", ["same", "label", "is"])
def test_questions_gain_what_an_answer_that_errs_puts_right(name: str, n_classes: int) -> None:
    """By hand: for every answer the likeliest class after it, times how often it comes."""
    _, model = fitted(3, n_classes)
    units = open_units(asked_of_people(model, n_classes, 0.1))
    found, _, _ = PRICES[name](units, model, 1.0)
    example = np.full(n_classes, 0.02 / (n_classes - 1))
    example[0] = 0.98
    for at in np.flatnonzero(np.isfinite(found)).tolist():
        q = np.zeros(n_classes)
        q[units.classes[at]] = units.p[at]
        yes = np.eye(n_classes)[units.classes[at, 0]] if name == "is" else example
        yes = 0.1 + 0.8 * yes
        outcomes = [yes, 1.0 - yes]
        if name == "label":
            outcomes = [
                np.where(np.arange(n_classes) == k, 0.9, 0.1 / (n_classes - 1))
                for k in range(n_classes)
            ]
        gain = sum((q * each).max() for each in outcomes) - q.max()
        least = LAST_RESORT * (1.0 - units.p[at, 0] if name == "label" else units.p[at, 1])
        share = SECOND if name == "same" and n_classes > 2 and units.classes[at, 0] != 0 else 1.0
        assert found[at] == pytest.approx(max(gain, least) * share, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_an_example_is_not_compared_with_itself(n_classes: int) -> None:
    _, model = fitted(3, n_classes)
    state = asked_of_people(model, n_classes, 0.1)
    rng = np.random.default_rng(0)
    costs = {"same": 1.0, "is": 50.0, "label": 1.0}
    rows = choose_questions(model, state, 99, ("same", "is"), costs, rng)
    assert any(row.kind == "same" for row in rows)
    assert all(row.task != row.other for row in rows)


def test_an_example_in_doubt_is_asked_about_first_where_much_hangs_on_it() -> None:
    _, model = fitted(3, 3)
    state = asked_of_people(model, 3, 0.02)
    state.q[0] = (0.9, 0.05, 0.05)
    costs = {"same": 1.0, "label": 2.0}
    rng = np.random.default_rng(0)
    alone = choose_questions(model, state, 1, ("same", "label"), costs, rng)
    assert alone[0].task != model.tasks_[0]
    for_others = np.zeros(len(model.tasks_))
    for_others[0] = 30.0 * 0.1
    state = replace(state, gain_for_others=for_others)
    rows = choose_questions(model, state, 1, ("same", "label"), costs, rng)
    assert (rows[0].kind, rows[0].task) == ("label", model.tasks_[0])
    assert rows[0].gain == pytest.approx(30.0 * 0.1 + value.answer_gain(state.q[0], 0.02))


def test_a_group_counts_for_all_its_tasks() -> None:
    rows = [(task, worker, "xy"[worker % 2]) for task in "abcdef" for worker in range(2)]
    rows += [("g", 0, "x"), ("h", 1, "y"), ("g", 1, "x"), ("h", 0, "y")]
    links = tb.Links.from_pairs(must=[("a", "b"), ("b", "c")], sampling="duplicates")
    model = tb.VariationalBayes().fit(rows, links=links)
    first = tb.selection.questions(model, 1, ("label",))[0]
    assert str(first.task) in "abc"
    assert first.gain == pytest.approx(3 * (1.0 - model.probabilities_[0].max()))


def test_same_alone_is_what_pairs_chooses() -> None:
    _, model = fitted(2, 3, n_links=10)
    rows = tb.selection.questions(model, 8, ("same",), random_state=4)
    pairs = list(tb.selection.pairs(model, 8, random_state=4))
    assert [(row.task, row.other, row.gain) for row in rows] == pairs


def test_votes_are_asked_of_those_who_can_give_them() -> None:
    _, model = fitted(9, 3)
    workers = list(model.workers_)
    price = {workers[0]: 0.2, workers[1]: 5.0}
    rows = tb.selection.questions(model, 30, ("label", "vote"), {"label": 9.0, "vote": price})
    assert {row.worker for row in rows if row.kind == "vote"} <= set(price)
    done = set(
        zip(
            model.responses_.task_of_each().tolist(),
            model.responses_.worker_of_each().tolist(),
            strict=True,
        )
    )
    votes = [row for row in rows if row.kind == "vote"]
    assert votes
    for row in votes:
        pair = model.tasks_.codes([row.task])[0], model.workers_.codes([row.worker])[0]
        assert tuple(map(int, pair)) not in done
        assert row.cost == price[row.worker]


def test_rows_make_a_table() -> None:
    _, model = fitted(5, 3, n_known=9)
    table = tb.selection.questions(model, 4, KINDS, random_state=0).to_frame()
    assert table.column_names[:5] == ["kind", "task", "other", "label", "worker"]
    assert table.num_rows == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kinds": ("best",)}, "wrong-value A kind of question"),
        ({"kinds": ()}, "wrong-value kinds"),
        ({"kinds": ("label", "label")}, "kinds-twice"),
        ({"costs": {"label": 0.0}}, "wrong-value The cost of a label"),
        ({"costs": {"gold": 1.0}}, "wrong-value A kind of question"),
        ({"costs": {"label": {"ann": 1.0}}}, "wrong-value The cost of label"),
        ({"kinds": ("vote",), "costs": {"vote": {"nobody": 1.0}}}, "vote-of-unknown-worker"),
        ({"n": -1}, "wrong-value n"),
        ({"among": ["nobody"]}, "among-unknown-tasks"),
    ],
)
def test_what_cannot_be_asked_is_said(options: dict[str, Any], said: str) -> None:
    _, model = fitted(1, 2)
    with refused(OptionError, said):
        tb.selection.questions(model, **options)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_mix_puts_more_right_than_labels_for_the_same_cost(n_classes: int) -> None:
    """A label costs three: what is known once serves many cheap questions."""
    scores: dict[str, list[float]] = {"mix": [], "label": []}
    for seed in range(4):
        made = tb.simulate.crowd(
            150, 8, n_classes, responses_per_task=3, accuracy=(0.5, 0.7), random_state=seed
        )
        for name, kinds in (("mix", ("same", "label")), ("label", ("label",))):
            scores[name].append(asked_for(made, kinds, 75.0, seed))
    assert np.mean(scores["mix"]) > np.mean(scores["label"]) + 0.01


def asked_for(made: Any, kinds: tuple[str, ...], budget: float, seed: int) -> float:
    """Ask for so much, in five rounds; return how many labels are right then."""
    truth = made.gold.to_dict()
    rng = np.random.default_rng(seed)
    model = tb.VariationalBayes().fit(made.responses)
    gold: dict[Any, Any] = {}
    pairs: dict[bool, list[Any]] = {True: [], False: []}
    spent = 0.0
    for turn in range(1, 6):
        for row in tb.selection.questions(model, 75, kinds, {"label": 3.0}, random_state=rng):
            if spent + row.cost > budget * turn / 5:
                break
            spent += row.cost
            if row.kind == "same":
                pairs[truth[row.task] == truth[row.other]].append((row.task, row.other))
            else:
                gold[row.task] = truth[row.task]
        links = tb.Links.from_pairs(pairs[True], pairs[False], sampling="pairs")
        model = tb.VariationalBayes().fit(
            made.responses, links=links if len(links) else None, gold=gold, start=model
        )
    return tb.evaluate.accuracy(model.labels_, made.gold)


def test_choosing_goes_over_no_task_in_python() -> None:
    """Ten times the tasks take hardly more calls; benchmarks/scale/asking.py has the seconds."""
    n_calls = [_calls_to_choose(n_tasks) for n_tasks in (1_000, 10_000)]
    assert n_calls[1] < 2 * n_calls[0]


def _calls_to_choose(n_tasks: int) -> int:
    made = tb.simulate.crowd(n_tasks, 100, 10, responses_per_task=3, random_state=0)
    known = dict(list(made.gold.to_dict().items())[:200])
    model = tb.VariationalBayes(max_iter=5, tol=0.0).fit(made.responses, gold=known)
    tb.selection.questions(model, 20, random_state=0)  # kernels are loaded
    n_calls = 0

    def count(*_: object) -> None:
        nonlocal n_calls
        n_calls += 1

    sys.setprofile(count)
    try:
        assert len(tb.selection.questions(model, 20, random_state=0)) == 20
    finally:
        sys.setprofile(None)
    return n_calls
