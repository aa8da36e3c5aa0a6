"""Sessions of labels and links on real data: opened again, and fused at once, they say the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ask.test_kinds import assert_equal_but_for_ties
from ask.test_session import answer_truly
from typer.testing import CliRunner

import tiebreak as tb
from tiebreak.ask import Session
from tiebreak.cli import app as app_room

TEN = (
    *("bluebird", "rte", "zencrowd_us", "zencrowd_india", "sentence_polarity"),
    *("product", "trec", "dog", "web", "music_genre"),
)
BUDGETS = (0.05, 0.10, 0.25, 0.50)


def load(name: str) -> tuple[Any, Any]:
    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    gold = tb.read_gold(folder / "gold.csv")
    return tb.read_responses(folder / "responses.csv").with_classes(gold.classes), gold


def swap_gains(labels: Any, gold: Any) -> float:
    """Return the most that macro-F gains where two classes exchange their names."""
    best = 0.0
    truth = gold.to_dict()
    found = labels.best()
    score = tb.evaluate.f_score(found, truth, average="macro")
    classes = list(labels.classes)
    for at, one in enumerate(classes):
        for other in classes[at + 1 :]:
            names = {one: other, other: one}
            swapped = {task: names.get(label, label) for task, label in found.items()}
            best = max(best, tb.evaluate.f_score(swapped, truth, average="macro") - score)
    return best


def ask_and_reopen(name: str, path: Path, budgets: tuple[float, ...], kinds: Any) -> None:
    """Answer up to each budget; after each, open the file again, and fuse links and labels."""
    responses, gold = load(name)
    truth = gold.to_dict()
    options: dict[str, Any] = {"among": list(truth), "kinds": kinds, "costs": {"label": 2.0}}
    options |= {"batch": max(20, len(truth) // 48), "random_state": 0}
    n_asked = 0
    for budget in budgets:
        with Session(path, responses, **options) as session:
            wanted = round(budget * len(truth))
            answer_truly(session, truth, wanted - n_asked)
            n_asked = len(session.answers())
            model = session.model()
            links = session.links()
            known = session.labels()
        with Session(path, responses, **options) as again:
            assert np.array_equal(again.model().labels_.label, model.labels_.label)
            assert np.array_equal(again.model().probabilities_, model.probabilities_)
        assert swap_gains(model.labels_, gold) == 0.0
        if len(set(known.to_dict().values())) == responses.n_classes or responses.n_classes == 2:
            fused = tb.VariationalBayes(gold_weight=1).fit(
                responses, links=links if len(links) else None, gold=known
            )
            assert_equal_but_for_ties(model, fused)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("name", ["bluebird", "dog"])
def test_a_session_says_the_same_when_opened_again_and_when_fused(
    name: str, tmp_path: Path
) -> None:
    ask_and_reopen(name, tmp_path / "s.db", BUDGETS[:3], ("same", "label"))


@pytest.mark.data
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")
@pytest.mark.parametrize("kinds", [("same", "label"), ("same", "label", "is")])
@pytest.mark.parametrize("name", TEN)
def test_every_session_says_the_same_when_opened_again_and_when_fused(
    name: str, kinds: Any, tmp_path: Path
) -> None:
    ask_and_reopen(name, tmp_path / "s.db", BUDGETS, kinds)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_fuse_through_the_command_gives_the_labels_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the links and labels that a session wrote, by their files."""
    monkeypatch.chdir(tmp_path)
    responses, gold = load("dog")
    truth = gold.to_dict()
    responses.write("r.csv")
    with Session("s.db", responses, among=list(truth), batch=40, random_state=0) as session:
        answer_truly(session, truth, 160)
        model = session.model()
        session.links().write("l.csv")
        session.labels().write("k.csv")
        assert len(set(session.labels().to_dict().values())) == responses.n_classes
    command = "fuse r.csv --links l.csv --gold k.csv --set gold_weight=1 -o labels.csv --quiet"
    done = CliRunner().invoke(app_room.app, command.split(), prog_name="tiebreak")
    assert done.exit_code == 0, done.stderr
    fused = tb.read_labels("labels.csv").best()
    top = -np.partition(-model.probabilities_, 1, axis=1)[:, :2]
    is_tie = top[:, 0] - top[:, 1] <= 0.01
    for task, label, tie in zip(model.tasks_, model.labels_.label, is_tie, strict=True):
        assert tie or fused[str(task)] == str(model.classes_[int(label)])
