"""Heat maps: a table of numbers as coloured cells, with the number in each."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.charts.chart import Chart, as_rows, box, text
from tiebreak.charts.scale import width_of
from tiebreak.charts.table import Number, Row, number
from tiebreak.markup import Markup, clip, join

NARROWEST = 46.0  # of a cell
LONGEST_HEAD = 10  # characters of a column's name
CELL_HEIGHT = 28.0
LONGEST_NAME = 16  # characters of a row's name
DARKEST = 0.6  # of the colour: text on it stays readable, light and dark


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
    short = [clip(name, LONGEST_NAME) for name in names]
    heads = [clip(name, LONGEST_HEAD) for name in names]
    wide = max(NARROWEST, 10.0 + width_of(heads))
    left = 26.0 + width_of([*short, row_title])
    parts = [text(left, 13.0, column_title, "tb-muted")]
    for at, head in enumerate(heads):
        x = left + wide * (at + 0.5)
        parts.append(text(x, 31.0, head, anchor="middle"))
    for i, row in enumerate(values):
        y = 38.0 + CELL_HEIGHT * i
        parts.append(text(left - 8.0, y + 18.0, short[i], anchor="end"))
        for j, value in enumerate(row):
            x = left + wide * j
            parts.append(_cell(x, y, wide, value, _colour(value, i == j, diagonal)))
    parts.append(text(8.0, 31.0, row_title, "tb-muted"))
    width = left + wide * len(names) + 12.0
    height = 46.0 + CELL_HEIGHT * len(values)
    rows: list[Row] = [
        (name, *(_number(value) for value in row)) for name, row in zip(names, values, strict=True)
    ]
    return Chart(title, description, (corner, *names), as_rows(rows), join(parts), width, height)


def _cell(x: float, y: float, wide: float, value: float | None, colour: str) -> Markup:
    strength = 0.0 if value is None else min(abs(value), 1.0) * DARKEST
    place = (x + 1.0, y + 1.0, wide - 2.0, CELL_HEIGHT - 2.0)
    ground = box(*place, "tb-cell", rx="3")
    colour_box = box(*place, colour, rx="3", fill_opacity=f"{strength:.3g}")
    words = text(x + wide / 2.0, y + 18.5, _number(value), "", "middle")
    return join([ground, colour_box, words])


def _colour(value: float | None, is_diagonal: bool, diagonal: bool) -> str:
    first = is_diagonal if diagonal else (value or 0.0) > 0.0
    return "tb-heat" if first else "tb-heat-other"


def _number(value: float | None) -> Number:
    return number(None if value is None else float(value), 2)
