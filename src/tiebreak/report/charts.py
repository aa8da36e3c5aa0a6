"""Charts: inline SVG with a title, a description and the same numbers as a table.

A chart is made from plain numbers and knows nothing of models. It has neither script nor inline
style, so that a strict Content-Security-Policy lets it pass; its colours come from `charts.css`, by
class, and follow the page into dark mode.

>>> words = ("Labels", "How often each was given.")
>>> chart = bars(words, ("label", "given"), [("cat", 3)], [3.0])
>>> "<title" in chart.svg() and "<table" in chart.html()
True
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from tiebreak.errors import OptionError
from tiebreak.tables.write import open_target
from tiebreak.templating import environment, markdown
from tiebreak.wording import counted, printable

WIDTH = 860.0
NARROW = 440.0  # wider charts keep their width on a phone, and are scrolled there
ROW = 24.0  # height of a row of bars
CHARACTER = 6.7  # pixels, at the size of labels: a little more than most need
LONGEST_NAME = 26  # characters beside a bar; the table has more
DARKEST = 0.6  # share of colour in a cell: numbers on it stay readable, light and dark
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # between ticks, times a power of ten
ENDINGS = (".svg", ".html")

Row = Sequence[object]
Words = tuple[str, str]  # title and description of a chart


Mark = tuple[str, dict[str, object], str]  # an element of a picture: tag, attributes, words


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
    marks: list[Mark] = field(repr=False)
    width: float
    height: float

    def svg(self, key: str | None = None, *, alone: bool = False) -> Markup:
        """Return the picture; `key` begins the ids of its title and description on the page.

        `alone`: with its colours inside, for a file of its own.
        """
        key = key or f"tb-{zlib.crc32(f'{self.title}{self.marks}'.encode()):08x}"
        kind = "tb-chart tb-wide" if self.width > NARROW else "tb-chart"
        return Markup(_macros().svg(self, key, kind, stylesheet() if alone else None))

    def html(self, key: str | None = None) -> Markup:
        """Return a figure: title, picture, description, and the numbers to unfold."""
        return Markup(_macros().figure(self, key))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file of its own: .svg, or .html with its numbers."""
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise OptionError("chart-ending", path=str(path), endings=" or ".join(ENDINGS))
        text = self._repr_svg_()
        if ending == ".html":
            text = templates().get_template("chart.html").render(chart=self, style=stylesheet())
        with open_target(path) as out:
            out.write(text.encode())

    def _repr_svg_(self) -> str:
        return self.svg(alone=True) + "\n"

    def _repr_html_(self) -> str:
        return str(_macros().notebook(self, stylesheet()))


class Number(str):
    """A number as it is written: in a table it stands to the right, which ids do not."""

    __slots__ = ()


