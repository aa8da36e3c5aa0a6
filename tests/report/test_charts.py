"""Charts: well-formed pictures with a title, a description and the same numbers as a table."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.report import charts
from tiebreak.wording import clip, printable

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>\"'&"

CHARTS = {
    "bars": charts.bars(("Bars", "Some."), ("name", "n"), [(HOSTILE, "3"), ("b", "0")], [3.0, 0.0]),
    "histogram": charts.histogram(
        ("Histogram", "Some."), ("x", "n"), [0.0, 0.5, 1.0], [3, 0], mark=(0.5, "here")
    ),
    "balance": charts.balance(
        ("Balance", "Some."), ("vote", "favours"), [(HOSTILE, "×7.4"), ("b", "÷2.7"), ("c", "×1")],
        [2.0, -1.0, 0.0], sides=(HOSTILE, "right"),
    ),
    "intervals": charts.intervals(
        ("Intervals", "Some."), ("name", "value"), [(HOSTILE, "0.5")], [(0.5, 0.2, 0.7)],
        axis=("share", 0.3, "guessing"),
    ),
    "heat_map": charts.heat_map(
        ("Heat", "Some."), ("true", "true", "says"), [HOSTILE, "b"], [[0.9, 0.1], [None, -0.25]]
    ),
    "line": charts.line(("Line", "Some."), ("x", "y"), [("0", "−3")], [(0.0, -3.0), (1.0, -2.0)]),
    "calibration": charts.calibration(
        [{"stated": 0.8, "right": 0.7, "low": 0.6, "high": 0.9, "n": 10}], 10
    ),
    "readers": charts.readers_of_scale(
        {"values": [1.0, 2.0, 3.0], "middle": 2.0, "step": 1.0, "n_readers": 2, "readers": [
            {"worker": HOSTILE, "bias": 0.5, "gain": 0.8, "blur": 0.3, "lapse": 0.1},
            {"worker": "b", "bias": -0.5, "gain": 1.2, "blur": 0.3, "lapse": 0.1},
        ]}
    ),
}  # fmt: skip


@pytest.fixture(params=list(CHARTS.values()), ids=list(CHARTS))
def chart(request: pytest.FixtureRequest) -> charts.Chart:
    made: charts.Chart = request.param
    return made


def test_a_picture_is_well_formed_and_says_what_it_is(chart: charts.Chart) -> None:
    root = ElementTree.fromstring(chart.svg("key"))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "key-title key-desc"
    assert [each.text for each in root.findall(f"{SVG}title")] == [chart.title]
    assert [each.text for each in root.findall(f"{SVG}desc")] == [chart.description]


def test_a_picture_has_neither_script_nor_inline_style(chart: charts.Chart) -> None:
    root = ElementTree.fromstring(chart.svg())
    for element in root.iter():
        assert not element.tag.endswith(("script", "style", "foreignObject", "a", "image", "use"))
        assert not [name for name in element.attrib if name == "style" or name.startswith("on")]


def test_nothing_is_drawn_outside_the_picture(chart: charts.Chart) -> None:
    root = ElementTree.fromstring(chart.svg())
    for element in root.iter():
        for name, most in (("x", chart.width), ("y", chart.height), ("cx", chart.width)):
            if name in element.attrib:
                assert 0.0 <= float(element.attrib[name]) <= most
        assert not any(value in ("nan", "inf", "-inf") for value in element.attrib.values())


def test_a_figure_has_the_numbers_as_a_table(chart: charts.Chart) -> None:
    found = ElementTree.fromstring(chart.html())
    table = found.find(".//table")
    assert table is not None
    head = [each.text for each in table.findall("./thead/tr/th")]
    assert head == list(chart.header)
    cells = [[cell.text or "" for cell in row] for row in table.findall("./tbody/tr")]
    assert cells == [[str(cell) for cell in row] for row in chart.rows]


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_chart_can_be_saved(chart: charts.Chart, ending: str, tmp_path: Path) -> None:
    chart.save(tmp_path / f"chart.{ending}")
    text = (tmp_path / f"chart.{ending}").read_text("utf-8")
    assert "<script" not in text
    if ending == "svg":
        root = ElementTree.fromstring(text)
        assert root.find(f"{SVG}style") is not None  # its colours travel with it


def test_notebooks_show_a_chart_by_itself(chart: charts.Chart) -> None:
    assert chart._repr_svg_().startswith("<svg")
    assert "<table" in chart._repr_html_()


def test_numbers_of_a_heat_map_stand_in_its_cells() -> None:
    texts = [each.text for each in ElementTree.fromstring(CHARTS["heat_map"].svg()).iter()]
    assert {"0.90", "0.10", "–", "−0.25"} <= set(texts)


@given(
    st.floats(-1e12, 1e12, allow_nan=False),
    st.floats(1e-9, 1e12, allow_nan=False),
    st.integers(2, 10),
)
def test_ticks_are_few_sorted_and_inside(low: float, width: float, about: int) -> None:
    high = low + width
    ticks = charts.round_ticks(low, high, about)
    assert len(ticks) <= 2 * about + 2
    assert ticks == sorted(ticks)
    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= tick <= high + slack and math.isfinite(tick) for tick in ticks)


@given(st.text(max_size=200), st.integers(2, 30))
def test_clipped_text_is_short_printable_and_on_one_line(text: str, most: int) -> None:
    short = clip(text + "\ud800\x00", most)
    assert len(short) <= most
    assert "\n" not in short
    printable(short).encode()


# Colours: text can be read on every ground that charts put it on, light and dark


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def palettes() -> dict[str, dict[str, tuple[float, ...]]]:
    """Return the colours of the stylesheet, light, dark and in print."""
    blocks = re.findall(r"\{([^{}]*--tb-page[^{}]*)\}", charts.stylesheet())
    return {
        name: {
            key: tuple(int(hexa[at : at + 2], 16) / 255 for at in (0, 2, 4))
            for key, hexa in re.findall(r"--tb-([a-z-]+): #([0-9a-f]{6})", block)
        }
        for name, block in zip(("light", "dark", "print"), blocks, strict=True)
    }


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_words_can_be_read_on_their_ground(scheme: str) -> None:
    colours = palettes()[scheme]
    for ground in ("page", "surface"):
        for words in ("text", "muted", "accent", "low", "good"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
@pytest.mark.parametrize("heat", ["heat", "heat-other"])
def test_numbers_can_be_read_on_every_cell(scheme: str, heat: str) -> None:
    colours = palettes()[scheme]
    for step in range(11):
        share = charts.DARKEST * step / 10
        cell = tuple(
            share * over + (1 - share) * under
            for over, under in zip(colours[heat], colours["surface"], strict=True)
        )
        assert contrast(colours["text"], cell) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_bars_and_dots_stand_out_from_their_ground(scheme: str) -> None:
    colours = palettes()[scheme]
    for mark in ("accent", "low"):
        assert contrast(colours[mark], colours["surface"]) >= 3.0
