"""tiebreak ask, serve: ask people which class a task is of, or whether two are of the same."""

from __future__ import annotations

import json
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from tiebreak.cli import options
from tiebreak.cli.convert import Tool
from tiebreak.cli.options import CommandInputs, Text, file, flag, option, require, split_list
from tiebreak.cli.output import STANDARD, print_message, say, stages, wrote
from tiebreak.errors import FileError, OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.ask import Desk, Session
    from tiebreak.selection import Offers, Pairs

# Options of `tb.ask.Desk` that --set reaches; those of questions hold for --list, too.
OF_QUESTIONS = ("strategy", "costs", "link_error", "random_state")
OF_DESK = (
    *OF_QUESTIONS,
    *("budget", "target", "stop_when_worth_less_than", "batch", "wording", "class_texts", "lease"),
)


def ask(
    responses: options.Responses,
    session: Annotated[Text, file("Keep answers in this file; made if not there.")] = None,
    links: options.Links = None,
    gold: options.Gold = None,
    texts: options.Texts = None,
    kinds: Annotated[
        Text, option("A,B,…", "What may be asked: same, label, is, vote, which.")
    ] = None,
    who: Annotated[str, option("NAME", "The name of the person who answers.")] = "me",
    out: Annotated[Text, file("Write labels, or the list, here.", "-o", "--out")] = None,
    links_out: Annotated[Text, file("Write the answers as links here.")] = None,
    labels_out: Annotated[Text, file("Write the labels that were given here.")] = None,
    n_listed: Annotated[
        int | None, option("N", "List N questions to ask, and ask nobody.", "--list", min=0)
    ] = None,
    to: Tool = None,
    as_json: Annotated[bool, flag("--json", "Print the list as JSON.")] = False,
    columns: options.Columns = None,
    given: options.Set = None,
) -> None:
    """Ask in the terminal, best question first, or list what to ask.

    One key per answer, kept at once; the same command goes on where it ended. A list is a table of
    left, right and gain (how many labels the answer should correct); with --kinds also kind, task,
    class, worker, cost and worth (gain for one unit of cost). --set reaches the options of
    tb.ask.Desk: budget, target, wording, costs, strategy, link_error and others; --set groups=FILE,
    rule="at most one 1" and constraints=FILE say what labels must keep, as for fuse. Spans of texts
    are asked about one by one: those of an export, or of --set sequences=FILE.
    """
    files = {"links": links, "gold": gold, "texts": texts}
    files |= dict.fromkeys((*options.OF_RULES, "sequences"))  # by --set
    inputs = CommandInputs(responses, columns, given, **files)
    if n_listed is not None:
        inputs.files["among"] = inputs.take("among").get("among")
        chosen = inputs.take_last(*OF_QUESTIONS)
        for name, value in {"--session": session, "--links-out": links_out}.items():
            if value:
                raise OptionError("options-exclude", one=name, other="--list")
        require("--texts", texts, "--to: for which tool?", to)
        out = out or STANDARD
        inputs.check(out, are_tables=not (as_json or to))
        with stages("reading and fitting"):
            read = inputs.read()
            asked = None if kinds is None else split_list(kinds)
            if spans_to_ask(read) is not None:
                from tiebreak.ask.job import Job

                given_too = {"gold": read.gold, "sequences": read.sequences}
                job = Job(read.responses, read.links, **given_too)
                texts_of = {job.name(job.key[code]): text for code, text in job.texts.items()}
                read.responses, read.gold, read.texts = job.responses, job.gold, texts_of
                asked = asked or ["label"]
            if read.constraints is not None and "strategy" not in chosen:
                asked = asked or ["same", "label", "which"]
            found = list_questions(read.responses, n_listed, asked, inputs=read, options=chosen)
        write_list(out, found, to, read, as_json=as_json)
        what = "pairs" if kinds is None else "questions"
        worth = f"worth about {sum(row.gain for row in found):.2g} labels"
        written = wrote((out,))
        say(f"{len(found):,} {what}, {worth}{': ' if written else ''}{written}")
        return
    require("--to", to, "--list N", False)
    require("--json", as_json, "--list N", False)
    if session is None:
        raise OptionError("session-or-list")
    settings = desk_options(inputs, kinds, "Standard input is for keys here")
    inputs.check(links_out, labels_out, out, also=(session, settings.get("class_texts")))
    # Keys from a pipe come at once: fits are made in turn then, and the same keys give the same.
    has_a_person = sys.stdin.isatty()
    with stages("reading"):
        shown = None if texts else inputs.texts_of_export()
        read = inputs.read()
        settings |= {"background": has_a_person, "only": who}
        desk = open_desk(session, read, shown or read.texts, settings)
    with desk, desk.session(who) as opened:
        _converse(opened, session)
        if links_out:
            opened.links().write(links_out)
        if labels_out:
            opened.labels().write(labels_out)
        if out:
            desk.fused().write(out)
    if written := wrote((links_out, labels_out, out)):
        print_message(written)


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

    given = inputs or SimpleNamespace(links=None, gold=None, among=None, constraints=None)
    options = options or {}
    strategy = options.get("strategy", "adaptive")
    costs = options.get("costs")
    if kinds is not None and strategy != "adaptive":
        raise OptionError("strategy-draws-pairs", strategy=strategy)
    require("--set costs", kinds is None and costs is not None, "--kinds", False)
    links = ExactLinkOptions(error=options.get("link_error"))
    model = VariationalBayes(link_options=links)
    model.fit(responses, links=given.links, gold=given.gold, constraints=given.constraints)
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
    from tiebreak.data.frames import as_plain
    from tiebreak.selection import Offer, Offers

    if to is not None:
        from tiebreak.tables.export import write_questions

        rows = found if isinstance(found, Offers) else [Offer("same", *row[:2]) for row in found]
        # Tools ask about one task: of a group about each of its tasks.
        rows = [
            each
            for row in rows
            for each in (
                [Offer("is", task, label=row.label) for task in row.members if task is not None]
                if row.members
                else [row]
            )
        ]
        classes = list(map(str, inputs.responses.classes))
        write_questions(out, rows, to, classes, inputs.texts or {})
        return
    columns = question_columns(found)
    if not as_json:
        tables.write_table(out, columns)
        return
    values = zip(*columns.values(), strict=True)
    listed = as_plain([dict(zip(columns, row, strict=True)) for row in values])
    with tables.open_target(out) as target:
        target.write(json.dumps(listed, ensure_ascii=False, default=str).encode() + b"\n")


