"""`model.explain`: votes with weights, and the links that moved a label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.report import measure

EXAMPLES = Path(__file__).parents[2] / "examples"
CROWD = tb.simulate.crowd(60, 8, 3, random_state=0)
MODEL = tb.VariationalBayes().fit(CROWD.responses)


@pytest.fixture(scope="module")
def messages() -> Any:
    """Return the model of the README."""
    gold = tb.read_gold(EXAMPLES / "messages.json")
    links = tb.read_links(EXAMPLES / "duplicates.csv")
    responses = tb.read_responses(EXAMPLES / "messages.json")
    return tb.VariationalBayes().fit(responses, links=links, gold=gold)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_the_cannot_link_behind_the_label_of_the_readme_is_shown(messages: Any) -> None:
    found = messages.explain("m39")
    assert {vote.label for vote in found.votes} == {"billing"}
    assert (found.label, found.other, found.alone) == ("delivery", "billing", "billing")
    (link,) = found.links
    assert link.chain == "m39 ≠ m37 = m34"
    assert link.where.endswith("duplicates.csv, line 20")
    assert (link.task, link.is_same, link.label) == ("m37", False, "billing")
    assert link.factor > 10.0 > 1.0 > max(vote.factor for vote in found.votes)
    said = str(found)
    assert "All 4 votes are for billing." in said
    assert "By its votes alone it would be billing" in said
    assert "m39 cannot be the same class as m37" in said
    assert "speaks against billing" in said
    page = (EXAMPLES.parent / "docs" / "report.md").read_text("utf-8")
    assert said.replace("\N{NO-BREAK SPACE}", " ").replace(f"{EXAMPLES}/", "") in page
    cards = measure(messages)["sections"]["from_vote"]["tasks"]
    assert found.to_dict() in [card["explanation"] for card in cards]


def test_a_vote_counts_what_the_confusion_matrix_of_its_worker_says() -> None:
    for task in MODEL.tasks_[:10]:
        found = MODEL.explain(task)
        code = int(MODEL.tasks_.codes([task])[0])
        label, other = MODEL.classes_.codes([found.label, found.other])
        workers, given = MODEL.responses_.of(code)
        ratio = MODEL.confusion_[workers, label, given] / MODEL.confusion_[workers, other, given]
        assert np.allclose([vote.factor for vote in found.votes], ratio)
        assert [vote.worker for vote in found.votes] == [MODEL.workers_[int(w)] for w in workers]


def test_without_links_the_votes_alone_give_the_label() -> None:
    for task in MODEL.tasks_:
        found = MODEL.explain(task)
        assert found.links == ()
        assert found.alone == found.label
        assert found.alone_probability == pytest.approx(found.probability, abs=2e-3)


def test_must_links_bring_votes_along_and_the_far_ones_too() -> None:
    votes = [(t, w, "x") for t in "abc" for w in ("ann", "bob", "cid")]
    votes += [("d", "ann", "y"), ("d", "eve", "y"), ("e", "bob", "y"), ("e", "cid", "y")]
    links = tb.Links.from_pairs(must=[("a", "b"), ("b", "c"), ("c", "d")])
    found = tb.VariationalBayes().fit(votes, links=links).explain("d")
    assert found.label == "x"
    assert {link.chain for link in found.links} == {"d = c", "d = c = b", "d = c = b = a"}
    assert all(link.is_same and link.factor > 1.0 for link in found.links)
    assert found.chart is not None
    assert [row[0] for row in found.chart.rows][:2] == ["ann: y", "eve: y"]


def test_links_that_may_be_wrong_move_less() -> None:
    votes = [("a", w, "x") for w in ("ann", "bob", "cid")]
    votes += [("b", "ann", "x"), ("c", "bob", "y"), ("c", "cid", "y")]
    factors = []
    for weight in (0.5, 3.0, None):
        given = None if weight is None else [weight]
        links = tb.Links.from_columns(["a"], ["b"], ["cannot"], weight=given)
        found = tb.VariationalBayes().fit(votes, links=links).explain("b")
        factors.append(abs(np.log(found.links[0].factor)))
    assert factors == sorted(factors)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_known_label_is_said_to_be_known(messages: Any) -> None:
    found = messages.explain("m02")
    assert found.is_known
    assert str(found) == "m02 is delivery: this label was given as known."


FITS: dict[str, Any] = {
    "majority": tb.MajorityVote(),
    "dawid-skene": tb.DawidSkene(),
    "auto": tb.Auto(),
    "gibbs": tb.GibbsSampler(),
    "coin": tb.VariationalBayes(worker_model="coin"),
}


@pytest.mark.parametrize("model", FITS.values(), ids=FITS.keys())
def test_every_model_explains_every_task(model: Any) -> None:
    fitted = model.fit(CROWD.responses)
    for task in ("t01", "t30"):
        found = fitted.explain(task)
        assert found.label == fitted.labels_.best()[task]
        assert len(found.votes) == len(fitted.responses_.of(int(task[1:]) - 1)[0])
        assert str(found).startswith(f"{task} is labelled")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_odd_tasks_are_explained_too() -> None:
    alone = tb.VariationalBayes().fit([("a", "ann", "x")]).explain("a")
    assert alone.other is None
    assert alone.chart is None
    new = CROWD.responses.with_tasks(tb.Gold.from_dict({"new": "c0"}).tasks)
    empty = tb.VariationalBayes().fit(new).explain("new")
    assert empty.votes == ()
    assert "no responses" in str(empty)


def test_many_votes_are_one_bar_beyond_the_strongest() -> None:
    crowd = tb.simulate.crowd(20, 40, 2, responses_per_task=40, random_state=0)
    found = tb.VariationalBayes().fit(crowd.responses).explain("t01")
    assert found.chart is not None
    assert [row[0] for row in found.chart.rows][-1] == "28 more votes"
    assert len(found.chart.rows) == 13


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_task_with_very_many_links_or_a_vote_of_great_weight_is_explained_too() -> None:
    votes = [(t, w, "x" if t else "y") for t in range(400) for w in ("ann", "bob")]
    apart = tb.Links.from_pairs(cannot=[(0, t) for t in range(1, 400)])
    found = tb.VariationalBayes().fit(votes, links=apart).explain(0)
    assert 20 <= len(found.links) <= 40
    columns = {"task": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "label": ["x", "y", "y"]}
    heavy = tb.VariationalBayes().fit(columns | {"weight": [1e6, 1.0, 1.0]}).explain("a")
    assert np.isfinite([vote.factor for vote in heavy.votes]).all()
    assert heavy.chart is not None


def test_notebooks_show_words_and_the_chart_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    votes = [
        (f"{t}{hostile}", f"{w}{hostile}", f"{t % 2}{hostile}") for t in range(9) for w in "ab"
    ]
    shown = tb.VariationalBayes().fit(votes).explain(f"0{hostile}")._repr_html_()
    assert "<script" not in shown
    assert "<svg" in shown
    assert "is labelled" in shown
