"""Files: tables in, tables out. CSV, TSV, JSON lines, Parquet, and any frame that speaks Arrow."""

from tiebreak.files.atomic_write import open_target, together
from tiebreak.files.crowdkit import from_crowdkit
from tiebreak.files.readers import (
    Export,
    read_export,
    read_gold,
    read_labels,
    read_links,
    read_responses,
    read_tasks,
)
from tiebreak.files.sources import OpenTable, open_tables
from tiebreak.files.task_values import read_selection, read_systems
from tiebreak.files.texts import read_class_texts, read_contents, read_texts
from tiebreak.files.writers import (
    refuse_unwritable_name,
    vote_column,
    write_gold,
    write_labels,
    write_links,
    write_responses,
    write_table,
    write_workers,
)

__all__ = [
    "Export",
    "OpenTable",
    "from_crowdkit",
    "open_tables",
    "open_target",
    "read_class_texts",
    "read_contents",
    "read_export",
    "read_gold",
    "read_labels",
    "read_links",
    "read_responses",
    "read_selection",
    "read_systems",
    "read_tasks",
    "read_texts",
    "refuse_unwritable_name",
    "together",
    "vote_column",
    "write_gold",
    "write_labels",
    "write_links",
    "write_responses",
    "write_table",
    "write_workers",
]
