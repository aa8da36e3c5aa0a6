"""The list of commands, and how each ends.

A new command is a module with a function of its name, and a name in COMMANDS. One that has commands
of its own is a module with COMMANDS of its own, and a line in GROUPS. A module is imported when its
command is called, or when help lists them all. Errors become messages in one place, and exit codes:

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
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
import typer.core
import typer.main

from tiebreak._version import __version__
from tiebreak.cli import raise_on_interrupt
from tiebreak.cli.arguments import takes_safe_csv
from tiebreak.cli.messages import print_message
from tiebreak.errors import (
    ConvergenceWarning,
    FileError,
    InputNote,
    TiebreakError,
    on_first_compile,
)
from tiebreak.options import LINK_OPTIONS

COMMANDS = (
    "demo",
    "describe",
    "fuse",
    "predict",
    "update",
    "stream",
    "pack",
    "convert",
    "export",
    "evaluate",
    "panel",
    "rate",
    "route",
    "report",
    "select",
    "ask",
    "serve",
)
WRITE_TABLES = ("fuse", "predict", "update", "convert", "select", "ask", "rate", "panel", "route")
GROUPS = {"datasets": "List and fetch real crowds."}

OUR_FAULT = 1
WRONG_INPUT = 2
INTERRUPTED = 130
COMPILING = "compiling, once: some seconds (python -m tiebreak.warm does it ahead)"

# Arguments that messages speak of; common words count only where "=" follows.
ARGUMENT = re.compile(
    r"\b(?:(?P<word>tasks|repeats)(?==)"
    r"|(?:link_options=)?(?:tb\.)?(?P<kind>ExactLinkOptions|MeanFieldOptions)"
    r"(?:\.(?P<field>\w+)|\((?P<set>\w+)=(?P<to>[^)]+)\))"
    r"|(?P<name>link_error|max_iter|on_contradiction|worker_model))(?!\w)"
    r"(?:=(?![\w'\"]))?"
)

P = ParamSpec("P")


class LazyCommands(Mapping[str, Any]):
    """The commands by name; each is made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name in GROUPS:
            return _group(name, GROUPS[name])
        if name in COMMANDS:
            return _command(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *GROUPS))

    def __len__(self) -> int:
        return len(COMMANDS) + len(GROUPS)


class LazyGroup(typer.core.TyperGroup):
    """A group of commands that are not imported before they are needed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = LazyCommands()


def _new_app(name: str, **settings: Any) -> typer.Typer:
    return typer.Typer(
        name=name,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: no import of rich, and it reads well in a pipe
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def _command(name: str) -> Any:
    body: Callable[..., None] = getattr(import_module(f"tiebreak.cli.{name}"), name)
    if name in WRITE_TABLES:
        body = takes_safe_csv(body)
    alone = _new_app(name)
    alone.command(name)(with_exit_codes(name, body))
    return typer.main.get_command(alone)


def _group(name: str, what: str) -> Any:
    group = _new_app(name)
    commands: dict[str, Callable[..., None]] = import_module(f"tiebreak.cli.{name}").COMMANDS
    for own, body in commands.items():
        group.command(own)(with_exit_codes(f"{name} {own}", body))

    @group.callback(invoke_without_command=True, help=what)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return typer.main.get_command(group)


app = _new_app("tiebreak", cls=LazyGroup)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tiebreak {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Say which tiebreak this is."
        ),
    ] = False,
) -> None:
    """Noisy labels into answers one can trust.

    Start with `tiebreak demo`, or with your own table: `tiebreak fuse responses.csv -o labels.csv`.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command that the arguments name."""
    app(prog_name="tiebreak")


def with_exit_codes(name: str, body: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that every way it can end has its message and its exit code."""

    @functools.wraps(body)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        if sys.stdout is None:
            sys.stdout = ClosedOutput()
        try:
            raise_on_interrupt()
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
            said = f"tiebreak {name}: the memory of this machine ran out. {error}".rstrip()
            if not (kwargs.get("out_of_core", True) or kwargs.get("cluster")):
                said += " Tables that memory cannot hold are read one by one with --out-of-core."
            print_message(said)
            raise typer.Exit(WRONG_INPUT) from error
        except (TiebreakError, OSError) as error:
            print_message(f"tiebreak {name}: {as_cli_options(str(error))}")
            raise typer.Exit(WRONG_INPUT) from error
        except Exception as error:
            _report(name, error)
            raise typer.Exit(OUR_FAULT) from error

    return command


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that was closed before the command began (`>&-`)."""

    def write(self, text: str) -> int:
        """Refuse."""
        raise FileError("Standard output is closed, so nothing can be written there. Use -o FILE.")


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


def as_cli_options(message: str) -> str:
    """Name arguments of Python as options of the command.

    >>> as_cli_options("List them with tasks=, or choose repeats='last'; raise max_iter.")
    "List them with --tasks, or choose --repeats='last'; raise --max-iter."
    >>> as_cli_options("Try link_options=tb.ExactLinkOptions(error=0.02), or weights.")
    'Try --link-error=0.02, or weights.'
    """
    return ARGUMENT.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    if found["kind"] is None:
        return "--" + (found["word"] or found["name"]).replace("_", "-")
    value = "" if found["to"] is None else f"={found['to']}"
    for kind in LINK_OPTIONS.values():
        for each in fields(kind):
            is_meant = each.name in (found["field"], found["set"])
            if kind.__name__ == found["kind"] and is_meant and "flag" in each.metadata:
                return str(each.metadata["flag"]) + value
    return found[0]


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
