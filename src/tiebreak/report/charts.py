"""Charts: inline SVG with a title, a description and the same numbers as a table.

A chart is made from plain numbers. It has neither script nor inline style, so that a strict
Content-Security-Policy lets it pass; its colours come from `charts.css`, by class, and follow the
page into dark mode.

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
import numpy as np
from markupsafe import Markup
from scipy.special import expit

from tiebreak.errors import OptionError
from tiebreak.tables.write import open_target
from tiebreak.templating import environment, markdown
from tiebreak.wording import Number, clip, counted, number, percent

WIDTH = 860.0
NARROW = 440.0  # wider charts keep their width on a phone, and are scrolled there
ROW = 24.0  # height of a row of bars
CHARACTER = 6.7  # pixels, at the size of labels: a little more than most need
LONGEST_NAME = 26  # characters beside a bar; the table has more
DARKEST = 0.6  # share of colour in a cell: numbers on it stay readable, light and dark
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # between ticks, times a power of ten
ENDINGS = (".svg", ".html")
LONGEST_ID = 60  # characters of an id in a table
MOST_LINES = 12  # judges in a chart of how they read a scale
MOST_ITEMS = 40  # of a ranking
MUCH = 0.2  # mean correlation of errors from which on it is drawn, and told

RELIABLE = "better than chance"
CHANCE = "no better than chance"
WORSE = "worse than chance"
ALONE = "agrees with hardly anybody"
TOO_FEW = "too few to tell"
POOR = (CHANCE, WORSE, ALONE)

Row = Sequence[object]
Words = tuple[str, str]  # title and description of a chart
Ends = tuple[float, float]  # of an axis
Found = dict[str, Any]  # numbers and names that JSON can hold
Mark = tuple[str, dict[str, object], str]  # an element of a picture: tag, attributes, words


@dataclass(slots=True, eq=False)
class Chart:
    """A picture, and the same numbers as a table.

    Notebooks show it by itself; `save` writes it as .svg or .html; `svg()` and `html()` are its
    markup for a page that has the stylesheet. `templates/charts.html` writes its marks as SVG.
    """

    title: str
    description: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...] = field(repr=False)
    width: float
    height: float
    marks: list[Mark] = field(default_factory=list, repr=False)

    @classmethod
    def of(
        cls,
        words: Words,
        header: Iterable[str],
        rows: Iterable[Row],
        height: float,
        width: float = WIDTH,
    ) -> Chart:
        """Return a chart to draw on; `words` are its title and description."""
        return cls(*words, tuple(header), tuple(map(tuple, rows)), width, height)

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

    # Drawing

    def _put(self, tag: str, kind: str, words: str = "", **attributes: object) -> None:
        """Add an element; attributes that are None are left out."""
        values = {
            name.replace("_", "-"): f"{value:g}" if isinstance(value, float) else value
            for name, value in attributes.items()
        }
        self.marks.append((tag, {"class": kind, **values}, words))

    def _text(
        self, x: float, y: float, words: str, kind: str = "", anchor: str | None = None
    ) -> None:
        self._put("text", f"tb-text {kind}".strip(), words, x=x, y=y, text_anchor=anchor)

    def _line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._put("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def _box(
        self, place: tuple[float, float, float, float], kind: str, opacity: float | None = None
    ) -> None:
        x, y, *size = place
        width, height = (max(each, 0.0) for each in size)
        faint = None if opacity is None else f"{opacity:.3g}"
        self._put("rect", kind, x=x, y=y, width=width, height=height, rx=2, fill_opacity=faint)

    def _dot(self, x: float, y: float, radius: float, kind: str = "") -> None:
        self._put("circle", f"tb-dot{kind}", cx=x, cy=y, r=f"{radius:.3g}")

    def _path(self, points: Iterable[tuple[float, float]], x: Axis, y: Axis) -> None:
        places = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in points)
        self._put("polyline", "tb-line", points=places)

    def _axes(
        self, x_ends: Ends, y_ends: Ends, *, about: int = 5, whole: bool = False, right: float = 16
    ) -> tuple[Axis, Axis]:
        """Draw a grid with about so many numbers, and name both axes; `right` of them is room.

        `whole`: numbers below are whole.
        """
        y_ticks = round_ticks(*y_ends, about)
        left = 18.0 + width_of(map(tick_text, y_ticks))
        x = Axis(*x_ends, left, self.width - right)
        y = Axis(*y_ends, self.height - 46.0, 26.0)
        for tick in y_ticks:
            self._line(x.start, y.at(tick), x.end, y.at(tick), "tb-grid")
            self._text(x.start - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end")
        self._line(x.start, y.start, x.end, y.start, "tb-axis")
        for tick in round_ticks(*x_ends, 6):
            if not whole or tick == round(tick):
                self._text(x.at(tick), y.start + 18.0, tick_text(tick), anchor="middle")
        middle = (x.start + x.end) / 2.0
        self._text(middle, y.start + 36.0, self.header[0], "tb-muted", "middle")
        self._text(x.start, 13.0, self.header[1], "tb-muted")
        return x, y


class Axis(NamedTuple):
    """Maps low to start and high to end, evenly."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


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
    bins = list(zip(edges, edges[1:], counts, strict=False))
    rows = [(f"{low:.4g} to {high:.4g}", number(int(count))) for low, high, count in bins]
    chart = Chart.of(words, header, rows, 250.0)
    x, y = chart._axes((edges[0], edges[-1]), (0.0, max([*counts, 1])), about=4)
    for low, high, count in bins:
        kind = "tb-bar tb-low" if mark is not None and high <= mark[0] + 1e-9 else "tb-bar"
        top = min(y.at(count), y.start - 1.5) if count else y.start
        wide = x.at(high) - x.at(low)
        gap = min(1.0, wide / 8.0)
        chart._box((x.at(low) + gap, top, wide - 2 * gap, y.start - top), kind)
    if mark is not None:
        at = x.at(mark[0])
        chart._line(at, 18.0, at, y.start, "tb-mark")
        chart._text(at - 6.0, 13.0, mark[1], "tb-muted", "end")
    return chart


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
    chart = Chart.of(words, header, rows, 12.0 + ROW * len(names))
    for at, (name, value, label) in enumerate(zip(names, values, labels, strict=True)):
        top = 6.0 + ROW * at
        length = max(x.at(value) - left, 1.5 if value > 0 else 0.0)
        chart._text(left - 8.0, top + 15.5, name, anchor="end")
        chart._box((left, top + 3.0, length, ROW - 7.0), "tb-bar")
        chart._text(left + length + 6.0, top + 15.5, label, "tb-muted")
    chart._line(left, 6.0, left, chart.height - 6.0, "tb-axis")
    return chart


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
    table = [(name, Number(label)) for name, label in rows]
    chart = Chart.of(words, header, table, 30.0 + tall * len(rows), 340.0)
    chart._text(middle - 8.0, 13.0, f"← {clip(sides[0], 20)}", "tb-muted", "end")
    chart._text(middle + 8.0, 13.0, f"{clip(sides[1], 20)} →", "tb-muted")
    for at, ((name, label), value) in enumerate(zip(rows, values, strict=True)):
        top, length = 24.0 + tall * at, 118.0 * abs(value) / most
        is_left = value < 0.0
        chart._text(4.0, top + 11.0, clip(name, 48))
        start, kind = (middle - length, "tb-bar tb-low") if is_left else (middle, "tb-bar")
        chart._box((start, top + 20.0, length, 13.0), kind)
        end = middle - length - 6.0 if is_left else middle + length + 6.0
        chart._text(end, top + 31.0, label, "tb-muted", "end" if is_left else None)
        chart._line(middle, top + 18.0, middle, top + 35.0, "tb-axis")
    return chart


