"""Whatever is given to a public function beside estimators is used, or refused in our own words."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb
from tiebreak.arguments import FLAG
from tiebreak.errors import OptionError
from tiebreak.report import Plots, explain, measure, render, write

ROWS = [
    (f"t{task}", f"w{worker}", "yes" if (7 * task + 3 * worker) % 5 else "no")
    for task in range(40)
    for worker in range(4)
]
CROWD = tb.Responses.from_rows(ROWS)
GOLD = tb.Gold.from_dict({f"t{task}": "yes" if task % 4 else "no" for task in range(25)})
LINKS = tb.Links.from_pairs(must=[("t31", "t32")], cannot=[("t31", "t33")])
MODEL = tb.VariationalBayes().fit(CROWD)
SYSTEMS = {f"t{task}": f"s{task % 2}" for task in range(40)}
ODD: tuple[Any, ...] = (
    None,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    True,
    10**30,
    "x",
    "",
    b"x",
    [],
    {},
    (1, 2),
    ["x"],
    [["x"]],
    [["x"], ["y"]],
    [[1.0], []],
    {"x": 1},
    {1: "x"},
    np.array([]),
    np.array([1.0, 2.0]),
    object(),
    len,
)
Call = tuple[Callable[..., Any], dict[str, Any]]
SCORED: dict[str, Any] = {"labels": MODEL.labels_, "gold": GOLD, "given": {"t0": "no"}}
REPORTED: dict[str, Any] = {
    "model": MODEL,
    "truth": GOLD,
    "texts": {"t0": "A"},
    "source": "s",
    "systems": SYSTEMS,
    "accepts": "yes",
    "watch": None,
}
CROWDS: dict[str, Any] = {
    "n_workers": 5,
    "responses_per_task": 2,
    "accuracy": (0.6, 0.9),
    "confusion": None,
    "shared": 0.1,
    "random_state": 0,
}
RULES = [{"tasks": ["t0", "t1"], "label": "yes", "count": "0-1"}]
READ: dict[str, Any] = {"columns": None, "format": None}
SESSION: dict[str, Any] = {
    "responses": ROWS,
    "who": "me",
    "links": None,
    "gold": None,
    "texts": {"t0": "A"},
    "class_texts": None,
    "wording": None,
    "among": None,
    "kinds": ["same"],
    "costs": None,
    "strategy": "adaptive",
    "budget": 5,
    "target": 0.9,
    "stop_when_worth_less_than": None,
    "random_state": 0,
    "batch": 2,
    "link_error": None,
    "lease": 600.0,
    "background": False,
    "only": None,
}
CLUSTER: dict[str, Any] = {
    "source": "crowd.csv",
    "out": "out",
    "client": None,
    "columns": None,
    "repeats": None,
    "executor": None,
}
ON_SCALE: dict[str, Any] = {
    "labels": tb.VariationalBayes(scale="1..3").fit([("a", "x", 1), ("b", "x", 3)]).labels_,
    "gold": {"a": 2, "b": 3},
    "given": {"b": 3},
    "scale": "1..3",
}
CALLS: dict[str, Call] = {
    "simulate.crowd": (
        tb.simulate.crowd,
        CROWDS | {"n_tasks": 9, "n_classes": 2, "class_prior": [0.5, 0.5], "classes": ["x", "y"]},
    ),
    "simulate.crowd_for": (tb.simulate.crowd_for, CROWDS | {"gold": GOLD}),
    "simulate.links": (
        tb.simulate.links,
        {"gold": GOLD, "n": 2, "wrong": 0.1, "random_state": 0},
    ),
    "judges.cohen_kappas": (tb.judges.cohen_kappas, {"responses": CROWD}),
    "judges.count_labels": (tb.judges.count_labels, {"responses": CROWD}),
    "judges.find_spam": (tb.judges.find_spam, {"responses": CROWD}),
    "judges.fleiss_kappa": (tb.judges.fleiss_kappa, {"responses": CROWD}),
    "judges.percent_agreement": (tb.judges.percent_agreement, {"responses": CROWD}),
    "judges.krippendorff_alpha": (
        tb.judges.krippendorff_alpha,
        {
            "responses": CROWD,
            "level": "interval",
            "order": np.array([0, 1]),
            "values": np.array([1.0, 2.0]),
        },
    ),
    "judges.agreement_report": (
        tb.judges.agreement_report,
        {"responses": CROWD, "order": ["no", "yes"], "watch": None},
    ),
    "judges.panel_report": (
        tb.judges.panel_report,
        {
            "model": MODEL,
            "gold": GOLD,
            "prices": {f"w{worker}": 1.0 for worker in range(4)},
            "systems": SYSTEMS,
            "accepts": "yes",
            "n_to_label": 5,
            "random_state": 0,
            "sub_panels": False,
            "progress": None,
        },
    ),
    "judges.sample_tasks": (tb.judges.sample_tasks, {"model": MODEL, "n": 5, "random_state": 0}),
    "judges.share_discount": (
        tb.judges.share_discount,
        {"responses": CROWD, "groups": {"w0": "g", "w1": "g"}, "dependence": 0.3},
    ),
    "judges.self_preferences": (
        tb.judges.self_preferences,
        {"responses": CROWD, "systems": SYSTEMS, "accepts": "yes"},
    ),
    "judges.estimate_rates": (
        tb.judges.estimate_rates,
        {
            "model": MODEL,
            "gold": GOLD,
            "systems": SYSTEMS,
            "selection": None,
            "level": 0.9,
            "random_state": 0,
        },
    ),
    "judges.RateTable.of": (
        tb.judges.estimate_rates(MODEL, GOLD).of,
        {"label": "yes", "system": "all", "method": "ppi"},
    ),
    "decide.plan_routes": (
        tb.decide.plan_routes,
        {"model": MODEL, "wrong": 10.0, "human": 1.0, "judge": 0.1, "human_error": 0.01},
    ),
    "decide.Route.rows": (
        tb.decide.plan_routes(MODEL, wrong=10.0, human=1.0).rows,
        {"route": "human"},
    ),
    "selection.pairs": (
        tb.selection.pairs,
        {"model": MODEL, "n": 2, "strategy": "random", "among": ["t0", "t1"], "random_state": 0},
    ),
    "selection.questions": (
        tb.selection.questions,
        {
            "model": MODEL,
            "n": 2,
            "kinds": ("same", "label"),
            "costs": {"label": 2.0},
            "among": ["t0", "t1"],
            "random_state": 0,
        },
    ),
    "selection.margins": (tb.selection.margins, {"q": [[0.5, 0.5], [0.1, 0.9]]}),
    "evaluate.accuracy": (tb.evaluate.accuracy, SCORED),
    "evaluate.brier_score": (tb.evaluate.brier_score, SCORED),
    "evaluate.calibration_error": (tb.evaluate.calibration_error, SCORED | {"bins": 5}),
    "evaluate.f_by_class": (tb.evaluate.f_by_class, SCORED),
    "evaluate.f_score": (tb.evaluate.f_score, SCORED | {"average": "macro", "absent": "skip"}),
    "evaluate.interval_coverage": (tb.evaluate.interval_coverage, ON_SCALE),
    "evaluate.mean_absolute_error": (tb.evaluate.mean_absolute_error, ON_SCALE),
    "evaluate.weighted_kappa": (tb.evaluate.weighted_kappa, ON_SCALE | {"weights": "linear"}),
    "evaluate.log_loss": (tb.evaluate.log_loss, SCORED | {"floor": 1e-9}),
    "evaluate.report": (tb.evaluate.report, SCORED | {"links": LINKS}),
    "evaluate.violations": (tb.evaluate.violations, {"labels": MODEL.labels_, "links": LINKS}),
    "judges.error_dependence": (tb.judges.error_dependence, {"model": MODEL, "gold": GOLD}),
    "decide.decide": (
        tb.decide.decide,
        {"model": MODEL, "cost_matrix": [[0, 1], [1, 0]], "abstain_rate": 0.1},
    ),
    "decide.plan_votes": (
        tb.decide.plan_votes,
        {"model": MODEL, "cost_matrix": None, "limit": 0.2, "workers": ["w0"], "most_votes": 2},
    ),
    "decide.read_cost_matrix": (
        tb.decide.read_cost_matrix,
        {"source": [[0, 1], [1, 0]], "classes": CROWD.classes},
    ),
    "decide.Decisions.estimate_accuracy": (MODEL.decide().estimate_accuracy, {"level": 0.9}),
    "decide.Decisions.expert_first": (MODEL.decide().expert_first, {"n": 2}),
    "decide.Decisions.to_frame": (MODEL.decide().to_frame, {"frame": "pyarrow"}),
    "decide.VotePlan.to_frame": (
        tb.decide.plan_votes(MODEL, limit=0.2).to_frame,
        {"frame": "pyarrow"},
    ),
    "Labels.to_frame": (MODEL.labels_.to_frame, {"frame": "pyarrow", "probabilities": True}),
    "model.plot.calibration": (MODEL.plot.calibration, {"gold": GOLD}),
    "model.plot.confusion": (MODEL.plot.confusion, {"worker": "w0"}),
    "model.plot.workers": (MODEL.plot.workers, {"most": 3}),
    "report.Plots": (lambda model: Plots(model).confusion(), {"model": MODEL}),
    "report.explain": (explain, {"model": MODEL, "task": "t0"}),
    "report.measure": (measure, REPORTED),
    "report.render": (render, {"found": measure(MODEL)}),
    "report.write": (
        write,
        REPORTED | {"path": "report.html", "overwrite": True, "json_path": None},
    ),
    "model.save": (MODEL.save, {"target": "model.tbm", "keep": "responses"}),
    "load": (tb.load, {"target": "kept.tbm"}),
    "model.predict": (MODEL.predict, {"responses": ROWS, "links": LINKS}),
    "model.update": (
        lambda **given: tb.load("kept.tbm").update(**given),
        {"responses": [("a", "w0", "no")], "links": None, "gold": None, "forget": 0.9},
    ),
    "model.fit": (
        lambda **given: tb.VariationalBayes().fit(**given),
        {"responses": ROWS, "links": LINKS, "gold": GOLD, "start": MODEL},
    ),
    "read_responses": (
        tb.read_responses,
        READ | {"source": "crowd.csv", "repeats": "last", "tasks": ["z"], "classes": ["maybe"]},
    ),
    "read_gold": (tb.read_gold, READ | {"source": "gold.csv", "question": None}),
    "read_labels": (tb.read_labels, READ | {"source": "labels.csv"}),
    "evaluate.broken_constraints": (
        tb.evaluate.broken_constraints,
        {"labels": "labels.csv", "constraints": RULES},
    ),
    "read_constraints": (tb.read_constraints, READ | {"source": RULES}),
    "read_links": (tb.read_links, READ | {"source": "links.csv", "sampling": None}),
    "Gold.write": (GOLD.write, {"target": "made.csv", "format": None}),
    "Labels.write": (
        MODEL.labels_.write,
        {"target": "made.csv", "probabilities": True, "format": None},
    ),
    "Links.write": (LINKS.write, {"target": "made.csv", "format": None}),
    "Links.from_gold": (tb.Links.from_gold, {"gold": GOLD}),
    "Responses.write": (CROWD.write, {"target": "made.csv", "format": None}),
    "Gold.from_dict": (tb.Gold.from_dict, {"labels": {"a": "x"}}),
    "Gold.from_columns": (tb.Gold.from_columns, {"task": ["a", "b"], "label": ["x", "y"]}),
    "Links.from_pairs": (
        tb.Links.from_pairs,
        {"must": [("a", "b")], "cannot": [("a", "c")], "sampling": None},
    ),
    "Links.from_rows": (tb.Links.from_rows, {"rows": [("a", "b", "must")], "sampling": None}),
    "Links.from_columns": (
        tb.Links.from_columns,
        {"left": ["a"], "right": ["b"], "link": ["must"], "weight": None, "who": None}
        | {"sampling": None, "frame": "pyarrow"},
    ),
    "Responses.from_rows": (tb.Responses.from_rows, {"rows": ROWS, "repeats": "last"}),
    "Responses.from_columns": (
        tb.Responses.from_columns,
        {"task": ["a", "b"], "worker": ["w", "v"], "label": ["x", "y"], "tasks": None}
        | {"classes": None, "weight": None, "repeats": "last", "frame": "pyarrow"},
    ),
    "bench.run": (
        tb.bench.run,
        {"sets": {"crowd": (ROWS, GOLD)}, "methods": ["mv"], "seeds": 2, "gold_share": 0.1}
        | {"limit": 9.0, "jobs": 1, "record": "record.jsonl", "resume": True}
        | {"with_labels": True, "progress": None},
    ),
    "judges.span_agreement": (
        tb.judges.span_agreement,
        {
            "responses": [("a", "ann", "B-X"), ("a", "bob", "O")],
            "sequences": tb.Sequences.from_columns(["a"], ["s"]),
        },
    ),
    "bench.read_record": (tb.bench.read_record, {"path": "record.jsonl"}),
    "datasets.info": (tb.datasets.info, {"name": "bluebird"}),
    "research.spectral_start": (
        tb.research.spectral_start,
        {"responses": ROWS, "confusion_prior": "diagonal", "random_state": 0},
    ),
    "shards.fit": (
        tb.shards.fit,
        CLUSTER
        | {"estimator": None, "links": None, "gold": None, "start": None, "resume": False}
        | {"force": True, "probabilities": False, "progress": None},
    ),
    "shards.predict": (
        tb.shards.predict,
        CLUSTER | {"model": MODEL, "probabilities": False},
    ),
}
ELSEWHERE = {  # not called with values of a user's own, or tried below
    "datasets.fetch",  # of the web
    "datasets.load",  # as `info`, of what is on this machine
    "datasets.names",
    "datasets.path",
    "shards.executor_of",  # of a client of Dask
}
paths = (f"session{n}.db" for n in itertools.count())


@pytest.fixture(autouse=True)
def _files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CROWD.write("crowd.csv")
    GOLD.write("gold.csv")
    LINKS.write("links.csv")
    MODEL.labels_.write("labels.csv")
    MODEL.save("kept.tbm")
    tb.bench.run({"crowd": (ROWS, GOLD)}, ["mv"], record="record.jsonl")


def test_every_public_function_is_tried() -> None:
    assert set(_public_functions()) - ELSEWHERE <= CALLS.keys()


def _public_functions() -> Iterator[str]:
    for name in tb.__all__:
        value = getattr(tb, name)
        if inspect.isfunction(value):
            yield name
        if isinstance(value, ModuleType) and value is not tb.errors:
            for each in value.__all__:
                if inspect.isfunction(getattr(value, each)):
                    yield f"{name}.{each}"


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_used_or_refused(name: str) -> None:
    call, given = CALLS[name]
    assert not _is_refused(call, given)  # as it is
    assert _try_all(call, given) > len(given)


def test_odd_options_of_a_session_are_used_or_refused() -> None:
    def ask(path: Any = None, **given: Any) -> None:
        desk = tb.ask.Desk(next(paths) if path is None else path, given.pop("responses"), **given)
        try:
            desk.start()
        finally:
            desk.close()

    def ask_one(who: Any) -> None:
        tb.ask.Session(next(paths), ROWS, who=who).close()

    options = {name: value for name, value in SESSION.items() if name != "who"}
    assert not _is_refused(ask, options)
    assert _try_all(ask, options | {"path": next(paths)}) > len(options)
    assert _try_all(ask_one, {"who": "me"}) > 0


@pytest.mark.parametrize("method", ["answer", "skip", "undo", "keep", "votes", "question"])
def test_odd_answers_are_used_or_refused(method: str) -> None:
    with tb.ask.Session(next(paths), ROWS, kinds=["same"]) as session:
        question = session.next()
        assert question is not None
        given: dict[str, dict[str, Any]] = {
            "answer": {"question": question, "says": "same"},
            "skip": {"question": question},
            "undo": {"answer": None},
            "keep": {"answer": session.answer(question, "same")},
            "votes": {"task": "t0"},
            "question": {"task": "t0", "other": None, "label": "yes"},
        }
        assert _try_all(getattr(session, method), given[method]) > 0


def _try_all(call: Callable[..., Any], given: dict[str, Any]) -> int:
    """Put every odd value in the place of each argument; return how many were refused."""
    return sum(_is_refused(call, given | {name: value}) for name in given for value in ODD)


def _is_refused(call: Callable[..., Any], given: dict[str, Any]) -> bool:
    """Call; say whether that was refused. Any error that is not ours is the test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**given)
        except tb.TiebreakError:
            return True
    return False


