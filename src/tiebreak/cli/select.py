"""tiebreak select: which questions to ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli.arguments import STANDARD, Quiet, Seed, check_files
from tiebreak.cli.asking import QuestionCosts, QuestionKinds, Strategy, costs_given, kinds_given
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.model_options import LinkError, error_rate
from tiebreak.cli.tables import (
    AmongFile,
    Columns,
    GoldFile,
    LinksFile,
    ResponsesFiles,
    TasksFile,
    read_inputs,
    takes_import_options,
)
from tiebreak.errors import OptionError

if TYPE_CHECKING:
    from tiebreak.selection import Offers, Pairs


@takes_import_options
def select(
    responses: ResponsesFiles,
    n: Annotated[int, typer.Option("-n", help="How many questions.", metavar="N", min=0)] = 20,
    links: LinksFile = None,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    among: AmongFile = None,
    kinds: QuestionKinds = None,
    question_costs: QuestionCosts = None,
    strategy: Strategy = "adaptive",
    link_error: LinkError = None,
    columns: Columns = None,
    imports: Any = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where they go; else stdout.", metavar="FILE")
    ] = None,
    to: Annotated[
        Literal["label-studio", "argilla", "prodigy"] | None,
        typer.Option(help="For the tool in which people answer."),
    ] = None,
    texts: Annotated[
        str | None, typer.Option(help="Table of task, text, for --to.", metavar="FILE")
    ] = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    quiet: Quiet = False,
) -> None:
    """Choose questions to ask: pairs of tasks or, with --kinds, also single ones.

    A table of left, right and gain: how many labels the answer should put right. With --kinds
    also kind, task, class, worker, cost and worth (gain for one unit of cost).
    """
    out = out or STANDARD
    _check_options(kinds, strategy, question_costs, to, texts)
    is_text = as_json or to is not None
    check_files((responses, links, gold, tasks, among, texts), (out,), are_tables=not is_text)
    from tiebreak import selection
    from tiebreak.ask.job import tasks_among
    from tiebreak.estimators.variational_bayes import VariationalBayes
    from tiebreak.options import ExactLinkOptions

    error = error_rate(link_error)
    with working("reading and fitting", quiet=quiet):
        given = read_inputs(
            responses,
            links=links,
            gold=gold,
            tasks=tasks,
            among=among,
            texts=texts,
            columns=columns,
            form=imports.form,
            choices=imports.choices,
        )
        known = given.responses.tasks
        allowed = None if given.among is None else tasks_among(known, given.among)
        model = VariationalBayes(link_options=ExactLinkOptions(error=error))
        model.fit(given.responses, links=given.links, gold=given.gold)
        found: Pairs | Offers
        if kinds is None:
            found = selection.pairs(model, n, strategy=strategy, among=allowed, random_state=seed)
        else:
            named = kinds_given(kinds) or ()
            costs = costs_given(question_costs)
            found = selection.questions(model, n, named, costs, allowed, seed)
    if to is not None:
        _export(out, found, to, list(map(str, model.classes_)), given.texts or {})
    else:
        _write(out, found, as_json=as_json)
    if not quiet:
        worth = f"worth about {sum(row.gain for row in found):.2g} labels"
        what = "pairs" if kinds is None else "questions"
        wrote = "" if out == STANDARD else f": wrote {out}"
        print_message(f"{len(found):,} {what}, {worth}{wrote}")


def _check_options(
    kinds: str | None, strategy: str, costs: str | None, to: str | None, texts: str | None
) -> None:
    if kinds is not None and strategy != "adaptive":
        raise OptionError(f"--strategy {strategy} draws pairs; leave out --kinds.")
    if kinds is None and costs is not None:
        raise OptionError("--question-costs needs --kinds: which kinds may be asked?")
    if texts is not None and to is None:
        raise OptionError("--texts needs --to: for which tool?")


def _write(out: str, found: Pairs | Offers, *, as_json: bool) -> None:
    from tiebreak import tables

    columns = _columns(found)
    if not as_json:
        tables.write_table(out, columns)
        return
    names = list(columns)
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*(list(column) for column in columns.values()), strict=True)
    ]
    with tables.open_target(out) as target:
        target.write(json.dumps(rows, ensure_ascii=False, default=_plain).encode() + b"\n")


def _columns(found: Pairs | Offers) -> dict[str, list[object]]:
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
    columns = found.columns()
    is_pair = [kind == "same" for kind in columns["kind"]]
    tasks = columns.pop("task")
    split = {
        "kind": columns.pop("kind"),
        "task": [None if pair else task for task, pair in zip(tasks, is_pair, strict=True)],
        "left": [task if pair else None for task, pair in zip(tasks, is_pair, strict=True)],
        "right": columns.pop("other"),
        "class": [
            None if pair else label
            for label, pair in zip(columns.pop("label"), is_pair, strict=True)
        ],
        **{name: list(column) for name, column in columns.items()},
    }
    if not len(found):
        return split
    return {name: each for name, each in split.items() if any(v is not None for v in each)}


def _export(
    out: str, found: Pairs | Offers, to: str, classes: list[str], texts: dict[object, str]
) -> None:
    from tiebreak.selection import Offer, Offers
    from tiebreak.tables.export import write_questions

    rows = found if isinstance(found, Offers) else [Offer("same", *row[:2]) for row in found]
    write_questions(out, rows, to, classes, texts)


def _plain(value: object) -> object:
    """Return numbers of NumPy as numbers, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
