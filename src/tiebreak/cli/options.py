"""Options that several commands have, and the files that they name.

Each stands here once: the same name and help everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import typer

from tiebreak.cli.arguments import split_list, split_pairs
from tiebreak.cli.imports import open_with_responses
from tiebreak.cli.link_options import error_flag
from tiebreak.errors import InputNote, note
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.files import Export, OpenTable
    from tiebreak.files.formats import FormatOptions
    from tiebreak.gold import Gold
    from tiebreak.ids import Column
    from tiebreak.links import Links
    from tiebreak.responses import Responses

Read = TypeVar("Read")

ResponsesFile = Annotated[
    str, typer.Argument(help="Table of task, worker, label; - is stdin.", metavar="RESPONSES")
]
LinkSampling = Annotated[
    Literal["pairs", "duplicates"] | None,
    typer.Option(help="How links came about. [without cannot-links: duplicates]"),
]
LinksFile = Annotated[
    str | None, typer.Option(help="Table of left, right, link (must|cannot).", metavar="FILE")
]
GoldFile = Annotated[
    str | None, typer.Option(help="Table of task, label: known classes.", metavar="FILE")
]
TasksFile = Annotated[
    str | None, typer.Option(help="Table of task: also those without responses.", metavar="FILE")
]
AmongFile = Annotated[
    str | None, typer.Option(help="Table of task: ask about these only.", metavar="FILE")
]
Columns = Annotated[
    str | None,
    typer.Option(help="Names of columns, in any table: task=…,left=…", metavar="PAIRS"),
]
Repeats = Annotated[
    Literal["runs", "last", "count", "error", "vote"] | None,
    typer.Option(
        help="A worker twice on one task: what counts. [last; runs where columns tell them]"
    ),
]
Classes = Annotated[
    str | None, typer.Option(help="Classes, also those nobody used.", metavar="A,B,…")
]
LinkError = Annotated[
    str | None,
    typer.Option(help=error_flag().field.metadata["help"], metavar="RATE"),
]
Strategy = Annotated[
    Literal["adaptive", "bvsb", "random"], typer.Option(help="How pairs are chosen.")
]
QuestionKinds = Annotated[
    str | None,
    typer.Option("--kinds", help="What may be asked: same, label, is, vote.", metavar="A,B,…"),
]
QuestionCosts = Annotated[
    str | None,
    typer.Option(help="What a question costs: label=2,same=1; or time.", metavar="PAIRS"),
]
ModelFile = Annotated[str, typer.Argument(help="A model file.", metavar="MODEL.tbm")]
Keep = Annotated[
    Literal["responses", "counts"],
    typer.Option(help="What a model file keeps: all responses, or only what they add up to."),
]
Seed = Annotated[int | None, typer.Option(help="For what is random.", metavar="N", min=0)]
FoldLabels = Annotated[
    bool,
    typer.Option("--fold-labels", help="Join labels that differ only in case, spaces or form."),
]
Force = Annotated[bool, typer.Option("--force", help="Do it all the same.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no notes.")]


class InputTables(NamedTuple):
    """The tables that a command was given, read."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    among: Column | None  # ids of tasks
    texts: dict[Hashable, str] | None  # by task
    truth: Gold | None = None  # known labels that a fit is not given
    columns: dict[str, str] | None = None  # which column of the responses was read as what
    form: str | None = None  # what the format of the responses is called, where a tool has it
    systems: dict[Hashable, str] | None = None  # by task
    selection: dict[Hashable, float] | None = None  # by task


def read_inputs(
    responses: str,
    *,
    links: str | None = None,
    gold: str | None = None,
    tasks: str | None = None,
    among: str | None = None,
    texts: str | None = None,
    truth: str | None = None,
    systems: str | None = None,
    selection: str | None = None,
    columns: str | None = None,
    repeats: Literal["runs", "last", "count", "error", "vote"] | None = None,
    form: str | None = None,
    choices: FormatOptions | None = None,
    classes: str | None = None,
    sampling: Literal["pairs", "duplicates"] | None = None,
    fold_labels: bool = False,
) -> InputTables:
    """Read the files that the options name."""
    from tiebreak import files
    from tiebreak.files.content import is_packed

    if repeats is not None and is_packed(responses):
        raise typer.BadParameter("--repeats was settled when the responses were packed.")
    names = {"links": links, "gold": gold, "tasks": tasks, "among": among, "texts": texts}
    names["truth"] = truth
    names |= {"systems": systems, "selection": selection}
    source, opened = open_with_responses(responses, columns, names, form, choices or {})
    with warnings.catch_warnings():
        if fold_labels:  # is what that note would say to do
            warnings.filterwarnings("ignore", "Labels .* differ only", InputNote)
        export: Export = source.read(
            files.read_export,
            repeats=repeats,
            tasks=read_if_given(opened, "tasks", files.read_tasks),
            classes=None if classes is None else split_list(classes),
        )
    known = read_if_given(opened, "gold", files.read_gold)
    if known is not None and export.gold is not None:
        note(f"--gold is used; the {len(export.gold):,} known labels in {responses} are not.")
    crowd = export.responses
    known = known or export.gold
    compared = read_if_given(opened, "truth", files.read_gold)
    if fold_labels:
        crowd, known = fold(crowd, known)
        compared = None if compared is None else compared.with_labels_like(crowd.classes)
    return InputTables(
        crowd,
        read_if_given(opened, "links", partial(files.read_links, sampling=sampling)),
        known,
        read_if_given(opened, "among", files.read_tasks),
        read_if_given(opened, "texts", files.read_texts),
        compared,
        export.columns,
        export.form,
        read_if_given(opened, "systems", files.read_systems),
        read_if_given(opened, "selection", files.read_selection),
    )


def fold(responses: Responses, gold: Gold | None) -> tuple[Responses, Gold | None]:
    """Join labels that differ only in case, spaces or Unicode form, in responses and gold."""
    folded = responses.with_folded_labels()
    n_joined = responses.n_classes - folded.n_classes
    if n_joined:
        note(f"{counted(responses.n_classes, 'label')} joined into {folded.n_classes:,} classes.")
    return folded, None if gold is None else gold.with_labels_like(folded.classes)


def open_files(columns: str | None, **names: str | None) -> dict[str, OpenTable]:
    """Open files, by what they hold, with the names that --columns gives their columns."""
    from tiebreak import files

    return files.open_tables(names, {} if columns is None else split_pairs("--columns", columns))


def read_if_given(
    opened: dict[str, OpenTable], what: str, reader: Callable[..., Read]
) -> Read | None:
    """Read one of the files, None where it was not given."""
    return opened[what].read(reader) if what in opened else None


def kinds_given(kinds: str | None) -> tuple[str, ...] | None:
    """Read --kinds; None where it is not given."""
    return None if kinds is None else tuple(split_list(kinds))


def costs_given(costs: str | None) -> dict[str, float] | None:
    """Read --question-costs, kind=cost for each kind; None where it is not given."""
    if costs is None:
        return None
    found = {}
    for kind, cost in split_pairs("--question-costs", costs).items():
        try:
            found[kind] = float(str(cost))
        except ValueError:
            raise typer.BadParameter(
                f"--question-costs: the cost of {kind} must be a number; got {cost!r}."
            ) from None
    return found


def error_rate(link_error: str | None) -> float | str | None:
    """Read --link-error: a rate, or a word that the model knows."""
    return None if link_error is None else error_flag().read(link_error)