class Axis(NamedTuple):
    """Maps low to start and high to end, evenly."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a number."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


class _Drawing:
    """A picture that is being made; templates/charts.html writes its marks as SVG."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []

    def put(self, tag: str, kind: str, words: str = "", **attributes: object) -> None:
        """Add an element; attributes that are None are left out."""
        values = {
            name.replace("_", "-"): f"{value:g}" if isinstance(value, float) else value
            for name, value in attributes.items()
        }
        self.marks.append((tag, {"class": kind, **values}, words))

    def text(
        self, x: float, y: float, words: str, kind: str = "", anchor: str | None = None
    ) -> None:
        self.put("text", f"tb-text {kind}".strip(), words, x=x, y=y, text_anchor=anchor)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self.put("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def box(
        self, place: tuple[float, float, float, float], kind: str, opacity: float | None = None
    ) -> None:
        x, y, *size = place
        width, height = (max(each, 0.0) for each in size)
        faint = None if opacity is None else f"{opacity:.3g}"
        self.put("rect", kind, x=x, y=y, width=width, height=height, rx=2, fill_opacity=faint)

    def dot(self, x: float, y: float, radius: float, kind: str = "") -> None:
        self.put("circle", f"tb-dot{kind}", cx=x, cy=y, r=f"{radius:.3g}")

    def axes(
        self, x: Axis, y: Axis, x_ticks: list[float], y_ticks: list[float], names: Sequence[str]
    ) -> None:
        """Draw a grid with its numbers, and name both axes."""
        for tick in y_ticks:
            self.line(x.start, y.at(tick), x.end, y.at(tick), "tb-grid")
            self.text(x.start - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end")
        self.line(x.start, y.start, x.end, y.start, "tb-axis")
        for tick in x_ticks:
            self.text(x.at(tick), y.start + 18.0, tick_text(tick), anchor="middle")
        self.text((x.start + x.end) / 2.0, y.start + 36.0, names[0], "tb-muted", "middle")
        self.text(x.start, 13.0, names[1], "tb-muted")

    def chart(
        self, words: Words, header: Iterable[str], rows: Iterable[Row], width: float, height: float
    ) -> Chart:
        """Return the chart with this picture; `words` are its title and description."""
        table = tuple(tuple(row) for row in rows)
        return Chart(*words, tuple(header), table, self.marks, width, height)


def histogram(
    words: Words,
    header: tuple[str, str],
    edges: Sequence[float],
    counts: Sequence[int],
    mark: tuple[float, str] | None = None,
) -> Chart:
    """Draw how many things fall between edges; bars below `mark`, (number, name), stand out.

    >>> chart = histogram(("Ages", "Of cats."), ("age", "cats"), [0, 1, 2], [5, 7])
    >>> chart.rows
    (('0 to 1', '5'), ('1 to 2', '7'))
    """
    draw, height, most = _Drawing(), 250.0, max([*counts, 1])
    ticks = round_ticks(0.0, most, 4)
    x = Axis(edges[0], edges[-1], 18.0 + width_of(map(tick_text, ticks)), WIDTH - 14.0)
    y = Axis(0.0, most, height - 44.0, 24.0)
    draw.axes(x, y, round_ticks(edges[0], edges[-1], 6), ticks, header)
    bins = list(zip(edges, edges[1:], counts, strict=False))
    for low, high, count in bins:
        kind = "tb-bar tb-low" if mark is not None and high <= mark[0] + 1e-9 else "tb-bar"
        top = min(y.at(count), y.start - 1.5) if count else y.start
        wide = x.at(high) - x.at(low)
        gap = min(1.0, wide / 8.0)
        draw.box((x.at(low) + gap, top, wide - 2 * gap, y.start - top), kind)
    if mark is not None:
        at = x.at(mark[0])
        draw.line(at, 18.0, at, y.start, "tb-mark")
        draw.text(at - 6.0, 13.0, mark[1], "tb-muted", "end")
    rows = [(f"{low:.4g} to {high:.4g}", number(int(count))) for low, high, count in bins]
    return draw.chart(words, header, rows, WIDTH, height)


def bars(
    words: Words,
    header: Iterable[str],
    rows: Sequence[Row],
    values: Sequence[float],
    shown: Sequence[str] | None = None,
) -> Chart:
    """Draw one bar for each row, named by its first cell, with its number at the end."""
    labels = shown or [str(number(value, 0)) for value in values]
    names = [clip(row[0], LONGEST_NAME) for row in rows]
    left = 18.0 + width_of(names)
    x = Axis(0.0, max([*values, 1e-12]), left, WIDTH - 24.0 - width_of(labels))
    draw, height = _Drawing(), 12.0 + ROW * len(names)
    for at, (name, value, label) in enumerate(zip(names, values, labels, strict=True)):
        top = 6.0 + ROW * at
        length = max(x.at(value) - left, 1.5 if value > 0 else 0.0)
        draw.text(left - 8.0, top + 15.5, name, anchor="end")
        draw.box((left, top + 3.0, length, ROW - 7.0), "tb-bar")
        draw.text(left + length + 6.0, top + 15.5, label, "tb-muted")
    draw.line(left, 6.0, left, height - 6.0, "tb-axis")
    return draw.chart(words, header, rows, WIDTH, height)


def balance(
    words: Words,
    header: Iterable[str],
    rows: Sequence[tuple[str, str]],
    values: Sequence[float],
    sides: tuple[str, str],
) -> Chart:
    """Draw numbers to both sides of a middle line, narrow enough for a phone: below 0 left.

    `rows` are their names, and what is written beside them.
    """
    tall, middle, most = 42.0, 170.0, max([*map(abs, values), 1e-12])
    draw = _Drawing()
    draw.text(middle - 8.0, 13.0, f"← {clip(sides[0], 20)}", "tb-muted", "end")
    draw.text(middle + 8.0, 13.0, f"{clip(sides[1], 20)} →", "tb-muted")
    for at, ((name, label), value) in enumerate(zip(rows, values, strict=True)):
        top, length = 24.0 + tall * at, 118.0 * abs(value) / most
        is_left = value < 0.0
        draw.text(4.0, top + 11.0, clip(name, 48))
        start, kind = (middle - length, "tb-bar tb-low") if is_left else (middle, "tb-bar")
        draw.box((start, top + 20.0, length, 13.0), kind)
        end = middle - length - 6.0 if is_left else middle + length + 6.0
        draw.text(end, top + 31.0, label, "tb-muted", "end" if is_left else None)
        draw.line(middle, top + 18.0, middle, top + 35.0, "tb-axis")
    table = [(name, Number(label)) for name, label in rows]
    return draw.chart(words, header, table, 340.0, 30.0 + tall * len(rows))


def intervals(
    words: Words,
    header: Iterable[str],
    rows: Sequence[Row],
    estimates: Sequence[tuple[float, float, float]],
    axis: str,
    mark: tuple[float, str],
    stands_out: Sequence[bool] = (),
) -> Chart:
    """Draw (middle, low, high), between 0 and 1, of each row, named by its first cell.

    `mark` is a number to compare with, and its name.
    """
    names = [clip(row[0], LONGEST_NAME) for row in rows]
    shown = [f"{100 * middle:.0f} %" for middle, _, _ in estimates]
    left = 22.0 + width_of(names)
    x = Axis(0.0, 1.0, left, WIDTH - 20.0 - width_of(shown))
    draw, height = _Drawing(), 64.0 + ROW * len(names)
    bottom = height - 40.0
    for tick in round_ticks(0.0, 1.0, 5):
        draw.line(x.at(tick), 20.0, x.at(tick), bottom, "tb-grid")
        draw.text(x.at(tick), bottom + 17.0, tick_text(tick), anchor="middle")
    draw.text((x.start + x.end) / 2.0, height - 6.0, axis, "tb-muted", "middle")
    at = x.at(mark[0])
    draw.line(at, 18.0, at, bottom, "tb-mark")
    anchor = "start" if mark[0] <= 0.1 else "end" if mark[0] >= 0.9 else "middle"
    draw.text(at, 13.0, mark[1], "tb-muted", anchor)
    for row, (name, (middle, low, high)) in enumerate(zip(names, estimates, strict=True)):
        y = 24.0 + ROW * row + ROW / 2.0
        kind = " tb-low" if stands_out and stands_out[row] else ""
        draw.text(left - 10.0, y + 4.0, name, anchor="end")
        draw.line(x.at(low), y, x.at(high), y, f"tb-whisker{kind}")
        draw.dot(x.at(middle), y, 5.0, kind)
        draw.text(WIDTH - 8.0, y + 4.0, shown[row], "tb-muted", "end")
    return draw.chart(words, header, rows, WIDTH, height)


def heat_map(
    words: Words,
    corner: str,
    titles: tuple[str, str],
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    is_symmetric: bool = False,
) -> Chart:
    """Draw rows by columns of numbers from −1 to 1; `titles` are of the rows and the columns.

    Cells on the diagonal have one colour and the others another. A matrix that is symmetric has an
    empty diagonal, and one colour for numbers above 0 and another below it.
    """
    rows_of, columns_of = titles
    short = [clip(name, 16) for name in names]
    heads = [clip(name, 10) for name in names]
    wide, tall = max(46.0, 10.0 + width_of(heads)), 28.0
    left = 26.0 + width_of([*short, rows_of])
    draw, table = _Drawing(), []
    draw.text(left, 13.0, columns_of, "tb-muted")
    draw.text(8.0, 31.0, rows_of, "tb-muted")
    for at, head in enumerate(heads):
        draw.text(left + wide * (at + 0.5), 31.0, head, anchor="middle")
    for i, row in enumerate(values):
        y = 38.0 + tall * i
        draw.text(left - 8.0, y + 18.0, short[i], anchor="end")
        cells = [None if is_symmetric and i == j else value for j, value in enumerate(row)]
        for j, value in enumerate(cells):
            is_first = (value or 0.0) > 0.0 if is_symmetric else i == j
            strength = 0.0 if value is None else min(abs(value), 1.0) * DARKEST
            place = (left + wide * j + 1.0, y + 1.0, wide - 2.0, tall - 2.0)
            draw.box(place, "tb-cell")
            draw.box(place, "tb-heat" if is_first else "tb-heat-other", strength)
            draw.text(left + wide * (j + 0.5), y + 18.5, number(value, 2), anchor="middle")
        table.append((names[i], *(number(value, 2) for value in cells)))
    width = left + wide * len(names) + 12.0
    return draw.chart(words, (corner, *names), table, width, 46.0 + tall * len(values))


def line(
    words: Words,
    header: tuple[str, str],
    rows: Sequence[Row],
    points: Sequence[tuple[float, float]],
) -> Chart:
    """Draw a line through points, with a dot at its end."""
    draw, height = _Drawing(), 260.0
    xs, ys = zip(*points, strict=True)
    low, high = _widened(min(ys), max(ys), 0.01)
    ticks = round_ticks(low, high, 4)
    left = 18.0 + width_of(map(tick_text, ticks))
    x = Axis(*_widened(min(xs), max(xs), 1.0), left, WIDTH - 20.0)
    y = Axis(low, high, height - 44.0, 26.0)
    whole = [tick for tick in round_ticks(min(xs), max(xs), 6) if tick == round(tick)]
    draw.axes(x, y, whole, ticks, header)
    places = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in points)
    draw.put("polyline", "tb-line", points=places)
    draw.dot(x.at(xs[-1]), y.at(ys[-1]), 4.5)
    return draw.chart(words, header, rows, WIDTH, height)


