"""tiebreak convert: from what a tool wrote to tables, packed folders, and back into a tool."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tiebreak.cli import options
from tiebreak.cli.options import CommandInputs, Text, file, option, require
from tiebreak.cli.output import STANDARD, say, stages, wrote
from tiebreak.errors import InputError, OptionError
from tiebreak.wording import counted

PACKED = ".tb"

Tool = Annotated[
    Literal["label-studio", "argilla", "prodigy", "doccano", "conll"] | None,
    typer.Option(help="Write for this tool, in which people work."),
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
    out: Annotated[Text, file("Write here; FILE.tb packs. [stdout]", "-o", "--out")] = None,
    to: Tool = None,
    gold_out: Annotated[Text, file("Write known labels here.")] = None,
    texts_out: Annotated[Text, file("Write texts of tasks here.")] = None,
    sequences_out: Annotated[Text, file("Write tokens here, where spans are marked.")] = None,
    texts: Annotated[Text, file("With --to: table of task, text, or the tool's export.")] = None,
    below: Annotated[
        float | None,
        option("P", "With --to: only labels below this probability.", min=0.0, max=1.0),
    ] = None,
    columns: options.Columns = None,
    given: options.Set = None,
) -> None:
    """Convert an export of a tool into a table, or labels for a tool.

    Exports of Label Studio, Argilla, Prodigy, MTurk … become a table of responses: runs, order,
    confidence and times are kept as columns; nothing is voted over. With -o NAME.tb they are
    packed, so that fits start at once. With --to, labels become predictions (Label Studio),
    suggestions (Argilla) or chosen options (Prodigy); spans, as of fuse --spans-out, also go to
    doccano and CoNLL: with --below, texts that have a span below a probability alone.
    """
    from tiebreak import tables

    out = out or STANDARD
    if to is not None:
        names = options.OptionValues(given).take_last("question", "field")
        options.check_files(
            (source, texts), (out,), are_tables=False
        )  # the tool says which form it has
        if texts == STANDARD:
            raise OptionError("stdin-not-here", why="--texts is read twice")
        from tiebreak.tables.export import TOOLS, write_export, write_spans

        with stages("reading"):
            named = options.split_pairs("--columns", columns)
            table = source[0] if len(source) == 1 else source
            spans = tables.read_spans(table)
            if spans is not None:
                n_written = write_spans(out, spans, to, texts=texts, below=below, **names)
                say(f"{counted(n_written, 'text')} for {to}")
                return
            if to not in TOOLS:
                raise OptionError("tool-of-spans", to=to)
            labels = tables.read_labels(table, columns=named)
            if below is not None:
                labels = _doubtful(labels, below)
            write_export(out, labels, to, texts=texts, **names)
        if written := wrote((out,)):
            say(f"{counted(len(labels), 'label')} for {to}: {written}")
        return
    require("--texts", texts, "--to: for which tool?", False)
    require("--below", below is not None, "--to: for which tool?", False)
    inputs = CommandInputs(source, columns, given)
    inputs.take_last()
    if Path(out).suffix.lower() == PACKED:
        require("--gold-out", gold_out, "a table as -o", False)
        require("--texts-out", texts_out, "a table as -o", False)
        inputs.check()
        with stages("reading and packing"):
            responses = inputs.read().responses
            responses.write(out)
        say(f"{responses!r}\nwrote {out}; fit with: tiebreak fuse {out}")
        return
    inputs.check(out, gold_out, texts_out, sequences_out)
    from tiebreak.tables.export import write_known, writing_texts

    reading = {**inputs.reading, "tasks": inputs.files["tasks"]}
    reading.pop("sampling", None)
    with ExitStack() as stack, stages("reading"):
        keep: Any = stack.enter_context(writing_texts(texts_out)) if texts_out else None
        rows, gold, sequences = tables.read_every_row(
            inputs.source, keep, columns=inputs.columns, **reading
        )
        if gold_out:
            write_known(gold_out, source[0], gold)
        if sequences_out:
            if sequences is None:
                raise InputError("no-spans-in-file", file=source[0])
            sequences.write(sequences_out)
    tables.write_table(out, rows)
    n_rows = counted(len(rows["task"]), "row")
    written = wrote((out, gold_out, texts_out, sequences_out))
    say(f"{n_rows}: {written}" if written else n_rows)


def _doubtful(labels: Any, below: float) -> Any:
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
