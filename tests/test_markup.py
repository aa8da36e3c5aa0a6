"""Markup: whatever comes in as text comes out as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.markup import Markup, clip, escape, join, printable, tag

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tiebreak"
TEXTS = st.text(max_size=40)
HOSTILE = "<script>alert(1)</script>\"'&amp;<!--"


class _Reader(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> _Reader:
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(TEXTS, TEXTS)
def test_text_and_attributes_come_back_as_they_went_in(text: str, value: str) -> None:
    found = read(tag("p", text, title=value))
    assert found.tags == ["p"]
    assert found.text == printable(text)
    assert found.attributes == [("title", printable(value))]


@given(TEXTS, TEXTS)
def test_an_element_is_well_formed_xml_too(text: str, value: str) -> None:
    element = ElementTree.fromstring(tag("g", tag("text", text), class_=value))
    read_back = "".join(element.itertext())
    # XML reads a carriage return as a line feed; there is none left to read.
    assert read_back == printable(text)


@given(TEXTS)
def test_what_is_printable_can_be_written_as_utf_8(text: str) -> None:
    printable(text + "\ud800\x00").encode()


@pytest.mark.parametrize("made", [escape(HOSTILE), join([HOSTILE]), tag("b", HOSTILE)])
def test_no_script_gets_through(made: Markup) -> None:
    assert "script" not in read(made).tags
    assert HOSTILE in read(made).text


def test_markup_is_not_escaped_twice_and_none_is_left_out() -> None:
    assert tag("p", tag("b", "x"), None) == "<p><b>x</b></p>"
    assert join(["<", Markup("<br>"), None], ", ") == "&lt;, <br>"


def test_attributes_that_are_none_or_false_are_left_out_and_true_stands_bare() -> None:
    assert tag("details", open=True, id=None, hidden=False) == "<details open></details>"


def test_a_name_of_an_attribute_cannot_carry_a_script() -> None:
    with pytest.raises(ValueError, match="not the name of an attribute"):
        tag("p", **{"x onload=alert(1)": "y"})


@given(st.text(max_size=200), st.integers(2, 30))
def test_clipped_text_is_short_and_on_one_line(text: str, most: int) -> None:
    short = clip(text, most)
    assert len(short) <= most
    assert "\n" not in short


def test_nothing_else_in_the_package_escapes_by_itself() -> None:
    users = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^(import html|from html import)", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert users == ["markup.py"]