def intervals(
    words: Words,
    header: Iterable[str],
    rows: Sequence[Row],
    estimates: Sequence[tuple[float, float, float]],
    axis: tuple[str, float, str],
    stands_out: Sequence[bool] = (),
) -> Chart:
    """Draw (middle, low, high), between 0 and 1, of each row, named by its first cell.

    `axis` is what they are, a number to compare with, and its name.
    """
    title, mark, name_of_mark = axis
    names = [clip(row[0], LONGEST_NAME) for row in rows]
    shown = [f"{100 * middle:.0f} %" for middle, _, _ in estimates]
    left = 22.0 + width_of(names)
    x = Axis(0.0, 1.0, left, WIDTH - 20.0 - width_of(shown))
    chart = Chart.of(words, header, rows, 64.0 + ROW * len(names))
    bottom = chart.height - 40.0
    for tick in round_ticks(0.0, 1.0, 5):
        chart._line(x.at(tick), 20.0, x.at(tick), bottom, "tb-grid")
        chart._text(x.at(tick), bottom + 17.0, tick_text(tick), anchor="middle")
    chart._text((x.start + x.end) / 2.0, bottom + 34.0, title, "tb-muted", "middle")
    at = x.at(mark)
    chart._line(at, 18.0, at, bottom, "tb-mark")
    anchor = "start" if mark <= 0.1 else "end" if mark >= 0.9 else "middle"
    chart._text(at, 13.0, name_of_mark, "tb-muted", anchor)
    for row, (name, (middle, low, high)) in enumerate(zip(names, estimates, strict=True)):
        y = 24.0 + ROW * row + ROW / 2.0
        kind = " tb-low" if stands_out and stands_out[row] else ""
        chart._text(left - 10.0, y + 4.0, name, anchor="end")
        chart._line(x.at(low), y, x.at(high), y, f"tb-whisker{kind}")
        chart._dot(x.at(middle), y, 5.0, kind)
        chart._text(WIDTH - 8.0, y + 4.0, shown[row], "tb-muted", "end")
    return chart


