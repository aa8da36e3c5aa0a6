"""Tables: the numbers behind a chart, and lists in the report."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.markup import Child, Markup, join, tag

Row = Sequence[Child]
NO_BREAK = "\N{NO-BREAK SPACE}"


def table(
    caption: Child,
    header: Sequence[Child],
    rows: Sequence[Row],
    *,
    shows_caption: bool = True,
    has_head: bool = True,
) -> Markup:
    """Make a table whose first column names the rows; numbers stand to the right.

    >>> print(table("Pets", ["pet", "n"], [["cat", number(2)]]).partition("<tbody>")[2][:60])
    <tr><th scope="row">cat</th><td class="tb-number">2</td></tr
    """
    numeric = [_is_numeric(rows, k) for k in range(len(header))]
    head = join(
        tag("th", name, scope="col", class_="tb-number" if numeric[k] else None)
        for k, name in enumerate(header)
    )
    body = join(tag("tr", join(_cells(row, numeric))) for row in rows)
    hidden = None if shows_caption else "tb-hidden"
    made = tag(
        "table",
        tag("caption", caption, class_=hidden),
        tag("thead", tag("tr", head)) if has_head else None,
        tag("tbody", body),
    )
    return tag("div", made, class_="tb-scroll", role="group", tabindex="0", aria_label=caption)


class Number(str):
    """A number as it is written: it stands to the right in a table, which ids do not."""

    __slots__ = ()


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
    return Number(f"{100.0 * share:.{digits}f}{NO_BREAK}%")


def _cells(row: Row, numeric: list[bool]) -> list[Markup]:
    first = tag("th", row[0], scope="row")
    rest = [
        tag("td", cell, class_="tb-number" if is_number else None)
        for cell, is_number in zip(row[1:], numeric[1:], strict=True)
    ]
    return [first, *rest]


def _is_numeric(rows: Sequence[Row], column: int) -> bool:
    """Say whether all cells of a column are numbers; the first column names the rows."""
    return column > 0 and bool(rows) and all(isinstance(row[column], Number) for row in rows)
