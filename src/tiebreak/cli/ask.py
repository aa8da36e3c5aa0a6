"""tiebreak ask: people say which tasks are of the same class, or which class it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.arguments import STANDARD, check_files
from tiebreak.cli.errors import print_message, working
from tiebreak.cli.imports import Question, format_choices, texts_of_export
from tiebreak.cli.options import (
    Columns,
    GoldFile,
    LinkError,
    LinksFile,
    QuestionCosts,
    QuestionKinds,
    Quiet,
    Seed,
    Strategy,
    TasksFile,
    costs_given,
    error_rate,
    kinds_given,
    read_inputs,
)
from tiebreak.errors import OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.ask import Session


def ask(
    responses: Annotated[
        str, typer.Argument(help="Table of task, worker, label.", metavar="RESPONSES")
    ],
    session: Annotated[
        str, typer.Option(help="Where answers are kept; made if not there.", metavar="FILE")
    ],
    texts: Annotated[
        str | None, typer.Option(help="Table of task, text: what to show.", metavar="FILE")
    ] = None,
    links: LinksFile = None,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    among: Annotated[
        str | None, typer.Option(help="Table of task: ask about these only.", metavar="FILE")
    ] = None,
    who: Annotated[str, typer.Option(help="Who answers.", metavar="NAME")] = "me",
    budget: Annotated[
        int | None,
        typer.Option(help="Stop after so many answers, all runs counted.", metavar="N", min=0),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Stop when this share of labels should be right.", metavar="P"),
    ] = None,
    stop_when_worth_less_than: Annotated[
        float | None,
        typer.Option(help="Stop when no question puts so many labels right.", metavar="X", min=0),
    ] = None,
    kinds: QuestionKinds = None,
    question_costs: QuestionCosts = None,
    wording: Annotated[
        str | None, typer.Option(help="The same in what sense: 'the same intent'.", metavar="TEXT")
    ] = None,
    class_texts: Annotated[
        str | None, typer.Option(help="Table of class, text: what each means.", metavar="FILE")
    ] = None,
    strategy: Strategy = "adaptive",
    batch: Annotated[int, typer.Option(help="Answers between two fits.", metavar="N", min=1)] = 20,
    link_error: LinkError = None,
    links_out: Annotated[
        str | None, typer.Option(help="Where to write the answers as links.", metavar="FILE")
    ] = None,
    labels_out: Annotated[
        str | None, typer.Option(help="Where to write the labels that were given.", metavar="FILE")
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where to write labels.", metavar="FILE")
    ] = None,
    columns: Columns = None,
    question: Question = None,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """Ask in the terminal whether tasks are the same class, or which class it is.

    One key per answer, kept at once; the same command goes on where it ended.
    """
    reads = responses, links, gold, tasks, texts, among, class_texts
    if STANDARD in reads:
        raise OptionError("Standard input is for keys here, so no file can be '-'. Name the file.")
    check_files((*reads, session), (links_out, labels_out, out))
    from tiebreak.ask import Desk

    # Keys from a pipe come at once: fits are made in turn then, and the same keys give the same.
    has_a_person = sys.stdin.isatty()
    with working("reading", quiet=quiet):
        shown = None if texts else texts_of_export(responses, question)
        given = read_inputs(
            responses,
            links=links,
            gold=gold,
            tasks=tasks,
            among=among,
            texts=texts,
            columns=columns,
            choices=format_choices(question),
        )
        desk = Desk(
            session,
            given.responses,
            links=given.links,
            gold=given.gold,
            texts=shown or given.texts,
            among=given.among,
            strategy=strategy,
            budget=budget,
            target=target,
            random_state=seed,
            batch=batch,
            link_error=error_rate(link_error),
            kinds=kinds_given(kinds),
            costs="time" if question_costs == "time" else costs_given(question_costs),
            stop_when_worth_less_than=stop_when_worth_less_than,
            wording=wording,
            class_texts=class_texts,
            background=has_a_person,
            only=who,
        )
    with desk, desk.session(who) as opened:
        _converse(opened, session)
        _write(opened, links_out, labels_out, out)


def _converse(session: Session, name: str) -> None:
    """Ask, and say at the end what became of it."""
    from tiebreak.ask.console import WHY, Conversation, new_console
    from tiebreak.ask.keys import open_keys

    try:
        with open_keys(sys.stdin) as keys:
            Conversation(session, keys, new_console()).run()
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
    from tiebreak import files

    empty: dict[str, list[str]] = {"left": [], "right": [], "link": [], "who": []}
    with session.desk.lock:
        links = empty | session.links().columns() if links_out else empty
        known = session.labels().to_dict() if labels_out else {}
    if links_out:
        files.write_table(links_out, links)
    if labels_out:
        files.write_table(labels_out, {"task": list(known), "label": list(known.values())})
    if out:
        files.write_labels(out, session.model().labels_)
    written = [name for name in (links_out, labels_out, out) if name and name != STANDARD]
    if written:
        print_message(f"wrote {', '.join(written)}")
