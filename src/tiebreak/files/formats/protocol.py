"""What a format is: it knows its files by their content, and turns records into rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypedDict

from tiebreak.errors import InputError
from tiebreak.files.table import Table

if TYPE_CHECKING:
    from tiebreak.files.formats.rows import Rows

Record = Mapping[str, Any]
KeepText = Callable[[Hashable, str], None]  # takes a task, and what to show for it
ComposedColumns = tuple[Sequence[str] | None, Sequence[str] | None]  # of task and worker
Container = Literal["json", "document", "delimited", "zip", "table"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller chose where a file leaves a choice."""

    question: str | None = None
    multi_label: bool = False
    task_pattern: str | None = None  # a regular expression that splits ids of tasks
    label_pattern: str | None = None  # a regular expression for the label inside a text
    label_pointer: str | None = None  # a JSON pointer to the label inside a JSON text
    wide: bool = False
    task_columns: Sequence[str] | None = None
    worker_columns: Sequence[str] | None = None
    order_column: str | None = None  # tells in which order two answers were shown
    turned: bool | None = None  # False: verdicts are as shown; None: not said
    columns: Mapping[str, object] = field(default_factory=dict)


class Imported(NamedTuple):
    """What a file holds: responses as a table, and the labels that it says are known."""

    table: Table
    gold: dict[Hashable, Hashable]
    is_named: bool = True  # its columns are called task, worker, label, as a format makes them
    form: str | None = None  # as a person would call the format; None of a plain table
    is_wide: bool = False  # it was, and its columns of workers are chosen by now

    def composed(self, options: FormatOptions) -> ComposedColumns:
        """Return which columns make up the task, and which the worker."""
        if self.is_wide:
            return None, None
        return options.get("task_columns"), options.get("worker_columns")


class FormatOptions(TypedDict, total=False):
    """The same as arguments of a reader; see `tiebreak.read_responses`."""

    question: str | None
    multi_label: bool
    task_pattern: str | None
    label_pattern: str | None
    label_pointer: str | None
    wide: bool
    task_columns: Sequence[str] | None
    worker_columns: Sequence[str] | None
    order_column: str | None
    turned: bool | None


def import_options(columns: Mapping[str, object] | None, options: FormatOptions) -> ImportOptions:
    """Gather what was chosen."""
    unknown = sorted(options.keys() - FormatOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"read_responses has no argument {unknown[0]!r}.")
    return ImportOptions(columns=dict(columns or {}), **options)


class Head(NamedTuple):
    """The beginning of a file: enough to know its format.

    `keys` are the columns of a table or the keys of the first record; `record` is the first
    record, empty for a table whose rows have not been read yet.
    """

    container: Container
    keys: tuple[str, ...]
    record: Record

    def has(self, *keys: str) -> bool:
        """Tell whether all these keys are there."""
        return set(keys) <= set(self.keys)


class RecordPlace(NamedTuple):
    """Where a record stands, so that an error can name it."""

    file: str
    noun: str  # "record", "line" or "row"
    number: int

    def __str__(self) -> str:
        return f"{self.file}, {self.noun} {self.number:,}"

    def error(self, message: str) -> InputError:
        """Describe what is wrong with this record."""
        return InputError(f"{self}: {message}")


LABEL_IN_TEXT = "label in text"  # what a format says that it has labels inside of texts
Records = Callable[[], Iterator[tuple[RecordPlace, Record]]]  # each call reads from the start


class Format(Protocol):
    """One way in which a tool writes labels."""

    name: str
    title: str  # as a person would call it
    choosable: tuple[str, ...]  # roles whose column the caller may choose, or LABEL_IN_TEXT

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        ...

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        ...


def need(record: Any, key: str, kind: type | tuple[type, ...], place: RecordPlace) -> Any:
    """Return a value that must be there and be of one kind.

    >>> need({"id": 7}, "id", (int, str), RecordPlace("a.json", "record", 1))
    7
    """
    if not isinstance(record, dict | Mapping):  # a dict is known at once
        raise place.error(f"expected an object, got {shown(record)}.")
    if key not in record:
        there = ", ".join(map(repr, list(record)[:12])) or "nothing"
        raise place.error(f"{key!r} is missing (there is {there}). Export the file again.")
    value = record[key]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    is_odd = isinstance(value, bool) and not {bool, object} & set(kinds)  # Python counts it as 1
    if is_odd or not isinstance(value, kind):
        wanted = " or ".join(WORDS.get(k, k.__name__) for k in kinds)
        raise place.error(f"{key!r} must be {wanted}, got {shown(value)}.")
    return value


def optional(record: Any, key: str, kind: type | tuple[type, ...], place: RecordPlace) -> Any:
    """Return a value that may be left out or null, and is of one kind where it is not.

    >>> optional({"score": None}, "score", float, RecordPlace("a.json", "record", 1))
    """
    if isinstance(record, Mapping) and record.get(key) is None:
        return None
    return need(record, key, kind, place)


def need_name(record: Any, key: str, place: RecordPlace) -> str:
    """Return a name or an id as text; an empty one is none.

    >>> need_name({"judge": "gpt"}, "judge", RecordPlace("a.json", "record", 1))
    'gpt'
    """
    name = str(need(record, key, IdType, place))
    if not name:
        raise place.error(f"{key!r} is empty. Fill it in, or remove the record.")
    return name


WORDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
IdType = (str, int)
Number = (int, float)


def shown(value: object) -> str:
    """Print a value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def first_text(values: Mapping[str, Any]) -> str | None:
    """Return what to show for a task: its text, else the first value that is text.

    >>> first_text({"n": 1, "title": "A", "text": "good film"})
    'good film'
    """
    for key in ("text", "prompt", "question", "input"):
        if isinstance(values.get(key), str):
            return str(values[key])
    return next((value for value in values.values() if isinstance(value, str)), None)
