"""Options of reading: declared once, for all readers and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tiebreak.arguments import MAPPING, TEXT, optional
from tiebreak.data import Repeats
from tiebreak.data.scale import ScaleOption
from tiebreak.errors import OptionError
from tiebreak.options import require_word

TEXTS = (
    *("format", "question", "repeats", "task_pattern", "label_pattern", "label_pointer"),
    "baseline",
)
RULES = {"columns": optional(MAPPING), **dict.fromkeys(TEXTS, optional(TEXT))}
Reader = TypeVar("Reader", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How tables are read; None, the default of all options, means: as the file tells.

    Every reader takes these options, which `read_responses` explains; one that does nothing for a
    file is refused.
    """

    columns: Mapping[str, object] | None = None
    format: str | None = None
    question: str | None = None
    repeats: Repeats | None = None
    tasks: Any = None
    classes: Iterable[Any] | None = None
    fold_labels: bool | None = None
    multi_label: bool | None = None
    wide: bool | None = None
    task_columns: Sequence[str] | None = None
    worker_columns: Sequence[str] | None = None
    order_column: str | None = None
    turned: bool | None = None
    task_pattern: str | None = None
    label_pattern: str | None = None
    label_pointer: str | None = None
    baseline: str | None = None
    scale: ScaleOption = None
    nested: str | None = None

    def __post_init__(self) -> None:
        for name, rule in RULES.items():
            rule(name, getattr(self, name))
        if self.scale is not None and self.multi_label:
            raise OptionError("scale-of-several")
        if self.nested is not None:
            require_word("nested", self.nested, ("longest", "first"))
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

    def refuse(self, names: Iterable[str], file: str, why: str) -> None:
        """Refuse those of some options that were given, although they do nothing."""
        values = {name: getattr(self, name) for name in names}
        idle = [n for n, value in values.items() if value or (n == "turned" and value is False)]
        if idle:
            raise OptionError("idle-option", file=file, options=idle, why=why)


def takes_read_options(reader: Reader) -> Reader:
    """Show the fields of `ReadingOptions` in the signature of a reader."""
    signature = inspect.signature(reader)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = inspect.signature(ReadingOptions).parameters.values()
    shown = [*own, *(each.replace(kind=each.KEYWORD_ONLY) for each in options)]
    reader.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return reader
