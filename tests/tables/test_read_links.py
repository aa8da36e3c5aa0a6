"""Links: words for must and cannot, weights, who."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tables.crowd import links_of
from tables.said import noted, refused

from tiebreak.errors import LinkError
from tiebreak.tables import read_links


def _links(words: Any) -> Any:
    n = len(words)
    left, right = [f"a{i}" for i in range(n)], [f"b{i}" for i in range(n)]
    return {"left": left, "right": right, "link": words}


def _file(folder: Path, text: str) -> Path:
    path = folder / "links.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("words", [["must", "cannot"], ["MUST", "Cannot"], [" must ", "cannot\t"]])
def test_must_and_cannot_are_not_worth_a_word(words: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_links(_links(words)).must.tolist() == [True, False]


@pytest.mark.parametrize(
    "words",
    [
        ["must-link", "cannot-link"],
        ["must_link", "cannot_link"],
        ["Must Link", "Cannot Link"],
        ["same", "different"],
        ["ML", "CL"],
        ["+1", "-1"],
        ["1", "-1"],
        ["1.0", "-1.0"],
        ["true", "False"],
        [1, -1],
        [1.0, -1.0],
        pd.Series([1, -1]),
    ],
    ids=repr,
)
def test_other_words_are_translated_and_said(words: Any) -> None:
    with noted("links-words-read"):
        assert read_links(_links(words)).must.tolist() == [True, False]


@pytest.mark.parametrize("link", [[True, False], pd.Series([True, False])], ids=repr)
def test_booleans_need_no_translation(link: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_links(_links(link)).must.tolist() == [True, False]


def test_one_other_word_among_many_is_said() -> None:
    with noted("links-words-read", name=""):
        assert read_links(_links(["must", "same", "cannot"])).must.tolist() == [True, True, False]


@pytest.mark.parametrize("word", ["maybe", "0", "2", "-", "- 1", "m", "link"])
def test_any_other_word_is_an_error_with_its_line(tmp_path: Path, word: str) -> None:
    text = f"left,right,link\na,b,must\n\nc,d,{word}\ne,f,\n"
    places = f"{word!r} ({tmp_path}/links.csv, line 4); nothing ({tmp_path}/links.csv, line 5)"
    with refused("links-odd-word", LinkError, n=2, shown=places):
        read_links(_file(tmp_path, text))


@pytest.mark.parametrize("words", [[1, 0], [None, 1], [float("nan"), 1]])
def test_other_values_are_errors_too(words: list[Any]) -> None:
    with refused("links-odd-word", LinkError, n=1):
        read_links(_links(words))


def test_only_the_first_offenders_are_shown() -> None:
    with refused(
        "links-odd-word", LinkError, n=5, shown="'x' (row 1); 'x' (row 2); 'x' (row 3); …"
    ):
        read_links(_links(["x"] * 5))


def test_weights_and_sources_are_read(tmp_path: Path) -> None:
    text = "left,right,link,weight,who\na,b,must,2.5,ann\nb,c,cannot,,\nc,d,must,1e-3,bob\n"
    assert links_of(read_links(_file(tmp_path, text))) == [
        ("a", "b", True, 2.5, "ann"),
        ("b", "c", False, None, None),
        ("c", "d", True, 0.001, "bob"),
    ]


@pytest.mark.parametrize("weights", [["1", "2"], [" 1", "2 "], [1, 2], [1.0, 2.0]])
def test_weights_may_be_text_or_numbers(weights: list[Any]) -> None:
    links = read_links({**_links(["must", "cannot"]), "weight": weights})
    assert links.weight is not None
    assert links.weight.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("weights", [["", ""], [None, None], [float("nan")] * 2])
def test_a_column_without_weights_is_none(weights: list[Any]) -> None:
    assert read_links({**_links(["must", "cannot"]), "weight": weights}).weight is None


@pytest.mark.parametrize("weight", ["0", "-1.5", "inf", "-inf", "nan", "heavy", "1,5", "true"])
def test_a_wrong_weight_is_named_by_its_line(tmp_path: Path, weight: str) -> None:
    text = f'left,right,link,weight\n\na,b,must,1\nc,d,must,"{weight}"\n'
    place = f"{weight!r} ({tmp_path}/links.csv, line 4)"
    with refused("links-odd-weight", LinkError, n=1, shown=place):
        read_links(_file(tmp_path, text))


@pytest.mark.parametrize("weight", [0, -1.0, float("inf"), True, "x", [1]])
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_wrong_typed_weight_is_refused(weight: Any, make: Any) -> None:
    code = "no-id" if weight == [1] else "links-odd-weight"
    with refused(code):
        read_links(make({**_links(["must"]), "weight": [weight]}))


def test_rows_may_have_a_weight_and_a_source() -> None:
    rows: list[Any] = [("a", "b", "must"), ("b", "c", "cannot", 2.0), ("c", "d", "must", 3, "ann")]
    assert links_of(read_links(rows)) == [
        ("a", "b", True, None, None),
        ("b", "c", False, 2.0, None),
        ("c", "d", True, 3.0, "ann"),
    ]


def test_a_link_without_a_task_names_its_line(tmp_path: Path) -> None:
    with refused("links-no-task", LinkError, place="links.csv, line 3"):
        read_links(_file(tmp_path, "left,right,link\na,b,must\n,b,must\n"))
