"""How links came about: pairs that were asked, or duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tables.said import noted

import tiebreak as tb
from tiebreak.data import Gold
from tiebreak.errors import OptionError
from tiebreak.links import Links


def copies(links: Links) -> list[bool]:
    return [False] * len(links) if links.duplicate is None else links.duplicate.tolist()


def test_a_source_without_cannot_links_gives_duplicates() -> None:
    who = ["ann", "ann", "bob"]
    with noted("links-taken-for-duplicates", n=1):
        links = Links.from_columns("abc", "bcd", [True, False, True], who=who)
    assert copies(links) == [False, False, True]


@pytest.mark.parametrize(("sampling", "expected"), [("pairs", False), ("duplicates", True)])
def test_the_user_says_how_links_came_about(sampling: Any, expected: bool) -> None:
    links = Links.from_columns("ab", "bc", [True, True], sampling=sampling)
    assert copies(links) == [expected] * 2
    with pytest.raises(OptionError, match="sampling"):
        Links.from_columns("ab", "bc", [True, True], sampling="both")  # type: ignore[arg-type]


def test_the_word_duplicate_says_it_beside_other_links() -> None:
    links = Links.from_columns("abc", "bcd", ["duplicate", "must", "cannot"])
    assert copies(links) == [True, False, False]


@pytest.mark.parametrize("sampling", ["pairs", "duplicates"])
@pytest.mark.filterwarnings("ignore:.*read link 'same' as must")
def test_sampling_survives_a_file(tmp_path: Path, sampling: Any) -> None:
    links = Links.from_columns("abc", "bcd", [True, True, True], sampling=sampling)
    links.write(tmp_path / "links.csv")
    assert copies(tb.read_links(tmp_path / "links.csv")) == copies(links)


def test_links_from_gold_are_pairs() -> None:
    assert copies(Links.from_gold(Gold.from_dict({"a": 0, "b": 0, "c": 0}))) == [False, False]
