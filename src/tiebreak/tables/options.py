"""Options of reading: declared once, for all readers and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from tiebreak.arguments import MAPPING, TEXT, optional
from tiebreak.data import Repeats
from tiebreak.errors import OptionError

TEXTS = ("format", "question", "repeats", "task_pattern", "label_pattern", "label_pointer")
RULES = {"columns": optional(MAPPING), **dict.fromkeys(TEXTS, optional(TEXT))}
Reader = TypeVar("Reader", bound=Callable[..., Any])


def _option(help: str) -> Any:
    """Declare an option with its help on the command line."""
    return field(default=None, metadata={"help": help})


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How tables are read; None, the default of all options, means: as the file tells.

    Every reader takes these options; one that does nothing for a file is refused.
    """

    columns: Mapping[str, object] | None = _option("Names of columns, such as task=item.")
    format: str | None = _option("The format, where the content of the file does not tell.")
    question: str | None = _option("Which question, where a file holds several.")
    repeats: Repeats | None = _option("What counts where a worker labelled a task twice.")  # noqa: RUF009
    tasks: Any = _option("Tasks that exist even without a response.")  # noqa: RUF009
    classes: Iterable[Any] | None = _option("Classes that exist even if nobody chose them.")
    fold_labels: bool | None = _option("Join labels that differ only in case, spaces or form.")
    multi_label: bool | None = _option("Make one yes/no task of each task and label.")
    wide: bool | None = _option("One column per worker.")
    task_columns: Sequence[str] | None = _option("Columns that make up the task together.")
    worker_columns: Sequence[str] | None = _option(
        "Columns that make up the worker together; of a wide table, the workers."
    )
    order_column: str | None = _option("The column that tells in which order answers were shown.")
    turned: bool | None = _option("Whether verdicts name the same answer in every order.")
    task_pattern: str | None = _option("A regular expression that splits ids of a batch API.")
    label_pattern: str | None = _option("A regular expression for the label inside a text.")
    label_pointer: str | None = _option("A JSON pointer to the label inside a JSON text.")

    def __post_init__(self) -> None:
        for name, rule in RULES.items():
            rule(name, getattr(self, name))
        if str(self.format).lower() == "wide":
            object.__setattr__(self, "format", None)
            object.__setattr__(self, "wide", True)
        if self.order_column is not None:
            if "order" in (self.columns or {}):
                raise OptionError("named-twice", role="order", option="order_column")
            columns = {**(self.columns or {}), "order": self.order_column}
            object.__setattr__(self, "columns", columns)
        for name in ("task_columns", "worker_columns"):
            if isinstance(getattr(self, name), str):
                raise OptionError("list-of-names", option=name, value=getattr(self, name))

    @property
    def named(self) -> dict[str, object]:
        """The names of columns, by role."""
        return dict(self.columns or {})

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def refuse(self, names: Iterable[str], file: str, why: str) -> None:
        """Refuse those of some options that were given, although they do nothing."""
        given = self.given
        idle = [n for n in names if n in given and (given[n] is not False or n == "turned")]
        if idle:
            raise OptionError("idle-option", file=file, options=idle, why=why)


def takes_read_options(reader: Reader) -> Reader:
    """Show the fields of `ReadingOptions` in the signature of a reader."""
    signature = inspect.signature(reader)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=each.type
        )
        for each in fields(ReadingOptions)
    ]
    shown = signature.replace(parameters=[*own, *more])
    reader.__signature__ = shown  # type: ignore[attr-defined]  # of a function
    return reader
