"""Opening the tables of one job together, so that one list of column names serves them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from tiebreak.errors import OptionError
from tiebreak.files import schemas
from tiebreak.files.columns import Role, Schema, has_column
from tiebreak.files.content import is_packed
from tiebreak.files.response_columns import EXTRAS
from tiebreak.files.sources import as_table
from tiebreak.files.table import Table
from tiebreak.files.task_values import SELECTION, SYSTEMS

WITH_EXTRAS = schemas.RESPONSES._replace(
    roles=(
        *schemas.RESPONSES.roles,
        *(Role(name, frozenset(words), is_needed=False) for name, words in EXTRAS.items()),
    )
)
SCHEMAS = {
    "responses": WITH_EXTRAS,
    "labels": schemas.LABELS,
    "links": schemas.LINKS,
    "gold": schemas.GOLD,
    "given": schemas.GOLD,
    "truth": schemas.GOLD,
    "tasks": schemas.TASKS,
    "among": schemas.TASKS,
    "texts": schemas.TEXTS,
    "systems": SYSTEMS,
    "selection": SELECTION,
}

Read = TypeVar("Read")


class OpenTable(NamedTuple):
    """A table, or packed responses, with the names that the caller gave its columns."""

    source: Any
    columns: dict[str, object]
    options: dict[str, Any] = {}  # noqa: RUF012 - of the reader, such as a format; never changed

    def read(self, reader: Callable[..., Read], **options: Any) -> Read:
        """Read the table with one of the readers of this room."""
        return reader(self.source, columns=self.columns, **self.options, **options)


def open_tables(sources: Mapping[str, Any], columns: Mapping[str, object]) -> dict[str, OpenTable]:
    """Open tables, by what they hold (see SCHEMAS), and share out the names of columns.

    A name goes to each table that has a use for it and a column of that name. One that no table
    has goes to the first that could use it, whose reader then says what is wrong. Sources that
    are None are left out; a key that no table can use is refused.

    Examples
    --------
    >>> responses = {"item": ["a"], "worker": ["ann"], "label": ["cat"]}
    >>> gold = {"task": ["a"], "truth": ["cat"]}
    >>> opened = open_tables({"responses": responses, "gold": gold}, {"task": "item"})
    >>> opened["responses"].columns, opened["gold"].columns
    ({'task': 'item'}, {})
    """
    opened = {
        what: OpenTable(source if is_packed(source) else _open(source, SCHEMAS[what]), {})
        for what, source in sources.items()
        if source is not None
    }
    tables = {what: each for what, each in opened.items() if isinstance(each.source, Table)}
    for role, name in columns.items():
        users = [each for what, each in tables.items() if role in SCHEMAS[what].names]
        if not users:
            raise _without_use(role, tables)
        holders = [each for each in users if has_column(each.source, str(name))]
        for each in holders or users[:1]:
            each.columns[role] = name
    return opened


def _open(source: Any, schema: Schema) -> Table:
    return as_table(source, schema.names, len(schema.needed))


def _without_use(role: str, tables: Mapping[str, OpenTable]) -> OptionError:
    if not tables:
        return OptionError(
            "columns (--columns) names columns of tables; packed responses have none. Leave it out."
        )
    allowed = dict.fromkeys(name for what in tables for name in SCHEMAS[what].names)
    return OptionError.unknown("columns: the key", role, tuple(allowed))