def lines(
    words: Words,
    header: Sequence[str],
    rows: Sequence[Row],
    names: Sequence[str],
    points: Sequence[Sequence[tuple[float, float]]],
) -> Chart:
    """Draw a line for each name, and the line on which x and y are equal."""
    draw, height = _Drawing(), 380.0
    xs, ys = zip(*(point for each in points for point in each), strict=True)
    x_low, x_high = min(xs), max(xs)
    ticks = round_ticks(min(*ys, x_low), max(*ys, x_high), 6)
    x = Axis(x_low, x_high, 24.0 + width_of(map(tick_text, ticks)), WIDTH - 20.0 - width_of(names))
    y = Axis(min(*ys, x_low), max(*ys, x_high), height - 48.0, 26.0)
    draw.axes(x, y, round_ticks(x_low, x_high, 6), ticks, header)
    draw.line(x.start, y.at(x_low), x.end, y.at(x_high), "tb-mark")
    lowest = math.inf  # names stand one above the other
    for name, each in sorted(zip(names, points, strict=True), key=lambda pair: pair[1][-1][1]):
        places = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in each)
        draw.put("polyline", "tb-line", points=places)
        lowest = min(y.at(each[-1][1]) + 4.0, lowest - 14.0)
        draw.text(x.end + 8.0, lowest, name)
    return draw.chart(words, header, rows, WIDTH, height)


