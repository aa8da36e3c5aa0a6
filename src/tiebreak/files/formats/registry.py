"""The registry of formats: which one a file has, found by content.

A new format is one module with a class (see `Format`), a line in FORMATS, and a file in
`tests/files/formats`. It is imported only where a file may be of a tool (`importing.py`).
"""

from __future__ import annotations

from tiebreak.files.formats.argilla import Argilla, ArgillaFlat
from tiebreak.files.formats.batch_api import BatchApi
from tiebreak.files.formats.doccano import Doccano
from tiebreak.files.formats.evaluations import Inspect, Promptfoo
from tiebreak.files.formats.label_studio import LabelStudio, LabelStudioTable
from tiebreak.files.formats.list_columns import ListColumns
from tiebreak.files.formats.mturk import MTurk
from tiebreak.files.formats.pairs import PairwiseVerdicts
from tiebreak.files.formats.prodigy import Prodigy
from tiebreak.files.formats.protocol import Format, Head
from tiebreak.files.formats.toloka import Toloka

FORMATS: tuple[Format, ...] = (  # the first that knows a file reads it
    LabelStudio(),
    LabelStudioTable(),
    Argilla(),
    ArgillaFlat(),
    Prodigy(),
    MTurk(),
    Toloka(),
    BatchApi(),
    PairwiseVerdicts(),
    Inspect(),
    Promptfoo(),
    Doccano(),
    ListColumns(),
)


def format_of_head(head: Head) -> Format | None:
    """Return the format that knows a file by its head; None where none does."""
    return next((form for form in FORMATS if form.looks_like(head)), None)
