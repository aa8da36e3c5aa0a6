"""Formats: the files in which annotation tools and judges keep labels."""

from tiebreak.files.formats.importing import import_gold, import_table, import_texts, locate
from tiebreak.files.formats.protocol import (
    FormatOptions,
    Imported,
    ImportOptions,
    import_options,
)

__all__ = [
    "FormatOptions",
    "ImportOptions",
    "Imported",
    "import_gold",
    "import_options",
    "import_table",
    "import_texts",
    "locate",
]
