"""Places: the folders in which datasets are looked for, each as NAME/responses.csv and gold.csv.

1. The folder that TIEBREAK_DATA names.
2. The cache: the folder that TIEBREAK_CACHE names, else tiebreak/datasets in the user's cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from tiebreak.errors import FileError, note

DATA = "TIEBREAK_DATA"
CACHE = "TIEBREAK_CACHE"
RESPONSES = "responses.csv"
GOLD = "gold.csv"


class Place(NamedTuple):
    """A folder of datasets, and how messages call it."""

    title: str
    folder: Path


def cache_folder() -> Path:
    """Return the folder into which datasets are fetched; it need not exist yet."""
    chosen = os.environ.get(CACHE)
    if chosen:
        return Path(chosen).expanduser()
    return _user_cache() / "tiebreak" / "datasets"


def places() -> list[Place]:
    """Return where to look, in this order."""
    chosen = os.environ.get(DATA)
    data = [Place(DATA, Path(chosen).expanduser())] if chosen else []
    return [*data, Place("the cache", cache_folder())]


def is_complete(folder: Path) -> bool:
    """Tell whether a folder holds a dataset: responses and gold."""
    return not _missing(folder)


def look_for(name: str) -> Path | None:
    """Return the folder of a dataset, None where it is nowhere."""
    for place in places():
        if is_complete(place.folder / name):
            return place.folder / name
        if place.title == DATA and not place.folder.is_dir():
            note(f"{DATA} names {place.folder}, which is not a folder.")
    return None


def find(name: str) -> Path:
    """Return the folder of a dataset.

    Raises FileError, which says where it looked and how the dataset can come there.
    """
    found = look_for(name)
    if found is not None:
        return found
    looked = "".join(f"\n  {p.title}: {_state(p.folder / name)}" for p in places())
    raise FileError(
        f"The dataset {name!r} is not here. Looked in{looked}\n"
        f"Fetch it with: tiebreak datasets fetch {name}\n"
        f"Or put {RESPONSES} (task,worker,label) and {GOLD} (task,label) into "
        f"{places()[-1].folder / name} yourself."
    )


def _missing(folder: Path) -> list[str]:
    return [name for name in (RESPONSES, GOLD) if not (folder / name).is_file()]


def _state(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} does not exist"
    return f"{folder} has no {' and no '.join(_missing(folder))}"


def _user_cache() -> Path:
    """Return where this system keeps what can be fetched again."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():  # as the XDG rules ask: a relative one is ignored
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        raise FileError(
            f"There is no home folder for a cache. Name a folder in {CACHE}, or in {DATA}."
        ) from None
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return home / ".cache"
