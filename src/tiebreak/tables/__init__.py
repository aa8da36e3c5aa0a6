"""Tables in, tables out: CSV, JSON, Parquet, exports of tools, and any frame that speaks Arrow.

What goes in becomes Arrow columns at the border (`table.py`), and responses, links, gold or labels
after it (`read.py`).
"""

from tiebreak.tables.features import Features, read_features
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.read import (
    Export,
    OpenTable,
    open_tables,
    read_constraints,
    read_contents,
    read_every_row,
    read_export,
    read_gold,
    read_groups,
    read_labels,
    read_links,
    read_responses,
    read_selection,
    read_sequences,
    read_spans,
    read_systems,
    read_tasks,
    read_texts,
)
from tiebreak.tables.write import (
    names_of_codes,
    open_target,
    refuse_unwritable_name,
    write_labels,
    write_responses,
    write_table,
    write_workers,
)

__all__ = [
    "Export",
    "Features",
    "OpenTable",
    "ReadingOptions",
    "names_of_codes",
    "open_tables",
    "open_target",
    "read_constraints",
    "read_contents",
    "read_every_row",
    "read_export",
    "read_features",
    "read_gold",
    "read_groups",
    "read_labels",
    "read_links",
    "read_responses",
    "read_selection",
    "read_sequences",
    "read_spans",
    "read_systems",
    "read_tasks",
    "read_texts",
    "refuse_unwritable_name",
    "write_labels",
    "write_responses",
    "write_table",
    "write_workers",
]
