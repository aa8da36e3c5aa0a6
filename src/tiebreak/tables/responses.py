"""Responses of a table: which of its columns make them, and its rows, coded batch by batch.

Beside task, worker and label there may be composed ids, runs, the order of presentation:

    question  turn  model  prompt  run  order  label
    q1        1     gpt    short   1    AB     yes

With `task_columns=["question", "turn"]` and `worker_columns=["model", "prompt"]` the task is
"q1 | 1" and the worker "gpt | short". Runs are the same worker again, and so are orders: weighed
by how much they err together (`data/runs.py`). Where the caller settles repeats in another
way, each order is a worker of its own, "gpt | short [order=AB]": a judge who sees two answers the
other way round may judge differently.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Builder, Repeats, Responses, ids, read_weights
from tiebreak.data.ids import (
    SEPARATOR,
    Column,
    Ids,
    as_numbers,
    as_text,
    is_text,
    number_twins,
    variants,
)
from tiebreak.data.runs import first_classes
from tiebreak.data.scale import Scale, read_scale
from tiebreak.errors import InputError, OptionError, note
from tiebreak.options import AUTO
from tiebreak.tables.columns import (
    EXTRAS,
    RESPONSES,
    TASK,
    chosen_column,
    find_columns,
    squashed,
)
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.source import Place
from tiebreak.tables.table import Columns, Table, like, stripped

IDS = ("task", "worker", "label")
PERHAPS_RUN = ("sample", "sampleid")  # a run where another column is the task
MOST_ORDERS = 6  # of three answers; a column with more values is a place in a queue
LATEST_EPOCH = 1_000_000  # above it, an "epoch" is a time in seconds
NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "#n/a"})
MANY_CLASSES = 50
FEW_TASKS = 10  # below, as many classes as tasks say nothing
SHOWN = 5  # groups of labels that differ in their form only
TIES = frozenset({"tie", "draw", "both", "neither", "equal", "same", "c", "[[c]]", "tie (bothbad)"})
PLACES = (("first", "second"), ("left", "right"), ("1st", "2nd"), ("top", "bottom"))
OTHER_ONE = {1: 2, 2: 1, "1": "2", "2": "1", "A": "B", "B": "A", "a": "b", "b": "a"}
MOST_LABELS = 8  # two answers and ways to say that neither is better
MOST_TIMES = 5_000_000  # responses; of more, times are not compared: that takes memory
TIMES = frozenset(
    ["time", "timestamp", "datetime", "date", "createdat", "updatedat", "submittedat"]
)
# Text that sorts as the times do: a date that begins with the year, or seconds since 1970.
SORTS_AS_TIME = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{10}|[0-9]{13})$"


class Long(NamedTuple):
    """A table with a row per response, how it is read on, and what else was in the file.

    `is_own`: its columns are known to be task, worker, label, as a format or a wide table was read.
    """

    table: Table
    options: ReadingOptions
    is_own: bool = True
    gold: Mapping[Hashable, Hashable] = MappingProxyType({})
    form: str | None = None  # what people call the format of the tool
    sequences: dict[str, list[Any]] | None = None  # columns, where answers are tags of tokens


def read_table(long: Long) -> tuple[Responses, dict[str, str]]:
    """Read responses of a long table; return them, and which column was read as what."""
    table, options, is_own = long[:3]
    made, names = response_table(table, options, is_own=is_own)
    if "weight" in names:
        note("weights-found", table=table.title, column=names["weight"])
    repeats: Repeats = options.repeats or ("runs" if {"run", "order"} & set(names) else "last")
    if "order" in names and repeats != "runs":
        note("orders-as-workers", table=table.title, column=names["order"])
    responses = _build(made, repeats, options)
    if options.fold_labels:
        n_before = responses.n_classes
        responses = responses.with_folded_labels()
        if responses.n_classes < n_before:
            note("labels-folded", n=n_before, n_classes=responses.n_classes)
    _note_odd_names(responses, is_declared=options.scale is not None)
    is_small = responses.n_given <= MOST_TIMES
    if not is_own and repeats == "last" and responses.n_repeats and is_small:
        _note_rows_against_time(table, made, names)
    return responses, names


def read_rows(long: Long) -> dict[str, Column]:
    """Return every response, repeats and all, as columns by role."""
    made, _ = response_table(long.table, long.options, is_own=long.is_own)
    return dict(zip(made.names, made.read(range(len(made.names))), strict=True))


def response_table(
    table: Table, options: ReadingOptions, *, is_own: bool
) -> tuple[Table, dict[str, str]]:
    """Make a table of the columns task, worker, label, and run, order … where there are any.

    Ids are composed, verdicts turned back and lists of labels split. With the table come the
    names of the columns that were read, by role.
    """
    parts = _parts(table, options)
    turn = None if is_own else _turn(table, parts, options.turned)
    roles = tuple(parts)

    def load(places: Sequence[int]) -> Iterator[Columns]:
        wanted = [roles[i] for i in places]
        is_turned = turn is not None and "label" in wanted
        positions = list(
            dict.fromkeys(i for role in [*wanted, *["order"] * is_turned] for i in parts[role])
        )
        for columns in table.batches(positions):
            by_position = dict(zip(positions, columns, strict=True))
            found = {role: _composed([by_position[i] for i in parts[role]]) for role in wanted}
            if turn is not None and is_turned:
                order = by_position[parts["order"][0]]
                found["label"] = _turned_back(found["label"], order, turn)
            yield list(found.values())

    made = replace(table, names=roles, load=load)
    names = {role: SEPARATOR.join(table.names[i] for i in places) for role, places in parts.items()}
    if options.multi_label and not is_own:
        made = _split_labels(made, table.values(parts["label"][0]))
    return made, names


def _parts(table: Table, options: ReadingOptions) -> dict[str, tuple[int, ...]]:
    """Find the columns of each role; what is composed need not be found by name."""
    chosen = options.named
    named = {role: chosen.pop(role) for role in EXTRAS if role in chosen}
    extras = {role: chosen_column(table, RESPONSES, role, n) for role, n in named.items()}
    parts: dict[str, tuple[int, ...]] = {}
    names = list(table.names)
    for role, several in (("task", options.task_columns), ("worker", options.worker_columns)):
        if several and role in chosen:
            raise OptionError("named-twice", role=role, option=f"{role}_columns")
        found = tuple(chosen_column(table, RESPONSES, role, name) for name in several or ())
        if found:
            parts[role] = found
            chosen[role] = table.names[found[0]]
        for i in found[1:]:  # so that no other role takes them
            names[i] = f"{names[i]} (part of the {role})"
    run = _sample_as_run(table, chosen)
    if run is not None:
        extras.setdefault("run", run)
    positions = find_columns(replace(table, names=tuple(names)), RESPONSES, chosen)
    parts = {role: parts.get(role, (at,)) for role, at in positions.items()}
    taken = {*extras.values()}.union(*parts.values())
    for role, words in EXTRAS.items():
        free = [i for i in range(len(table.names)) if i not in taken]
        matches = [i for word in words for i in free if squashed(table.names[i]) == word]
        if role not in extras and matches and _can_be(table, role, matches[0]):
            extras[role] = matches[0]
            taken.add(matches[0])
    return parts | {role: (at,) for role, at in extras.items()}


def _build(table: Table, repeats: Repeats, options: ReadingOptions) -> Responses:
    """Code the rows of a table batch by batch, and weigh those that say how much."""
    is_by_order = "order" in table.names and repeats != "runs"
    extras = [role for role in ("weight", "order", "group", "confidence") if role in table.names]
    builder = Builder(repeats, table.source)
    orders: list[list[Any] | None] = []  # of the classes, as the label of each batch has it
    n_spaced = 0
    wanted = [*IDS, *extras]
    for columns in table.batches([table.names.index(role) for role in wanted]):
        bare, n = stripped(table, columns)
        rows = dict(zip(wanted, bare, strict=True))
        n_spaced += n
        more = {role: rows[role] for role in extras}
        if "weight" in more:
            more["weight"] = read_weights(rows["weight"], table.source, builder.n_rows)
        if "confidence" in more:
            more["confidence"] = as_numbers(rows["confidence"])[0]
        if is_by_order:
            rows["worker"] = _with_order(rows["worker"], more.pop("order"))
        is_ordered = getattr(rows["label"].type, "ordered", False)
        order = rows["label"].dictionary.to_pylist() if is_ordered else None
        if order not in orders:
            orders.append(order)
        builder.add(*(rows[role] for role in IDS), **more)
    if n_spaced:
        note("spaces-stripped", table=table.title, n=n_spaced)
    if len(orders) > 1 and all(orders):
        note("other-category-order", column="label")
    order = orders[0] if len(orders) == 1 else None
    tasks, _, labels = builder.names()
    classes = options.classes if order is None else [*order, *(options.classes or ())]
    responses = builder.finish(
        tasks=None if options.tasks is None else like(tasks, options.tasks, "tasks"),
        classes=None if classes is None else like(labels, classes, "classes"),
        frame=table.frame,
    )
    if order is not None:
        responses = responses.with_class_order(Ids(order))
    if options.scale is None or (isinstance(options.scale, str) and options.scale == AUTO):
        return responses
    return _on_scale(responses, table, read_scale(options.scale))


def _on_scale(responses: Responses, table: Table, scale: Scale) -> Responses:
    """Return responses with the levels of a scale as classes; name the rows that are off it."""
    if (scale.codes(responses.classes) < 0).any():
        (label,) = table.read([table.names.index("label")])
        column = Ids(label)
        wrong = np.flatnonzero((scale.codes(column) < 0) & np.asarray(column.values.is_valid()))
        if len(wrong):
            places = "; ".join(table.source.where(int(row)) for row in wrong[:SHOWN])
            names = [column[int(row)] for row in wrong[:SHOWN]]
            scale.refuse(names, len(wrong), places)
    return scale.on(responses)


def _sample_as_run(table: Table, chosen: dict[str, object]) -> int | None:
    """Take `sample` for the run where exactly one other column can be the task."""
    samples = [i for i, name in enumerate(table.names) if squashed(name) in PERHAPS_RUN]
    if len(samples) != 1:
        return None
    if "task" in chosen:
        is_task = table.names[samples[0]] == chosen["task"]
        return None if is_task else samples[0]
    words = {TASK.name, *TASK.others} - set(PERHAPS_RUN)
    others = [name for name in table.names if squashed(name) in words]
    if len(others) != 1:
        return None
    chosen["task"] = others[0]
    pairs = [(table.names[samples[0]], "run"), (others[0], "task")]
    note("columns-read-as", table=table.title, pairs=pairs)
    return samples[0]


def _can_be(table: Table, role: str, position: int) -> bool:
    """Look at values where a name alone may mislead."""
    name = table.names[position]
    if role == "order" and len(_distinct(table, position, MOST_ORDERS)) > MOST_ORDERS:
        note("no-order", table=table.title, column=name, n=MOST_ORDERS)
        return False
    if squashed(name) == "epoch":
        import pyarrow as pa

        values = pa.array([str(value) for value in _distinct(table, position, 1)])
        numbers, _ = as_numbers(values)
        return not (numbers >= LATEST_EPOCH).any()
    return True


def _distinct(table: Table, position: int, most: int) -> set[Any]:
    """Return the values of a column, one more than `most` of them at most."""
    seen: set[Any] = set()
    for (column,) in table.batches([position]):
        seen.update(value for value in column.unique().to_pylist() if value is not None)
        if len(seen) > most:
            break
    return seen


def _composed(columns: Sequence[Column]) -> Column:
    """Make one column of ids from several; a missing part makes the id missing."""
    if len(columns) == 1:
        return columns[0]
    import pyarrow.compute as pc

    return _text_of(*(pc.replace_substring(as_text(c), SEPARATOR, " \\| ") for c in columns))


def _with_order(worker: Column, order: Column) -> Column:
    """Write the order into the worker; where there is none the worker stays."""
    import pyarrow.compute as pc

    who, at = as_text(worker), as_text(order)
    ending = _text_of("[order=", at, "]", by="")
    return pc.if_else(pc.is_valid(at), _text_of(who, ending, by=" "), who)


def _text_of(*parts: Any, by: str = SEPARATOR) -> Column:
    """Join texts row by row; a missing one makes all of it missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in (*parts, by)]
    return pc.binary_join_element_wise(*texts)


