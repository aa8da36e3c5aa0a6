"""The list of commands, and how each ends.

A new command is a function in one of the modules beside this one, and a name in COMMANDS. A module
is imported when its command is called, or when help lists them all. Errors become messages in one
place, and exit codes:

0    done
1    our fault: an error nobody foresaw
2    wrong usage or wrong input
130  interrupted
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
import typer.core
import typer.main

from tiebreak import errors
from tiebreak._version import __version__
from tiebreak.cli import raise_on_interrupt
from tiebreak.cli.options import as_cli_options
from tiebreak.cli.output import has_safe_csv, is_quiet, print_message, set_options

GROUPS: dict[str, dict[str, str | dict[str, str]]] = {  # of the help: the function of each command
    "Start": {
        "demo": "demo.demo",
        "describe": "look.describe",
        "convert": "convert.convert",
        "datasets": {
            "list": "demo.list_datasets",
            "fetch": "demo.fetch_dataset",
            "path": "demo.dataset_path",
        },
    },
    "Label": {
        "fuse": "fuse.fuse",
        "predict": "fuse.predict",
        "update": "fuse.update",
        "stream": "fuse.stream",
    },
    "Check": {
        "evaluate": "look.evaluate",
        "report": "look.report",
        "bench": "bench.bench",
        "rank": "rank.rank",
        "judges": {"panel": "judges.panel", "rate": "judges.rate", "route": "judges.route"},
    },
    "Ask": {"ask": "ask.ask", "serve": "ask.serve"},
}
COMMANDS = {name: home for group in GROUPS.values() for name, home in group.items()}
SUMMARIES = {
    "datasets": "List and fetch real crowds.",
    "judges": "Report on LLM judges, estimate rates and route tasks.",
}
ALIASES = {"aggregate": "fuse", "label": "fuse"}
MEANT = {  # words that people try, and what to write
    word: f"tiebreak {command}"
    for command, words in {
        "fuse": "fit infer merge train consensus",
        "fuse --method mv": "vote majority mv",
        "fuse SHARDS --cluster ADDRESS -o FOLDER": "shuffle",
        "ask RESPONSES --list N": "select questions next",
        "convert": "import read load",
        "convert LABELS --to TOOL": "export predictions",
        "convert RESPONSES -o NAME.tb": "pack",
        "describe": "inspect agreement kappa alpha stats",
        "describe MODEL.tbm": "show info",
        "evaluate": "score test compare metrics",
        "report": "plot html page",
        "bench": "benchmark leaderboard",
        "rank": "ranking leaderboard elo bradley-terry pairs",
        "serve": "web server annotate",
        "judges panel": "panel",
        "judges rate": "rate rates",
        "judges route": "route",
        "judges panel RESPONSES --sample FILE": "sample",
        "predict": "classify",
        "stream": "watch",
        "datasets": "data",
        "datasets fetch": "fetch download",
    }.items()
    for word in words.split()
} | {
    "warm": "python -m tiebreak.warm",
    "simulate": "tb.simulate.crowd(), in Python",
    "bounds": "python -m tiebreak.research.theory",
    "reproduce": "python -m tiebreak.research.paper",
}
ANYWHERE = ("-q", "--quiet", "--safe-csv")  # options of `tiebreak`, also behind a command

OUR_FAULT = 1
WRONG_INPUT = 2
INTERRUPTED = 130
COMPILING = "compiling, once: some seconds (python -m tiebreak.warm does it ahead)"

UsageError: Any = typer.BadParameter.__base__

P = ParamSpec("P")


class Command(typer.core.TyperCommand):
    """A command that knows what options of other names are called here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; of an unknown option say how it is written."""
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            option = getattr(error, "option_name", None)
            flags = {flag for each in self.params for flag in each.opts}
            if option is None or "--set" not in flags:
                raise
            name = option.lstrip("-").replace("-", "_")
            words = f"No such option: {option}. Other options are set by --set {name}=VALUE."
            raise UsageError(words, ctx=ctx) from error


class LazyCommands(Mapping[str, Any]):
    """The commands by name; each is made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        home = COMMANDS[name]
        if isinstance(home, str):
            alone = _new_app(name)
            _add(alone, name, home)
            return typer.main.get_command(alone)
        group = _new_app(name, cls=Group, no_args_is_help=True, help=SUMMARIES[name])
        group.callback()(lambda: None)
        for own, function in home.items():
            _add(group, own, function, f"{name} ")
        return typer.main.get_command(group)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Group(typer.core.TyperGroup):
    """Commands that help lists with whole sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        of_tiebreak = self.name == "tiebreak"
        groups: dict[str, Any] = dict(GROUPS) if of_tiebreak else {"Commands": self.commands}
        width = max(len(name) for names in groups.values() for name in names)
        for title, names in groups.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit=100))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


class Commands(Group):
    """The commands of `tiebreak`, which are not imported before they are needed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = LazyCommands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options of `tiebreak` wherever they stand."""
        end = args.index("--") if "--" in args else len(args)
        own = [each for each in args[:end] if each in ANYWHERE]
        rest = [each for each in args[:end] if each not in ANYWHERE]
        return super().parse_args(ctx, own + rest + args[end:])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name or alias; of another word say what it may mean."""
        name = ALIASES.get(args[0], args[0])
        if name not in COMMANDS:
            meant = MEANT.get(name.lower())
            for near in get_close_matches(name, [*COMMANDS, *ALIASES, *MEANT], n=1):
                meant = meant or MEANT.get(near, f"tiebreak {near}")
            known = f"There are: {', '.join(COMMANDS)}."
            words = known if meant is None else f"Write: {meant}"
            raise UsageError(f"No such command: {name}. {words}", ctx=ctx)
        return super().resolve_command(ctx, [name, *args[1:]])