def heat_map(
    words: Words,
    titles: tuple[str, str, str],
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    is_symmetric: bool = False,
) -> Chart:
    """Draw rows by columns of numbers from −1 to 1; `titles`: of the table, its rows and columns.

    Cells on the diagonal have one colour and the others another. A matrix that is symmetric has an
    empty diagonal, and one colour for numbers above 0 and another below it.
    """
    corner, rows_of, columns_of = titles
    short = [clip(name, 16) for name in names]
    heads = [clip(name, 10) for name in names]
    wide, tall = max(46.0, 10.0 + width_of(heads)), 28.0
    left = 26.0 + width_of([*short, rows_of])
    cells = [
        [None if is_symmetric and i == j else value for j, value in enumerate(row)]
        for i, row in enumerate(values)
    ]
    table = [
        (name, *(number(value, 2) for value in row)) for name, row in zip(names, cells, strict=True)
    ]
    size = (46.0 + tall * len(cells), left + wide * len(names) + 12.0)
    chart = Chart.of(words, (corner, *names), table, *size)
    chart._text(left, 13.0, columns_of, "tb-muted")
    chart._text(8.0, 31.0, rows_of, "tb-muted")
    for at, head in enumerate(heads):
        chart._text(left + wide * (at + 0.5), 31.0, head, anchor="middle")
    for i, row in enumerate(cells):
        y = 38.0 + tall * i
        chart._text(left - 8.0, y + 18.0, short[i], anchor="end")
        for j, value in enumerate(row):
            is_first = (value or 0.0) > 0.0 if is_symmetric else i == j
            strength = 0.0 if value is None else min(abs(value), 1.0) * DARKEST
            place = (left + wide * j + 1.0, y + 1.0, wide - 2.0, tall - 2.0)
            chart._box(place, "tb-cell")
            chart._box(place, "tb-heat" if is_first else "tb-heat-other", strength)
            chart._text(left + wide * (j + 0.5), y + 18.5, number(value, 2), anchor="middle")
    return chart


def line(
    words: Words,
    header: tuple[str, str],
    rows: Sequence[Row],
    points: Sequence[tuple[float, float]],
) -> Chart:
    chart = Chart.of(words, header, rows, 260.0)
    xs, ys = zip(*points, strict=True)
    ends = (_widened(min(xs), max(xs), 1.0), _widened(min(ys), max(ys), 0.01))
    x, y = chart._axes(*ends, about=4, whole=True)
    chart._path(points, x, y)
    chart._dot(x.at(xs[-1]), y.at(ys[-1]), 4.5)
    return chart


# Charts of what was measured


def worker_accuracies(rows: Sequence[Found], n_workers: int, by_chance: float) -> Chart:
    shown = f"{len(rows):,} of {n_workers:,} workers" if len(rows) < n_workers else "All workers"
    described = (
        f"{shown}: the share of answers that are right, expected over the classes, with an "
        "interval of 90 %. The dashed line is the accuracy of guessing."
    )
    shares = [(row["accuracy"], row["low"], row["high"]) for row in rows]
    return intervals(
        ("How often workers are right", described),
        ("worker", "responses", "accuracy", "from", "to", "verdict"),
        [
            (row["worker"], number(row["responses"]), *map(percent, share), row["verdict"])
            for row, share in zip(rows, shares, strict=True)
        ],
        shares,
        ("share of answers that are right", by_chance, "guessing"),
        [row["verdict"] in POOR for row in rows],
    )


