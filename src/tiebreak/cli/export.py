"""tiebreak export: labels back into the tool in which people work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from tiebreak.cli.arguments import STANDARD, Quiet, check_files
from tiebreak.cli.messages import print_message, working
from tiebreak.wording import counted


def export(
    labels: Annotated[
        str, typer.Argument(help="Table of task, label, probability.", metavar="LABELS")
    ],
    to: Annotated[
        Literal["label-studio", "argilla", "prodigy"], typer.Option(help="For which tool.")
    ],
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where it goes; else stdout.", metavar="FILE")
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(help="Table of task, text, or the export of a tool.", metavar="FILE"),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            help="What the tool calls the question. [as --texts tells, else label]", metavar="NAME"
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            help="What the tool calls the field of text. [as --texts tells, else text]",
            metavar="NAME",
        ),
    ] = None,
    below: Annotated[
        float | None,
        typer.Option(help="Only labels below this probability.", metavar="P", min=0.0, max=1.0),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write labels with probabilities for the tool in which people work.

    They become predictions (Label Studio), suggestions (Argilla) or chosen options (Prodigy).
    """
    out = out or STANDARD
    check_files((labels, texts), (out,), are_tables=False)  # the tool says which form it has
    if texts == STANDARD:
        raise typer.BadParameter("--texts cannot be '-', the standard input. Name the file.")
    from tiebreak import tables
    from tiebreak.tables.export import write_export

    with working("reading", quiet=quiet):
        read = tables.read_labels(labels)
        if below is not None:
            read = _doubtful(read, below)
        write_export(out, read, to, texts=texts, question=question, field=field)
    if not quiet and out != STANDARD:
        print_message(f"{counted(len(read), 'label')} for {to}: wrote {out}")


def _doubtful(labels: Any, below: float) -> Any:
    """Keep the labels below a probability."""
    import numpy as np

    from tiebreak.data.ids import Ids
    from tiebreak.data.labels import Labels

    if labels.probability is None:
        raise typer.BadParameter("--below needs a column of probabilities in LABELS.")
    kept = np.flatnonzero(labels.probability < below)
    if not len(kept):
        raise typer.BadParameter(f"No label is below {below}: nothing to write.")
    tasks = Ids(labels.tasks.take(kept))
    return Labels(tasks, labels.classes, labels.label[kept], labels.probability[kept])
