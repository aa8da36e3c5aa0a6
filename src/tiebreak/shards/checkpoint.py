"""The checkpoint: what each sweep gave, so that a fit goes on after its driver was killed.

One file a sweep, on the disk before the next sweep begins. A new driver does the same fit again,
and takes the sums of the sweeps that were made from here: parameters, leaps and messages between
linked tasks are then where they were, bit by bit. A fingerprint says which fit it is of.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tiebreak.errors import FileError, OptionError
from tiebreak.kernels.sweeper import Logs
from tiebreak.tables.write import open_target

FINGERPRINT = "fingerprint.json"
SWEEP = "sweep"  # what a sweep gave; number 0: what the start implies


class Checkpoint:
    """A folder with what every sweep gave that was made."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any], *, resume: bool) -> None:
        self.folder = folder
        if resume:
            self._require_same(fingerprint)
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with open_target(folder / FINGERPRINT) as out:
            out.write(json.dumps(fingerprint, indent=1, sort_keys=True).encode())

    def recall(self, what: str, number: int, digest: int) -> Sequence[Any] | None:
        """Return what was kept of a sweep that was given such tables; None where nothing was."""
        file = self.folder / f"{what}-{number:05d}.npz"
        if not file.is_file():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
                given, *arrays = (kept[name] for name in kept.files)
        except (OSError, ValueError, KeyError, EOFError, zlib.error, BadZipFile) as error:
            raise FileError(
                f"{file} is damaged ({error}). Remove it and the later ones; --resume then goes on "
                "from the one before."
            ) from None
        if int(given) != digest:
            raise FileError(
                f"{file} is of another fit: its sweep began elsewhere. Remove the folder "
                f"{self.folder} and fit anew."
            )
        return arrays

    def keep(self, what: str, number: int, digest: int, arrays: Sequence[Any]) -> None:
        """Write what a sweep gave."""
        try:
            with open_target(self.folder / f"{what}-{number:05d}.npz") as out:
                np.savez(out, digest, *arrays)
        except FileError as error:
            raise FileError(
                f"The checkpoint of sweep {number} was not written: {error} Free some room and go "
                "on with --resume."
            ) from None

    def _require_same(self, fingerprint: dict[str, Any]) -> None:
        try:
            kept = json.loads((self.folder / FINGERPRINT).read_text("utf-8"))
        except (OSError, ValueError):
            raise FileError(
                f"There is no checkpoint in {self.folder} to go on from. Leave out --resume."
            ) from None
        mine = json.loads(json.dumps(fingerprint))
        differ = sorted(
            name for name in kept.keys() | mine.keys() if kept.get(name) != mine.get(name)
        )
        if differ:
            raise OptionError(
                f"The checkpoint in {self.folder} is of another fit: {', '.join(differ)} differ. "
                "Give the same inputs and options, or fit anew with --force (force=True)."
            )


def n_sweeps_in(folder: Path) -> int:
    """Return how many sweeps a checkpoint holds."""
    return sum(1 for file in folder.glob(f"{SWEEP}-*.npz") if file.stem != f"{SWEEP}-00000")


def digest_of(tables: Logs) -> int:
    """Return a checksum of the tables that a sweep was given."""
    log_prior, table = (np.ascontiguousarray(each).data for each in tables)
    return zlib.crc32(table, zlib.crc32(log_prior))