# Verdicts on two answers that were shown in either order. Whether a table has them as shown or
# turned back cannot be seen, unless labels name a place, such as "first".


def _turn(
    table: Table, parts: dict[str, tuple[int, ...]], is_turned: bool | None
) -> tuple[tuple[Any, Any], list[str]] | None:
    """Return two labels, and the orders in whose rows they are exchanged; None where none are.

    task  order  label        turned back
    q1    AB     A            A
    q1    BA     A            B    what was shown first is answer B

    `is_turned` says whether labels name answers already, whatever the order they were shown in;
    None: they do where nothing tells otherwise, and a note asks.
    """
    if "order" not in parts:
        if is_turned is not None:
            raise OptionError("turned-without-order", table=table.title)
        return None
    if is_turned:
        return None
    (position,) = parts["order"]
    of_column = {"table": table.title, "column": table.names[position]}
    pair, is_place = _pair(table, parts["label"][0])
    orders = sorted({str(v).strip() for v in _distinct(table, position, MOST_LABELS)})
    names = [["a", "b"], ["1", "2"]] if is_place else [list(map(str, pair))] if pair else []
    told = (first_classes(orders, Ids(each)) for each in names)
    firsts = next((each for each in told if None not in each), None)
    if pair is None or firsts is None:
        if is_turned is not None:
            raise InputError("cannot-turn", **of_column, orders=orders)
        if pair is not None and is_place and len(orders) > 1:
            note("order-not-told", **of_column, label=pair[0], orders=orders)
        return None
    swapped = [order for order, first in zip(orders, firsts, strict=True) if first == 1]
    if not swapped:
        return None
    if is_turned is None and not is_place:
        note("order-found", **of_column, label=pair[0])
        return None
    note("turned-back", **of_column, orders=swapped, pair=pair)
    return pair, swapped


