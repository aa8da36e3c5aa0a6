"""tiebreak demo: the story is true, and what it suggests works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak import demo

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def story() -> demo.Story:
    return demo.run()


def test_voting_errs_the_committee_repairs_and_links_repair_more(story: demo.Story) -> None:
    vote, alone, linked = story.steps
    assert len(vote.wrong) > len(alone.wrong) > len(linked.wrong)
    assert len(linked.repaired) >= 2
    assert linked.spoilt == alone.spoilt == []
    assert story.model.violations_ is not None
    assert len(story.model.violations_) == 0


def test_the_steps_are_counted_against_the_truth(story: demo.Story) -> None:
    gold = story.crowd.gold
    for step in story.steps:
        accuracy = tb.evaluate.accuracy(step.labels, gold)
        assert accuracy == pytest.approx(1 - len(step.wrong) / len(gold))


def test_links_tell_the_truth(story: demo.Story) -> None:
    assert tb.evaluate.violations(story.crowd.gold.to_dict(), story.links).given == 0
    assert {story.links.n_must > 5, story.links.n_cannot > 5} == {True}


def test_the_words_say_that_the_crowd_is_simulated_and_give_the_figures(run: Run) -> None:
    result = run("demo")
    story = demo.run()
    assert result.exit_code == 0
    assert "simulated" in result.stdout
    for step in story.steps:
        assert re.search(rf"^{step.name} +{len(step.wrong)}\b", result.stdout, re.MULTILINE)
    for i in story.steps[2].repaired[:3]:
        assert demo.MESSAGES[i][1] in result.stdout


@pytest.mark.parametrize("arguments", [[], ["-o", "my demo/it"]])
def test_the_commands_it_suggests_work_as_printed(
    run: Run, folder: Path, arguments: list[str]
) -> None:
    result = run("demo", *arguments)
    out = folder / (arguments[1] if arguments else "tiebreak-demo")
    assert sorted(path.stem for path in out.glob("*.csv")) == sorted(demo.FILES)
    written = (out / "labels.csv").read_bytes()
    (out / "labels.csv").unlink()
    fuse, evaluate, serve = re.findall(r"^  tiebreak (.*)$", result.stdout, re.MULTILINE)
    assert run(*shlex.split(fuse)).exit_code == 0
    assert (out / "labels.csv").read_bytes() == written
    scored = run(*shlex.split(evaluate))
    assert re.search(r"links broken +0\b", scored.stdout)
    command, *files = shlex.split(serve)  # tests/page runs it
    assert command == "serve"
    assert (folder / files[0]).samefile(out / "responses.csv")
    assert (folder / files[files.index("--texts") + 1]).samefile(out / "texts.csv")


def test_it_writes_a_report_and_names_it(run: Run, folder: Path) -> None:
    result = run("demo")
    assert f"browser: {Path('tiebreak-demo') / 'report.html'}" in result.stdout
    page = (folder / "tiebreak-demo" / "report.html").read_text("utf-8")
    stated = demo.run().model.labels_.probability
    assert stated is not None
    in_doubt = int(np.argmin(stated))
    assert demo.MESSAGES[in_doubt][1] in page
    assert run("demo").exit_code == 0  # over its own files
    (folder / "tiebreak-demo" / "report.html").write_text("mine")
    assert run("demo").exit_code == 2


def test_every_run_tells_the_same_story(run: Run) -> None:
    assert run("demo").stdout == run("demo").stdout


def test_the_demo_compiles_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tiebreak", "demo"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "numpy" in imported
    assert not imported & {"numba", "polars", "sklearn", "rich"}
