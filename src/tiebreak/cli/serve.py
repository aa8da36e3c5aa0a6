"""tiebreak serve: people answer in a browser, and somebody watches what comes of it."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import Quiet, check_files
from tiebreak.cli.asking import Asking, NamedResponses, SessionFile, takes_asking_options
from tiebreak.cli.messages import print_message, stages
from tiebreak.cli.tables import open_files, read_if_given, texts_of_export
from tiebreak.errors import FileError, OptionError

if TYPE_CHECKING:
    pass

NEEDS_EXTRA = "tiebreak serve needs the extra page: pip install 'tiebreak[page]'."


@takes_asking_options
def serve(
    responses: NamedResponses,
    session: SessionFile,
    texts: Annotated[
        str | None,
        typer.Option(help="Table of task and text, markdown, image or audio.", metavar="FILE"),
    ] = None,
    asking: Any = None,
    media: Annotated[
        str | None, typer.Option(help="Folder of the images and sounds.", metavar="DIR")
    ] = None,
    guidelines: Annotated[
        str | None,
        typer.Option(help="Guidelines for the people who answer, in Markdown.", metavar="FILE"),
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let browsers fetch images from https addresses.")
    ] = False,
    show_why: Annotated[
        bool,
        typer.Option(
            "--show-why", help="Let invited people see votes, who gave them, and probabilities."
        ),
    ] = False,
    kinds: Annotated[
        str | None, typer.Option(help="What may be asked: same, label, is.", metavar="A,B,…")
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser here.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen at; others need --token.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen at; 0: any that is free.", metavar="N", min=0)
    ] = 8437,
    token: Annotated[
        str | None,
        typer.Option(
            help="Who knows it is a lead. [random]", metavar="TEXT", envvar="TIEBREAK_TOKEN"
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name of this server, as a proxy has it.", metavar="NAME"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Ask in a browser: one decision a screen, several people at once, a view to watch.

    Only this machine can reach it unless you say otherwise; the printed address lets a lead in.
    """
    reads = asking.files(responses, texts, "A server reads its files by name")
    check_files((*reads, guidelines, session), ())
    app = _page()
    from tiebreak.page.guard import Tokens
    from tiebreak.page.room import Contents, Room

    is_local = app.check_binding(host, token)
    told = "" if guidelines is None else _read_guidelines(guidelines)
    with stages(quiet=quiet) as tell:
        tell("reading")
        given = asking.read(responses)
        found = _contents(texts, asking)
        shown = found.get("text") if texts else texts_of_export(responses, asking.question)
        desk = asking.desk(session, given, shown, kinds, background=True)
        contents = Contents(found, desk.job, media, allows_remote=allow_remote)
        listening = app.bind(host, port)
        tell("fitting")
        desk.start()
    with desk:
        room = Room(desk, Tokens(token), contents, shows_why=show_why, guidelines=told)
        _announce(app.address(listening, host), room.tokens.token, token, is_local=is_local)
        if open_browser:
            webbrowser.open(f"{app.address(listening, host)}/?token={room.tokens.token}")
        app.run(room, listening, allow_host or (), is_local=is_local)
    if not quiet:
        print_message(f"Answers are kept in {session}; the same command goes on from there.")


def _page() -> Any:
    """Return the app of the page; say which extra it needs where that is not installed."""
    try:
        from tiebreak.page import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise OptionError(NEEDS_EXTRA) from error
    return app


def _read_guidelines(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise FileError("unreadable-guidelines", file=path, reason=reason) from error


def _contents(texts: str | None, asking: Asking) -> dict[str, dict[Any, str]]:
    """Read what tasks look like."""
    from tiebreak import tables

    opened = open_files(asking.columns, texts=texts)
    return read_if_given(opened, "texts", tables.read_contents) or {}


def _announce(address: str, secret: str, given: str | None, *, is_local: bool) -> None:
    """Say where the page is; a token that was given is known, and not repeated."""
    if given is None:
        print_message(f"Open {address}/?token={secret}")
    else:
        print_message(f"Open {address}/?token=… with the token that you gave.")
    if not is_local:
        print_message(
            "warning: others can reach this server, and what they send is not encrypted. Put a "
            "proxy with TLS before it; docs/page.md shows how."
        )
    print_message("Ctrl-C ends it.")
