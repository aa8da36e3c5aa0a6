"""tiebreak convert: what an annotation tool wrote, as a plain table of responses."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any

import typer

from tiebreak.cli.arguments import STANDARD, Quiet, check_files, named_columns, one_or_all
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import Columns, takes_import_options
from tiebreak.wording import counted


@takes_import_options
def convert(
    source: Annotated[
        list[str],
        typer.Argument(
            help="What a tool wrote: files, 'patterns*', folders; - is stdin.", metavar="IN"
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Where responses go; else stdout.", metavar="FILE"),
    ] = None,
    gold_out: Annotated[
        str | None, typer.Option(help="Where to write known labels.", metavar="FILE")
    ] = None,
    texts_out: Annotated[
        str | None, typer.Option(help="Where to write texts of tasks.", metavar="FILE")
    ] = None,
    imports: Any = None,
    columns: Columns = None,
    quiet: Quiet = False,
) -> None:
    """Turn an export of Label Studio, Argilla, Prodigy, MTurk … into a table of responses.

    Runs, order, confidence and times are kept as columns; nothing is voted over.
    """
    out = out or STANDARD
    check_files((source,), (out, gold_out, texts_out))
    from tiebreak import tables
    from tiebreak.tables.export import write_known, writing_texts

    named = named_columns(columns)
    options = {"columns": named, "format": imports.form, **imports.choices}
    with ExitStack() as stack, working("reading", quiet=quiet):
        keep: Any = None
        if texts_out:
            keep = stack.enter_context(writing_texts(texts_out))
        read = tables.read_every_row(one_or_all(source), keep, **options)
        if gold_out:
            write_known(gold_out, source[0], read.gold)
    tables.write_table(out, read.columns)
    if not quiet:
        written = [name for name in (out, gold_out, texts_out) if name and name != STANDARD]
        names = f": wrote {', '.join(written)}" if written else ""
        print_message(f"{counted(len(read.columns['task']), 'row')}{names}")