def test_what_is_refused_is_named_with_what_was_given() -> None:
    with refused(tb.errors.OptionError, "wrong-value n") as found:
        tb.selection.pairs(MODEL, 1.5)  # type: ignore[arg-type]
    assert found.value.fields["value"] == "1.5"
    with refused(tb.errors.OptionError, "wrong-value gold"):
        tb.simulate.links({"a": "x"}, 1)  # type: ignore[arg-type]
    with refused(tb.errors.OptionError, "wrong-value model"):
        tb.decide.decide("m.tbm")
    with refused(tb.errors.NotFittedError, "no-result-yet VariationalBayes"):
        tb.judges.sample_tasks(tb.VariationalBayes())
    with refused(tb.errors.OptionError, "wrong-value random_state"):
        tb.simulate.crowd(9, random_state=-1)
    with refused(tb.errors.OptionError, "wrong-value n_tasks"):
        tb.simulate.crowd(10**30)
    with refused(tb.errors.OptionError, "wrong-value random_state") as found:
        tb.judges.estimate_rates(MODEL, random_state="long" * 1000)  # type: ignore[arg-type]
    assert len(str(found.value)) < 200


@pytest.mark.parametrize("seed", [np.int64(3), [1, 2], np.random.SeedSequence(1)])
def test_seeds_are_what_numpy_takes(seed: Any) -> None:
    one, other = (tb.simulate.crowd(9, random_state=seed).gold.label for _ in range(2))
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("value", [True, np.True_, np.bool_(False)])
def test_flags_may_be_those_of_numpy(value: Any) -> None:
    FLAG("force", value)
    with refused(OptionError, "wrong-value force"):
        FLAG("force", 1)
