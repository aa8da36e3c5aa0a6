"""Fetching: public copies into the cache, checked and converted."""

from __future__ import annotations

import functools
import hashlib
import http.client
import json
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiebreak._version import __version__
from tiebreak.datasets import catalogue, places
from tiebreak.datasets.catalogue import Entry, PublicFile
from tiebreak.datasets.convert import convert
from tiebreak.errors import FileError, OptionError, note

if TYPE_CHECKING:
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses

BASE = "TIEBREAK_DATASETS_URL"
SCHEMES = ("https", "http", "file")
LABELS = "label.csv"
TRUTHS = "truth.csv"
SOURCE = "source.json"
TIMEOUT = 30.0  # seconds without a byte
TRIES = 3  # of a connection that breaks; the files have a few megabytes, so each starts afresh
CHUNK = 1 << 16

Progress = Callable[[str, int, int], None]  # which file, bytes here, bytes in all


class TransferError(Exception):
    """A file did not come; the message is the reason."""


def fetch(
    name: str,
    *,
    base: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> Path:
    """Bring the public copy of a dataset here, check it, and convert it to our files.

    What is here already is not fetched again. A dataset appears whole or not at all.

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
    address = _base_address(base)
    labels = _bring(entry, address, entry.copy.responses, target / LABELS, progress)
    truths = _bring(entry, address, entry.copy.gold, target / TRUTHS, progress)
    _place(entry, *convert(entry, labels, truths), target)
    if folder is None and places.find(name) != target:
        note(f"{places.DATA} comes before the cache, so {places.find(name)} is what counts.")
    return target


def _bring(
    entry: Entry, base: str, file: PublicFile, by_hand: Path, progress: Progress | None
) -> bytes:
    """Return a file of the copy: the one that was put there by hand, or else a download."""
    content = by_hand.read_bytes() if by_hand.is_file() else b""
    if _sha256(content) == file.sha256:
        return content
    tell = progress or (lambda file, here, in_all: None)
    report = functools.partial(tell, f"{entry.info.name}/{by_hand.name}")
    address = _address(base, file)
    try:
        return download(address, file, report)
    except TransferError as error:
        raise FileError(
            f"{entry.info.name} cannot be fetched from {address}: {error}.\n"
            f"{_way_out(entry, by_hand)}"
        ) from None


def download(address: str, wanted: PublicFile, report: Callable[[int, int], None]) -> bytes:
    """Return the content of a file whose size and checksum are known.

    A connection that breaks is tried again; a server that refuses or has another file is not.
    """
    for _ in range(TRIES):
        content = _receive(address, wanted.n_bytes, report)
        if len(content) == wanted.n_bytes:
            break
    else:
        raise TransferError(
            f"the connection ended after {len(content):,} of {wanted.n_bytes:,} bytes, "
            f"{TRIES} times"
        )
    found = _sha256(content)
    if found != wanted.sha256:
        raise TransferError(
            f"what came has the wrong checksum, sha256 {found}; expected {wanted.sha256}. "
            "It was not kept"
        )
    return content


def _receive(address: str, n_bytes: int, report: Callable[[int, int], None]) -> bytes:
    """Return what one connection brings, at most `n_bytes`; less where it breaks."""
    content = bytearray()
    with _open(address) as answer:
        length = answer.headers.get("Content-Length") or ""
        if length.isdecimal() and int(length) != n_bytes:
            raise TransferError(f"the file there has {int(length):,} bytes, expected {n_bytes:,}")
        report(0, n_bytes)
        while len(content) < n_bytes:
            try:
                chunk = answer.read1(min(CHUNK, n_bytes - len(content)))
            except (OSError, http.client.HTTPException):
                break  # `download` sees that something is missing
            if not chunk:
                break
            content += chunk
            report(len(content), n_bytes)
    return bytes(content)


def _open(address: str) -> Any:
    request = urllib.request.Request(address, headers={"User-Agent": f"tiebreak/{__version__}"})
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise TransferError(f"the server answered {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        reason = getattr(error, "reason", None) or error
        words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise TransferError(f"it cannot be reached: {words}") from None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _way_out(entry: Entry, by_hand: Path) -> str:
    """Say how the files can come here all the same; the addresses are those of the catalogue."""
    wrong = f"What lies there as {by_hand.name} is not the right file.\n"
    files = {LABELS: entry.copy.responses, TRUTHS: entry.copy.gold}
    base = catalogue.whole().base
    saved = "".join(f"\n  {_address(base, file)} as {name}" for name, file in files.items())
    return (
        f"{wrong if by_hand.is_file() else ''}"
        f"Another copy, a web address or a folder, can be named in {BASE}.\n"
        f"By hand: save{saved}\nin {by_hand.parent} and fetch again, which then needs no network. "
        f"Or put {places.RESPONSES} (task,worker,label) and {places.GOLD} (task,label) there."
    )


def _place(entry: Entry, responses: Responses, gold: Gold, target: Path) -> None:
    """Write all files aside, then rename them; gold, which makes a dataset complete, comes last."""
    from tiebreak.tables import write_gold, write_responses

    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as aside:
            new = Path(aside)
            write_responses(new / places.RESPONSES, responses)
            (new / SOURCE).write_text(_source(entry), encoding="utf-8")
            write_gold(new / places.GOLD, gold)
            for name in (places.RESPONSES, SOURCE, places.GOLD):
                (new / name).replace(target / name)
        for name in (LABELS, TRUTHS):
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{target} cannot be written: {error.strerror or error}. "
            f"Choose another folder, for instance with {places.CACHE}."
        ) from None


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
