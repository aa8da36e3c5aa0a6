"""Charts: inline SVG with a title, a description and the same numbers as a table.

A chart is made from plain numbers and knows nothing of models. It has neither script nor inline
style, so that a strict Content-Security-Policy lets it pass; its colours come from `charts.css`, by
class, and follow the page into dark mode.

>>> chart = bars("Labels", "How often each was given.", ("label", "given"), ["cat"], [3.0])
>>> "<title" in chart.svg() and "<table" in chart.html()
True
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from tiebreak.errors import OptionError
from tiebreak.tables.write import open_target
from tiebreak.templating import environment, markdown
from tiebreak.wording import counted, printable

__all__ = [
    "Chart",
    "Whisker",
    "against_diagonal",
    "balance",
    "bars",
    "clip",
    "heat_map",
    "histogram",
    "intervals",
    "line",
    "number",
    "percent",
    "stylesheet",
    "table",
]

WIDTH = 860.0
NARROW = 440.0  # wider charts keep their width on a phone, and are scrolled there
ROW = 24.0  # height of a row of bars
CHARACTER = 6.7  # pixels, at the size of labels: a little more than most need
LONGEST_NAME = 26  # characters beside a bar; the table has more
DARKEST = 0.6  # share of colour in a cell: numbers on it stay readable, light and dark
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # between ticks, times a power of ten
ENDINGS = (".svg", ".html")

Row = Sequence[object]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture, and the same numbers as a table.

    Notebooks show it by itself; `save` writes it as .svg or .html; `svg()` and `html()` are its
    markup for a page that has the stylesheet.
    """

    title: str
    description: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...] = field(repr=False)
    drawing: Markup = field(repr=False)
    width: float
    height: float

    def svg(self, key: str | None = None, *, alone: bool = False) -> Markup:
        """Return the picture; `key` begins the ids of its title and description on the page.

        `alone`: with its colours inside, for a file of its own.
        """
        key = key or f"tb-{zlib.crc32((self.title + self.drawing).encode()):08x}"
        kind = "tb-chart tb-wide" if self.width > NARROW else "tb-chart"
        inside = Markup()
        if alone:
            inside = Markup("<style>") + stylesheet() + Markup("</style>")
            inside += Markup('<rect width="100%" height="100%" class="tb-ground"/>')
        return Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            'width="{width:g}" height="{height:g}" class="{kind}" role="img" '
            'aria-labelledby="{key}-title {key}-desc"><title id="{key}-title">{title}</title>'
            '<desc id="{key}-desc">{description}</desc>{inside}{drawing}</svg>'
        ).format(
            width=self.width,
            height=self.height,
            kind=kind,
            key=key,
            title=self.title,
            description=self.description,
            inside=inside,
            drawing=self.drawing,
        )

    def html(self, key: str | None = None) -> Markup:
        """Return a figure: title, picture, description, and the numbers to unfold."""
        return Markup(_macros().figure(self, key))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file of its own: .svg, or .html with its numbers."""
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise OptionError("chart-ending", path=str(path), endings=" or ".join(ENDINGS))
        text = self._repr_svg_() if ending == ".svg" else self._page()
        with open_target(path) as out:
            out.write(text.encode())

    def _repr_svg_(self) -> str:
        return self.svg(alone=True) + "\n"

    def _repr_html_(self) -> str:
        return str(_macros().notebook(self, stylesheet()))

    def _page(self) -> str:
        return templates().get_template("chart.html").render(chart=self, style=stylesheet())


class Whisker(NamedTuple):
    """A point with an interval, and how many things it stands for."""

    x: float
    y: float
    low: float
    high: float
    n: int


class Number(str):
    """A number as it is written: in a table it stands to the right, which ids do not."""

    __slots__ = ()


class Scale(NamedTuple):
    """Maps low to start and high to end, evenly."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a number."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


