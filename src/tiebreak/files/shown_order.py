"""Verdicts on two answers that were shown in either order: as shown, or turned back.

    task  order  label        turned back
    q1    AB     A            A
    q1    BA     A            B    what was shown first is answer B

Whether a table holds the one or the other cannot be seen, unless labels name a place, such as
"first". The caller says it with `turned`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tiebreak.errors import InputError, OptionError, note
from tiebreak.files.response_table import ResponseColumns, distinct
from tiebreak.files.table import Table, clean
from tiebreak.ids import Column, Ids, as_list, is_arrow
from tiebreak.responses.weighing import first_classes

TIES = frozenset({"tie", "draw", "both", "neither", "equal", "same", "c", "[[c]]", "tie (bothbad)"})
PLACES = (("first", "second"), ("left", "right"), ("1st", "2nd"), ("top", "bottom"))
MOST_LABELS = 8  # two answers and ways to say that neither is better


def with_order_column(
    columns: Mapping[str, object] | None, options: Mapping[str, Any]
) -> Mapping[str, object] | None:
    """Return the names of columns, and among them the one that was given for the order."""
    name = options.get("order_column")
    if name is None:
        return columns
    if "order" in (columns or {}):
        raise OptionError(
            "The order is named twice: columns={'order': …} (--columns order=…) and order_column= "
            "(--order-column). Give one of them."
        )
    return {**(columns or {}), "order": name}


def turn_back(table: Table, found: ResponseColumns, turned: bool | None) -> Table:
    """Return the table with verdicts that name answers, whatever the order they were shown in.

    `turned` says whether they do so already; None: they do where nothing tells otherwise, and a
    note asks.
    """
    if "order" not in found.extras:
        if turned is not None:
            raise OptionError(
                f"{table.title} has no column that tells the order, so turned= (--turned, "
                "--as-shown) does nothing. Name it with order_column= (--order-column), or leave "
                "the option out."
            )
        return table
    if turned:
        return table
    name = table.names[found.extras["order"]]
    pair = _pair(table, found.label)
    orders = sorted({str(v).strip() for v in distinct(table, found.extras["order"], MOST_LABELS)})
    is_place = pair is not None and _is_place(pair)
    swapped = None if pair is None else _swapped(orders, pair, is_place=is_place)
    if pair is None or swapped is None:
        if turned is None:
            return table
        raise InputError(
            f"{table.title}: verdicts as shown can be turned back where labels are two (and ties), "
            f"and column {name!r} has values such as AB and BA, or true and false; its values are "
            f"{', '.join(map(repr, orders))}. Rename them, or turn verdicts back beforehand."
        )
    if not swapped:
        return table
    shown = " and ".join(map(repr, swapped))
    if turned is None and not is_place:
        note(
            f"{table.title}: column {name!r} tells the order in which answers were shown. "
            f"{pair[0]!r} is taken to be the same answer in every order. If it is what was shown "
            "first, say turned=False (--as-shown); if not, turned=True (--turned) ends this note."
        )
        return table
    note(
        f"{table.title}: verdicts are as shown; those of {name} {shown} were turned back "
        f"({pair[0]!r} and {pair[1]!r} exchanged)."
    )
    return _exchanged(table, found, pair, swapped)


def _pair(table: Table, position: int) -> tuple[Any, Any] | None:
    """Return the two labels that name an answer; None where there are not two."""
    values = distinct(table, position, MOST_LABELS)
    given = {v.strip() if isinstance(v, str) else v for v in values}
    named = sorted((v for v in given if str(v).casefold() not in TIES), key=str)
    if len(named) == 1 and named[0] in (1, 2, "1", "2", "A", "B", "a", "b"):
        one = named[0]  # nobody chose the other
        other = {1: 2, 2: 1, "1": "2", "2": "1", "A": "B", "B": "A", "a": "b", "b": "a"}[one]
        named = sorted((one, other), key=str)
    if len(named) != 2:
        return None
    place = _place_of(named)
    return place if place is not None else (named[0], named[1])


def _place_of(named: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return two labels that name places in the order of these."""
    for first, second in PLACES:
        by_word = {str(label).casefold(): label for label in named}
        if by_word.keys() == {first, second}:
            return by_word[first], by_word[second]
    return None


def _is_place(pair: Sequence[Any]) -> bool:
    return _place_of(pair) is not None


def _swapped(orders: list[str], pair: tuple[Any, Any], *, is_place: bool) -> list[str] | None:
    """Return the orders that show the second answer first; None where one does not tell."""
    firsts = first_classes(orders, Ids(["a", "b"] if is_place else [str(v) for v in pair]))
    if is_place and None in firsts:
        firsts = first_classes(orders, Ids(["1", "2"]))
    if None in firsts:
        return None
    return [order for order, first in zip(orders, firsts, strict=True) if first == 1]


def _exchanged(
    table: Table, found: ResponseColumns, pair: tuple[Any, Any], swapped: list[str]
) -> Table:
    """Return the table with the two labels exchanged in the rows of some orders."""
    label = found.label
    order = found.extras["order"]

    def turned(columns: Sequence[Column], wanted: Sequence[int]) -> Sequence[Column]:
        by_position = dict(zip(_with(wanted, order), columns, strict=True))
        said = clean(table.names[label], by_position[label], table.source)
        at = clean(table.names[order], by_position[order], table.source)
        by_position[label] = _exchange(said, at, pair, swapped)
        return [by_position[position] for position in wanted]

    def load(wanted: Sequence[int]) -> Sequence[Column]:
        if label not in wanted:
            return table.load(wanted)
        return turned(table.load(_with(wanted, order)), wanted)

    def stream(wanted: Sequence[int]) -> Iterator[Sequence[Column]]:
        assert table.stream is not None
        if label not in wanted:
            yield from table.stream(wanted)
            return
        for columns in table.stream(_with(wanted, order)):
            yield turned(columns, wanted)

    return replace(
        table,
        load=load,
        stream=None if table.stream is None else stream,
        order_of=table.category_order,
    )


def _with(wanted: Sequence[int], order: int) -> list[int]:
    """Return positions of columns, and the order's among them, each once."""
    return list(dict.fromkeys((*wanted, order)))


def _exchange(label: Column, order: Column, pair: tuple[Any, Any], swapped: list[str]) -> Column:
    other = {pair[0]: pair[1], pair[1]: pair[0]}
    is_text = is_arrow(label)
    values = [
        other.get(value.strip() if isinstance(value, str) else value, value)
        if at is not None and str(at).strip() in swapped
        else value
        for value, at in zip(as_list(label), as_list(order), strict=True)
    ]
    if not is_text:
        return values
    import pyarrow as pa

    kind = label.type.value_type if pa.types.is_dictionary(label.type) else label.type
    return pa.array(values, kind)
