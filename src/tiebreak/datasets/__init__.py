"""Datasets: the ten real crowds of the paper, by name.

They are looked for in the folder that TIEBREAK_DATA names, then in your cache, where `fetch` puts
them (extra `datasets`): the folder that TIEBREAK_CACHE names, else the user's cache. What each is,
where it comes from and where it differs from the paper can be asked without them.

>>> from tiebreak import datasets
>>> datasets.names()[:3]
('bluebird', 'dog', 'web')
>>> datasets.info("rte").task
'Two texts: does the second follow from the first?'
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import functools
import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tiebreak.arguments import TEXT, checks
from tiebreak.datasets import messages as messages
from tiebreak.errors import FileError, MissingExtraError, OptionError, note

if TYPE_CHECKING:
    from tiebreak.data import Responses
    from tiebreak.data.gold import Gold

__all__ = ["Dataset", "Info", "fetch", "info", "load", "names", "path"]

COPIES = {"responses": "label.csv", "gold": "truth.csv"}  # as files of a public copy are kept


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


class Dataset(NamedTuple):
    """A real crowd: what workers said, what is known to be true, and what the dataset is."""

    responses: Responses
    gold: Gold
    info: Info


@functools.cache
def _catalogue() -> dict[str, Any]:
    text = resources.files("tiebreak.datasets").joinpath("catalogue.toml").read_text("utf-8")
    return tomllib.loads(text)


def names() -> tuple[str, ...]:
    """Return the names of the datasets, in the order of the paper's tables.

    >>> len(names())
    10
    """
    return tuple(_catalogue()["datasets"])


@checks(name=TEXT)
def info(name: str) -> Info:
    """Return what a dataset is; it need not be here.

    >>> info("music_genre").n_classes
    10
    """
    if name not in names():
        folded = name.strip().casefold().replace("-", "_").replace(" ", "_")
        close = difflib.get_close_matches(folded, names(), n=1)
        meant = close[0] if close else None
        raise OptionError("unknown-dataset", name=name, meant=meant, names=names())
    facts = {key: value for key, value in _catalogue()["datasets"][name].items() if key != "copy"}
    return Info(name=name, **{**facts, "source_paths": tuple(facts["source_paths"])})


def path(name: str) -> Path:
    """Return the folder that holds responses.csv and gold.csv of a dataset.

    Raises FileError where the dataset is not here; the message says how to fetch it.
    """
    name = info(name).name
    folders = [_cache()]
    if data := os.environ.get("TIEBREAK_DATA"):
        if not Path(data).expanduser().is_dir():
            note("data-folder-missing", folder=data)
        folders.insert(0, Path(data).expanduser())
    looked = [folder / name for folder in folders if folder is not None]
    for folder in looked:
        if _is_complete(folder):
            return folder
    where = " and ".join(map(str, looked)) or "no folder"
    raise FileError("dataset-not-here", name=name, looked=where)


def load(name: str) -> Dataset:
    """Read a dataset that is here; see `names` for which there are, and `fetch`.

    A note tells where the files do not have the catalogue's counts.

    Returns
    -------
    Dataset
        Responses, gold and info: ``responses, gold, info = load("rte")``.

    Raises
    ------
    FileError
        Where the dataset is not here; the message says how to fetch it.
    OptionError
        Where there is no dataset of that name.
    """
    from tiebreak.tables import read_gold, read_responses

    folder, about = path(name), info(name)
    responses = read_responses(folder / "responses.csv")
    gold = read_gold(folder / "gold.csv")
    found = {
        "n_tasks": responses.n_tasks,
        "n_workers": responses.n_workers,
        "n_classes": responses.with_classes(gold.classes).n_classes,
        "n_responses": responses.n_responses,
        "n_gold": len(gold),
    }
    if wrong := {count: n for count, n in found.items() if n != getattr(about, count)}:
        expected = {count: getattr(about, count) for count in wrong}
        note("dataset-counts", folder=str(folder), name=name, found=wrong, expected=expected)
    return Dataset(responses, gold, about)


def fetch(
    name: str,
    *,
    base: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Path:
    """Bring the public copy of a dataset here, check it, and convert it to our files.

    What is here already is not fetched again. The files of the copy stay beside those made of them.

    Parameters
    ----------
    name
        One of `names`.
    base
        Where the copies lie: a web address or a folder that stands for the root of their
        repository. If not given, TIEBREAK_DATASETS_URL, or else GitHub.
    folder
        The folder of datasets to write to, in place of the cache. It is looked into later only
        if TIEBREAK_DATA names it.
    force
        Fetch and replace even what is here.

    Returns
    -------
    Path
        The folder that holds responses.csv and gold.csv.

    Raises
    ------
    FileError
        Where a file does not come, or is not the right one; the message says how to put the
        files there by hand.
    MissingExtraError
        Where pooch, which fetches, is not installed.
    """
    name = info(name).name
    cache = _cache() if folder is None else Path(folder).expanduser()
    if cache is None:
        raise MissingExtraError.needed("pooch", "datasets", "Fetching")
    target = cache / name
    if not force:
        with contextlib.suppress(FileError):
            if folder is None:
                return path(name)
        if _is_complete(target):
            return target
    whole = _catalogue()
    copy = whole["datasets"][name]["copy"]
    github = "https://raw.githubusercontent.com/{repository}/{commit}".format(**whole["copy"])
    root = str(base or os.environ.get("TIEBREAK_DATASETS_URL") or github).rstrip("/")
    try:
        files = _copies(copy, root, target)
        _convert(copy, files["responses"], files["gold"], target)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        addresses = {file: f"{github}/{copy[part]['path']}" for part, file in COPIES.items()}
        fields = {"addresses": addresses, "folder": str(target)}
        raise FileError("dataset-not-fetched", name=name, reason=str(error), **fields) from None
    if folder is None and (found := path(name)) != target:
        note("data-folder-first", folder=str(found))
    return target


def _cache() -> Path | None:
    """Return the folder into which datasets are fetched; None without TIEBREAK_CACHE and pooch."""
    if chosen := os.environ.get("TIEBREAK_CACHE"):
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("tiebreak")) / "datasets"


def _is_complete(folder: Path) -> bool:
    return (folder / "responses.csv").is_file() and (folder / "gold.csv").is_file()


def _copies(copy: Mapping[str, Any], root: str, target: Path) -> dict[str, Path]:
    """Return the files of a public copy, whose checksums are right: those of a folder, or fetched.

    Pooch does not fetch what lies in the target already.
    """
    if "://" not in root:
        files = {part: Path(root).expanduser() / copy[part]["path"] for part in COPIES}
        for part, file in files.items():
            if hashlib.sha256(file.read_bytes()).hexdigest() != copy[part]["sha256"]:
                raise ValueError(f"{file} does not have the checksum of the catalogue.")
        return files
    try:
        import pooch
    except ImportError:
        raise MissingExtraError.needed("pooch", "datasets", "Fetching") from None
    pooch.get_logger().setLevel("WARNING")
    registry = {file: copy[part]["sha256"] for part, file in COPIES.items()}
    urls = {file: f"{root}/{copy[part]['path']}" for part, file in COPIES.items()}
    fetcher = pooch.create(target, "", registry=registry, urls=urls, retry_if_failed=2)
    return {part: Path(fetcher.fetch(file)) for part, file in COPIES.items()}


def _convert(copy: Mapping[str, Any], labels: Path, truths: Path, target: Path) -> None:
    """Write a public copy in our columns, task ids and classes.

    The copies have the columns item,worker,label and item,truth, number tasks from 0 and may
    number classes in their own way. Of several answers of a worker to a task the last one counts.
    """
    from tiebreak.tables import write_table

    first, classes = copy.get("first_task", 0), copy.get("classes", {})

    def rows(file: Path) -> list[list[str]]:
        with file.open(encoding="utf-8", newline="") as text:
            read = list(csv.reader(text))[1:]
        return [[str(int(i) + first), *rest, classes.get(code, code)] for i, *rest, code in read]

    last: dict[tuple[str, str], str] = {}
    for task, worker, label in rows(labels):
        last.pop((task, worker), None)  # an answer given again stands where it was given last
        last[task, worker] = label
    columns = {
        "task": [t for t, _ in last],
        "worker": [w for _, w in last],
        "label": [*last.values()],
    }
    known = rows(truths)
    target.mkdir(parents=True, exist_ok=True)
    write_table(target / "responses.csv", columns)
    # This file comes last: it makes a dataset complete.
    write_table(
        target / "gold.csv", {"task": [t for t, _ in known], "label": [k for _, k in known]}
    )
