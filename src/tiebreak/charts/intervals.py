"""Intervals: a dot for each name, with how far it may be off."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.charts.bars import BAR, LONGEST_NAME, WIDTH
from tiebreak.charts.chart import Chart, as_rows, segment, text
from tiebreak.charts.scale import Scale, round_ticks, tick_text, width_of
from tiebreak.charts.table import Row
from tiebreak.markup import clip, join, tag


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
    height = 64.0 + BAR * len(names)
    bottom = height - 40.0
    parts = []
    for tick in round_ticks(0.0, 1.0, 5):
        parts.append(segment(x.at(tick), 20.0, x.at(tick), bottom, "tb-grid"))
        parts.append(text(x.at(tick), bottom + 17.0, tick_text(tick), anchor="middle"))
    parts.append(text((x.start + x.end) / 2.0, height - 6.0, axis, "tb-muted", "middle"))
    if mark is not None:
        parts.append(segment(x.at(mark), 18.0, x.at(mark), bottom, "tb-mark"))
        anchor = "middle" if 0.1 < mark < 0.9 else "start" if mark <= 0.1 else "end"
        parts.append(text(x.at(mark), 13.0, mark_text, "tb-muted", anchor))
    for at, (name, (low, middle, high)) in enumerate(zip(short, estimates, strict=True)):
        y = 24.0 + BAR * at + BAR / 2.0
        kind = " tb-low" if stands_out is not None and stands_out[at] else ""
        parts.append(text(left - 10.0, y + 4.0, name, anchor="end"))
        parts.append(segment(x.at(low), y, x.at(high), y, f"tb-whisker{kind}"))
        parts.append(
            tag("circle", cx=f"{x.at(middle):g}", cy=f"{y:g}", r="5", class_=f"tb-dot{kind}")
        )
        parts.append(text(WIDTH - 8.0, y + 4.0, shown[at], "tb-muted", "end"))
    return Chart(title, description, header, as_rows(rows), join(parts), WIDTH, height)
