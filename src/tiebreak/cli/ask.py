"""tiebreak ask, serve: ask people which class a task is of, or whether two are of the same."""

from __future__ import annotations

import json
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.convert import Tool
from tiebreak.cli.options import (
    ColumnsOption,
    GoldOption,
    LinksOption,
    OptionValues,
    ResponsesArgument,
    SetOption,
    TextsOption,
    check_files,
    read_inputs,
    reading_options,
    require,
    split_list,
    texts_of_export,
)
from tiebreak.cli.output import STANDARD, print_message, say, stages, wrote
from tiebreak.errors import FileError, OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.ask import Desk, Session
    from tiebreak.selection import Offers, Pairs

# Options of `tb.ask.Desk` that --set reaches; those of questions hold for --list, too.
OF_QUESTIONS = ("among", "strategy", "costs", "link_error", "random_state")
OF_DESK = (
    *OF_QUESTIONS,
    *("target", "stop_when_worth_less_than", "batch", "wording", "class_texts", "lease"),
)

SessionOption = Annotated[
    str | None, typer.Option(help="Keep answers in this file; made if not there.", metavar="FILE")
]
KindsOption = Annotated[
    str | None,
    typer.Option("--kinds", help="What may be asked: same, label, is, vote.", metavar="A,B,…"),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(help="Stop after so many answers, all runs counted.", metavar="N", min=0),
]


def ask(
    responses: ResponsesArgument,
    session: SessionOption = None,
    links: LinksOption = None,
    gold: GoldOption = None,
    texts: TextsOption = None,
    kinds: KindsOption = None,
    budget: BudgetOption = None,
    who: Annotated[
        str, typer.Option(help="The name of the person who answers.", metavar="NAME")
    ] = "me",
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Write labels, or the list, here.", metavar="FILE"),
    ] = None,
    links_out: Annotated[
        str | None, typer.Option(help="Write the answers as links here.", metavar="FILE")
    ] = None,
    labels_out: Annotated[
        str | None, typer.Option(help="Write the labels that were given here.", metavar="FILE")
    ] = None,
    n_listed: Annotated[
        int | None,
        typer.Option("--list", help="List N questions to ask, and ask nobody.", metavar="N", min=0),
    ] = None,
    to: Tool = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    columns: ColumnsOption = None,
    given: SetOption = None,
) -> None:
    """Ask in the terminal, best question first, or list what to ask.

    One key per answer, kept at once; the same command goes on where it ended. A list is a table of
    left, right and gain (how many labels the answer should correct); with --kinds also kind, task,
    class, worker, cost and worth (gain for one unit of cost). --set reaches the options of
    tb.ask.Desk: wording, target, costs, strategy, link_error and others.
    """
    settings = OptionValues(given)
    reading = settings.take(reading_options())
    options = settings.take(OF_DESK if n_listed is None else OF_QUESTIONS)
    settings.finish()
    names = {"links": links, "gold": gold, "texts": texts, "among": options.pop("among", None)}
    if n_listed is not None:
        for flag, value in {"--session": session, "--links-out": links_out}.items():
            if value:
                raise OptionError("options-exclude", one=flag, other="--list")
        require("--texts", texts, "--to: for which tool?", to)
        out = out or STANDARD
        reads = (responses, *names.values(), reading.get("tasks"))
        check_files(reads, (out,), are_tables=not (as_json or to))
        with stages("reading and fitting"):
            inputs = read_inputs(responses, columns, reading, names)
            kinds_given = None if kinds is None else split_list(kinds)
            found = list_questions(
                inputs.responses, n_listed, kinds_given, inputs=inputs, options=options
            )
        write_list(out, found, to, inputs, as_json=as_json)
        what = "pairs" if kinds is None else "questions"
        worth = f"worth about {sum(row.gain for row in found):.2g} labels"
        say(f"{len(found):,} {what}, {worth}{': ' if wrote((out,)) else ''}{wrote((out,))}")
        return
    require("--to", to, "--list N", False)
    require("--json", as_json, "--list N", False)
    if session is None:
        raise OptionError("session-or-list")
    reads = _files(responses, names, reading, options, "Standard input is for keys here")
    check_files((*reads, session), (links_out, labels_out, out))
    # Keys from a pipe come at once: fits are made in turn then, and the same keys give the same.
    has_a_person = sys.stdin.isatty()
    with stages("reading"):
        shown = None if texts else texts_of_export(responses)
        inputs = read_inputs(responses, columns, reading, names)
        desk = open_desk(
            session,
            inputs,
            shown or inputs.texts,
            kinds,
            options | {"budget": budget, "background": has_a_person, "only": who},
        )
    with desk, desk.session(who) as opened:
        _converse(opened, session)
        _write_answers(opened, links_out, labels_out, out)


