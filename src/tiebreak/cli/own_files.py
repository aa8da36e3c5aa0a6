"""Folders of files that a command makes: its own it may make again, others it leaves alone."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tiebreak.cli.arguments import make_folder
from tiebreak.errors import FileError

RECORD = ".tiebreak-made.json"  # the checksum of each file as it was made


@contextlib.contextmanager
def writing_own(out: str, names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """Give the folder to write into; refuse files that were not made here."""
    folder = make_folder(out)
    made = _read_record(folder)
    theirs = [
        name
        for name in names
        if (folder / name).exists() and made.get(name) != _checksum(folder / name)
    ]
    if theirs and not force:
        raise FileError(
            f"{folder / theirs[0]} was not made by this command, or was changed since. Name "
            "another folder with -o, or overwrite it with --force."
        )
    yield folder
    now = {name: _checksum(folder / name) for name in names if (folder / name).is_file()}
    (folder / RECORD).write_text(json.dumps(made | now) + "\n", encoding="utf-8")


def _read_record(folder: Path) -> dict[str, int]:
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _checksum(path: Path) -> int:
    return zlib.crc32(path.read_bytes())
