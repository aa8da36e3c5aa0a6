"""The list of commands. A new one is a module with a function of its name, and a name in COMMANDS.

A command that has commands of its own is a module with COMMANDS of its own, and a line in GROUPS.
A module is imported when its command is called, or when help lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from tiebreak._version import __version__
from tiebreak.cli.errors import with_exit_codes

COMMANDS = (
    "demo",
    "describe",
    "fuse",
    "predict",
    "update",
    "stream",
    "show",
    "pack",
    "shuffle",
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
    "bounds",
    "simulate",
    "reproduce",
    "warm",
)
GROUPS = {"datasets": "List and fetch real crowds."}


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