def against_diagonal(
    words: Words,
    header: Sequence[str],
    rows: Sequence[Row],
    points: Sequence[tuple[float, float, float, float, int]],
) -> Chart:
    """Draw points beside the line on which x and y are equal, from 0 to 1.

    A point is (x, y, low, high, n): its interval, and how many things it stands for.
    """
    draw, side = _Drawing(), 380.0
    x = Axis(0.0, 1.0, 52.0, side - 16.0)
    y = Axis(0.0, 1.0, side - 48.0, 26.0)
    ticks = round_ticks(0.0, 1.0, 5)
    draw.axes(x, y, ticks, ticks, header)
    draw.line(x.start, y.start, x.end, y.end, "tb-mark")
    most = max((point[4] for point in points), default=1)
    for stated, right, low, high, n in points:
        at = x.at(stated)
        draw.line(at, y.at(low), at, y.at(high), "tb-whisker")
        draw.dot(at, y.at(right), 3.0 + 6.0 * (n / most) ** 0.5)
    return draw.chart(words, header, rows, side, side)


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


def width_of(texts: Iterable[str]) -> float:
    """Return about how wide a column of labels is; East Asian characters are twice as wide."""
    cells = (sum(2 if ord(each) > 0x2E7F else 1 for each in text) for text in texts)
    return CHARACTER * max(cells, default=0)


def _widened(low: float, high: float, least: float) -> tuple[float, float]:
    """Return the ends, at least so far apart."""
    missing = max(least - (high - low), 0.0)
    return low - missing / 2.0, high + missing / 2.0


@cache
def templates() -> jinja2.Environment:
    """Return the templates of this package, with the ways to write numbers."""
    made = environment("tiebreak.report")
    made.tests["right"] = lambda cell: isinstance(cell, Number)
    made.filters |= {"counted": counted, "quoted": _quoted}
    made.globals |= {
        "between": _between,
        "number": number,
        "percent": percent,
        "right": Number,
        "shown": lambda rows, n: f"{len(rows):,} of {n:,}" if len(rows) < n else f"all {n:,}",
        "signed": lambda value: Number("–" if value is None else f"{value:+.2f}".replace("-", "−")),
    }
    return made


def _between(low: float | None, high: float | None, digits: int = 3) -> Number:
    is_known = low is not None and high is not None
    return Number(f"{number(low, digits)} to {number(high, digits)}" if is_known else "–")


def _quoted(text: str) -> Markup:
    """Return Markdown as HTML whose headings are none of the page's."""
    made = re.sub("<h[1-6]>", "<p><strong>", markdown(text))
    return Markup(re.sub("</h[1-6]>", "</strong></p>", made))


def _macros() -> Any:
    return templates().get_template("charts.html").module
