"""Bars: a histogram of numbers, and one bar for each name."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.charts.chart import Chart, as_rows, box, segment, text
from tiebreak.charts.scale import Scale, round_ticks, tick_text, width_of
from tiebreak.charts.table import Row, number
from tiebreak.markup import clip, join

WIDTH = 860.0
HEIGHT = 250.0
BAR = 24.0  # height of a row of bars
LONGEST_NAME = 26  # characters beside a bar; the table has more


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
    most = max([*counts, 1])
    ticks = round_ticks(0.0, most, 4)
    left = 18.0 + width_of([tick_text(tick) for tick in ticks])
    x = Scale(edges[0], edges[-1], left, WIDTH - 14.0)
    y = Scale(0.0, most, HEIGHT - 44.0, 24.0)
    parts = [segment(left, y.at(tick), WIDTH - 14.0, y.at(tick), "tb-grid") for tick in ticks]
    parts += [text(left - 8.0, y.at(tick) + 4.0, tick_text(tick), anchor="end") for tick in ticks]
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        kind = "tb-bar tb-low" if mark is not None and high <= mark + 1e-9 else "tb-bar"
        top = min(y.at(count), y.start - 1.5) if count else y.start
        gap = min(1.0, (x.at(high) - x.at(low)) / 8.0)
        parts.append(
            box(x.at(low) + gap, top, x.at(high) - x.at(low) - 2 * gap, y.start - top, kind)
        )
    parts.append(segment(left, y.start, WIDTH - 14.0, y.start, "tb-axis"))
    for tick in round_ticks(edges[0], edges[-1], 6):
        parts.append(text(x.at(tick), HEIGHT - 26.0, tick_text(tick), anchor="middle"))
    parts.append(text((x.start + x.end) / 2.0, HEIGHT - 8.0, header[0], "tb-muted", "middle"))
    parts.append(text(left, 13.0, header[1], "tb-muted"))
    if mark is not None:
        parts.append(segment(x.at(mark), 18.0, x.at(mark), y.start, "tb-mark"))
        parts.append(text(x.at(mark) - 6.0, 13.0, mark_text, "tb-muted", "end"))
    rows: list[Row] = [
        (f"{edge_text(low)} to {edge_text(high)}", number(int(count)))
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    return Chart(title, description, header, as_rows(rows), join(parts), WIDTH, HEIGHT)


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
        top = 6.0 + BAR * at
        length = max(x.at(value) - left, 1.5 if value > 0 else 0.0)
        parts.append(text(left - 8.0, top + 15.5, name, anchor="end"))
        parts.append(box(left, top + 3.0, length, BAR - 7.0, "tb-bar", rx="2"))
        parts.append(text(left + length + 6.0, top + 15.5, label, "tb-muted"))
    height = 12.0 + BAR * len(names)
    parts.append(segment(left, 6.0, left, height - 6.0, "tb-axis"))
    behind = list(zip(names, labels, strict=True)) if rows is None else rows
    return Chart(title, description, header, as_rows(behind), join(parts), WIDTH, height)


def edge_text(value: float) -> str:
    """Write the edge of a bin.

    >>> edge_text(0.55), edge_text(0.30000000000000004)
    ('0.55', '0.3')
    """
    return f"{value:.4g}"
