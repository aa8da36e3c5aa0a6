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
from typing import Any

from tiebreak.errors import InputError, note
from tiebreak.files.columns import EXTRAS, PREFIX, existing, positions_of, squashed
from tiebreak.files.content import Content, TableFiles
from tiebreak.files.shards import contents, open_one
from tiebreak.files.table import Table
from tiebreak.ids import Column, as_list, is_arrow, is_text
from tiebreak.wording import Source

MOST_OPEN = 100  # files held open; a process may have 256 on some systems
LARGE = 1 << 24  # bytes of all files: Parquet of so many has the rows from which one is streamed
NO_IDS = frozenset(name for names in EXTRAS.values() for name in names)  # text or numbers alike
KINDS = {str: "text", bool: "true or false", int: "numbers", float: "numbers"}


@dataclass(frozen=True, slots=True)
class FileFinder:
    """Callable: row (from 0) of a chained table to its row in its file; it pickles."""

    sources: list[Source] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # rows before each file that was reached

    def __call__(self, row: int) -> int:
        """Return the row within its file."""
        return row - self.starts[bisect_right(self.starts, row) - 1]

    def source_of(self, row: int) -> Source:
        """Return the file in which a row stands."""
        return self.sources[bisect_right(self.starts, row) - 1]


class ChainedSource(Source):
    """Where rows of several files came from: names the file, and its line."""

    __slots__ = ()

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        source, row = self._split(row)
        return source.where(row)

    def origin(self, row: int) -> tuple[str, int]:
        """Return the file of a row, and its row there, counted from 0."""
        source, row = self._split(row)
        return source.name, row

    def _split(self, row: int) -> tuple[Source, int]:
        if not isinstance(self.line_of, FileFinder):
            raise TypeError("A chained source needs a FileFinder.")
        return self.line_of.source_of(row), self.line_of(row)


def chained_table(files: TableFiles, open_table: Callable[[Content], Table]) -> Table:
    """Make one table of several files, each opened by `open_table`; empty ones are left out."""
    chain = TableChain(files, open_table)
    return Table(
        tuple(chain.owners),
        chain.load,
        ChainedSource(files.name, chain.finder),
        has_header=chain.has_header,
        stream=chain.stream if chain.is_large else None,
        order_of=chain.order_of,
    )


class TableChain:
    """The tables of several files; of large ones one is open at a time."""

    def __init__(self, files: TableFiles, open_table: Callable[[Content], Table]) -> None:
        self.owners: dict[str, str] = {}  # of each column: the first file that has it
        self.finder = FileFinder()
        self.has_header = False
        self.is_large = files.size >= LARGE
        self._files = files
        self._open_table = open_table
        self._most_open = 1 if self.is_large else MOST_OPEN
        self._paths: list[str] = []
        self._opened: dict[str, Table] = {}
        for path, content in contents(files):
            self._look_at(path, self._open(path, content))

    def _open(self, path: str, content: Content) -> Table:
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
        return self._open(path, content)

    def _look_at(self, path: str, table: Table) -> None:
        self._paths.append(path)
        self.finder.sources.append(table.source)
        self.has_header |= table.has_header
        self.is_large |= table.stream is not None
        known = Table(tuple(self.owners), table.load)
        new = (name for name in table.names if not positions_of(known, name))
        self.owners |= dict.fromkeys(new, path)

    def order_of(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column, where all files have the same."""
        name = list(self.owners)[position]
        tables = map(self._table_of, self._paths)
        orders = (table.category_order(self._position(table, name)) for table in tables)
        first = next(orders)
        if first is None or all(order == first for order in orders):
            return first
        note(f"The files order the categories of {name!r} otherwise: classes are sorted.")
        return None

    def load(self, positions: Sequence[int]) -> list[Column]:
        """Read columns of all files at once."""
        return [*map(joined_column, zip(*self.stream(positions), strict=True))]

    def stream(self, positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        """Read columns piece by piece, each piece as the first one that has a value.

        Pieces wait until every column has one, which tells its type.
        """
        first: list[Column | None] = [None] * len(positions)
        waiting: list[Sequence[Column]] = []
        for columns in self._pieces(positions):
            waiting.append(columns)
            for i, column in enumerate(columns):
                if first[i] is None and kind_of(column) is not None:
                    first[i] = column
            if None not in first:
                yield from ([*map(typed_like, piece, first)] for piece in waiting)
                waiting = []
        yield from waiting  # a column without any value

    def _pieces(self, positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        names = [list(self.owners)[i] for i in positions]
        seen: dict[str, tuple[str, str]] = {}  # by column: what it holds, and where
        n_rows = 0
        self.finder.starts.clear()
        for path in self._paths:
            table = self._table_of(path)
            self.finder.starts.append(n_rows)
            for columns in table.batches([self._position(table, name) for name in names]):
                for name, column in zip(names, columns, strict=True):
                    _refuse_other_kind(name, column, path, seen)
                n_rows += len(columns[0])
                yield columns

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
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(test(kind) for test in numbers):
        return "numbers"
    return KINDS[bool] if pa.types.is_boolean(kind) else str(kind)


def typed_like(column: Column, first: Column) -> Column:
    """Give a piece of a column the type of another; it stays where its values do not allow that."""
    if not is_arrow(first):
        return as_list(column)
    import pyarrow as pa

    if is_arrow(column) and kind_of(column) == kind_of(first) == "text":
        return column  # whose coder takes any type of text
    kind = getattr(first.type, "value_type", first.type)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        kind = pa.int64()  # which holds what the next file may have
    try:
        return column.cast(kind) if is_arrow(column) else pa.array(column, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        if is_arrow(column):
            return column
        raise InputError(
            f"The files do not hold one column as one type ({kind}): one has {column[:3]!r} … "
            "Write all files with one type, for instance text."
        ) from None


def joined_column(pieces: Sequence[Column]) -> Column:
    """Join pieces of a column; whole numbers beside fractions become fractions."""
    if not all(map(is_arrow, pieces)):
        return [value for piece in pieces for value in as_list(piece)]
    import pyarrow as pa

    tables = [pa.table([piece], ["column"]) for piece in pieces]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException:  # numbers beside text that is none: whoever reads it says so
        return [value for piece in pieces for value in as_list(piece)]


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
