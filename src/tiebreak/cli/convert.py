"""tiebreak convert: from what a tool wrote to tables, packed folders, and back into a tool."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tiebreak.cli.options import (
    ColumnsOption,
    OptionValues,
    SetOption,
    check_files,
    one_or_all,
    read_inputs,
    reading_options,
    require,
    split_pairs,
)
from tiebreak.cli.output import STANDARD, say, stages, wrote
from tiebreak.errors import OptionError
from tiebreak.wording import counted

PACKED = ".tb"

Tool = Annotated[
    Literal["label-studio", "argilla", "prodigy"] | None,
    typer.Option(help="Write labels for this tool."),
]


def convert(
    source: Annotated[
        list[str],
        typer.Argument(
            help="What a tool wrote: files, 'patterns*', folders; - is stdin. With --to: a table "
            "of task, label, probability.",
            metavar="IN",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Write here; FILE.tb packs. [stdout]", metavar="FILE"),
    ] = None,
    to: Tool = None,
    gold_out: Annotated[
        str | None, typer.Option(help="Write known labels here.", metavar="FILE")
    ] = None,
    texts_out: Annotated[
        str | None, typer.Option(help="Write texts of tasks here.", metavar="FILE")
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(help="With --to: table of task, text, or the tool's export.", metavar="FILE"),
    ] = None,
    below: Annotated[
        float | None,
        typer.Option(
            help="With --to: only labels below this probability.", metavar="P", min=0.0, max=1.0
        ),
    ] = None,
    columns: ColumnsOption = None,
    given: SetOption = None,
) -> None:
    """Convert an export of a tool into a table, or labels for a tool.

    Exports of Label Studio, Argilla, Prodigy, MTurk … become a table of responses: runs, order,
    confidence and times are kept as columns; nothing is voted over. With -o NAME.tb they are
    packed, so that fits start at once. With --to, labels become predictions (Label Studio),
    suggestions (Argilla) or chosen options (Prodigy).
    """
    out = out or STANDARD
    settings = OptionValues(given)
    if to is not None:
        shown = settings.take(["question", "field"])
        settings.finish()
        _write_for_tool(one_or_all(source), out, to, texts, below, columns, shown)
        return
    require("--texts", texts, "--to: for which tool?", False)
    require("--below", below is not None, "--to: for which tool?", False)
    reading = settings.take(reading_options())
    settings.finish()
    if Path(out).suffix.lower() == PACKED:
        require("--gold-out", gold_out, "a table as -o", False)
        require("--texts-out", texts_out, "a table as -o", False)
        check_files((source, reading.get("tasks")), ())
        with stages("reading and packing"):
            responses = read_inputs(source, columns, reading, {}).responses
            responses.write(out)
        say(f"{responses!r}\nwrote {out}; fit with: tiebreak fuse {out}")
        return
    check_files((source, reading.get("tasks")), (out, gold_out, texts_out))
    from tiebreak import tables
    from tiebreak.tables.export import write_known, writing_texts

    reading.pop("sampling", None)
    with ExitStack() as stack, stages("reading"):
        keep: Any = stack.enter_context(writing_texts(texts_out)) if texts_out else None
        named = split_pairs("--columns", columns)
        read = tables.read_every_row(one_or_all(source), keep, columns=named, **reading)
        if gold_out:
            write_known(gold_out, source[0], read.gold)
    tables.write_table(out, read.columns)
    places = wrote((out, gold_out, texts_out))
    rows = counted(len(read.columns["task"]), "row")
    say(f"{rows}: {places}" if places else rows)


def _write_for_tool(
    source: Any,
    out: str,
    to: str,
    texts: str | None,
    below: float | None,
    columns: str | None,
    shown: dict[str, Any],
) -> None:
    """Write labels in the form in which a tool imports them."""
    check_files((source, texts), (out,), are_tables=False)  # the tool says which form it has
    if texts == STANDARD:
        raise OptionError("stdin-not-here", why="--texts is read twice")
    from tiebreak import tables
    from tiebreak.tables.export import write_export

    with stages("reading"):
        labels = tables.read_labels(source, columns=split_pairs("--columns", columns))
        if below is not None:
            labels = _doubtful(labels, below)
        write_export(out, labels, to, texts=texts, **shown)
    if out != STANDARD:
        say(f"{counted(len(labels), 'label')} for {to}: {wrote((out,))}")


def _doubtful(labels: Any, below: float) -> Any:
    """Keep the labels below a probability."""
    import numpy as np

    from tiebreak.data.ids import Ids
    from tiebreak.data.labels import Labels

    if labels.probability is None:
        raise OptionError("no-probabilities-below")
    kept = np.flatnonzero(labels.probability < below)
    if not len(kept):
        raise OptionError("no-label-below", below=below)
    tasks = Ids(labels.tasks.take(kept))
    return Labels(tasks, labels.classes, labels.label[kept], labels.probability[kept])
