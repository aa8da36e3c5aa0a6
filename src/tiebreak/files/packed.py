"""Packed responses: a folder of plain arrays, sorted by task, that needs no hashing when read.

    x.tb/about.json     what this is, its version, counts, and the size and checksum of each file
         start.npy      (n_tasks + 1,) where the responses of a task start
         code.npy       (n_responses,) worker · n_classes + label
         weight.npy     (n_responses,) how often each response counts; only where that differs
         tasks.arrow, workers.arrow, classes.arrow     the ids, by code

The arrays are memory-mapped: only what a fit touches is read.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.errors import FileError
from tiebreak.files.array_folder import CHUNK, read_ids, seal, write_ids
from tiebreak.files.atomic_write import Target, open_folder
from tiebreak.files.content import ABOUT
from tiebreak.responses import Responses
from tiebreak.responses.runs import Runs

WHAT = "tiebreak responses"
VERSION = 1
WITH_WEIGHTS = 2  # the version of a folder that an earlier tiebreak would read wrongly
ARRAYS = ("start", "code")
WEIGHT = "weight"
NAMES = ("tasks", "workers", "classes")


def write_packed(target: Target, responses: Responses) -> None:
    """Write responses into a folder, which appears whole or not at all.

    A folder of packed responses that stood there is replaced; any other is refused.
    """
    path = Path(os.path.realpath(target))
    _refuse_foreign(path)
    with open_folder(path) as folder:
        for name in _arrays(has_weights=responses.weight is not None):
            np.save(folder / f"{name}.npy", getattr(responses, name))
        for name in NAMES:
            write_ids(folder / f"{name}.arrow", name, getattr(responses, name))
        about = {
            "what": WHAT,
            "version": VERSION if responses.weight is None else WITH_WEIGHTS,
            "responses": responses.n_responses,
            "tasks": responses.n_tasks,
            "workers": responses.n_workers,
            "classes": responses.n_classes,
            "empty": responses.n_empty,
            "repeats": responses.n_repeats,
            "ordered": responses.is_class_ordered,
            **({} if responses.runs is None else {"runs": responses.runs.to_dict()}),
            "files": {file.name: seal(file) for file in sorted(folder.iterdir())},
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def read_packed(target: Target, *, is_checked: bool = False) -> Responses:
    """Read responses that `write_packed` has written; what is damaged is refused.

    `is_checked`: this folder was read before, so that its checksums need no second look.
    """
    folder = Path(target)
    about = _read_about(folder)
    try:
        arrays = _arrays(has_weights=about["version"] == WITH_WEIGHTS)
        _check_files(folder, about["files"], arrays, is_checked=is_checked)
        mapped = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays)
        start, code, *more = map(np.asarray, mapped)  # plain arrays, still on the disk
        tasks, workers, classes = (read_ids(folder / f"{name}.arrow") for name in NAMES)
        found = len(code), len(tasks), len(workers), len(classes)
        said = tuple(about[name] for name in ("responses", "tasks", "workers", "classes"))
        if found != said or not (is_checked or fits(start, code, *found[1:])):
            raise _damaged(folder, f"it holds {found}, and says {said}")
        made = Responses(
            start,
            code,
            tasks,
            workers,
            classes,
            about["empty"],
            about["repeats"],
            is_class_ordered=about.get("ordered", False),
            weight=more[0] if more else None,
        )
        return replace(made, runs=Runs.from_dict(about["runs"])) if "runs" in about else made
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise _damaged(folder, str(error)) from None


def _read_about(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise FileError(f"There is no folder {folder}. Make it with: tiebreak pack RESPONSES")
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _damaged(folder, f"it has no {ABOUT}") from None
    except NotADirectoryError:
        raise FileError(f"{folder} is a file; packed responses are a folder.") from None
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{ABOUT}: {error}") from None
    if not isinstance(about, dict) or about.get("what") != WHAT:
        raise FileError(f"{folder} does not hold packed responses: {ABOUT} says something else.")
    if about.get("version") not in (VERSION, WITH_WEIGHTS):
        raise FileError(
            f"{folder} has version {about.get('version')!r} of packed responses, and this tiebreak "
            f"reads up to version {WITH_WEIGHTS}. Pack the responses again: tiebreak pack RESPONSES"
        )
    return about


def _arrays(*, has_weights: bool) -> tuple[str, ...]:
    return (*ARRAYS, WEIGHT) if has_weights else ARRAYS


def _check_files(
    folder: Path, files: dict[str, dict[str, int]], arrays: tuple[str, ...], *, is_checked: bool
) -> None:
    expected = {f"{name}.npy" for name in arrays} | {f"{name}.arrow" for name in NAMES}
    if set(files) != expected:
        raise _damaged(folder, f"{ABOUT} lists {', '.join(sorted(files))}")
    for name, written in files.items():
        if not (folder / name).is_file():
            raise _damaged(folder, f"{name} is missing")
        has_size = (folder / name).stat().st_size == written["bytes"]
        if not has_size or (not is_checked and seal(folder / name) != written):
            raise _damaged(folder, f"{name} is not what was written")


def fits(
    start: npt.NDArray[Any], code: npt.NDArray[Any], n_tasks: int, n_workers: int, n_classes: int
) -> bool:
    """Tell whether the arrays can be responses; compiled code would trust them blindly."""
    if start.shape != (n_tasks + 1,) or start.dtype != np.int64 or code.ndim != 1:
        return False
    if code.dtype not in (np.int32, np.int64) or start[0] != 0 or start[-1] != len(code):
        return False
    highest = max(
        (int(code[at : at + CHUNK].max()) for at in range(0, len(code), CHUNK)), default=0
    )
    lowest = min((int(code[at : at + CHUNK].min()) for at in range(0, len(code), CHUNK)), default=0)
    is_sorted = all(
        (np.diff(start[at : at + CHUNK + 1]) >= 0).all() for at in range(0, n_tasks, CHUNK)
    )
    return is_sorted and lowest >= 0 and highest < max(n_workers * n_classes, 1)


def _damaged(folder: Path, reason: str) -> FileError:
    return FileError(
        f"{folder} is damaged or was not written to its end ({reason}). "
        "Pack the responses again: tiebreak pack RESPONSES"
    )


def _is_own(folder: Path) -> bool:
    """Tell whether a folder holds packed responses, of any version, and nothing else."""
    arrays = _arrays(has_weights=True)
    own = {ABOUT, *(f"{name}.npy" for name in arrays), *(f"{name}.arrow" for name in NAMES)}
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    is_about = isinstance(about, dict) and about.get("what") == WHAT
    return is_about and {path.name for path in folder.iterdir()} <= own


def _refuse_foreign(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    if path.is_dir() and any(path.iterdir()) and not _is_own(path):
        raise FileError(
            f"{path} is a folder of something else, or holds more than packed responses. "
            "Choose another name."
        )
    if path.exists() and not path.is_dir():
        raise FileError(
            f"{path} is a file, and packed responses are a folder. Choose another name."
        )
