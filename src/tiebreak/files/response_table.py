"""Responses of a table: which of its columns make them, and its rows, coded batch by batch.

Beside task, worker and label there may be composed ids, runs, the order of presentation:

    question  turn  model  prompt  run  order  label
    q1        1     gpt    short   1    AB     yes

With `task_columns=["question", "turn"]` and `worker_columns=["model", "prompt"]` the task is
"q1 | 1" and the worker "gpt | short". Runs are the same worker again, and so are orders: weighed
by how much they err together (`responses/weighing.py`). Where the caller settles repeats in another
way, each order is a worker of its own, "gpt | short [order=AB]": who sees two answers the other way
round may judge otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tiebreak.errors import OptionError, ResponseError, note
from tiebreak.files.columns import (
    EXTRAS,
    LABEL,
    PREFIX,
    RESPONSES,
    TASK,
    chosen_column,
    find_columns,
    squashed,
)
from tiebreak.files.table import Table, like, needs_strip, stripped
from tiebreak.ids import (
    SEPARATOR,
    Column,
    as_list,
    composed,
    difference,
    is_arrow,
    number_twins,
    variants,
)
from tiebreak.responses import Builder, Built, MixedLabelsError, Repeats, Responses, read_weights
from tiebreak.wording import counted

PERHAPS_RUN = ("sample", "sampleid")  # a run where another column is the task
MOST_ORDERS = 6  # of three answers; a column with more values is a place in a queue
LATEST_EPOCH = 1_000_000  # above it, an "epoch" is a time in seconds
NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "#n/a"})
MANY_CLASSES = 50
FEW_TASKS = 10  # below, as many classes as tasks say nothing
SHOWN = 5  # groups of labels that differ in their form only


class Batch(NamedTuple):
    """Some rows of responses; `weight` is None where every response counts once."""

    task: Column
    worker: Column
    label: Column
    weight: Column | None = None


class ResponseColumns(NamedTuple):
    """Which columns make the task, the worker and the label; the others by role."""

    task: tuple[int, ...]
    worker: tuple[int, ...]
    label: int
    extras: dict[str, int]

    def batches(self, table: Table) -> Iterator[Batch]:
        """Yield task, worker, label and weight, piece by piece where the table is large."""
        n_task = len(self.task)
        n_ids = n_task + len(self.worker)
        more = [role for role in ("order", "weight") if role in self.extras]
        positions = [*self.task, *self.worker, self.label, *(self.extras[role] for role in more)]
        for columns in table.batches(positions):
            extras = dict(zip(more, columns[n_ids + 1 :], strict=True))
            worker = joined(columns[n_task:n_ids])
            if "order" in extras:
                worker = _with_order(worker, extras["order"])
            yield Batch(joined(columns[:n_task]), worker, columns[n_ids], extras.get("weight"))

    def without_order(self) -> ResponseColumns:
        """Return the same without the order, which then is no part of the worker."""
        extras = {role: at for role, at in self.extras.items() if role != "order"}
        return self._replace(extras=extras)

    def can_weigh(self, table: Table, n_repeats: int) -> bool:
        """Tell whether confidence and group can be used where repeats are not kept as runs."""
        if not {"confidence", "group"} & set(self.extras):
            return False
        if n_repeats or "order" in self.extras:
            if "confidence" in self.extras:
                note(f"{table.title}: column 'confidence' is used with repeats='runs' only.")
            return False
        return True

    def understood(self, table: Table) -> dict[str, str]:
        """Return the names of the columns that were read, by role."""
        composed_of = {"task": self.task, "worker": self.worker, "label": (self.label,)}
        named = {role: (at,) for role, at in self.extras.items()}
        return {
            role: SEPARATOR.join(table.names[i] for i in positions)
            for role, positions in (composed_of | named).items()
        }


def find_response_columns(
    table: Table,
    chosen: Mapping[str, object] | None,
    task_columns: Sequence[str] | None = None,
    worker_columns: Sequence[str] | None = None,
    *,
    tell_use: bool = True,
) -> ResponseColumns:
    """Find the columns of responses; what is composed need not be found by name."""
    chosen = dict(chosen or {})
    named = {role: chosen.pop(role) for role in EXTRAS if role in chosen}
    extras = {role: chosen_column(table, RESPONSES, role, n) for role, n in named.items()}
    several = {"task": task_columns, "worker": worker_columns}
    parts = {role: _positions(table, role, names, chosen) for role, names in several.items()}
    chosen |= {role: table.names[found[0]] for role, found in parts.items() if found}
    run = _sample_as_run(table, chosen)
    if run is not None:
        extras.setdefault("run", run)
    found = find_columns(_without_parts(table, parts), RESPONSES, chosen)
    task = parts["task"] or (found["task"],)
    worker = parts["worker"] or (found["worker"],)
    taken = {*task, *worker, found["label"], *extras.values()}
    extras |= _find_extras(table, taken, set(extras))
    if tell_use:
        _tell_use(table, extras)
    return ResponseColumns(task, worker, found["label"], extras)


def _without_parts(table: Table, parts: Mapping[str, tuple[int, ...]]) -> Table:
    """Rename columns that are part of a composed id, so that no other role takes them."""
    names = list(table.names)
    for role, positions in parts.items():
        for i in positions[1:]:
            names[i] = f"{names[i]} (part of the {role})"
    return replace(table, names=tuple(names))


def _positions(
    table: Table, role: str, names: Sequence[str] | None, chosen: Mapping[str, object]
) -> tuple[int, ...]:
    if not names:
        return ()
    if role in chosen:
        raise OptionError(
            f"The {role} is named twice: columns={{{role!r}: …}} (--columns {role}=…) and "
            f"{role}_columns= (--{role}-columns). Give one of them."
        )
    if isinstance(names, str):
        raise OptionError(f"{role}_columns takes a list of names; got {names!r}.")
    return tuple(chosen_column(table, RESPONSES, role, name) for name in names)


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
    note(f"{table.title}: read column {table.names[samples[0]]!r} as run, {others[0]!r} as task.")
    return samples[0]


def _find_extras(table: Table, taken: set[int], known: set[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for role, words in EXTRAS.items():
        if role in known:
            continue
        free = [i for i in range(len(table.names)) if i not in taken]
        matches = [i for word in words for i in free if squashed(table.names[i]) == word]
        if matches and _can_be(table, role, matches[0]):
            found[role] = matches[0]
            taken.add(matches[0])
    return found


def has_soft_votes(table: Table, chosen: Mapping[str, object] | None) -> bool:
    """Tell whether a table has a probability for each class, and no label."""
    if len(probability_columns(table)) < 2 or "label" in (chosen or {}):
        return False
    words = {LABEL.name, *LABEL.others}
    return not any(squashed(name) in words for name in table.names)


def probability_columns(table: Table) -> list[int]:
    """Return which columns hold the probability of a class."""
    return [i for i, name in enumerate(table.names) if name.casefold().startswith(PREFIX)]


def default_repeats(found: ResponseColumns) -> Repeats:
    """Return what counts where a worker labelled a task twice, and the caller has not said."""
    return "runs" if {"run", "order"} & set(found.extras) else "last"


def tell_order(table: Table, found: ResponseColumns) -> None:
    """Say that each order is a worker of its own."""
    if "order" not in found.extras:
        return
    name = table.names[found.extras["order"]]
    note(
        f"{table.title}: column {name!r} is the order of presentation; each "
        "worker and order is a worker of its own."
    )


def _tell_use(table: Table, extras: Mapping[str, int]) -> None:
    """Say which columns change what responses count for."""
    if "weight" in extras:
        note(
            f"{table.title}: column {table.names[extras['weight']]!r} says how often each response "
            "counts. If it means something else, rename it."
        )


def _can_be(table: Table, role: str, position: int) -> bool:
    """Look at values where a name alone may mislead."""
    name = table.names[position]
    if role == "order":
        values = distinct(table, position, MOST_ORDERS)
        if len(values) > MOST_ORDERS:
            note(
                f"{table.title}: column {name!r} has more than {MOST_ORDERS} values, so it is not "
                "read as the order of presentation."
            )
            return False
    if squashed(name) == "epoch":
        largest = max((_number(value) for value in distinct(table, position, 1)), default=0.0)
        return largest < LATEST_EPOCH
    return True


def distinct(table: Table, position: int, most: int) -> set[Any]:
    """Return the values of a column, one more than `most` of them at most."""
    seen: set[Any] = set()
    for (column,) in table.batches([position]):
        values = column.unique().to_pylist() if is_arrow(column) else column
        seen.update(value for value in values if value is not None)
        if len(seen) > most:
            break
    return seen


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0


def joined(columns: Sequence[Column]) -> Column:
    """Make one column of ids from several; a missing part makes the id missing."""
    if len(columns) == 1:
        return columns[0]
    if not all(is_arrow(column) for column in columns):
        lists = [as_list(column) for column in columns]
        rows = zip(*lists, strict=True)
        return [None if None in parts else composed(parts) for parts in rows]
    import pyarrow.compute as pc

    marked = [pc.replace_substring(column.cast("string"), SEPARATOR, " \\| ") for column in columns]
    return pc.binary_join_element_wise(*marked, SEPARATOR)


def _with_order(worker: Column, order: Column) -> Column:
    """Write the order into the worker; where there is none the worker stays."""
    if not (is_arrow(worker) and is_arrow(order)):
        return [
            who if who is None or at is None else f"{who} [order={at}]"
            for who, at in zip(as_list(worker), as_list(order), strict=True)
        ]
    import pyarrow.compute as pc

    who = worker.cast("string")
    at = order.cast("string")
    named = pc.binary_join_element_wise(who, " [order=", at, "]", "")
    return pc.if_else(pc.is_valid(at), named, who)


def build(
    table: Table,
    found: ResponseColumns,
    repeats: Repeats,
    *,
    tasks: Column | None,
    classes: Column | None,
) -> Built:
    """Take the rows of a table; where spaces stand around ids, once more without them.

    `tasks` and `classes` exist even where no row names them.
    """
    builder = Builder(repeats, table.source)
    last = _add_rows(builder, table, found, strip=False)
    if needs_strip(table, builder.names()):  # rare: read again rather than look at every value
        builder = Builder(repeats, table.source)
        last = _add_rows(builder, table, found, strip=True)
    try:
        return builder.finish(
            tasks=None if tasks is None else like(last.task, tasks, "tasks"),
            classes=None if classes is None else like(last.label, classes, "classes"),
        )
    except MixedLabelsError as error:
        raise ResponseError(f"{_first_mixed(last.label, table)}{error}") from None


def _add_rows(builder: Builder, table: Table, found: ResponseColumns, *, strip: bool) -> Batch:
    """Hand all rows to a builder; return the last of them, which tell the types of ids."""
    for batch in found.batches(table):
        weight = None
        if batch.weight is not None:
            weight = read_weights(batch.weight, table.source, builder.n_rows)
        ids = stripped(table, batch[:3]) if strip else batch[:3]
        builder.add(*ids, weight=weight, is_large=table.stream is not None)
    return batch


def _first_mixed(labels: Column, table: Table) -> str:
    """Say where the first label of another type stands, beside the first of all."""
    given = [(row, value) for row, value in enumerate(as_list(labels)) if value is not None]
    (row, first), *others = given
    for other, value in others:
        if not isinstance(value, type(first)):
            where = f"{table.source.where(other)}: the label is {value!r}"
            return f"{where}, and {first!r} in {table.source.where(row)}. "
    return ""


def note_odd_classes(responses: Responses) -> None:
    """Say what is odd about the classes of responses."""
    classes = responses.classes
    n_classes = len(classes)
    if n_classes > MANY_CLASSES or (n_classes >= responses.n_tasks >= FEW_TASKS):
        note(
            f"There are {n_classes:,} classes for {responses.n_tasks:,} tasks: is this the label "
            "column? Text answers must be grouped into classes first."
        )
    if n_classes > MANY_CLASSES * MANY_CLASSES:
        return  # not labels at all: looking at each is of no use
    for group in variants(classes)[:SHOWN]:
        note(
            f"Labels {', '.join(map(repr, group))} {difference(group)}, "
            "and are different classes. Write them alike, or join them with --fold-labels "
            "(responses.with_folded_labels())."
        )
    empty = [name for name in classes if isinstance(name, str) and name.casefold() in NOTHING]
    for name in empty:
        note(
            f"The label {name!r} is read as a class of its own. If it means no answer, leave the "
            "field empty."
        )


def check_twin_ids(responses: Responses, file: str) -> None:
    """Say which ids are one number written in two ways; of a file, refuse 1 beside the text '1'.

    Such ids come of tables that were joined: a column of whole numbers with a gap in it is
    written as 1.0, 2.0 … by many tools. Rows of Python have no file, and their ids no form but
    their own: 1 and '1' are two.
    """
    for what, names in (("task", responses.tasks), ("worker", responses.workers)):
        twins = number_twins(names)
        mixed = [pair for pair in twins if not isinstance(pair[0], str)]
        if mixed and file:
            raise ResponseError(
                f"{file}: {what} {mixed[0][0]!r} is a number in one row and the text "
                f"{mixed[0][1]!r} in another. Write all ids of {what}s as numbers, or all as text."
            )
        written = [pair for pair in twins if isinstance(pair[0], str)]
        if not written:
            continue
        first, other = written[0]
        n_more = len(written) - 1
        more = f" (and {counted(n_more, 'more pair')})" if n_more else ""
        note(
            f"{what.title()}s {first!r} and {other!r}{more} are the same number, and are different "
            f"{what}s. Write them alike if they are one."
        )