def question_columns(found: Pairs | Offers) -> dict[str, list[object]]:
    """Return the columns of a table: a pair has left and right, as links do, others have a task.

    A column that no question needs is left out. The class of an example is not told: it would sway.
    """
    from tiebreak.selection import Offers

    if not isinstance(found, Offers):
        return {"left": [*found.left], "right": [*found.right], "gain": found.gain.tolist()}
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


def spans_to_ask(read: SimpleNamespace) -> Any:
    """Return the sequences whose spans are asked about; None where classes are no tags of spans."""
    from tiebreak.data.tags import NONE, Tags

    is_tagged = read.sequences is not None and Tags.of(read.responses.classes).scheme != NONE
    return read.sequences if is_tagged else None


def desk_options(inputs: CommandInputs, kinds: str | None, why: str) -> dict[str, Any]:
    """Return the options of a desk; its files are named, and `why` says why none can be '-'."""
    inputs.files["among"] = inputs.take("among").get("among")
    chosen = inputs.take_last(*OF_DESK)
    if STANDARD in (*inputs.responses, *inputs.files.values(), chosen.get("class_texts")):
        raise OptionError("stdin-not-here", why=why)
    return chosen | {"kinds": None if kinds is None else tuple(split_list(kinds))}


def open_desk(session: str, read: SimpleNamespace, texts: Any, settings: dict[str, Any]) -> Desk:
    from tiebreak.ask import Desk

    given = {"links": read.links, "gold": read.gold, "among": read.among}
    given["constraints"] = read.constraints
    given["sequences"] = spans_to_ask(read)
    if given["sequences"] is None:
        given["texts"] = texts
    return Desk(session, read.responses, **given, **settings)