def histogram(
    title: str,
    description: str,
    header: tuple[str, str],
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    mark: float | None = None,
    mark_text: str = "",
) -> Chart:
    """Draw how many things fall between edges; bars below `mark` stand out.

    >>> chart = histogram("Ages", "Of cats.", ("age", "cats"), [0, 1, 2], [5, 7])
    >>> chart.rows
    (('0 to 1', '5'), ('1 to 2', '7'))
    """
    height, right = 250.0, WIDTH - 14.0
    ticks = round_ticks(0.0, max([*counts, 1]), 4)
    left = 18.0 + width_of([tick_text(tick) for tick in ticks])
    x = Scale(edges[0], edges[-1], left, right)
    y = Scale(0.0, max([*counts, 1]), height - 44.0, 24.0)
    parts = _across(left, right, y, ticks)
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        kind = "tb-bar tb-low" if mark is not None and high <= mark + 1e-9 else "tb-bar"
        top = min(y.at(count), y.start - 1.5) if count else y.start
        gap = min(1.0, (x.at(high) - x.at(low)) / 8.0)
        wide = x.at(high) - x.at(low) - 2 * gap
        parts.append(_box(x.at(low) + gap, top, wide, y.start - top, kind))
    parts.append(_segment(left, y.start, right, y.start, "tb-axis"))
    for tick in round_ticks(edges[0], edges[-1], 6):
        parts.append(_text(x.at(tick), height - 26.0, tick_text(tick), anchor="middle"))
    parts.append(_text((x.start + x.end) / 2.0, height - 8.0, header[0], "tb-muted", "middle"))
    parts.append(_text(left, 13.0, header[1], "tb-muted"))
    if mark is not None:
        parts.append(_segment(x.at(mark), 18.0, x.at(mark), y.start, "tb-mark"))
        parts.append(_text(x.at(mark) - 6.0, 13.0, mark_text, "tb-muted", "end"))
    rows = [
        (f"{low:.4g} to {high:.4g}", number(int(count)))
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    return _chart(title, description, header, rows, parts, WIDTH, height)


def bars(
    title: str,
    description: str,
    header: tuple[str, ...],
    names: Sequence[str],
    values: Sequence[float],
    *,
    shown: Sequence[str] | None = None,
    rows: Sequence[Row] | None = None,
) -> Chart:
    """Draw one bar for each name, with its number at the end."""
    labels = [str(number(value, 0)) for value in values] if shown is None else list(shown)
    short = [clip(name, LONGEST_NAME) for name in names]
    left = 18.0 + width_of(short)
    x = Scale(0.0, max([*values, 1e-12]), left, WIDTH - 24.0 - width_of(labels))
    parts = []
    for at, (name, value, label) in enumerate(zip(short, values, labels, strict=True)):
        top = 6.0 + ROW * at
        length = max(x.at(value) - left, 1.5 if value > 0 else 0.0)
        parts.append(_text(left - 8.0, top + 15.5, name, anchor="end"))
        parts.append(_box(left, top + 3.0, length, ROW - 7.0, "tb-bar"))
        parts.append(_text(left + length + 6.0, top + 15.5, label, "tb-muted"))
    height = 12.0 + ROW * len(names)
    parts.append(_segment(left, 6.0, left, height - 6.0, "tb-axis"))
    behind = list(zip(names, labels, strict=True)) if rows is None else rows
    return _chart(title, description, header, behind, parts, WIDTH, height)


def balance(
    title: str,
    description: str,
    header: tuple[str, ...],
    names: Sequence[str],
    values: Sequence[float],
    *,
    shown: Sequence[str],
    sides: tuple[str, str],
) -> Chart:
    """Draw numbers to both sides of a middle line, narrow enough for a phone: below 0 left."""
    width, tall, middle = 340.0, 42.0, 170.0
    most = max([*map(abs, values), 1e-12])
    parts = [
        _text(middle - 8.0, 13.0, f"← {clip(sides[0], 20)}", "tb-muted", "end"),
        _text(middle + 8.0, 13.0, f"{clip(sides[1], 20)} →", "tb-muted"),
    ]
    for at, (name, value, label) in enumerate(zip(names, values, shown, strict=True)):
        top = 24.0 + tall * at
        length = 118.0 * abs(value) / most
        end, anchor = (
            (middle + length + 6.0, None) if value >= 0 else (middle - length - 6.0, "end")
        )
        kind = "tb-bar" if value >= 0.0 else "tb-bar tb-low"
        parts.append(_text(4.0, top + 11.0, clip(name, 48)))
        parts.append(
            _box(middle - (length if value < 0.0 else 0.0), top + 20.0, length, 13.0, kind)
        )
        parts.append(_text(end, top + 31.0, label, "tb-muted", anchor))
        parts.append(_segment(middle, top + 18.0, middle, top + 35.0, "tb-axis"))
    height = 30.0 + tall * len(names)
    rows = list(zip(names, map(Number, shown), strict=True))
    return _chart(title, description, header, rows, parts, width, height)


def intervals(
    title: str,
    description: str,
    header: tuple[str, ...],
    names: Sequence[str],
    estimates: Sequence[tuple[float, float, float]],
    *,
    rows: Sequence[Row],
    axis: str,
    mark: float | None = None,
    mark_text: str = "",
    stands_out: Sequence[bool] | None = None,
) -> Chart:
    """Draw (low, middle, high) of each name between 0 and 1; `mark` is a line to compare with."""
    short = [clip(name, LONGEST_NAME) for name in names]
    left = 22.0 + width_of(short)
    shown = [f"{100 * middle:.0f} %" for _, middle, _ in estimates]
    x = Scale(0.0, 1.0, left, WIDTH - 20.0 - width_of(shown))
    height = 64.0 + ROW * len(names)
    bottom = height - 40.0
    parts = []
    for tick in round_ticks(0.0, 1.0, 5):
        parts.append(_segment(x.at(tick), 20.0, x.at(tick), bottom, "tb-grid"))
        parts.append(_text(x.at(tick), bottom + 17.0, tick_text(tick), anchor="middle"))
    parts.append(_text((x.start + x.end) / 2.0, height - 6.0, axis, "tb-muted", "middle"))
    if mark is not None:
        parts.append(_segment(x.at(mark), 18.0, x.at(mark), bottom, "tb-mark"))
        anchor = "middle" if 0.1 < mark < 0.9 else "start" if mark <= 0.1 else "end"
        parts.append(_text(x.at(mark), 13.0, mark_text, "tb-muted", anchor))
    for at, (name, (low, middle, high)) in enumerate(zip(short, estimates, strict=True)):
        y = 24.0 + ROW * at + ROW / 2.0
        kind = " tb-low" if stands_out is not None and stands_out[at] else ""
        parts.append(_text(left - 10.0, y + 4.0, name, anchor="end"))
        parts.append(_segment(x.at(low), y, x.at(high), y, f"tb-whisker{kind}"))
        parts.append(_dot(x.at(middle), y, 5.0, kind))
        parts.append(_text(WIDTH - 8.0, y + 4.0, shown[at], "tb-muted", "end"))
    return _chart(title, description, header, rows, parts, WIDTH, height)


def heat_map(
    title: str,
    description: str,
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    corner: str,
    row_title: str,
    column_title: str,
    diagonal: bool = True,
) -> Chart:
    """Draw rows by columns of numbers from −1 to 1.

    Cells on the diagonal have one colour and the others another, or, without `diagonal`, numbers
    above 0 and below it.
    """
    short = [clip(name, 16) for name in names]
    heads = [clip(name, 10) for name in names]
    wide = max(46.0, 10.0 + width_of(heads))
    tall = 28.0
    left = 26.0 + width_of([*short, row_title])
    parts = [_text(left, 13.0, column_title, "tb-muted"), _text(8.0, 31.0, row_title, "tb-muted")]
    for at, head in enumerate(heads):
        parts.append(_text(left + wide * (at + 0.5), 31.0, head, anchor="middle"))
    for i, row in enumerate(values):
        y = 38.0 + tall * i
        parts.append(_text(left - 8.0, y + 18.0, short[i], anchor="end"))
        for j, value in enumerate(row):
            is_first = i == j if diagonal else (value or 0.0) > 0.0
            colour = "tb-heat" if is_first else "tb-heat-other"
            strength = 0.0 if value is None else min(abs(value), 1.0) * DARKEST
            place = (left + wide * j + 1.0, y + 1.0, wide - 2.0, tall - 2.0)
            parts.append(_box(*place, "tb-cell"))
            parts.append(_box(*place, colour, strength))
            parts.append(
                _text(left + wide * (j + 0.5), y + 18.5, number(value, 2), anchor="middle")
            )
    rows = [
        (name, *(number(value, 2) for value in row))
        for name, row in zip(names, values, strict=True)
    ]
    width = left + wide * len(names) + 12.0
    height = 46.0 + tall * len(values)
    return _chart(title, description, (corner, *names), rows, parts, width, height)


def line(
    title: str,
    description: str,
    header: tuple[str, str],
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    rows: Sequence[Row],
) -> Chart:
    """Draw a line through points, with a dot at its end."""
    height, right = 260.0, WIDTH - 14.0
    low, high = _widened(min(ys), max(ys), 0.01)
    ticks = round_ticks(low, high, 4)
    left = 18.0 + width_of([tick_text(tick) for tick in ticks])
    x = Scale(*_widened(min(xs), max(xs), 1.0), left + 6.0, WIDTH - 20.0)
    y = Scale(low, high, height - 44.0, 26.0)
    parts = _across(left, right, y, ticks)
    parts.append(_segment(left, y.start, right, y.start, "tb-axis"))
    for tick in round_ticks(min(xs), max(xs), 6):
        if tick == round(tick):
            parts.append(_text(x.at(tick), height - 26.0, tick_text(tick), anchor="middle"))
    points = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in zip(xs, ys, strict=True))
    parts.append(Markup('<polyline points="{}" class="tb-line"/>').format(points))
    parts.append(_dot(x.at(xs[-1]), y.at(ys[-1]), 4.5))
    parts.append(_text((x.start + x.end) / 2.0, height - 8.0, header[0], "tb-muted", "middle"))
    parts.append(_text(left, 13.0, header[1], "tb-muted"))
    return _chart(title, description, header, rows, parts, WIDTH, height)


