"""The folder of labels: one file a shard, each by rename, and `_SUCCESS` last.

Beside the labels, in `.tiebreak/`, lies what a fit needs while it runs: tables that were packed, q
where it is kept on the disk, the plan, and the checkpoint, from which a fit goes on after its
driver was killed. A new driver does the same fit again and takes from there the sums of all sweeps
that were made: parameters, leaps and messages between linked tasks are then where they were.
"""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tiebreak.errors import FileError, OptionError
from tiebreak.tables.write import open_target

SUCCESS = "_SUCCESS"
WORK = ".tiebreak"
OWN = re.compile(rf"{SUCCESS}|labels-\d{{5}}\.parquet|\.tiebreak.*")  # or left by a killed run


class LabelFiles:
    """The labels of a fit, as a dataset on the disk: task, label, probability."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"LabelFiles({str(self.folder)!r}, {len(self.files())} files)"

    def files(self) -> list[str]:
        """Return the files, in the order of shards."""
        return sorted(str(each) for each in self.folder.glob("labels-*.parquet"))

    def dataset(self) -> Any:
        """Return a dataset of pyarrow, which reads no more than is asked for."""
        from pyarrow import dataset

        return dataset.dataset(self.files())

    def to_table(self) -> Any:
        """Read all labels into memory, as a table of pyarrow."""
        return self.dataset().to_table()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.dataset().to_batches():
            yield from batch.to_pylist()


def prepare(folder: Path, *, resume: bool, force: bool) -> Path:
    """Make the folder of labels; return that of work inside it. A foreign folder is refused."""
    if folder.exists() and not folder.is_dir():
        raise FileError("labels-into-file", path=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError("folder-not-made", path=folder, reason=error.strerror) from None
    foreign = [each.name for each in folder.iterdir() if not OWN.fullmatch(each.name)]
    if foreign:
        raise FileError("labels-into-foreign", path=folder, name=min(foreign))
    work = folder / WORK
    n_sweeps = len(list((work / "checkpoint").glob("sweep-*.npz")))
    if n_sweeps and not (resume or force):
        raise FileError("fit-broken-off", path=folder, n=n_sweeps)
    if not resume:
        (folder / SUCCESS).unlink(missing_ok=True)  # first: nobody takes half of the labels
        for each in folder.glob("labels-*.parquet"):
            each.unlink()
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(exist_ok=True)
    return work


def finish(folder: Path, summary: dict[str, Any]) -> None:
    """Say that all labels are there, and remove what was needed for them."""
    with open_target(folder / SUCCESS) as out:
        out.write((json.dumps(summary, indent=1) + "\n").encode())
    shutil.rmtree(folder / WORK, ignore_errors=True)


class Checkpoint:
    """The sums of each sweep that was made, one file a sweep; a fingerprint says of which fit."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any], *, resume: bool) -> None:
        self.folder = folder
        file = folder / "fingerprint.json"
        if not resume:
            folder.mkdir(parents=True)
            with open_target(file) as out:
                out.write(json.dumps(fingerprint, indent=1).encode())
            return
        try:
            kept = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            raise FileError("checkpoint-missing", folder=folder) from None
        names = sorted(kept.keys() | fingerprint.keys())
        differ = [name for name in names if kept.get(name) != fingerprint.get(name)]
        if differ:
            raise OptionError("checkpoint-of-other-fit", folder=folder, names=differ)

    def recall(self, number: int, digest: int) -> Sequence[Any] | None:
        """Return the sums of a sweep that was given such tables; None where it was not made."""
        file = self._file(number)
        if not file.is_file():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
                given, *arrays = (kept[name] for name in kept.files)
        except (OSError, ValueError, KeyError, EOFError, zlib.error, BadZipFile) as error:
            raise FileError("checkpoint-damaged", file=file, reason=error) from None
        if int(given) != digest:
            raise FileError("checkpoint-of-other-sweep", file=file, folder=self.folder)
        return arrays

    def keep(self, number: int, digest: int, arrays: Sequence[Any]) -> None:
        """Write the sums of a sweep."""
        try:
            with open_target(self._file(number)) as out:
                np.savez(out, digest, *arrays)
        except FileError as error:
            raise FileError("checkpoint-not-written", number=number, reason=error) from None

    def _file(self, number: int) -> Path:
        name = "start" if number == 0 else f"sweep-{number:05d}"  # 0: what the start implies
        return self.folder / f"{name}.npz"


def digest_of(tables: tuple[Any, Any]) -> int:
    """Return a checksum of the tables that a sweep was given."""
    log_prior, table = (np.ascontiguousarray(np.asarray(each)).data for each in tables)
    return zlib.crc32(table, zlib.crc32(log_prior))
