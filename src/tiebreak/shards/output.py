"""The folder of labels: one file a partition, each by rename, and `_SUCCESS` last.

Beside the labels, in `.tiebreak/`, lies what a fit needs while it runs, and what it goes on from:
tables packed by the workers, q where it is kept on the disk, the checkpoint.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tiebreak.errors import FileError
from tiebreak.shards.checkpoint import n_sweeps_in
from tiebreak.tables.write import open_target

SUCCESS = "_SUCCESS"
WORK = ".tiebreak"
LABELS = re.compile(r"labels-\d{5}\.parquet")


class LabelFiles:
    """The labels of a fit, as a dataset on the disk: task, label, probability."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"LabelFiles({str(self.folder)!r}, {len(self.files())} files)"

    def files(self) -> list[str]:
        """Return the files, in the order of partitions."""
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
        raise FileError(f"{folder} is a file. Labels of partitions go into a folder: name another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    foreign = [each.name for each in folder.iterdir() if not _is_own(each.name)]
    if foreign:
        raise FileError(
            f"{folder} holds {min(foreign)!r}, which is none of the labels of a fit. Choose "
            "another folder."
        )
    work = folder / WORK
    n_sweeps = n_sweeps_in(work / "checkpoint")
    if n_sweeps and not (resume or force):
        raise FileError(
            f"{folder} holds a fit that was broken off after {n_sweeps:,} sweeps. Go on with "
            "--resume, or begin anew with --force."
        )
    if not resume:
        _clear(folder)
    work.mkdir(exist_ok=True)
    return work


def finish(folder: Path, summary: dict[str, Any]) -> None:
    """Say that all labels are there, and remove what was needed for them."""
    with open_target(folder / SUCCESS) as out:
        out.write((json.dumps(summary, indent=1) + "\n").encode())
    shutil.rmtree(folder / WORK, ignore_errors=True)


def _clear(folder: Path) -> None:
    """Remove the labels of an earlier fit; `_SUCCESS` first, so that nobody takes half of them."""
    (folder / SUCCESS).unlink(missing_ok=True)
    for each in folder.glob("labels-*.parquet"):
        each.unlink()
    shutil.rmtree(folder / WORK, ignore_errors=True)


def _is_own(name: str) -> bool:
    is_leftover = name.startswith(".tiebreak-")  # of a killed run: `atomic_write` removes it
    return name in (SUCCESS, WORK) or is_leftover or LABELS.fullmatch(name) is not None
