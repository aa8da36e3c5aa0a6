"""Chained tables: several files as one table, read one after the other.

    p1.csv               p2.csv                    the table
    task,worker,label    label,task,worker,note    task  worker  label  note
    a,ann,x              y,b,bob,late              a     ann     x      (refused if asked for:
                                                   b     bob     y       p1.csv has no note)

Columns are told by their names, wherever they stand. A row is found again in its file by the number
of rows before it, so that messages name the file and the line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tiebreak.errors import InputError, note
from tiebreak.files.columns import EXTRAS, PREFIX, existing, positions_of, squashed
from tiebreak.files.content import Content, TableFiles
from tiebreak.files.shards import contents, open_one
from tiebreak.files.table import Table
from tiebreak.ids import Column, as_list, is_arrow, is_text
from tiebreak.wording import Source

if TYPE_CHECKING:
    import pyarrow as pa

MOST_OPEN = 100  # files held open; a process may have 256 on some systems
LARGE = 1 << 24  # bytes of all files: Parquet of so many has the rows from which one is streamed
NO_IDS = frozenset(name for names in EXTRAS.values() for name in names)  # numbers, text or not
KINDS = {str: "text", bool: "true or false", int: "numbers", float: "numbers"}


@dataclass(frozen=True, slots=True)
class FileFinder:
    """Callable: row (from 0) of a chained table to its row in its file; it pickles."""

    sources: list[Source] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # rows before each file that was reached

    def __call__(self, row: int) -> int:
        """Return the row within its file."""
        return row - self.starts[self.file_of(row)]

    def file_of(self, row: int) -> int:
        """Return the number of the file in which a row stands."""
        return bisect_right(self.starts, row) - 1


class ChainedSource(Source):
    """Where rows of several files came from: names the file, and its line."""

    __slots__ = ()

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        if isinstance(self.line_of, FileFinder):
            return self.line_of.sources[self.line_of.file_of(row)].where(self.line_of(row))
        return super().where(row)

    def origin(self, row: int) -> tuple[str, int]:
        """Return the file in which a row stands, and its row there."""
        if isinstance(self.line_of, FileFinder):
            return self.line_of.sources[self.line_of.file_of(row)].name, self.line_of(row)
        return super().origin(row)


def chained_table(
    files: TableFiles, open_table: Callable[[Content], Table], *, hold: bool = False
) -> Table:
    """Make one table of several files, each opened by `open_table`; empty ones are left out.

    `hold`: tables are kept in memory as they are opened, as it takes long to make them.
    """
    most_open = MOST_OPEN if files.size < LARGE else 1
    chain = Chain(files, open_table, None if hold else most_open)
    is_large = chain.has_streams or files.size >= LARGE
    return Table(
        tuple(chain.owners),
        chain.load,
        ChainedSource(files.name, chain.finder),
        has_header=chain.has_header,
        stream=chain.stream if is_large and not hold else None,
        order_of=chain.order_of,
    )


class Chain:
    """The tables of several files; of large ones one is open at a time."""

    def __init__(
        self, files: TableFiles, open_table: Callable[[Content], Table], most_open: int | None
    ) -> None:
        self.owners: dict[str, str] = {}  # of each column: the first file that has it
        self.finder = FileFinder()
        self.has_header = False
        self.has_streams = False
        self._files = files
        self._open_table = open_table
        self._most_open = most_open
        self._paths: list[str] = []
        self._opened: dict[str, Table] = {}
        for path, content in contents(files):
            self._look_at(path, self._keep(path, content))

    def _keep(self, path: str, content: Content) -> Table:
        """Open a table; those open before are closed where there are too many."""
        if len(self._opened) == self._most_open:
            self._opened.clear()
        self._opened[path] = self._open_table(content)
        return self._opened[path]

    def _table_of(self, path: str) -> Table:
        if path in self._opened:
            return self._opened[path]
        content = open_one(self._files, path)
        if content is None:
            raise InputError(f"{path} was emptied while it was read. Read the files again.")
        return self._keep(path, content)

    def _look_at(self, path: str, table: Table) -> None:
        self._paths.append(path)
        self.finder.sources.append(table.source)
        self.has_header |= table.has_header
        self.has_streams |= table.stream is not None
        known = Table(tuple(self.owners), table.load)
        for name in table.names:
            if not positions_of(known, name):
                self.owners[name] = path

    def order_of(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column, where all files have the same."""
        name = list(self.owners)[position]
        first: list[Any] | None = None
        for path in self._paths:
            table = self._table_of(path)
            order = table.category_order(self._position(table, name))
            if path == self._paths[0]:
                first = order
            if first is None:
                return None
            if order != first:
                note(
                    f"{path} has not the ordered categories of {self._paths[0]} in column "
                    f"{name!r}: classes are sorted."
                )
                return None
        return first

    def load(self, positions: Sequence[int]) -> list[Column]:
        """Read columns of all files at once."""
        pieces = zip(*self._pieces(positions), strict=True)
        return [joined_column(list(column)) for column in pieces]

    def stream(self, positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        """Read columns piece by piece, each of the type of its first piece.

        Pieces wait until every column has a value, which tells its type.
        """
        first: list[Column | None] = [None] * len(positions)
        waiting: list[list[Column]] = []
        for columns in self._pieces(positions):
            waiting.append(columns)
            for i, column in enumerate(columns):
                if first[i] is None and kind_of(column) is not None:
                    first[i] = column
            if None not in first:
                yield from ([*map(typed_like, piece, first)] for piece in waiting)
                waiting = []
        yield from waiting  # a column without any value

    def _pieces(self, positions: Sequence[int]) -> Iterator[list[Column]]:
        names = [list(self.owners)[i] for i in positions]
        seen: dict[str, tuple[str, str]] = {}  # by column: what it holds, and where
        n_rows = 0
        self.finder.starts.clear()
        for path in self._paths:
            table = self._table_of(path)
            at = [self._position(table, name) for name in names]
            self.finder.starts.append(n_rows)
            for columns in table.batches(at):
                n_rows += len(columns[0])
                for name, column in zip(names, columns, strict=True):
                    _refuse_other_kind(name, column, path, seen)
                yield list(columns)

    def _position(self, table: Table, name: str) -> int:
        found = positions_of(table, name)
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f"{table.title} has {len(found)} columns called {name!r}. Rename all but one."
            )
        raise InputError(
            f"{table.title} has no column {name!r}, which {self.owners[name]} has. "
            f"{existing(table)}\nAdd it, or leave it out of all files."
        )


