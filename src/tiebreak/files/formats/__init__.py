"""Formats: the files in which annotation tools and judges keep labels."""

from tiebreak.files.formats.protocol import FormatOptions, ImportOptions, import_options
from tiebreak.files.formats.registry import (
    FORMATS,
    import_gold,
    import_table,
    import_texts,
    locate,
)
from tiebreak.files.formats.rows import Imported

__all__ = [
    "FORMATS",
    "FormatOptions",
    "ImportOptions",
    "Imported",
    "import_gold",
    "import_options",
    "import_table",
    "import_texts",
    "locate",
]