def _converse(session: Session, name: str) -> None:
    """Ask, and say at the end, or where Ctrl-C ends it, how much is kept."""
    from tiebreak.ask.console import WHY, Conversation, Keys, new_console

    interrupt = None
    try:
        Conversation(session, Keys(sys.stdin), new_console()).run()
    except KeyboardInterrupt as error:
        interrupt = error
    finished = session.progress().finished
    if finished is not None and not interrupt:
        print_message(WHY[finished])
    kept = counted(len(session.answers()), "answer")
    print_message(f"{kept} kept in {name}; run the same command again to continue.")
    if interrupt:
        raise interrupt


def serve(
    responses: options.Responses,
    session: Annotated[str, file("Keep answers in this file; made if not there.")],
    links: options.Links = None,
    gold: options.Gold = None,
    texts: Annotated[Text, file("Table of task and text, markdown, image or audio.")] = None,
    media: Annotated[Text, option("DIR", "Folder of the images and sounds.")] = None,
    guidelines: Annotated[Text, file("Guidelines for the people who answer, in Markdown.")] = None,
    kinds: Annotated[Text, option("A,B,…", "What may be asked: same, label, is, which.")] = None,
    columns: options.Columns = None,
    given: options.Set = None,
    allow_remote: Annotated[
        bool, flag("--allow-remote", "Let browsers fetch images from https addresses.")
    ] = False,
    show_why: Annotated[
        bool, flag("--show-why", "Let invited people see votes, who gave them, and probabilities.")
    ] = False,
    open_browser: Annotated[bool, flag("--open", "Open the page in a browser here.")] = False,
    host: Annotated[
        str, option("ADDRESS", "Address to listen at; others need --token.")
    ] = "127.0.0.1",
    port: Annotated[int, option("N", "Port to listen at; 0: any that is free.", min=0)] = 8437,
    token: Annotated[
        str | None,
        option("TEXT", "Secret that gives lead access. [random]", envvar="TIEBREAK_TOKEN"),
    ] = None,
    allow_host: Annotated[
        list[str] | None, option("NAME", "A name of this server, as a proxy has it.")
    ] = None,
) -> None:
    """Ask a team in the browser: one decision a screen, a view to watch.

    Only this machine can reach it unless you say otherwise; the printed address lets a lead in.
    --set reaches the options of tb.ask.Desk: budget, target, wording, costs, link_error and others.
    """
    files = {"links": links, "gold": gold, "texts": texts}
    files |= dict.fromkeys((*options.OF_RULES, "sequences"))  # by --set
    inputs = CommandInputs(responses, columns, given, **files)
    settings = desk_options(inputs, kinds, "A server reads its files by name")
    inputs.check(also=(session, guidelines, settings.get("class_texts")))
    app = _page()
    from tiebreak.page.guard import Tokens
    from tiebreak.page.room import Contents, Room

    is_local = app.check_binding(host, token)
    told = "" if guidelines is None else _read_guidelines(guidelines)
    with stages() as tell:
        tell("reading")
        read = inputs.read(has_media=True)
        found = read.texts or {}
        shown = found.get("text") if texts else inputs.texts_of_export()
        desk = open_desk(session, read, shown, settings | {"background": True})
        contents = Contents(found, desk.job, media, allows_remote=allow_remote)
        listening = app.bind(host, port)
        tell("fitting")
        desk.start()
    with desk:
        room = Room(desk, Tokens(token), contents, shows_why=show_why, guidelines=told)
        address = app.address(listening, host)
        # A token that was given is known, and not repeated.
        secret = room.tokens.token if token is None else "… with the token that you gave."
        print_message(f"Open {address}/?token={secret}")
        if not is_local:
            print_message(
                "warning: others can reach this server, and what they send is not encrypted. Put a "
                "proxy with TLS before it; docs/page.md shows how."
            )
        print_message("Ctrl-C ends it.")
        if open_browser:
            webbrowser.open(f"{address}/?token={room.tokens.token}")
        app.run(room, listening, allow_host or (), is_local=is_local)
    say(f"Answers are kept in {session}; run the same command again to continue.")


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
