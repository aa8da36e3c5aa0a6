"""Fetching: public copies into the cache, checked and converted."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak._version import __version__
from tiebreak.datasets import catalogue, places
from tiebreak.datasets.catalogue import Entry, PublicFile
from tiebreak.datasets.convert import convert
from tiebreak.datasets.download import TransferError, download, part_of, read_if_right
from tiebreak.errors import FileError, OptionError, note

if TYPE_CHECKING:
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses

BASE = "TIEBREAK_DATASETS_URL"
SCHEMES = ("https", "http", "file")
LABELS, TRUTHS, SOURCE = "label.csv", "truth.csv", "source.json"

Progress = Callable[[str, int, int], None]  # which file, bytes here, bytes in all


def fetch(
    name: str,
    *,
    base: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> Path:
    """Bring the public copy of a dataset here, check it, and convert it to our files.

    What is here already is not fetched again. A fetch that breaks off goes on next time where it
    stopped, and a dataset appears whole or not at all.

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
    progress
        Called with the name of a file, the bytes that are here, and the bytes in all.
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
    """
    entry = catalogue.find(name)
    home = places.cache_folder() if folder is None else Path(folder).expanduser()
    target = home / name
    if not force:
        here = target if places.is_complete(target) else None
        found = places.look_for(name) if folder is None else here
        if found is not None:
            return found
    bring(entry, _base_address(base), target, progress)
    if folder is None and places.find(name) != target:
        note(f"{places.DATA} comes before the cache, so {places.find(name)} is what counts.")
    return target


def bring(entry: Entry, base: str, target: Path, progress: Progress | None = None) -> None:
    """Download, check, convert and place one dataset; what fails leaves no half of it."""
    copy = entry.copy
    try:
        labels = _bring_file(entry, base, copy.responses, target / LABELS, progress)
        truths = _bring_file(entry, base, copy.gold, target / TRUTHS, progress)
        try:
            _place(entry, *convert(entry, labels, truths), target)
        finally:
            for name in (LABELS, TRUTHS):
                (target / name).unlink(missing_ok=True)
                part_of(target / name).unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{target} cannot be written: {error.strerror or error}. "
            f"Choose another folder, for instance with {places.CACHE}."
        ) from None
    finally:
        with contextlib.suppress(OSError):  # it holds something
            target.rmdir()


def _bring_file(
    entry: Entry, base: str, file: PublicFile, to: Path, progress: Progress | None
) -> bytes:
    name = f"{entry.info.name}/{to.name}"
    tell = functools.partial(progress, name) if progress else _say_nothing
    address = _address(base, file)
    try:
        return download(address, to, file, tell)
    except TransferError as error:
        raise FileError(
            f"{entry.info.name} cannot be fetched from {address}: {error}.\n"
            f"{_way_out(entry, to.parent)}"
        ) from None


def _say_nothing(here: int, in_all: int) -> None:
    """Tell nobody how far a download is."""


def _way_out(entry: Entry, target: Path) -> str:
    """Say how the files can come here all the same; the addresses are those of the catalogue."""
    base, copy = catalogue.whole().base, entry.copy
    files = {LABELS: copy.responses, TRUTHS: copy.gold}
    wrong = [n for n, f in files.items() if (target / n).is_file() and not _is_right(target / n, f)]
    told = f"What lies there as {' and '.join(wrong)} is not the right file.\n" if wrong else ""
    if any(part_of(target / name).exists() for name in files):
        told += "Run the same again to go on where it stopped.\n"
    saved = "".join(f"\n  {_address(base, file)} as {name}" for name, file in files.items())
    return (
        f"{told}Another copy, a web address or a folder, can be named in {BASE}.\n"
        f"By hand: save{saved}\nin {target} and fetch again, which then needs no network. "
        f"Or put {places.RESPONSES} (task,worker,label) and {places.GOLD} (task,label) there."
    )


def _is_right(file: Path, wanted: PublicFile) -> bool:
    return read_if_right(file, wanted) is not None


def _place(entry: Entry, responses: Responses, gold: Gold, target: Path) -> None:
    """Write all files aside, then move them; gold, which makes a dataset complete, comes last."""
    from tiebreak.files import write_gold, write_responses

    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as aside:
        new = Path(aside)
        write_responses(new / places.RESPONSES, responses)
        (new / SOURCE).write_text(_source(entry), encoding="utf-8")
        write_gold(new / places.GOLD, gold)
        if _is_other(target / places.GOLD, new / places.GOLD):  # not that of a fetch beside ours
            (target / places.GOLD).unlink(missing_ok=True)  # old gold never beside new responses
        for name in (places.RESPONSES, SOURCE, places.GOLD):
            (new / name).replace(target / name)


def _is_other(there: Path, new: Path) -> bool:
    """Whether a file is there that differs; one that a fetch beside ours will place is no other."""
    try:
        return there.read_bytes() != new.read_bytes()
    except FileNotFoundError:
        return False


def _source(entry: Entry) -> str:
    """Say what was downloaded, so that files can be traced to it."""
    whole = catalogue.whole()
    record = {
        "dataset": entry.info.name,
        "repository": whole.repository,
        "commit": whole.commit,
        "licence": whole.licence,
        "files": {
            places.RESPONSES: entry.copy.responses._asdict(),
            places.GOLD: entry.copy.gold._asdict(),
        },
        "converted_by": f"tiebreak {__version__}",
    }
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _base_address(base: str | os.PathLike[str] | None) -> str:
    """Return the address below which the files lie, without a slash at its end."""
    chosen = os.fspath(base) if base is not None else os.environ.get(BASE)
    if not chosen:
        return catalogue.whole().base
    scheme, mark, _ = chosen.partition("://")
    if not mark:
        return Path(chosen).expanduser().resolve().as_uri()
    if scheme.lower() not in SCHEMES:
        raise OptionError(
            f"A base address begins with {', '.join(f'{s}://' for s in SCHEMES)} or is a folder; "
            f"got {chosen!r}."
        )
    return chosen.rstrip("/")


def _address(base: str, file: PublicFile) -> str:
    return f"{base}/{urllib.parse.quote(file.path)}"
