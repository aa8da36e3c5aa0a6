"""The list of commands. A new one is an import and a line in COMMANDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tiebreak._version import __version__
from tiebreak.cli import bounds, demo, evaluate, fuse, simulate
from tiebreak.cli.ending import guarded

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "fuse": fuse.fuse,
    "evaluate": evaluate.evaluate,
    "bounds": bounds.bounds,
    "simulate": simulate.simulate,
}

app = typer.Typer(
    name="tiebreak",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: no import of rich, and it reads well in a pipe
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name, _body in COMMANDS.items():
    app.command(_name)(guarded(_name, _body))


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
