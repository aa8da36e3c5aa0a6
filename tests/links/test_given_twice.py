"""Links that come twice count once, in a file, over updates and in a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept.crowds import assert_equal, crowd, rows_of
from tables.said import noted

import tiebreak as tb
from tiebreak.data import Ids
from tiebreak.errors import InputNote, LinkError
from tiebreak.life import Stream
from tiebreak.links import Links


def weighted(*rows: tuple[Any, ...]) -> Links:
    left, right, link, weight, *who = zip(*rows, strict=True)
    return Links.from_columns(left, right, link, weight, *who)


def test_equal_rows_are_one_link() -> None:
    links = weighted(
        ("a", "b", "must", 1.0, "ann"),
        ("b", "a", "must", 1.0, "ann"),
        ("a", "b", "must", 1.0, "bob"),
        ("a", "b", "cannot", 3.0, "ann"),
        ("a", "c", "must", None, "ann"),
        ("a", "c", "must", None, "ann"),
    )
    assert len(links) == 4
    assert links.row.tolist() == [0, 2, 3, 4]
    codes = links.on(Ids("abc"))
    assert codes.weight is not None
    assert codes.who is not None
    found = zip(codes.who.tolist(), codes.must.tolist(), codes.weight.tolist(), strict=True)
    assert list(found)[:2] == [(0, False, 2.0), (1, True, 1.0)]


def test_another_weight_replaces_the_former_one_with_a_note() -> None:
    rows = [("a", "b", "must", 1.0), ("b", "c", "must", 2.0), ("b", "a", "must", 4.0)]
    with noted("links-new-weight", n=1):
        links = weighted(*rows)
    assert links.weight is not None
    assert links.weight.tolist() == [4.0, 2.0]
    with noted("links-new-weight", n=1):
        more = links + weighted(("a", "b", "must", 0.5), ("b", "c", "must", 2.0))
    assert more.weight is not None
    assert more.weight.tolist() == [0.5, 2.0]


def test_a_weight_takes_the_place_of_certainty_and_back() -> None:
    with noted("links-new-weight", n=1):
        links = weighted(("a", "b", "must", None), ("a", "b", "must", 4.0))
    assert links.weight is not None
    assert links.weight.tolist() == [4.0]
    with noted("links-new-weight", n=1):
        more = links + Links.from_pairs(must=[("a", "b")], sampling="pairs")
    assert more.weight is not None
    assert np.isnan(more.weight).tolist() == [True]


def some_links(weight: float = 1.5) -> Links:
    links = tb.simulate.links(crowd().gold, 60, wrong=0.2, random_state=1).pairs()
    return weighted(*((a, b, word, weight) for a, b, word in links))


def test_a_table_made_by_hand_counts_equal_rows_once_too() -> None:
    links = some_links()
    twice = links.select(np.tile(np.arange(len(links)), 2))  # as files of earlier versions hold
    responses = crowd().responses
    once = tb.VariationalBayes().fit(responses, links=links)
    assert_equal(once, tb.VariationalBayes().fit(responses, links=twice), within=1e-12)


@pytest.mark.parametrize("keep", ["responses", "counts"])
def test_links_that_an_update_brings_again_change_nothing(tmp_path: Path, keep: str) -> None:
    model = tb.VariationalBayes().fit(rows_of(crowd().responses))
    model.save(tmp_path / "m.tbm", keep=keep)
    once = tb.load(tmp_path / "m.tbm").update(links=some_links())
    once.save(tmp_path / "m.tbm")
    again = tb.load(tmp_path / "m.tbm").update(links=some_links())
    assert len(again.links_) == len(once.links_) == len(some_links())
    if keep == "responses":
        assert_equal(once, again, within=1e-3)
        assert once.labels_.best() == again.labels_.best()
    else:  # what is left of dropped responses is calibrated anew by any update
        other = tb.load(tmp_path / "m.tbm").update([("new", "w1", "c0")])
        furthest = np.abs(again.probabilities_ - other.probabilities_[: len(again.tasks_)]).max()
        assert furthest < 0.01


def test_links_between_tasks_with_responses_stay_in_a_model_of_counts(tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(rows_of(crowd().responses))
    model.save(tmp_path / "m.tbm", keep="counts")
    new = [("n1", "w1", "c0"), ("n1", "w2", "c0"), ("n2", "w3", "c1")]
    links = weighted(("n1", "n2", "must", 9.0))
    once = tb.load(tmp_path / "m.tbm").update(new, links=links)
    once.save(tmp_path / "m.tbm")
    again = tb.load(tmp_path / "m.tbm").update(links=links)
    later = tb.load(tmp_path / "m.tbm").update([("n3", "w1", "c0")])
    for back in (again, later):
        assert len(back.links_) == 1
        assert back.labels_["n2"].label == back.labels_["n1"].label
        assert back.labels_["n2"].probability == pytest.approx(
            once.labels_["n2"].probability, abs=0.01
        )


def stream_with(*links: tuple[str, str, str, float | None]) -> Stream:
    stream = Stream(tb.VariationalBayes().fit(crowd().responses))
    for link in links:
        stream.link(weighted(link))
    return stream


def test_links_that_a_stream_brings_again_are_one_link() -> None:
    once = stream_with(("t001", "t002", "must", 2.0), ("t003", "t004", "cannot", 1.0))
    with pytest.warns(InputNote, match="another weight"):
        again = stream_with(
            ("t001", "t002", "must", 2.0),
            ("t003", "t004", "cannot", 5.0),
            ("t002", "t001", "must", 2.0),
            ("t003", "t004", "cannot", 1.0),
        )
    for stream in (once, again):
        stream.fit(np.arange(len(stream.tasks)))
    assert len(again.links or ()) == 2
    assert_equal(once.to_model(), again.to_model(), within=1e-12)


def test_a_link_that_is_refused_leaves_the_former_one_as_it_was() -> None:
    stream = stream_with(("t001", "t002", "must", 2.0), ("t002", "t003", "must", None))
    stream.know(["t001", "t002"], ["c0", "c1"])
    with pytest.raises(LinkError):
        stream.link(weighted(("t001", "t002", "must", None)))
    assert stream.links is not None
    assert stream.links.columns()["weight"] == [2.0, None]


def test_a_stream_goes_on_with_links_of_its_model(tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(crowd().responses, links=some_links())
    stream = Stream(model)
    stream.link(some_links())
    assert len(stream.links or ()) == len(model.links_ or ())
    assert json.dumps(stream.notes())