def kind_of(column: Column) -> str | None:
    """Say what a column holds; None where every value is missing.

    >>> kind_of([None, "a"]), kind_of([1.5]), kind_of([None])
    ('text', 'numbers', None)
    """
    if not is_arrow(column):
        first = next((value for value in column if value is not None), None)
        return None if first is None else KINDS.get(type(first), type(first).__name__)
    if column.null_count == len(column):
        return None
    import pyarrow as pa

    kind = getattr(column.type, "value_type", column.type)  # of a dictionary: its values
    if is_text(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "numbers" if _is_number(kind) else str(kind)


def joined_column(pieces: Sequence[Column]) -> Column:
    """Join pieces of a column; whole numbers beside fractions become fractions."""
    if not all(is_arrow(piece) for piece in pieces):
        return [value for piece in pieces for value in as_list(piece)]
    import pyarrow as pa

    known = {kind_of(piece) for piece in pieces} - {None}
    tables = [
        pa.table([pa.nulls(len(piece)) if kind_of(piece) is None else piece], ["column"])
        for piece in pieces
    ]
    if len(known) > 1:  # no ids: text and numbers are both read as numbers, or as text
        tables = [table.cast(pa.schema({"column": pa.string()})) for table in tables]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException as error:
        raise InputError(
            f"The files hold a column of types that cannot be joined: {error}."
        ) from None


def typed_like(column: Column, first: Column) -> Column:
    """Give a piece of a column the type that the first one has; what has no ids may have others."""
    if not is_arrow(first):
        return as_list(column)
    import pyarrow as pa

    kind = getattr(first.type, "value_type", first.type)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        kind = pa.int64()  # which holds what the next file may have
    if not is_arrow(column):
        return pa.array(column, kind)
    if kind_of(column) is None:
        return pa.nulls(len(column), kind)
    if is_text(kind) or not _is_number(kind) or not _is_number(column.type):
        return column
    is_fraction = pa.types.is_floating(column.type) and pa.types.is_integer(kind)
    return column if is_fraction else column.cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _refuse_other_kind(
    name: str, column: Column, path: str, seen: dict[str, tuple[str, str]]
) -> None:
    """Refuse a column of ids that holds text in one file, and numbers in another."""
    kind = kind_of(column)
    if kind is None or squashed(name) in NO_IDS or name.casefold().startswith(PREFIX):
        return
    before, where = seen.setdefault(name, (kind, path))
    if kind != before:
        raise InputError(
            f"Column {name!r} holds {before} in {where}, and {kind} in {path}. "
            "Write all files with one type, for instance text."
        )
