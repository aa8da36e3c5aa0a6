"""An update ends where a fit of everything together does that starts from the model."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept.crowds import WORKER_MODELS, Row, assert_equal, crowd, rows_of, shuffled, some_gold
from refusals import noted, refused

import tiebreak as tb
from tiebreak.errors import GoldError, InputNote, LinkError, NotFittedError, OptionError
from tiebreak.life import join_responses
from tiebreak.options import ExactLinkOptions

TIGHT: dict[str, Any] = {"tol": 1e-10, "max_iter": 5000}
TEN = (
    *("bluebird", "dog", "music_genre", "product", "rte"),
    *("sentence_polarity", "trec", "web", "zencrowd_india", "zencrowd_us"),
)

pytestmark = pytest.mark.filterwarnings("ignore:.*repeats? a worker", "ignore:.*said anew")


def model_of(name: str = "confusion", **options: Any) -> tb.VariationalBayes:
    return tb.VariationalBayes(worker_model=name, **TIGHT, **options)


# The same fixed point


@pytest.mark.parametrize("name", WORKER_MODELS)
def test_updates_end_where_a_fit_of_everything_does(name: str) -> None:
    rows = shuffled(crowd().responses)
    model = model_of(name).fit(rows[:200]).update(rows[200:350])
    start = tb.VariationalBayes(**model.get_params()).fit(rows[:200]).update(rows[200:350])
    model.update(rows[350:])
    assert_equal(model, model_of(name).fit(rows, start=start))


FEW = {
    "on new tasks": [(f"n{i // 4}", f"w{1 + (5 * i) % 9}", f"c{i % 3}") for i in range(12)],
    "on old tasks": [("t003", f"w{i}", "c1") for i in range(1, 10)],
    "by new workers": [(f"t{i // 3:03}", f"x{i % 3}", f"c{i % 2}") for i in range(3, 30)],
}


@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("name", WORKER_MODELS)
def test_a_few_responses_end_where_a_fit_of_everything_does(
    name: str, few: str, with_gold: bool
) -> None:
    made = crowd(400)
    rows = rows_of(made.responses)
    gold = {"n0": "c1", **some_gold(made, 10)} if with_gold and few == "on new tasks" else None
    start = model_of(name).fit(rows)
    model = copy.copy(start).update(FEW[few], gold=gold)
    joined = join_responses(start.responses_, tb.Responses.from_rows(FEW[few]))
    assert_equal(model, model_of(name).fit(joined, gold=gold, start=start))


def test_tasks_with_equal_responses_still_start_alike() -> None:
    made = tb.simulate.crowd(12_000, 3, 2, responses_per_task=3, random_state=0)
    start = model_of().fit(made.responses)
    rows = [(f"n{i}", f"w{j}", f"c{(i >> j) % 2}") for i in range(8) for j in (1, 2, 3)]
    model = copy.copy(start).update(rows)
    joined = join_responses(start.responses_, tb.Responses.from_rows(rows))
    assert_equal(model, model_of().fit(joined, start=start))


@pytest.mark.parametrize(
    "options", [None, ExactLinkOptions(error=0.05), ExactLinkOptions(error="learn")]
)
def test_links_and_gold_may_come_late(options: ExactLinkOptions | None) -> None:
    made = crowd()
    rows = shuffled(made.responses)
    links = tb.simulate.links(made.gold, 40, random_state=1)
    gold = some_gold(made, 12)
    model = model_of(link_options=options).fit(rows[:300])
    model.update(rows[300:400])
    model.update(links=links)
    before = model_of(link_options=options).fit(rows[:300])
    before.update(rows[300:400]).update(links=links)
    model.update(rows[400:], gold=gold)
    whole = model_of(link_options=options).fit(rows, links=links, gold=gold, start=before)
    assert_equal(model, whole)
    assert model.links_ is not None
    assert model.gold_ is not None
    assert (len(model.links_), len(model.gold_)) == (40, 12)


@pytest.mark.parametrize("estimator", [tb.DawidSkene(**TIGHT), tb.MajorityVote()], ids=repr)
def test_other_estimators_go_on_too(estimator: Any) -> None:
    rows = shuffled(crowd().responses)
    estimator.fit(rows[:300])
    start = type(estimator)(**estimator.get_params()).fit(rows[:300])
    estimator.update(rows[300:])
    from_start = {} if isinstance(estimator, tb.MajorityVote) else {"start": start}
    whole = type(estimator)(**estimator.get_params()).fit(rows, **from_start)
    assert_equal(estimator, whole)


def by_time(responses: tb.Responses, seed: int = 3) -> list[Row]:
    """Return rows worker by worker, as in a job that people come to one after the other."""
    rows = shuffled(responses, seed)
    place = {str(worker): i for i, worker in enumerate(responses.workers)}
    return sorted(rows, key=lambda row: place[row[1]])


@pytest.mark.data
@pytest.mark.parametrize("order", ["random", "time"])
@pytest.mark.parametrize("name", ["bluebird", "rte"])
def test_updates_of_a_real_crowd_end_where_fits_do(data_dir: Path, name: str, order: str) -> None:
    update_in_parts(name, order)


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("order", ["random", "time"])
@pytest.mark.parametrize("name", TEN)
def test_updates_of_ten_crowds_end_where_fits_do(data_dir: Path, name: str, order: str) -> None:
    update_in_parts(name, order)


def update_in_parts(name: str, order: str) -> None:
    """Fit half a crowd, update with a quarter, then with the rest, links and gold; compare."""
    responses, gold, _ = tb.datasets.load(name)
    rows = shuffled(responses, 1) if order == "random" else by_time(responses)
    known = {str(t): str(k) for t, k in gold.to_dict().items()}
    links = tb.simulate.links(tb.Gold.from_dict(known), 60, random_state=1)
    some = dict(list(known.items())[-25:])
    a = len(rows) // 2
    b = 3 * len(rows) // 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        model = model_of().fit(rows[:a]).update(rows[a:b])
        start = copy.copy(model)
        model.update(rows[b:], links=links, gold=some)
        whole = model_of().fit(rows, links=links, gold=some, start=start)
    assert_equal(model, whole)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"), st.sampled_from(["ann", "bob", "cy"]), st.sampled_from("xyz")
    ),
    min_size=1,
    max_size=12,
)


@given(st.lists(ROWS, min_size=1, max_size=4), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")
def test_any_order_of_updates_ends_in_a_fit_of_all(parts: list[list[Row]], data: Any) -> None:
    model = tb.VariationalBayes(**TIGHT).fit(parts[0])
    so_far = list(parts[0])
    links: list[tuple[str, str]] = []
    gold: dict[str, str] = {}
    for part in parts[1:]:
        start = tb.VariationalBayes(**TIGHT).fit(list(so_far))
        vars(start).update(vars(model))
        so_far += part
        tasks = sorted({row[0] for row in so_far})
        given_now: dict[str, Any] = {}
        if data.draw(st.booleans()) and len(tasks) > 1:
            pair = tuple(data.draw(st.permutations(tasks))[:2])
            if not links:
                links.append(pair)
                given_now["links"] = tb.Links.from_pairs(must=links, sampling="pairs")
        if data.draw(st.booleans()) and not gold:
            gold[tasks[0]] = data.draw(st.sampled_from("xyz"))
            given_now["gold"] = dict(gold)
        model.update(part, **given_now)
        all_links = tb.Links.from_pairs(must=links, sampling="pairs") if links else None
        whole = tb.VariationalBayes(**TIGHT).fit(
            list(so_far), links=all_links, gold=gold or None, start=start
        )
        assert_equal(model, whole)


# What an update takes


def test_joined_responses_are_those_of_all_rows_together() -> None:
    rows = shuffled(crowd().responses)
    rows += [("t001", "new one", "c9"), ("brand new", "w1", "a0"), rows[3]]
    joined = join_responses(tb.Responses.from_rows(rows[:200]), tb.Responses.from_rows(rows[200:]))
    whole = tb.Responses.from_rows(rows)
    for name in ("start", "code"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name))
    for name in ("tasks", "workers", "classes"):
        assert list(getattr(joined, name)) == list(getattr(whole, name))


@given(data=st.data(), has_weights=st.booleans())
def test_responses_that_come_are_put_where_a_sort_would_put_them(
    data: st.DataObject, has_weights: bool
) -> None:
    row = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("uvwx"), st.sampled_from("KLM"))
    old = data.draw(st.lists(row, min_size=1, max_size=25))
    new = data.draw(st.lists(row, min_size=1, max_size=12))
    weights = np.random.default_rng(len(old)).gamma(2.0, 1.0, len(old) + len(new))
    parts = []
    for rows, weight in ((old, weights[: len(old)]), (new, weights[len(old) :])):
        given_weights = weight if has_weights else None
        parts.append(tb.Responses.from_columns(*zip(*rows, strict=True), weight=given_weights))
    joined = join_responses(*parts)
    all_weights = weights if has_weights else None
    whole = tb.Responses.from_columns(*zip(*old, *new, strict=True), weight=all_weights)
    assert joined.code.dtype == whole.code.dtype
    assert np.array_equal(joined.start, whole.start)
    assert np.array_equal(joined.code, whole.code)
    assert list(joined.tasks) == list(whole.tasks)
    assert list(joined.workers) == list(whole.workers)
    assert list(joined.classes) == list(whole.classes)
    if has_weights:
        assert joined.weight is not None
        assert np.array_equal(joined.weight, np.asarray(whole.weight))
    else:
        assert joined.weight is None


def test_new_workers_tasks_and_classes_are_taken() -> None:
    model = tb.VariationalBayes().fit(rows_of(crowd().responses))
    workers = [*model.workers_, "zoe"]
    model.update([(f"new{i}", worker, "c7") for i in range(9) for worker in workers])
    assert "c7" in set(model.classes_)
    assert "zoe" in set(model.workers_)
    assert model.labels_["new3"].label == "c7"


def test_priors_by_worker_and_starts_by_task_do_not_stand_in_the_way() -> None:
    made = crowd().responses
    prior = np.tile(np.eye(3) * 3 + 1, (9, 1, 1))
    init = np.full((120, 3), 1 / 3)
    model = tb.VariationalBayes(confusion_prior=prior, init=init).fit(made)
    model.update([("new", "zoe", "c0")])
    assert len(model.tasks_) == 121
    assert model.get_params()["confusion_prior"] is prior


def test_an_update_of_a_committee_is_a_fit_of_everything() -> None:
    rows = shuffled(crowd().responses)
    model = tb.Auto().fit(rows[:300])
    model.update(rows[300:])
    whole = tb.Auto().fit(rows)
    assert model.labels_.best() == whole.labels_.best()
    at = model.tasks_.codes(list(whole.tasks_))
    assert np.abs(model.probabilities_[at] - whole.probabilities_).max() < 1e-9


def test_the_last_response_counts_and_that_is_told() -> None:
    rows = rows_of(crowd().responses)
    model = tb.VariationalBayes().fit(rows)
    task, worker, label = rows[0]
    other = "c0" if label != "c0" else "c1"
    with noted("answered-anew"):
        model.update([(task, worker, other)])
    assert model.responses_.n_responses == len(rows)


def test_an_update_that_fails_leaves_the_model_as_it_was() -> None:
    made = crowd()
    model = tb.VariationalBayes().fit(made.responses, gold={"t001": "c0"})
    before = dict(vars(model))
    with refused(GoldError, "gold-changed"):
        model.update([("new", "w1", "c0")], gold={"t001": "c1"})
    with pytest.raises(LinkError):
        model.update(
            links=tb.Links.from_pairs(must=[("t001", "nowhere")], cannot=[("t002", "t003")])
        )
    with pytest.raises(OptionError, match="forget"):
        model.update([("new", "w1", "c0")], forget=0.0)
    assert {name: id(value) for name, value in vars(model).items()} == {
        name: id(value) for name, value in before.items()
    }
    with pytest.raises(NotFittedError):
        tb.VariationalBayes().update([("new", "w1", "c0")])


# Counts in the place of responses


@pytest.mark.parametrize("name", WORKER_MODELS)
def test_counts_alone_carry_a_model_on(tmp_path: Path, name: str) -> None:
    made = crowd(300)
    rows = rows_of(made.responses)  # task after task: tasks are settled when they are dropped
    half = len(rows) // 2
    whole = tb.VariationalBayes(worker_model=name).fit(rows)
    model = tb.VariationalBayes(worker_model=name).fit(rows[:half])
    model.save(tmp_path / "m.tbm", keep="counts")
    back = tb.load(tmp_path / "m.tbm")
    back.update(rows[half:])
    assert back.responses_.n_responses == len(rows) - half
    truth = made.gold.to_dict()
    right = np.mean([back.labels_[task].label == k for task, k in truth.items()])
    as_whole = np.mean([whole.labels_[task].label == k for task, k in truth.items()])
    assert right > as_whole - 0.03
    total = back._carried.counts.sum() + back.responses_.n_responses
    assert total == pytest.approx(len(rows))
    back.save(tmp_path / "m.tbm")
    again = tb.load(tmp_path / "m.tbm")
    assert np.array_equal(again.probabilities_, back.probabilities_)


def test_an_update_without_anything_new_for_a_task_leaves_its_label(tmp_path: Path) -> None:
    rows = rows_of(crowd().responses)
    model = tb.VariationalBayes().fit(rows)
    model.save(tmp_path / "m.tbm", keep="counts")
    back = tb.load(tmp_path / "m.tbm")
    back.update([("new", "w1", "c0")])
    for task in model.tasks_:
        assert back.labels_[task].label == model.labels_[task].label
        assert back.labels_[task].probability == pytest.approx(
            model.labels_[task].probability, abs=0.02
        )


def test_late_links_and_gold_reach_tasks_whose_responses_are_gone(tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(rows_of(crowd().responses))
    model.save(tmp_path / "m.tbm", keep="counts")
    back = tb.load(tmp_path / "m.tbm")
    other = "c0" if model.labels_["t001"].label != "c0" else "c1"
    back.update(
        links=tb.Links.from_pairs(must=[("t001", "t002")], cannot=[("t003", "t004")]),
        gold={"t001": other},
    )
    assert back.labels_["t002"] == ("t002", other, 1.0)
    assert back.labels_["t003"].label != back.labels_["t004"].label


def test_what_workers_did_long_ago_fades() -> None:
    good = [(f"a{i}", w, "x" if i % 2 else "y") for i in range(60) for w in ("ann", "bob", "cy")]
    swapped = {"x": "y", "y": "x"}
    turned = [(f"b{i}", w, swapped[k] if w == "cy" else k) for i, (_, w, k) in enumerate(good)]
    turned = [(f"b{i // 3}", w, k) for i, (_, w, k) in enumerate(turned)]
    remembers = tb.VariationalBayes().fit(good).update(turned)
    forgets = tb.VariationalBayes().fit(good).update(turned, forget=0.1)
    cy = list(remembers.workers_).index("cy")
    assert forgets.confusion_[cy, 0, 0] < remembers.confusion_[cy, 0, 0] - 0.2
    assert forgets.labels_["a1"].label == remembers.labels_["a1"].label == "x"


def test_estimators_without_counts_say_so(tmp_path: Path) -> None:
    model = tb.DawidSkene().fit(rows_of(crowd().responses))
    model.save(tmp_path / "m.tbm", keep="counts")
    with refused(OptionError, "needs-responses"):
        tb.load(tmp_path / "m.tbm").update([("new", "w1", "c0")])
    with refused(OptionError, "needs-responses"):
        model.update([("new", "w1", "c0")], forget=0.9)


@pytest.mark.parametrize("keep", ["responses", "counts"])
def test_a_loaded_model_goes_on_as_the_one_that_was_saved(tmp_path: Path, keep: str) -> None:
    rows = shuffled(crowd().responses)
    model = tb.VariationalBayes().fit(tb.Responses.from_rows(rows[:300]))
    model.save(tmp_path / "m.tbm", keep=keep)
    first = tb.load(tmp_path / "m.tbm").update(rows[300:])
    path = tmp_path / "more.csv"
    tb.Responses.from_rows(rows[300:]).write(path)
    second = tb.load(tmp_path / "m.tbm").update(path)
    assert_equal(first, second, within=1e-12)
    if keep == "responses":
        assert_equal(first, model.update(rows[300:]), within=1e-12)
        again = tb.VariationalBayes().fit(first.responses_, start=first)
        assert again.labels_.best() == first.labels_.best()
    first.save(tmp_path / "m.tbm")
    assert_equal(tb.load(tmp_path / "m.tbm"), first, within=1e-12)
    with pytest.raises(LinkError, match="nowhere"):
        first.update(links=tb.Links.from_pairs(cannot=[("nowhere", "t001")]))
    with pytest.raises(GoldError, match="nowhere"):
        first.update(gold={"nowhere": "c0"})
