"""Download: one file, resumed where it broke off, kept only if its checksum is right.

While it comes, a file is called NAME.TOKEN.part, with a token that no other process has; what an
interrupted download leaves is called NAME.part, and the next one takes it over by renaming it.
So two processes never write to the same file, and no lock can be left behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tiebreak._version import __version__
from tiebreak.datasets.catalogue import PublicFile

TIMEOUT = 30.0  # seconds without a byte
TRIES = 5  # connections, as long as each brings the file further
CHUNK = 1 << 16
ABANDONED = 600.0  # seconds; a download that is alive writes, or gives up, long before

Tell = Callable[[int, int], None]  # bytes here, bytes in all


class TransferError(Exception):
    """A file did not come; the message is the reason."""


def download(address: str, target: Path, wanted: PublicFile, tell: Tell) -> bytes:
    """Bring a file to `target` and return its content.

    A file that is there and right, perhaps put there by hand, is taken as it is. Whatever goes
    wrong, `target` is not touched, and what has come so far is kept for the next time.
    """
    content = read_if_right(target, wanted)
    if content is not None:
        return content
    part = _claim(target)
    try:
        content = _receive_right(address, part, wanted, tell)
        os.replace(part, target)  # noqa: PTH105 - one name that tests can make fail
    except BaseException:  # Ctrl-C too
        _release(part, target)
        raise
    return content


def part_of(target: Path) -> Path:
    """Return the name under which half a file waits to be completed."""
    return target.with_name(f"{target.name}.part")


def read_if_right(file: Path, wanted: PublicFile) -> bytes | None:
    """Return the content of a file if it is what the catalogue says."""
    if _size(file) != wanted.n_bytes:
        return None
    content = file.read_bytes()
    return content if hashlib.sha256(content).hexdigest() == wanted.sha256 else None


def _claim(target: Path) -> Path:
    """Name a file of our own, with what an earlier download left, if anything."""
    mine = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    for left in (part_of(target), *_abandoned(target)):
        with contextlib.suppress(OSError):  # there is none, or another process was faster
            left.rename(mine)
            os.utime(mine)  # no longer abandoned
            break
    return mine


def _abandoned(target: Path) -> Iterator[Path]:
    """Find what a process left that was killed."""
    for part in sorted(target.parent.glob(f"{target.name}.*.part")):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > ABANDONED:
                yield part


def _release(part: Path, target: Path) -> None:
    """Leave what has come to the next download."""
    with contextlib.suppress(OSError):
        if _size(part):
            os.replace(part, part_of(target))  # noqa: PTH105
        else:
            part.unlink(missing_ok=True)


def _receive_right(address: str, part: Path, wanted: PublicFile, tell: Tell) -> bytes:
    """Receive a file and check it; if it was resumed and is wrong, start once more from nothing."""
    for is_fresh in (True,) if not _size(part) else (False, True):
        if is_fresh:
            part.unlink(missing_ok=True)
        _receive_all(address, part, wanted, tell)
        content = read_if_right(part, wanted)
        if content is not None:
            return content
    found = hashlib.sha256(part.read_bytes()).hexdigest()
    part.unlink()
    raise TransferError(
        f"what came has the wrong checksum, sha256 {found}; expected {wanted.sha256}. "
        "It was not kept"
    )


def _receive_all(address: str, part: Path, wanted: PublicFile, tell: Tell) -> None:
    """Receive until all is here; a broken connection is taken up again while it brings more."""
    furthest = -1
    for _ in range(TRIES):
        _receive(address, part, wanted, tell)
        size = _size(part)
        if size >= wanted.n_bytes:
            return
        if size <= furthest:
            break
        furthest = size
    raise TransferError(
        f"the connection ended after {_size(part):,} of {wanted.n_bytes:,} bytes, more than once"
    )


def _receive(address: str, part: Path, wanted: PublicFile, tell: Tell) -> None:
    """Append what one connection brings."""
    size = _size(part)
    if size >= wanted.n_bytes:
        return  # all is here: the checksum decides
    answer, start = _ask(address, size)
    with answer:
        _refuse_other_size(answer, start, wanted)
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab" if start else "wb") as out:
            tell(start, wanted.n_bytes)
            for chunk in _chunks(answer, wanted.n_bytes - start):
                out.write(chunk)
                out.flush()  # a process that is killed leaves what it told
                start += len(chunk)
                tell(start, wanted.n_bytes)


def _ask(address: str, start: int) -> tuple[Any, int]:
    """Open a connection, and say at which byte its answer begins: at `start`, or at 0."""
    headers = {"User-Agent": f"tiebreak/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return _ask(address, 0)
        raise TransferError(f"the server answered {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        reason = getattr(error, "reason", None) or error
        raise TransferError(f"it cannot be reached: {_words(reason)}") from None
    if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
        return answer, 0  # the whole, as from a server that knows no ranges
    if answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        return answer, start
    answer.close()  # some other part
    return _ask(address, 0)


def _words(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


def _refuse_other_size(answer: Any, start: int, wanted: PublicFile) -> None:
    """Refuse, before anything is written, a file that is not the one we want."""
    said = answer.headers.get("Content-Length") or ""
    size = start + int(said) if said.isdecimal() else wanted.n_bytes
    if size != wanted.n_bytes:
        raise TransferError(f"the file there has {size:,} bytes, expected {wanted.n_bytes:,}")


def _chunks(answer: Any, at_most: int) -> Iterator[bytes]:
    """Yield what comes until the end, the limit, or the break of the connection."""
    while at_most > 0:
        try:
            chunk = answer.read1(min(CHUNK, at_most))
        except (OSError, http.client.HTTPException):
            return
        if not chunk:
            return
        at_most -= len(chunk)
        yield chunk


def _size(file: Path) -> int:
    """Return how many bytes a file has, 0 if there is none."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