def list_questions(
    responses: Any,
    n: int,
    kinds: Sequence[str] | None,
    *,
    inputs: SimpleNamespace | None = None,
    options: dict[str, Any] | None = None,
) -> Pairs | Offers:
    """Fit, and return the questions that are worth most: pairs, or those of some kinds."""
    from tiebreak import selection
    from tiebreak.ask.job import tasks_among
    from tiebreak.estimators.variational_bayes import VariationalBayes
    from tiebreak.options import ExactLinkOptions

    given = inputs or SimpleNamespace(links=None, gold=None, among=None)
    options = options or {}
    strategy = options.get("strategy", "adaptive")
    costs = options.get("costs")
    if kinds is not None and strategy != "adaptive":
        raise OptionError("strategy-draws-pairs", strategy=strategy)
    require("--set costs", kinds is None and costs is not None, "--kinds", False)
    links = ExactLinkOptions(error=options.get("link_error"))
    model = VariationalBayes(link_options=links)
    model.fit(responses, links=given.links, gold=given.gold)
    among = None if given.among is None else tasks_among(responses.tasks, given.among)
    seed = options.get("random_state")
    if kinds is None:
        return selection.pairs(model, n, strategy=strategy, among=among, random_state=seed)
    return selection.questions(model, n, tuple(kinds), costs, among, seed)


def write_list(
    out: str, found: Pairs | Offers, to: str | None, inputs: SimpleNamespace, *, as_json: bool
) -> None:
    """Write questions as a table, as JSON, or for a tool in which people answer."""
    from tiebreak import tables
    from tiebreak.selection import Offer, Offers

    if to is not None:
        from tiebreak.tables.export import write_questions

        rows = found if isinstance(found, Offers) else [Offer("same", *row[:2]) for row in found]
        classes = list(map(str, inputs.responses.classes))
        write_questions(out, rows, to, classes, inputs.texts or {})
        return
    columns = question_columns(found)
    if not as_json:
        tables.write_table(out, columns)
        return
    values = zip(*(list(column) for column in columns.values()), strict=True)
    rows_of_json = [dict(zip(columns, row, strict=True)) for row in values]
    with tables.open_target(out) as target:
        text = json.dumps(rows_of_json, ensure_ascii=False, default=_plain)
        target.write(text.encode() + b"\n")