def ranking(items: Sequence[Found], n_items: int, level: float) -> Chart:
    """Draw how items rank, from the rows of a `Ranking`, the best first."""
    items = items[:MOST_ITEMS]
    ends = [(each["strength"], each["low"], each["high"]) for each in items]
    shares = [(float(expit(a)), float(expit(b)), float(expit(c))) for a, b, c in ends]
    rows = [
        (
            clip(each["item"], LONGEST_ID),
            number(each["rank"]),
            f"{each['rank_low']} to {each['rank_high']}",
            percent(each["probability_best"]),
            percent(share[0]),
        )
        for each, share in zip(items, shares, strict=True)
    ]
    described = (
        f"{len(rows):,} of {n_items:,} items, the best first: the chance to beat an average "
        f"item, ties aside, with an interval of {level:.0%}."
    )
    return intervals(
        ("Who is best", described),
        ("item", "rank", "rank from, to", "chance to be best", "beats an average item"),
        rows,
        shares,
        ("chance to beat an average item", 0.5, "average"),
    )


def confusion_matrix(words: Words, classes: Iterable[str], matrix: Any) -> Chart:
    names = [clip(name, LONGEST_ID) for name in classes]
    values = np.asarray(matrix).tolist()
    return heat_map(words, ("true class", "true ↓", "says →"), names, values)


def readers_of_scale(found: Found) -> Chart:
    """Draw what judges read at each level of the scale: bias and gain."""
    values, middle, step = found["values"], found["middle"], found["step"]
    shown = found["readers"][:MOST_LINES]
    described = (
        "What a judge reads where the truth is a level: on the dashed line as it is, below it too "
        "low; a flatter line uses less of the range."
    )
    if len(shown) < found["n_readers"]:
        described += f" {len(shown)} of {found['n_readers']} judges: those farthest from it."
    columns = ("bias", "gain", "blur", "lapse")
    rows = [(each["worker"], *(number(each[name], 2) for name in columns)) for each in shown]
    chart = Chart.of(("How judges read the scale", described), ("level", "read as"), rows, 380.0)
    read = {
        each["worker"]: [
            (value, middle + each["bias"] * step + each["gain"] * (value - middle))
            for value in values
        ]
        for each in shown
    }
    ends = [value for points in read.values() for _, value in points]
    low, high = values[0], values[-1]
    room = 20.0 + width_of(read)
    x, y = chart._axes((low, high), (min(*ends, low), max(*ends, high)), about=6, right=room)
    chart._line(x.start, y.at(low), x.end, y.at(high), "tb-mark")
    lowest = math.inf  # names stand one above the other
    for name, points in sorted(read.items(), key=lambda each: each[1][-1][1]):
        chart._path(points, x, y)
        lowest = min(y.at(points[-1][1]) + 4.0, lowest - 14.0)
        chart._text(x.end + 8.0, lowest, name)
    return chart


def calibration(points: Sequence[Found], n_tasks: int) -> Chart:
    """Draw stated probabilities against the share of labels that is right."""
    described = (
        f"{n_tasks:,} known labels in bins of 0.1. On the dashed line probabilities are "
        "calibrated, below it too high. Bars are intervals of 95 %; larger dots are more labels."
    )
    names = ("stated", "right", "low", "high", "n")
    chart = Chart.of(
        ("Stated probability against the share that is right", described),
        ("stated probability", "share right", "from", "to", "labels"),
        [[number(point[name]) for name in names] for point in points],
        380.0,
        380.0,
    )
    x, y = chart._axes((0.0, 1.0), (0.0, 1.0))
    chart._line(x.start, y.start, x.end, y.end, "tb-mark")
    most = max(point["n"] for point in points)
    for point in points:
        at = x.at(point["stated"])
        chart._line(at, y.at(point["low"]), at, y.at(point["high"]), "tb-whisker")
        chart._dot(at, y.at(point["right"]), 3.0 + 6.0 * (point["n"] / most) ** 0.5)
    return chart


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
