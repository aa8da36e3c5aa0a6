"""tiebreak update: a model file goes on with more responses, links and gold."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import (
    STANDARD,
    ModelFile,
    Quiet,
    Wait,
    check_files,
    one_or_all,
    refuse_model_name,
)
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import (
    Columns,
    GoldFile,
    LinkSampling,
    LinksFile,
    Read,
    Repeats,
    open_files,
    read_if_given,
)
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.tables import OpenTable


def update(
    model: ModelFile,
    responses: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables of task, worker, label: files, 'patterns*', folders; - is stdin.",
            metavar="[RESPONSES]",
        ),
    ] = None,
    links: LinksFile = None,
    link_sampling: LinkSampling = None,
    gold: GoldFile = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Where all labels go, if anywhere.", metavar="FILE"),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add one column per class.")
    ] = False,
    save: Annotated[
        str | None,
        typer.Option(help="Where the model goes. [MODEL.tbm]", metavar="MODEL.tbm"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="responses, or counts: drop responses. [as it is]", metavar="WORD"),
    ] = None,
    forget: Annotated[
        float,
        typer.Option(help="What workers did counts so much from now on.", metavar="X"),
    ] = 1.0,
    again: Annotated[
        bool,
        typer.Option("--again", help="Count responses that a model of counts was given before."),
    ] = False,
    columns: Columns = None,
    repeats: Repeats = None,
    wait: Wait = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Summary as JSON on stdout.")] = False,
    quiet: Quiet = False,
) -> None:
    """Let a model go on with more responses, links and gold, on old tasks and new ones.

    Where responses are kept, it ends where a fit of everything together does.
    """
    if not (responses or links or gold):
        raise typer.BadParameter("There is nothing new: name responses, --links or --gold.")
    check_files((responses, links, gold), (out,))
    refuse_model_name(save)
    from tiebreak import tables
    from tiebreak.life import model_file
    from tiebreak.life.update import require_keep
    from tiebreak.tables.locks import Lock

    if keep is not None:
        require_keep(keep)
    target = save or model
    new_tables = one_or_all(responses) if responses else None
    opened = open_files(columns, responses=new_tables, links=links, gold=gold)
    new = _read_rows(opened, "responses", partial(tables.read_responses, repeats=repeats))
    pairs = _read_rows(opened, "links", partial(tables.read_links, sampling=link_sampling))
    truth = _read_rows(opened, "gold", tables.read_gold)
    is_idle = new is None and pairs is None and truth is None
    # From here to the end nobody else may write: what they add to the model would be lost.
    with Lock(target, "tiebreak update", wait=wait) as lock:
        with working("fitting", quiet=quiet):
            known = model_file.load(model)
            before = dict(zip(known.tasks_, known.labels_.label.tolist(), strict=True))
            names = list(known.classes_)
            batches = known._batches
            if not is_idle:
                known.update(new, links=pairs, gold=truth, forget=forget, again=again)
        if not is_idle or save or keep:
            model_file.save(known, target, keep or "responses", lock=lock)
        if out:
            tables.write_labels(out, known.labels_, probabilities=probabilities)
    n_changed = _count_changed(known, before, names)
    n_new_tasks = len(known.tasks_) - len(before)
    if as_json:
        summary = {
            "responses": 0 if new is None or known._batches == batches else new.n_responses,
            "tasks": len(known.tasks_),
            "tasks_new": n_new_tasks,
            "labels_changed": n_changed - n_new_tasks,
            "sweeps": known.n_iter_,
            "converged": known.converged_,
            "saved": target,
            "out": out,
        }
        typer.echo(json.dumps(summary))
    if not quiet and is_idle:
        print_message("0 responses, nothing to do")
    elif not quiet:
        written = [name for name in (out, target) if name and name != STANDARD]
        print_message(
            f"{counted(len(known.tasks_), 'task')}, {n_new_tasks:,} of them new; "
            f"{counted(n_changed - n_new_tasks, 'label')} changed\nwrote {', '.join(written)}"
        )


def _read_rows(opened: dict[str, OpenTable], what: str, reader: Callable[..., Read]) -> Read | None:
    """Read one of the files; None where it was not given, or holds nothing yet."""
    from tiebreak.tables.source import NoRowsError

    try:
        return read_if_given(opened, what, reader)
    except NoRowsError:
        return None


def _count_changed(model: Estimator, before: dict[Any, int], names: list[Any]) -> int:
    """Count tasks that are new, or have another label than before; `names` were the classes."""
    return sum(
        label.task not in before or names[before[label.task]] != label.label
        for label in model.labels_
    )
