"""tiebreak shuffle: bring the responses of each task into one shard."""

from __future__ import annotations

from typing import Annotated

import typer

from tiebreak.cli.arguments import ClusterAddress, Partitions, Quiet, named_columns
from tiebreak.cli.cluster import executor_of
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import Columns, Repeats
from tiebreak.wording import counted


def shuffle(
    shards: Annotated[
        list[str],
        typer.Argument(help="Packed folders, tables, globs or folders of them.", metavar="SHARDS"),
    ],
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder for the new shards.", metavar="FOLDER")
    ],
    parts: Annotated[
        int | None, typer.Option(help="How many. [as many as now]", metavar="N", min=1)
    ] = None,
    columns: Columns = None,
    repeats: Repeats = None,
    cluster: ClusterAddress = None,
    quiet: Quiet = False,
) -> None:
    """Bring the responses of each task into one shard, out of core.

    `tiebreak fuse FOLDER --cluster …` needs that. The new shards are packed.
    """
    from tiebreak import shards as over_shards

    with working("shuffling", quiet=quiet), executor_of(Partitions(cluster, False)) as executor:
        made = over_shards.shuffle(
            list(shards),
            out,
            parts=parts,
            columns=named_columns(columns) or None,
            repeats=repeats,
            executor=executor,
        )
    if not quiet:
        print_message(f"wrote {counted(len(made), 'shard')} into {out}")
