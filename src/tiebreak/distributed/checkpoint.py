"""The checkpoint: what each sweep gave, so that a fit goes on after its driver was killed.

One file a sweep, on the disk before the next sweep begins. A new driver does the same fit again,
and takes the sums of the sweeps that were made from here: parameters, leaps and messages between
linked tasks are then where they were, bit by bit. A fingerprint says which fit it is of.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tiebreak.distributed.link_units import LinkSwept
from tiebreak.errors import FileError, OptionError
from tiebreak.files.atomic_write import open_target
from tiebreak.kernels.layout import Floats, Swept
from tiebreak.kernels.sweeper import Logs

FINGERPRINT = "fingerprint.json"
FIRST = "sweep-00000.npz"  # what the start implies: no sweep


class Checkpoint:
    """A folder with the sums of every sweep that was made."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any], *, resume: bool) -> None:
        self.folder = folder
        if resume:
            self._require_same(fingerprint)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            text = json.dumps(fingerprint, indent=1, sort_keys=True)
            with open_target(folder / FINGERPRINT) as out:
                out.write(text.encode())
        self.n_kept = n_sweeps_in(folder)

    def recall(self, number: int, digest: int) -> tuple[Swept, LinkSwept | None] | None:
        """Return what a sweep gave, link units apart; None where it was not made."""
        file = self._file(number)
        if not file.is_file():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
                given = int(kept["given"])
                sums = _swept(kept)
                linked = None
                if "value" in kept:
                    linked = LinkSwept(_swept(kept, "linked_"), float(kept["value"]), kept["agree"])
        except (OSError, ValueError, KeyError, EOFError, zlib.error, BadZipFile) as error:
            raise FileError(
                f"{file} is damaged ({error}). Remove it and the later ones; --resume then goes on "
                "from the one before."
            ) from None
        if given != digest:
            raise FileError(
                f"{file} is of another fit: its sweep began elsewhere. Remove the folder "
                f"{self.folder} and fit anew."
            )
        return sums, linked

    def keep(self, number: int, digest: int, sums: Swept, linked: LinkSwept | None = None) -> None:
        """Write what a sweep gave."""
        content = {"given": np.array(digest), **_columns(sums)}
        if linked is not None:
            content |= _columns(linked.swept, "linked_")
            content |= {"value": np.array(linked.value), "agree": linked.agree}
        self._write(self._file(number), number, content)

    def recall_states(self, number: int) -> list[Floats] | None:
        """Return q of each link unit as it was fetched after a sweep; None where it was not."""
        file = self.folder / f"states-{number:05d}.npz"
        if not file.is_file():
            return None
        with np.load(file) as kept:
            return [kept[f"q{u}"] for u in range(len(kept.files))]

    def keep_states(self, number: int, states: list[Floats]) -> None:
        """Write q of each link unit: an ascent that goes on from it cannot be made again."""
        content = {f"q{u}": each for u, each in enumerate(states)}
        self._write(self.folder / f"states-{number:05d}.npz", number, content)

    def _write(self, file: Path, number: int, content: dict[str, Any]) -> None:
        try:
            with open_target(file) as out:
                np.savez(out, **content)
        except FileError as error:
            raise FileError(
                f"The checkpoint of sweep {number} was not written: {error} Free some room and go "
                "on with --resume."
            ) from None

    def _file(self, number: int) -> Path:
        return self.folder / f"sweep-{number:05d}.npz"

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
                "Give the same inputs and options, or leave out --resume to fit anew."
            )


def n_sweeps_in(folder: Path) -> int:
    """Return how many sweeps a checkpoint holds."""
    return sum(1 for file in folder.glob("sweep-*.npz") if file != folder / FIRST)


def _columns(sums: Swept, prefix: str = "") -> dict[str, Any]:
    figures = np.array([sums.change, sums.entropy, sums.log_norm])
    named = {"counts": sums.counts, "totals": sums.totals, "figures": figures}
    return {prefix + name: column for name, column in named.items()}


def _swept(kept: Mapping[str, Any], prefix: str = "") -> Swept:
    figures = map(float, kept[f"{prefix}figures"])
    return Swept(kept[f"{prefix}counts"], kept[f"{prefix}totals"], *figures)


def digest_of(tables: Logs | None) -> int:
    """Return a checksum of the tables that a sweep was given."""
    if tables is None:
        return 0
    found = 0
    for each in tables:
        found = zlib.crc32(np.ascontiguousarray(each).data, found)
    return found
