"""Lines: a number that grows with steps, and what is stated against what is so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tiebreak.charts.bars import WIDTH
from tiebreak.charts.chart import Chart, as_rows, segment, text
from tiebreak.charts.scale import Scale, round_ticks, tick_text, width_of
from tiebreak.charts.table import Row
from tiebreak.markup import join, tag

HEIGHT = 260.0
SQUARE = 380.0
LEAST_SPAN = 0.01  # of a line: smaller changes are drawn flat


class Whisker(NamedTuple):
    """A point with an interval, and how many things it stands for."""

    x: float
    y: float
    low: float
    high: float
    n: int


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
    low, high = _widened(min(ys), max(ys), LEAST_SPAN)
    ticks = round_ticks(low, high, 4)
    left = 18.0 + width_of([tick_text(tick) for tick in ticks])
    x = Scale(*_widened(min(xs), max(xs), 1.0), left + 6.0, WIDTH - 20.0)
    y = Scale(low, high, HEIGHT - 44.0, 26.0)
    parts = [segment(left, y.at(tick), WIDTH - 14.0, y.at(tick), "tb-grid") for tick in ticks]
    parts += [text(left - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end") for tick in ticks]
    parts.append(segment(left, y.start, WIDTH - 14.0, y.start, "tb-axis"))
    for tick in round_ticks(min(xs), max(xs), 6):
        if tick == round(tick):
            parts.append(text(x.at(tick), HEIGHT - 26.0, tick_text(tick), anchor="middle"))
    points = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in zip(xs, ys, strict=True))
    parts.append(tag("polyline", points=points, class_="tb-line"))
    parts.append(tag("circle", cx=x.at(xs[-1]), cy=y.at(ys[-1]), r="4.5", class_="tb-dot"))
    parts.append(text((x.start + x.end) / 2.0, HEIGHT - 8.0, header[0], "tb-muted", "middle"))
    parts.append(text(left, 13.0, header[1], "tb-muted"))
    return Chart(title, description, header, as_rows(rows), join(parts), WIDTH, HEIGHT)


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
    x = Scale(0.0, 1.0, 52.0, SQUARE - 16.0)
    y = Scale(0.0, 1.0, SQUARE - 48.0, 26.0)
    parts = []
    for tick in round_ticks(0.0, 1.0, 5):
        parts.append(segment(x.start, y.at(tick), x.end, y.at(tick), "tb-grid"))
        parts.append(text(x.start - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end"))
        parts.append(text(x.at(tick), y.start + 18.0, tick_text(tick), anchor="middle"))
    parts.append(segment(x.start, y.start, x.end, y.end, "tb-mark"))
    most = max((point.n for point in points), default=1)
    for point in points:
        at = x.at(point.x)
        radius = 3.0 + 6.0 * (point.n / most) ** 0.5
        parts.append(segment(at, y.at(point.low), at, y.at(point.high), "tb-whisker"))
        parts.append(
            tag("circle", cx=f"{at:g}", cy=y.at(point.y), r=f"{radius:.3g}", class_="tb-dot")
        )
    parts.append(text((x.start + x.end) / 2.0, SQUARE - 10.0, axes[0], "tb-muted", "middle"))
    parts.append(text(14.0, 13.0, axes[1], "tb-muted"))
    return Chart(title, description, header, as_rows(rows), join(parts), SQUARE, SQUARE)


def _widened(low: float, high: float, least: float) -> tuple[float, float]:
    """Return the ends, at least so far apart.

    >>> _widened(3.0, 3.0, 1.0)
    (2.5, 3.5)
    """
    missing = max(least - (high - low), 0.0)
    return low - missing / 2.0, high + missing / 2.0
