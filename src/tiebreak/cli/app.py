"""The list of commands. A new one is an import and a line in COMMANDS.

A command that has commands of its own is a file with COMMANDS of its own, and a line in GROUPS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tiebreak._version import __version__
from tiebreak.cli import (
    ask,
    bounds,
    convert,
    datasets,
    demo,
    describe,
    evaluate,
    export,
    fuse,
    pack,
    panel,
    predict,
    rate,
    report,
    reproduce,
    route,
    select,
    serve,
    show,
    shuffle,
    simulate,
    stream,
    update,
    warm,
)
from tiebreak.cli.errors import with_exit_codes

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "describe": describe.describe,
    "fuse": fuse.fuse,
    "predict": predict.predict,
    "update": update.update,
    "stream": stream.stream,
    "show": show.show,
    "pack": pack.pack,
    "shuffle": shuffle.shuffle,
    "convert": convert.convert,
    "export": export.export,
    "evaluate": evaluate.evaluate,
    "panel": panel.panel,
    "rate": rate.rate,
    "route": route.route,
    "report": report.report,
    "select": select.select,
    "ask": ask.ask,
    "serve": serve.serve,
    "bounds": bounds.bounds,
    "simulate": simulate.simulate,
    "reproduce": reproduce.reproduce,
    "warm": warm.warm,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "datasets": ("List and fetch real crowds.", datasets.COMMANDS),
}


def _new_app(name: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: no import of rich, and it reads well in a pipe
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _new_group(name: str, what: str, commands: dict[str, Callable[..., None]]) -> typer.Typer:
    group = _new_app(name)
    for own, body in commands.items():
        group.command(own)(with_exit_codes(f"{name} {own}", body))

    @group.callback(invoke_without_command=True, help=what)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


app = _new_app("tiebreak")

for _name, _body in COMMANDS.items():
    app.command(_name)(with_exit_codes(_name, _body))
for _name, (_what, _commands) in GROUPS.items():
    app.add_typer(_new_group(_name, _what, _commands))


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
