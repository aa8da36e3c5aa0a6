"""Streaming variational inference: batches can be replaced, and nothing is counted twice."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept.crowds import WORKER_MODELS, Row, assert_equal, crowd, rows_of, shuffled, some_gold
from refusals import refused

import tiebreak as tb
from tiebreak.errors import GoldError, LinkError, ResponseError
from tiebreak.life import Stopping, Stream, online

TIGHT = Stopping(1e-10, 3000, accelerate=False)
TEN = (
    *("bluebird", "dog", "music_genre", "product", "rte"),
    *("sentence_polarity", "trec", "web", "zencrowd_india", "zencrowd_us"),
)

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


def columns(rows: list[Row]) -> tuple[list[str], ...]:
    return tuple(map(list, zip(*rows, strict=True)))


def run(model: Any, rows: list[Row], size: int = 50, **options: Any) -> Stream:
    """Stream rows into a model in batches."""
    stream = Stream(model, **options)
    for at in range(0, len(rows), size):
        stream.visit(stream.add(*columns(rows[at : at + size])))
    return stream


def assert_counts_are_those_of_q(stream: Stream) -> None:
    """Compare the counts with those of all open tasks, and what settled."""
    found = stream.count(np.arange(len(stream.tasks), dtype=np.int32))
    workers = found.of_workers + stream.settled.of_workers
    assert np.abs(workers - stream.counts.of_workers).max() < 1e-8
    states = found.of_states + stream.settled.of_states
    assert np.abs(states - stream.counts.of_states).max() < 1e-8


@pytest.mark.parametrize("name", WORKER_MODELS)
def test_counts_are_always_those_of_the_tasks(name: str) -> None:
    rows = shuffled(crowd().responses)
    model = tb.VariationalBayes(worker_model=name).fit(rows[:100])
    stream = run(model, rows[100:])
    assert_counts_are_those_of_q(stream)
    assert stream.counts.of_workers.sum() == pytest.approx(len(rows))
    assert stream.counts.of_states.sum() == pytest.approx(120)


@pytest.mark.parametrize("name", ["confusion", "coin", "kinds"])
def test_after_revisits_labels_are_those_of_a_fit(name: str) -> None:
    rows = shuffled(crowd().responses)
    stream = run(tb.VariationalBayes(worker_model=name).fit(rows[:100]), rows[100:])
    stream.restart(TIGHT)
    found = stream.to_model()
    whole = tb.VariationalBayes(worker_model=name, tol=1e-10, max_iter=3000).fit(rows)
    assert found.labels_.best() == whole.labels_.best()
    if name != "kinds":  # whose priors hold the shares of answers, those of the first batch here
        place = found.tasks_.codes(whole.tasks_)
        assert np.abs(found.probabilities_[place] - whole.probabilities_).max() < 1e-6


@pytest.mark.parametrize("name", WORKER_MODELS)
def test_the_bound_never_falls_over_a_revisit(name: str) -> None:
    rows = shuffled(crowd().responses)
    stream = run(tb.VariationalBayes(worker_model=name).fit(rows[:100]), rows[100:])
    rng = np.random.default_rng(0)
    for _ in range(5):
        some = np.sort(rng.choice(len(stream.tasks), 40, replace=False)).astype(np.int32)
        fitted = stream.fit(some)
        assert (np.diff(fitted.bounds) > -1e-9 * abs(fitted.bounds[0])).all()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("abcde"), st.sampled_from(["ann", "bob", "cy"]), st.sampled_from("xyz")
    ),
    min_size=1,
    max_size=40,
)


@given(EVENTS, st.integers(1, 9), st.one_of(st.none(), st.integers(1, 3)))
@settings(max_examples=60)
def test_any_events_in_any_batches_are_counted_once(
    rows: list[Row], size: int, n_open: int | None
) -> None:
    model = tb.VariationalBayes().fit([("first", "ann", "x"), ("first", "bob", "y")])
    stream = run(model, rows, size, n_open=n_open)
    assert_counts_are_those_of_q(stream)
    if n_open is None:
        n_pairs = len({(task, worker) for task, worker, _ in rows})
        assert stream.counts.of_workers.sum() == pytest.approx(n_pairs + 2)
        whole = tb.Responses.from_rows([("first", "ann", "x"), ("first", "bob", "y"), *rows])
        assert sorted(rows_of(stream.to_model().responses_)) == sorted(rows_of(whole))


def test_tasks_that_settle_leave_only_counts() -> None:
    rows = rows_of(crowd(400).responses)
    stream = run(tb.VariationalBayes().fit(rows[:100]), rows[100:], n_open=60)
    assert len(stream.tasks) <= 60 * online.SLACK
    assert stream.counts.of_workers.sum() == pytest.approx(len(rows))
    assert stream.counts.of_states.sum() == pytest.approx(400)
    model = stream.to_model()
    whole = tb.VariationalBayes().fit(rows)
    assert np.abs(model.confusion_ - whole.confusion_).max() < 0.1
    again = Stream(model, n_open=60)
    assert_counts_are_those_of_q(again)
    assert np.abs(again.counts.of_workers - stream.counts.of_workers).max() < 1e-9


def test_links_and_gold_come_as_events() -> None:
    made = crowd()
    rows = shuffled(made.responses)
    stream = run(tb.VariationalBayes().fit(rows[:200]), rows[200:])
    links = tb.simulate.links(made.gold, 30, random_state=1)
    for at in range(len(links)):
        stream.visit(stream.link(links.select(np.array([at]))))
    gold = some_gold(made, 9)
    stream.visit(stream.know(list(gold), list(gold.values())))
    model = stream.to_model()
    assert model.violations_ is not None
    assert model.links_ is not None
    assert (len(model.violations_), len(model.links_)) == (0, 30)
    assert all(model.labels_[task] == (task, label, 1.0) for task, label in gold.items())
    assert_counts_are_those_of_q(stream)


def test_links_that_contradict_are_refused_and_forgotten() -> None:
    stream = Stream(tb.VariationalBayes().fit(rows_of(crowd().responses), gold={"t001": "c0"}))
    stream.link(tb.Links.from_pairs(must=[("t002", "t003")], sampling="pairs"))
    with pytest.raises(LinkError, match="contradict"):
        stream.link(tb.Links.from_pairs(cannot=[("t002", "t003")]))
    with refused(LinkError, "linked-to-itself"):
        stream.link(tb.Links.from_pairs(must=[("t002", "t002")], sampling="pairs"))
    with refused(GoldError, "gold-changed"):
        stream.know(["t001"], ["c1"])
    assert len(stream.links or ()) == 1
    stream.know(["t002"], ["c0"])
    with pytest.raises(LinkError):
        stream.know(["t003"], ["c1"])
    assert stream.tasks.state["known"][stream.tasks.slot["t003"]] == -1


@pytest.mark.parametrize("name", ["confusion", "coin", "kinds", "subtypes", "kinds+subtypes"])
def test_a_new_class_is_taken(name: str) -> None:
    rows = shuffled(crowd().responses)
    stream = run(tb.VariationalBayes(worker_model=name).fit(rows[:300]), rows[300:])
    workers = [str(worker) for worker in stream.workers]
    new = [(f"n{i}", worker, "c7") for i in range(20) for worker in workers]
    stream.visit(stream.add(*columns(new)))
    assert_counts_are_those_of_q(stream)
    model = stream.to_model()
    assert model.labels_["n3"].label == "c7"
    assert len(model.classes_) == 4


def test_a_class_that_a_model_cannot_take_is_refused_and_the_stream_goes_on() -> None:
    rows = shuffled(crowd().responses)
    stream = Stream(tb.VariationalBayes(worker_model="communities").fit(rows[:300]))
    with refused(ResponseError, "class-not-taken"):
        stream.add(["n"], ["w1"], ["c7"])
    stream.visit(stream.add(*columns(rows[300:])))
    assert_counts_are_those_of_q(stream)


def test_a_question_is_answered_with_what_is_known_now() -> None:
    rows = shuffled(crowd().responses)
    stream = run(tb.VariationalBayes().fit(rows[:300]), rows[300:])
    found = stream.ask("t001")
    assert found is not None
    assert found.label == stream.to_model().labels_["t001"].label
    assert stream.ask("nowhere") is None


def test_a_stream_that_has_caught_up_has_the_labels_of_a_fit() -> None:
    rows = shuffled(crowd().responses)
    stream = run(tb.VariationalBayes().fit(rows[:100]), rows[100:], 7)
    stream.catch_up()
    assert_equal(stream.to_model(), tb.VariationalBayes().fit(rows), within=1e-4)
    assert stream.catch_up() == []


def test_a_stream_to_which_nothing_came_stays_where_its_model_is() -> None:
    start = tb.research.spectral_start(crowd().responses, random_state=0)
    model = tb.VariationalBayes().fit(crowd().responses, start=start)
    stream = Stream(model)
    assert stream.catch_up() == []
    assert_equal(stream.to_model(), model, within=1e-4)


# Figures


def in_order(responses: tb.Responses, order: str) -> list[Row]:
    rows = shuffled(responses, 1)
    if order == "random":
        return rows
    names = sorted({row[1] for row in rows})
    random.Random(2).shuffle(names)
    turn = {name: place for place, name in enumerate(names)}
    return sorted(rows, key=lambda row: turn[row[1]])


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("order", ["random", "worker by worker"])
def test_one_pass_over_real_crowds_is_as_good_as_a_fit(data_dir: Path, order: str) -> None:
    lost = []
    for name in TEN:
        responses, gold, _ = tb.datasets.load(name)
        rows = in_order(responses, order)
        size = int(os.environ.get("TIEBREAK_STREAM_BATCH", "100"))
        first = tb.Responses.from_columns(*columns(rows[:size]), classes=list(responses.classes))
        stream = run(tb.VariationalBayes().fit(first), rows[size:], size)
        on_the_way = tb.evaluate.f_score(stream.to_model().labels_, gold)
        stream.catch_up()  # as `tiebreak stream` does before it saves
        once = tb.evaluate.f_score(stream.to_model().labels_, gold)
        whole = tb.evaluate.f_score(tb.VariationalBayes().fit(responses).labels_, gold)
        lost.append(whole - once)
        print(f"{name:20}{order:18}{whole:.4f} {once:.4f} {on_the_way:.4f}")  # noqa: T201
    print(f"mean {np.mean(lost):+.5f}")  # noqa: T201
    assert abs(np.mean(lost)) < 0.003


@pytest.mark.data
@pytest.mark.parametrize("order", ["random", "worker by worker"])
@pytest.mark.parametrize("name", ["bluebird", "dog", "rte"])
def test_one_pass_over_a_real_crowd_is_as_good_as_a_fit(
    data_dir: Path, name: str, order: str
) -> None:
    responses, gold, _ = tb.datasets.load(name)
    rows = in_order(responses, order)
    first = tb.Responses.from_columns(*columns(rows[:500]), classes=list(responses.classes))
    stream = run(tb.VariationalBayes().fit(first), rows[500:], 500)
    whole = tb.VariationalBayes().fit(responses)
    once = tb.evaluate.f_score(stream.to_model().labels_, gold)
    assert once > tb.evaluate.f_score(whole.labels_, gold) - 0.01
    stream.restart(Stopping(1e-8, 3000, accelerate=True))
    assert stream.to_model().labels_.best() == {
        str(task): str(label) for task, label in whole.labels_.best().items()
    }
