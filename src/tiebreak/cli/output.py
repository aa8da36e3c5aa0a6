"""What a command says: words and progress on stderr, and text in columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import typer

from tiebreak.wording import aligned

STANDARD = "-"  # standard input or output
MAX_SHOWN = 20  # rows of a list in a text; JSON has all

# Options of `tiebreak` itself, which hold for the command that runs.
_is_quiet = False
_has_safe_csv = False


def set_options(*, quiet: bool, safe_csv: bool) -> None:
    """Keep what was asked of every command: no summaries and notes, cells that do not run."""
    global _is_quiet, _has_safe_csv
    _is_quiet = quiet
    _has_safe_csv = safe_csv


def is_quiet() -> bool:
    return _is_quiet


def has_safe_csv() -> bool:
    return _has_safe_csv


def print_message(words: str) -> None:
    """Write words to stderr; stdout is for data."""
    if sys.stderr is None:  # closed: nobody listens
        return
    sys.stderr.write(f"{words}\n")  # not typer.echo, which writes into the line of a spinner


def say(words: str) -> None:
    """Write words to stderr, unless the command is quiet."""
    if words and not _is_quiet:
        print_message(words)


def print_json(found: object) -> None:
    typer.echo(json.dumps(found, ensure_ascii=False))


def wrote(names: Iterable[object]) -> str:
    """Return a line that lists the files that were written; nothing where there are none."""
    written = [str(name) for name in names if name and name != STANDARD]
    return f"wrote {', '.join(written)}" if written else ""


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def stages(first: str = "") -> Iterator[Callable[[str], None]]:
    """Give a function that shows the stage of long work beside a spinner; on a terminal only."""
    if _is_quiet or not is_terminal():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as status:
        yield status.update


def table(rows: Iterable[Iterable[object]]) -> list[str]:
    """Lay rows out in columns, indented: names to the left, what follows to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    return [f"  {line}" for line in aligned(cells, to_right=True)] if cells else []


def shortened(rows: list[str]) -> list[str]:
    """Return the first rows, and how many more there are."""
    n_more = len(rows) - MAX_SHOWN
    return [*rows[:MAX_SHOWN], f"  and {n_more:,} more"] if n_more > 0 else rows
