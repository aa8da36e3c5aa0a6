"""doccano: a zip archive with one file per person; the file's name is the worker."""

from __future__ import annotations

from typing import Any

from tiebreak.errors import InputError
from tiebreak.files.formats.containers import MEMBER
from tiebreak.files.formats.protocol import Head, IdType, Record, RecordPlace, Records, need
from tiebreak.files.formats.rows import Rows

WITHOUT_USERS = "all"  # the file of a project in which people share their labels


class Doccano:
    """Records with `id`, `text` and `label`, a list."""

    name = "doccano"
    title = "doccano"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        if head.container == "zip":
            return head.has("id", "label")
        return head.has("id", "label", "Comments")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, record in records():
            worker = record.get(MEMBER)
            if worker in (None, WITHOUT_USERS):
                raise InputError(
                    f"{place.file} does not say who gave which label: doccano leaves users out "
                    "where a project shares its annotations.\nTurn off 'Share annotations across "
                    "all users' in the project, and export the zip archive of one file per user."
                )
            task = need(record, "id", IdType, place)
            rows.add(place, task, str(worker), _label(place, record))
            text = record.get("text") or record.get("filename")
            rows.add_text(task, text if isinstance(text, str) else None)


def _label(place: RecordPlace, record: Record) -> Any:
    """Return the labels; CSV joins several with #."""
    label = need(record, "label", (list, str, int, type(None)), place)
    if isinstance(label, list) and any(isinstance(one, list | dict) for one in label):
        raise place.error("'label' marks spans of a text, not a class. Export a classification.")
    return label.split("#") if isinstance(label, str) else label
