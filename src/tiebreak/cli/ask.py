"""tiebreak ask: people say which tasks are of the same class, or which class it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import STANDARD, Quiet, check_files
from tiebreak.cli.asking import (
    NamedResponses,
    QuestionKinds,
    SessionFile,
    Strategy,
    takes_asking_options,
)
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import texts_of_export
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.ask import Session


@takes_asking_options
def ask(
    responses: NamedResponses,
    session: SessionFile,
    texts: Annotated[
        str | None, typer.Option(help="Table of task, text: what to show.", metavar="FILE")
    ] = None,
    asking: Any = None,
    who: Annotated[str, typer.Option(help="Who answers.", metavar="NAME")] = "me",
    stop_when_worth_less_than: Annotated[
        float | None,
        typer.Option(help="Stop when no question puts so many labels right.", metavar="X", min=0),
    ] = None,
    kinds: QuestionKinds = None,
    strategy: Strategy = "adaptive",
    links_out: Annotated[
        str | None, typer.Option(help="Where to write the answers as links.", metavar="FILE")
    ] = None,
    labels_out: Annotated[
        str | None, typer.Option(help="Where to write the labels that were given.", metavar="FILE")
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where to write labels.", metavar="FILE")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Ask in the terminal whether tasks are the same class, or which class it is.

    One key per answer, kept at once; the same command goes on where it ended.
    """
    reads = asking.files(responses, texts, "Standard input is for keys here")
    check_files((*reads, session), (links_out, labels_out, out))
    # Keys from a pipe come at once: fits are made in turn then, and the same keys give the same.
    has_a_person = sys.stdin.isatty()
    with working("reading", quiet=quiet):
        shown = None if texts else texts_of_export(responses, asking.question)
        given = asking.read(responses, texts)
        desk = asking.desk(
            session,
            given,
            shown or given.texts,
            kinds,
            strategy=strategy,
            stop_when_worth_less_than=stop_when_worth_less_than,
            background=has_a_person,
            only=who,
        )
    with desk, desk.session(who) as opened:
        _converse(opened, session)
        _write(opened, links_out, labels_out, out)


def _converse(session: Session, name: str) -> None:
    """Ask, and say at the end what became of it."""
    from tiebreak.ask.console import WHY, Conversation, Keys, new_console

    try:
        Conversation(session, Keys(sys.stdin), new_console()).run()
    except KeyboardInterrupt:
        _print_kept(session, name)
        raise
    with session.desk.lock:
        finished = session.progress().finished
    if finished is not None:
        print_message(WHY[finished])
    _print_kept(session, name)


def _print_kept(session: Session, name: str) -> None:
    with session.desk.lock:
        kept = counted(len(session.answers()), "answer")
    print_message(f"{kept} kept in {name}; the same command goes on from there.")


def _write(
    session: Session, links_out: str | None, labels_out: str | None, out: str | None
) -> None:
    """Write the answers as links and known labels, and the labels that follow from them."""
    from tiebreak import tables

    empty: dict[str, list[str]] = {"left": [], "right": [], "link": [], "who": []}
    with session.desk.lock:
        links = empty | session.links().columns() if links_out else empty
        known = session.labels().to_dict() if labels_out else {}
    if links_out:
        tables.write_table(links_out, links)
    if labels_out:
        tables.write_table(labels_out, {"task": list(known), "label": list(known.values())})
    if out:
        tables.write_labels(out, session.model().labels_)
    written = [name for name in (links_out, labels_out, out) if name and name != STANDARD]
    if written:
        print_message(f"wrote {', '.join(written)}")
