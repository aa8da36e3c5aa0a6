"""How a command speaks and ends: words on stderr, errors in one place, exit codes.

0    done
1    our fault: an error nobody foresaw
2    wrong usage or wrong input
130  interrupted
"""

from __future__ import annotations

import functools
import io
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, ParamSpec

import typer

from tiebreak.errors import ConvergenceWarning, FileError, InputNote, TiebreakError
from tiebreak.kernels.announce import on_first_compile
from tiebreak.options import LINK_OPTIONS

OUR_FAULT = 1
WRONG_INPUT = 2
INTERRUPTED = 130
LONG = 2.0  # seconds
COMPILING = "compiling, once: some seconds (tiebreak warm does it ahead)"

# Arguments that messages speak of; common words count only where "=" follows.
ARGUMENT = re.compile(
    r"\b(?:(?P<word>tasks|repeats)(?==)"
    r"|(?P<kind>ExactLinkOptions|MeanFieldOptions)\.(?P<field>\w+)"
    r"|(?P<name>max_iter|on_contradiction|link_error|worker_model))\b"
    r"(?:=(?![\w'\"]))?"
)

P = ParamSpec("P")


def print_message(words: str) -> None:
    """Write words to stderr; stdout is for data."""
    if sys.stderr is None:  # closed: nobody listens
        return
    sys.stderr.write(f"{words}\n")  # not typer.echo, which writes into the line of a spinner


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that was closed before the command began (`>&-`)."""

    def write(self, text: str) -> int:
        """Refuse."""
        raise FileError("Standard output is closed, so nothing can be written there. Use -o FILE.")


def as_cli_options(message: str) -> str:
    """Name arguments of Python as options of the command.

    >>> as_cli_options("List them with tasks=, or choose repeats='last'; raise max_iter.")
    "List them with --tasks, or choose --repeats='last'; raise --max-iter."
    """
    return ARGUMENT.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    if found["kind"] is None:
        return "--" + (found["word"] or found["name"]).replace("_", "-")
    for kind in LINK_OPTIONS.values():
        for each in fields(kind):
            if kind.__name__ == found["kind"] and each.name == found["field"]:
                return str(each.metadata.get("flag", found[0]))
    return found[0]


def with_exit_codes(name: str, body: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that every way it can end has its message and its exit code."""

    @functools.wraps(body)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        if sys.stdout is None:
            sys.stdout = ClosedOutput()
        try:
            quiet = bool(kwargs.get("quiet", False))
            with _spoken_warnings(quiet=quiet), on_first_compile(_tell_compiling(quiet=quiet)):
                body(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            print_message("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _close_stdout()
        except MemoryError as error:
            print_message(f"tiebreak {name}: the memory of this machine ran out. {error}".rstrip())
            raise typer.Exit(WRONG_INPUT) from error
        except (TiebreakError, OSError) as error:
            print_message(f"tiebreak {name}: {as_cli_options(str(error))}")
            raise typer.Exit(WRONG_INPUT) from error
        except Exception as error:
            _report(name, error)
            raise typer.Exit(OUR_FAULT) from error

    return command


def is_terminal() -> bool:
    """Say whether somebody may be looking at stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show that something long is going on, on a terminal only."""
    if quiet or not is_terminal():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows the stage of long work: a spinner on a terminal, else lines.

    In a pipe a stage is told only after LONG seconds, so that short work stays silent.
    """
    if quiet or sys.stderr is None:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield lambda stage: status.update(stage)
    else:
        began = time.monotonic()

        def tell(stage: str) -> None:
            if time.monotonic() - began > LONG:
                print_message(f"{stage} …")

        yield tell


@contextmanager
def _spoken_warnings(*, quiet: bool) -> Iterator[None]:
    """Print notes and warnings as lines of their own, each once; `quiet` leaves out the notes."""
    said: set[str] = set()

    def say_once(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        is_note = issubclass(category, InputNote)
        line = f"{'note' if is_note else 'warning'}: {as_cli_options(str(message))}"
        if line not in said and not (quiet and is_note):
            said.add(line)
            print_message(line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", InputNote)
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = say_once
        yield


def _tell_compiling(*, quiet: bool) -> Callable[[], None]:
    return lambda: None if quiet else print_message(COMPILING)


def _close_stdout() -> None:
    """Let the interpreter flush into nothing: whoever read stdout has read enough."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _report(name: str, error: Exception) -> None:
    print_message(
        f"tiebreak {name}: internal error: {type(error).__name__}: {error}. Please report it; "
        "TIEBREAK_DEBUG=1 shows where it happened."
    )
    if os.environ.get("TIEBREAK_DEBUG") == "1":
        import traceback

        print_message("".join(traceback.format_exception(error)))
