"""Runs: what each is given, that they resume, that they do not depend on who runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from research.paper.made_up import tiny_plan, without_time

import tiebreak as tb
from tiebreak.errors import FileError, OptionError
from tiebreak.research.paper import runs
from tiebreak.research.paper.runner import RUNS


def crowd(name: str) -> runs.FittedDataset:
    about = tiny_plan(name).about[name]
    return runs.crowd(name, about.fingerprint)


def drawn(name: str, run: int = 0) -> runs.Draw:
    return runs.draw(name, tiny_plan(name).about[name].fingerprint, run)


def test_numbers_go_from_none_to_half_of_the_gold_tasks() -> None:
    assert runs.numbers_given(2275, 8)[0] == 0
    assert runs.numbers_given(2275, 8)[-1] == 1137
    assert len(runs.numbers_given(108, 8)) == 9
    assert runs.numbers_given(6, 8) == (0, 1, 2, 3)


def test_runs_draw_differently_and_the_same_run_draws_the_same() -> None:
    first = drawn("bluebird", 0)
    second = drawn("bluebird", 1)
    assert first.labels.tolist() != second.labels.tolist()
    assert first.random[0].tolist() != second.random[0].tolist()
    runs.draw.cache_clear()
    again = drawn("bluebird", 0)
    assert again.labels.tolist() == first.labels.tolist()
    assert again.bvsb[1].tolist() == first.bvsb[1].tolist()


def test_links_say_what_gold_says() -> None:
    of = crowd("dog")
    draw = drawn("dog")
    truth = of.gold.to_dict()
    for pairs in (draw.random, draw.bvsb):
        links = runs.links_given(of, pairs, 9)
        assert len(links) == 9
        for left, right, word in links.pairs():
            assert word == ("must" if truth[left] == truth[right] else "cannot")


def test_labels_imply_all_pairs_among_them() -> None:
    of = crowd("dog")
    draw = drawn("dog")
    score = runs.score_all(of, draw, 6)
    assert score["vb_ilc_derived"]["n_links"] == 15
    assert score["vb_ilc"]["n_links"] == 6


def test_with_nothing_given_all_that_start_from_vb_are_vb() -> None:
    scores = runs.score_all(crowd("bluebird"), drawn("bluebird"), 0)
    given = [name for name, method in runs.METHODS.items() if method.given != "nothing"]
    for name in set(given) & set(scores):
        assert scores[name]["macro_f"] == scores["vb"]["macro_f"]


def test_the_paper_s_methods_are_the_estimators_started_from_vb() -> None:
    of = crowd("bluebird")
    draw = drawn("bluebird")
    scores = runs.score_all(of, draw, 12)
    links = runs.links_given(of, draw.random, 12)
    paper = tb.VariationalBayes(
        link_options=tb.MeanFieldOptions(schedule="parallel", strength="grid"), backend="numpy"
    )
    known = runs.labels_given(of, draw, 12)
    with_labels = tb.VariationalBayes(calibrate="none", backend="numpy")
    expected = {
        "vb_ilc": paper.fit_predict(of.responses, links=links),
        "vb_lc": with_labels.fit_predict(of.responses, gold=known),
        "ds": tb.DawidSkene(backend="numpy").fit_predict(of.responses),
    }
    for name, labels in expected.items():
        assert scores[name]["macro_f"] == pytest.approx(tb.evaluate.f_score(labels, of.gold))
        free = tb.evaluate.f_score(labels, of.gold, "micro", given=known)
        assert scores[name]["micro_f_free"] == pytest.approx(free)
    assert scores["vb_lc"]["macro_f"] != scores["vb"]["macro_f"]


def test_exact_links_break_none_and_broken_links_are_counted() -> None:
    of = crowd("dog")
    draw = drawn("dog")
    scores = runs.score_all(of, draw, 9)
    assert [scores[name]["n_broken"] for name in ("exact", "exact_bvsb", "exact_derived")] == [
        0
    ] * 3
    links = runs.links_given(of, draw.random, 9)
    alike = np.zeros(of.responses.n_tasks, dtype=np.int32)
    labels = tb.Labels(of.responses.tasks, of.responses.classes, alike)
    counted = runs._broken(runs.METHODS["exact"], labels, links, None)
    assert counted == {"n_links": 9, "n_broken": links.n_cannot}


def test_updates_in_turn_are_compared_on_rte_and_dog_only() -> None:
    assert "vb_ilc_in_turn" in runs.methods_on("dog")
    assert "vb_ilc_in_turn" not in runs.methods_on("web")


def test_the_prior_is_uniform_on_web_only() -> None:
    assert [runs.prior_of(name) for name in ("web", "dog")] == ["uniform", "diagonal"]


def test_a_stopped_series_goes_on_to_the_same_numbers(out: Path, tmp_path: Path) -> None:
    plan = tiny_plan("bluebird")
    (tmp_path / "whole").mkdir()
    whole = runs.run(plan, tmp_path / "whole")

    def stop(n_done: int, n_all: int) -> None:
        assert n_all == 6
        if n_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.run(plan, out, progress=stop)
    with (out / RUNS).open("a") as file:
        file.write('{"dataset": "bluebird", "run": 1, "n_gi')  # a kill in the middle of a line
    heard: list[int] = []
    resumed = runs.run(plan, out, progress=lambda n_done, _: heard.append(n_done))
    assert heard == [3, 4, 5, 6]
    assert without_time(resumed) == without_time(whole)
    assert len((out / RUNS).read_text().splitlines()) == 6


def test_finished_runs_are_not_repeated(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tiny_plan("bluebird", n_runs=1)
    rows = runs.run(plan, out)

    def refuse(*_: Any) -> Any:
        raise AssertionError("repeated")

    monkeypatch.setattr(runs, "work", refuse)
    assert runs.run(plan, out) == rows


def test_more_steps_use_what_fewer_steps_found(out: Path) -> None:
    few = runs.run(tiny_plan("bluebird", n_runs=1, n_steps=2), out)
    heard: list[int] = []
    more = runs.run(
        tiny_plan("bluebird", n_runs=1, n_steps=4), out, progress=lambda n, _: heard.append(n)
    )
    assert heard[0] == len(few) == 3
    assert [row for row in more if row in few] == few


def test_runs_of_other_data_are_not_taken_over(out: Path, data: Path) -> None:
    runs.run(tiny_plan("bluebird", n_runs=1), out)
    gold = data / "bluebird" / "gold.csv"
    lines = gold.read_text().splitlines()
    gold.write_text("\n".join(lines[:-2]) + "\n")
    heard: list[int] = []
    runs.run(tiny_plan("bluebird", n_runs=1), out, progress=lambda n, _: heard.append(n))
    assert heard[0] == 0


def test_files_that_change_under_way_are_told(data: Path) -> None:
    plan = tiny_plan("bluebird")
    gold = data / "bluebird" / "gold.csv"
    gold.write_text("\n".join(gold.read_text().splitlines()[:-1]) + "\n")
    with refused(FileError, "dataset-changed"):
        runs.work(plan.cases()[0])


def test_processes_find_what_one_process_finds(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "BACKEND", "numba")  # as other processes have it
    plan = tiny_plan("bluebird", n_runs=1)
    (tmp_path / "one").mkdir()
    one = runs.run(plan, tmp_path / "one", jobs=1)
    two = runs.run(plan, out, jobs=2)
    assert without_time(two) == without_time(one)


def test_a_line_that_is_no_run_is_named(out: Path) -> None:
    (out / RUNS).write_text(json.dumps({"dataset": "bluebird"}) + "\n")
    with refused(FileError, "no-finished-run"):
        runs.run(tiny_plan("bluebird"), out)


@pytest.mark.parametrize(
    ("n_runs", "n_steps", "message"), [(0, 8, "too-few-runs"), (2, 1, "too-few-runs")]
)
def test_too_few_runs_or_steps_are_refused(n_runs: int, n_steps: int, message: str) -> None:
    with refused(OptionError, message):
        runs.Reproduction.of(["bluebird"], n_runs, n_steps)