def against_diagonal(
    title: str,
    description: str,
    header: tuple[str, ...],
    points: Sequence[Whisker],
    *,
    rows: Sequence[Row],
    axes: tuple[str, str],
) -> Chart:
    """Draw points with intervals beside the line on which x and y are equal, from 0 to 1."""
    side = 380.0
    x = Scale(0.0, 1.0, 52.0, side - 16.0)
    y = Scale(0.0, 1.0, side - 48.0, 26.0)
    parts = _across(x.start, x.end, y, round_ticks(0.0, 1.0, 5))
    for tick in round_ticks(0.0, 1.0, 5):
        parts.append(_text(x.at(tick), y.start + 18.0, tick_text(tick), anchor="middle"))
    parts.append(_segment(x.start, y.start, x.end, y.end, "tb-mark"))
    most = max((point.n for point in points), default=1)
    for point in points:
        at = x.at(point.x)
        parts.append(_segment(at, y.at(point.low), at, y.at(point.high), "tb-whisker"))
        parts.append(_dot(at, y.at(point.y), 3.0 + 6.0 * (point.n / most) ** 0.5))
    parts.append(_text((x.start + x.end) / 2.0, side - 10.0, axes[0], "tb-muted", "middle"))
    parts.append(_text(14.0, 13.0, axes[1], "tb-muted"))
    return _chart(title, description, header, rows, parts, side, side)