def _turned_back(label: Column, order: Column, turn: tuple[tuple[Any, Any], list[str]]) -> Column:
    """Exchange the two labels in the rows of some orders."""
    import pyarrow as pa

    (first, second), orders = turn
    other = {first: second, second: first}
    values = [
        other.get(_bare(value), value) if at is not None and str(at).strip() in orders else value
        for value, at in zip(label.to_pylist(), order.to_pylist(), strict=True)
    ]
    return pa.array(values, getattr(label.type, "value_type", label.type))


def _bare(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _pair(table: Table, position: int) -> tuple[tuple[Any, Any] | None, bool]:
    """Return the two labels that name an answer, and whether they name where it was shown.

    None where there are not two; names of places come in the order of these.
    """
    given = set(map(_bare, _distinct(table, position, MOST_LABELS)))
    named = sorted((v for v in given if str(v).casefold() not in TIES), key=str)
    if len(named) == 1 and named[0] in OTHER_ONE:  # nobody chose the other
        named = sorted((named[0], OTHER_ONE[named[0]]), key=str)
    if len(named) != 2:
        return None, False
    by_word = {str(label).casefold(): label for label in named}
    place = next((each for each in PLACES if by_word.keys() == {*each}), None)
    pair = named if place is None else [by_word[word] for word in place]
    return (pair[0], pair[1]), place is not None


# Answers that hold several labels


def _split_labels(table: Table, labels: Sequence[Any]) -> Table:
    """Make one yes/no task of each task and label; a cell of text may hold a JSON list."""
    from tiebreak.tables.formats.records import AnswerRows

    rows = AnswerRows(table.title, "plain table", ReadingOptions(multi_label=True))
    others = [role for role in table.names if role != "label"]
    columns = table.read([table.names.index(role) for role in others])
    each = zip(*(column.to_pylist() for column in columns), strict=True)
    for i, (values, marks) in enumerate(zip(each, labels, strict=True)):
        place = Place(table.source, i)
        rows.add(place, label=_marks(marks), **dict(zip(others, values, strict=True)))
    return rows.finish().table


def _marks(cell: Any) -> Any:
    """Read a list of labels; anything else stays one label."""
    if not isinstance(cell, str) or not cell.startswith("["):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


# What is odd about responses


def _note_rows_against_time(table: Table, made: Table, names: dict[str, str]) -> None:
    """Report how many rows count although the same worker answered the same task later.

    Rows count in the order of the table, whatever its columns.

    task  worker  label  timestamp
    a     ann     x      2024-02-02
    a     ann     y      2024-01-30      this row counts, and is the earlier one
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    called_so = [name for name in table.names if squashed(name) in TIMES]
    name = names.get("time", called_so[0] if len(called_so) == 1 else None)
    if name is None:
        return
    try:
        (times,) = table.read([table.names.index(name)])
    except InputError:  # of mixed types: nobody asked for this column, so nothing is lost
        return
    kind = times.type
    if is_text(kind):
        is_sorted = pc.all(pc.match_substring_regex(times, SORTS_AS_TIME)).as_py()
    else:
        kinds = (pa.types.is_temporal, pa.types.is_integer, pa.types.is_floating)
        is_sorted = any(is_kind(kind) for is_kind in kinds)
    (task, _), (worker, workers) = map(ids.encode, made.read([0, 1]))
    if not is_sorted or len(task) != len(times):  # no times, or answers were split
        return
    rank = pc.rank(times, tiebreaker="dense").to_numpy().astype(np.float64)
    rank[~np.asarray(times.is_valid())] = np.nan
    pair = task.astype(np.int64) * len(workers) + worker
    by_pair = np.argsort(pair, kind="stable")
    is_same = np.diff(pair[by_pair]) == 0
    n_late = int(np.count_nonzero(is_same & (np.diff(rank[by_pair]) < 0.0)))
    if n_late:
        note("rows-against-time", n=n_late, column=name)


def _note_odd_names(responses: Responses, *, is_declared: bool) -> None:
    """Report what is odd about the classes of responses, unless declared, and about their ids."""
    # Ids that are one number, written as 1 and 1.0, come of tables that were joined: a column of
    # whole numbers with a gap in it is written as 1.0, 2.0 … by many tools.
    for what, known in (("task", responses.tasks), ("worker", responses.workers)):
        twins = number_twins(known)
        if twins:
            note("number-twins", what=what, first=twins[0][0], other=twins[0][1], n=len(twins))
    classes = responses.classes
    n_classes = len(classes)
    if n_classes > MANY_CLASSES or (n_classes >= responses.n_tasks >= FEW_TASKS):
        note("many-classes", n=n_classes, n_tasks=responses.n_tasks)
    if n_classes > MANY_CLASSES * MANY_CLASSES:
        return  # not labels at all: looking at each is of no use
    if is_declared:
        return
    for group in variants(classes)[:SHOWN]:
        note("labels-alike", labels=group)
    for name in classes:
        if isinstance(name, str) and name.casefold() in NOTHING:
            note("label-for-nothing", label=name)