def _plain(value: object) -> object:
    """Return numbers of NumPy as numbers, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def question_columns(found: Pairs | Offers) -> dict[str, list[object]]:
    """Return the columns of a table: a pair has left and right, as links do, others have a task.

    A column that no question needs is left out. The class of an example is not told: it would sway.
    """
    from tiebreak.selection import Offers

    if not isinstance(found, Offers):
        return {
            "left": list(found.left),
            "right": list(found.right),
            "gain": found.gain.tolist(),
        }
    columns = {name: list(column) for name, column in found.columns().items()}
    is_pair = [kind == "same" for kind in columns["kind"]]
    task, label = columns.pop("task"), columns.pop("label")
    split: dict[str, list[object]] = {
        "kind": columns.pop("kind"),
        "task": [None if pair else each for each, pair in zip(task, is_pair, strict=True)],
        "left": [each if pair else None for each, pair in zip(task, is_pair, strict=True)],
        "right": columns.pop("other"),
        "class": [None if pair else each for each, pair in zip(label, is_pair, strict=True)],
        **columns,
    }
    if not len(found):
        return split
    return {name: each for name, each in split.items() if any(v is not None for v in each)}


def _files(
    responses: list[str],
    names: dict[str, str | None],
    reading: dict[str, Any],
    options: dict[str, Any],
    why: str,
) -> tuple[str | list[str] | None, ...]:
    """Return the files to read; none can be standard input, and `why` says why."""
    reads = (*names.values(), reading.get("tasks"), options.get("class_texts"))
    if STANDARD in (*responses, *reads):
        raise OptionError("stdin-not-here", why=why)
    return (responses, *reads)


def open_desk(
    session: str,
    inputs: SimpleNamespace,
    texts: Any,
    kinds: str | None,
    options: dict[str, Any],
) -> Desk:
    """Open the desk at which people answer."""
    from tiebreak.ask import Desk

    return Desk(
        session,
        inputs.responses,
        links=inputs.links,
        gold=inputs.gold,
        texts=texts,
        among=inputs.among,
        kinds=None if kinds is None else tuple(split_list(kinds)),
        **options,
    )


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


def _write_answers(
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
        session.model().labels_.write(out)
    if written := wrote((links_out, labels_out, out)):
        print_message(written)


def serve(
    responses: ResponsesArgument,
    session: Annotated[
        str, typer.Option(help="Keep answers in this file; made if not there.", metavar="FILE")
    ],
    links: LinksOption = None,
    gold: GoldOption = None,
    texts: Annotated[
        str | None,
        typer.Option(help="Table of task and text, markdown, image or audio.", metavar="FILE"),
    ] = None,
    media: Annotated[
        str | None, typer.Option(help="Folder of the images and sounds.", metavar="DIR")
    ] = None,
    guidelines: Annotated[
        str | None,
        typer.Option(help="Guidelines for the people who answer, in Markdown.", metavar="FILE"),
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(help="What may be asked: same, label, is.", metavar="A,B,…")
    ] = None,
    budget: BudgetOption = None,
    columns: ColumnsOption = None,
    given: SetOption = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let browsers fetch images from https addresses.")
    ] = False,
    show_why: Annotated[
        bool,
        typer.Option(
            "--show-why", help="Let invited people see votes, who gave them, and probabilities."
        ),
    ] = False,
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
            help="Secret that gives lead access. [random]", metavar="TEXT", envvar="TIEBREAK_TOKEN"
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name of this server, as a proxy has it.", metavar="NAME"),
    ] = None,
) -> None:
    """Ask a team in the browser: one decision a screen, a view to watch.

    Only this machine can reach it unless you say otherwise; the printed address lets a lead in.
    --set reaches the options of tb.ask.Desk: wording, target, costs, link_error and others.
    """
    settings = OptionValues(given)
    reading = settings.take(reading_options())
    options = settings.take(OF_DESK)
    settings.finish()
    names = {"links": links, "gold": gold, "texts": texts, "among": options.pop("among", None)}
    reads = _files(responses, names, reading, options, "A server reads its files by name")
    check_files((*reads, guidelines, session), ())
    app = _page()
    from tiebreak.page.guard import Tokens
    from tiebreak.page.room import Contents, Room

    is_local = app.check_binding(host, token)
    told = "" if guidelines is None else _read_guidelines(guidelines)
    with stages() as tell:
        tell("reading")
        inputs = read_inputs(responses, columns, reading, names, has_media=True)
        found = inputs.texts or {}
        shown = found.get("text") if texts else texts_of_export(responses)
        desk = open_desk(
            session, inputs, shown, kinds, options | {"budget": budget, "background": True}
        )
        contents = Contents(found, desk.job, media, allows_remote=allow_remote)
        listening = app.bind(host, port)
        tell("fitting")
        desk.start()
    with desk:
        room = Room(desk, Tokens(token), contents, shows_why=show_why, guidelines=told)
        address = app.address(listening, host)
        # A token that was given is known, and not repeated.
        secret = room.tokens.token if token is None else "…"
        print_message(f"Open {address}/?token={secret}{' with your token' if token else ''}")
        if not is_local:
            print_message(
                "warning: others can reach this server, and what they send is not encrypted. Put a "
                "proxy with TLS before it; docs/page.md shows how."
            )
        print_message("Ctrl-C ends it.")
        if open_browser:
            webbrowser.open(f"{address}/?token={room.tokens.token}")
        app.run(room, listening, allow_host or (), is_local=is_local)
    say(f"Answers are kept in {session}; the same command goes on from there.")


def _page() -> Any:
    """Return the app of the page; say which extra it needs where that is not installed."""
    try:
        from tiebreak.page import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise OptionError("needs-page-extra") from error
    return app


def _read_guidelines(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise FileError("unreadable-guidelines", file=path, reason=reason) from error