def table(
    caption: str, header: Sequence[object], rows: Sequence[Row], *, shows_caption: bool = True
) -> Markup:
    """Return a table whose first column names the rows; numbers stand to the right."""
    return Markup(_macros().table(caption, header, rows, shows_caption))


def number(value: float | None, digits: int = 3) -> Number:
    """Write a number for a cell; what is not known is a dash.

    >>> number(0.12345), number(1234), number(None), number(-0.5)
    ('0.123', '1,234', '–', '−0.500')
    """
    if value is None or value != value:
        return Number("–")
    text = f"{value:,d}" if isinstance(value, int) else f"{value:,.{digits}f}"
    return Number(text.replace("-", "−"))


def percent(share: float | None, digits: int = 1) -> Number:
    """Write a share; the space before the sign does not break.

    >>> percent(0.123).split(), percent(None)
    (['12.3', '%'], '–')
    """
    if share is None or share != share:
        return Number("–")
    return Number(f"{100.0 * share:.{digits}f}\N{NO-BREAK SPACE}%")


def clip(value: object, most: int) -> str:
    """Return a value as text on one line, of at most so many characters.

    >>> clip("a long name", 7)
    'a long…'
    """
    text = " ".join(printable(str(value)[: 4 * most + 4]).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


@cache
def stylesheet(name: str = "charts") -> Markup:
    """Return the style of charts and tables, light and dark, or of the report around them."""
    style = resources.files("tiebreak.report").joinpath(f"{name}.css")
    return Markup(style.read_text("utf-8"))


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from low to high, about so many.

    >>> round_ticks(0.0, 97.0)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((s * power for s in STEPS if s * power >= raw * 0.999), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Write a number on an axis.

    >>> tick_text(2500.0), tick_text(0.25), tick_text(-1.2e7)
    ('2,500', '0.25', '−12,000,000')
    """
    text = f"{value:,.0f}" if value == round(value) else f"{value:,.12g}"
    return text.replace("-", "−")


def width_of(texts: Sequence[str]) -> float:
    """Return about how wide a column of labels is; East Asian characters are twice as wide."""
    cells = (sum(2 if ord(each) > 0x2E7F else 1 for each in text) for text in texts)
    return CHARACTER * max(cells, default=0)


def _widened(low: float, high: float, least: float) -> tuple[float, float]:
    """Return the ends, at least so far apart."""
    missing = max(least - (high - low), 0.0)
    return low - missing / 2.0, high + missing / 2.0


def _chart(
    title: str,
    description: str,
    header: Sequence[str],
    rows: Sequence[Row],
    parts: list[Markup],
    width: float,
    height: float,
) -> Chart:
    kept = tuple(tuple(row) for row in rows)
    return Chart(title, description, tuple(header), kept, Markup().join(parts), width, height)


def _across(left: float, right: float, y: Scale, ticks: Sequence[float]) -> list[Markup]:
    """Draw the lines of a grid and its numbers, at the left."""
    lines = [_segment(left, y.at(tick), right, y.at(tick), "tb-grid") for tick in ticks]
    words = [_text(left - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end") for tick in ticks]
    return lines + words


def _text(x: float, y: float, words: str, kind: str = "", anchor: str | None = None) -> Markup:
    classes = f"tb-text {kind}".strip()
    at = f' text-anchor="{anchor}"' if anchor else ""
    return Markup(f'<text x="{x:g}" y="{y:g}" class="{classes}"{at}>{escape(words)}</text>')


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>')


def _box(
    x: float, y: float, width: float, height: float, kind: str, opacity: float | None = None
) -> Markup:
    faint = "" if opacity is None else f' fill-opacity="{opacity:.3g}"'
    place = f'x="{x:g}" y="{y:g}" width="{max(width, 0.0):g}" height="{max(height, 0.0):g}"'
    return Markup(f'<rect {place} class="{kind}" rx="2"{faint}/>')


def _dot(x: float, y: float, radius: float, kind: str = "") -> Markup:
    return Markup(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.3g}" class="tb-dot{kind}"/>')


@cache
def templates() -> jinja2.Environment:
    """Return the templates of this package, with the ways to write numbers."""
    made = environment("tiebreak.report")
    made.tests["right"] = lambda cell: isinstance(cell, Number)
    made.filters |= {"counted": counted, "quoted": _quoted}
    made.globals |= {
        "between": lambda low, high, digits=3: Number(
            "–"
            if low is None or high is None
            else f"{number(low, digits)} to {number(high, digits)}"
        ),
        "number": number,
        "percent": percent,
        "right": Number,
        "shown": lambda rows, n: f"{len(rows):,} of {n:,}" if len(rows) < n else f"all {n:,}",
        "signed": lambda value: Number("–" if value is None else f"{value:+.2f}".replace("-", "−")),
    }
    return made


def _quoted(text: str) -> Markup:
    """Return Markdown as HTML whose headings are none of the page's."""
    made = re.sub("<h[1-6]>", "<p><strong>", markdown(text))
    return Markup(re.sub("</h[1-6]>", "</strong></p>", made))


def _macros() -> Any:
    return templates().get_template("charts.html").module