def _new_app(name: str, **settings: Any) -> typer.Typer:
    return typer.Typer(
        name=name,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: no import of rich, and it reads well in a pipe
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def _add(app: typer.Typer, name: str, home: str, before: str = "") -> None:
    module, function = home.split(".")
    body = getattr(import_module(f"tiebreak.cli.{module}"), function)
    app.command(name, cls=Command)(with_exit_codes(before + name, body))


app = _new_app("tiebreak", cls=Commands)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tiebreak {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print no summary and no notes; anywhere.")
    ] = False,
    safe_csv: Annotated[
        bool,
        typer.Option(
            "--safe-csv", help="In CSV, put ' before text a spreadsheet would run; anywhere."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Turn noisy labels into labels you can trust: tiebreak fuse answers.csv"""
    set_options(quiet=quiet, safe_csv=safe_csv)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    app(prog_name="tiebreak")


def with_exit_codes(name: str, body: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that every way it can end has its message and its exit code."""

    @functools.wraps(body)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        if sys.stdout is None:
            sys.stdout = ClosedOutput()
        try:
            raise_on_interrupt()
            with _printed_warnings(), errors.on_first_compile(_tell_compiling), _csv_cells():
                body(*args, **kwargs)
        except (typer.Exit, typer.Abort, UsageError):
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
        except (errors.TiebreakError, OSError) as error:
            print_message(f"tiebreak {name}: {as_cli_options(error)}")
            raise typer.Exit(WRONG_INPUT) from error
        except Exception as error:
            _report(name, error)
            raise typer.Exit(OUR_FAULT) from error

    return command


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that was closed before the command began (`>&-`)."""

    def write(self, text: str) -> int:
        raise errors.FileError("stdout-is-closed")


@contextlib.contextmanager
def _printed_warnings() -> Iterator[None]:
    """Print notes and warnings as lines of their own, each once; -q leaves out the notes."""
    said: set[str] = set()

    def say_once(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        is_note = issubclass(category, errors.InputNote)
        line = f"{'note' if is_note else 'warning'}: {as_cli_options(message)}"
        if line not in said and not (is_quiet() and is_note):
            said.add(line)
            print_message(line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", errors.InputNote)
        warnings.simplefilter("always", errors.ConvergenceWarning)
        warnings.showwarning = say_once
        yield


def _csv_cells() -> contextlib.AbstractContextManager[None]:
    if not has_safe_csv():
        return contextlib.nullcontext()
    from tiebreak.tables.write import safe_cells

    return safe_cells()


def _tell_compiling() -> None:
    if not is_quiet():
        print_message(COMPILING)


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
