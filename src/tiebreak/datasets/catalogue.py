"""Catalogue: what the datasets are, and where their public copies lie."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

from tiebreak.arguments import TEXT, checks
from tiebreak.errors import OptionError

RAW_FILES = "https://raw.githubusercontent.com"  # GitHub's host of single files


@dataclass(frozen=True, slots=True)
class Info:
    """What a dataset is.

    `classes` says what each class stands for, `source` and `source_paths` which GitHub repository
    and files it was first published in, `licence` what that repository states for itself,
    `differences` where the data and the paper disagree (empty where they do not), and `task_ids`
    what the ids of a fetched copy are.
    """

    name: str
    title: str
    task: str
    classes: Mapping[str, str]
    n_tasks: int
    n_workers: int
    n_classes: int
    n_responses: int
    n_gold: int
    source: str
    source_paths: tuple[str, ...]
    licence: str
    differences: str
    task_ids: str


class PublicFile(NamedTuple):
    """One file of the public copies; `rows` does not count its header."""

    path: str
    n_bytes: int
    sha256: str
    rows: int


class PublicCopy(NamedTuple):
    """The files of a dataset, and how they become ours.

    `classes` has our class for each code of the copy; if empty, codes are classes. `first_task`
    is the id of the task that the copy numbers 0.
    """

    responses: PublicFile
    gold: PublicFile
    classes: Mapping[str, str]
    first_task: int = 0


class Entry(NamedTuple):
    """A dataset of the catalogue."""

    info: Info
    copy: PublicCopy


class Catalogue(NamedTuple):
    """All datasets, and the repository and commit that their copies are taken from."""

    repository: str
    commit: str
    licence: str
    entries: Mapping[str, Entry]

    @property
    def base(self) -> str:
        """The address below which the files of the pinned commit lie."""
        return f"{RAW_FILES}/{self.repository}/{self.commit}"


def names() -> tuple[str, ...]:
    """Return the names of the datasets, in the order of the paper's tables.

    >>> len(names())
    10
    """
    return tuple(whole().entries)


def info(name: str) -> Info:
    """Return what a dataset is; it need not be here.

    >>> info("music_genre").n_classes
    10
    """
    return find(name).info


@checks(name=TEXT)
def find(name: str) -> Entry:
    """Return the entry of that name, or say which names there are."""
    entries = whole().entries
    if name in entries:
        return entries[name]
    folded = str(name).strip().casefold().replace("-", "_").replace(" ", "_")
    close = difflib.get_close_matches(folded, entries, n=1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise OptionError(
        f"There is no dataset {name!r}.{meant}\nThe datasets are {', '.join(entries)}."
    )


@functools.cache
def whole() -> Catalogue:
    """Read the catalogue that comes with the package."""
    text = resources.files("tiebreak.datasets").joinpath("catalogue.toml").read_text("utf-8")
    table = tomllib.loads(text)
    entries = {name: _entry(name, facts) for name, facts in table["datasets"].items()}
    return Catalogue(**table["copy"], entries=entries)


def _entry(name: str, facts: Mapping[str, Any]) -> Entry:
    copy = facts["copy"]
    said = {key: value for key, value in facts.items() if key not in ("copy", "source_paths")}
    return Entry(
        Info(name=name, source_paths=tuple(facts["source_paths"]), **said),
        PublicCopy(
            responses=PublicFile(**copy["responses"]),
            gold=PublicFile(**copy["gold"]),
            classes=copy.get("classes", {}),
            first_task=copy.get("first_task", 0),
        ),
    )
