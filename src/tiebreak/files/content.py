"""Content: the bytes of a file or of standard input, what is written in them, and on which line."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import mmap
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, get_args

from tiebreak.errors import FileError, InputError, OptionError
from tiebreak.wording import Source, counted

Format = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

STANDARD_INPUT = "standard input"
SMALL = 16 << 20  # bytes kept for messages when a file cannot be read a second time
CHUNK = 1 << 20
NEAR = 0.75  # of difflib: the name of a file that may have been meant; "asking" is not "missing"
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SEPARATOR_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=(?P<mark>[^\r\n]*?)"?(?P<end>\r?\n)', re.I)
SEPARATORS = (b",", b";", b"\t", b"|")
PATTERN_SIGNS = "*?["  # in the name of a file: it may stand for several
PACKED = ".tb"  # the name of a folder of packed responses ends so (see `packed.py`)
ABOUT = "about.json"  # in a folder of arrays: what it is
EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FOREIGN_MAGIC = {
    b"PK\x03\x04": ("an Excel workbook or a zip archive", "Save the table as CSV"),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save the table as CSV"),
    b"ARROW1": ("an Arrow (Feather) file", "Save the table as Parquet"),
    b"SQLite format 3": ("a SQLite database", "Save the table as CSV"),
    b"BZh": ("compressed with bzip2", "Unpack it, or use gzip"),
    b"\xfd7zXZ": ("compressed with xz", "Unpack it, or use gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "Unpack it, or use gzip"),
}


class Content(NamedTuple):
    """The bytes of a file, unpacked; `path` is set where they can be read a second time."""

    name: str
    data: memoryview
    path: Path | None = None


class TableFile(NamedTuple):
    """A file, or a folder of packed responses, as it was found; a changed one has another stamp."""

    path: str  # or its address
    size: int = 0
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Several files that hold one table together, in order; `shards.py` finds and opens them."""

    files: tuple[TableFile, ...]
    fetched: dict[str, Content | None] = field(default_factory=dict)  # by address: comes once

    @property
    def name(self) -> str:
        """How messages call them."""
        return f"{self.files[0].path} and {counted(len(self.files) - 1, 'other file')}"

    @property
    def size(self) -> int:
        """How many bytes they have together."""
        return sum(file.size for file in self.files)


def read_content(origin: str | os.PathLike[str] | IO[Any], *, allow_empty: bool = False) -> Content:
    """Read a path, standard input ("-") or an open file; unpack gzip; refuse what is empty."""
    if isinstance(origin, str) and origin == "-":
        content = Content(STANDARD_INPUT, _read_standard_input())
    elif isinstance(origin, str | os.PathLike):
        content = _read_path(Path(origin))
    else:
        content = Content(str(getattr(origin, "name", "the open file")), _read_stream(origin))
    return plain_content(content, allow_empty=allow_empty)


def plain_content(content: Content, *, allow_empty: bool = False) -> Content:
    """Unpack gzip, and make UTF-8 of other text; refuse what is empty unless it may be."""
    if content.data[:2] == GZIP_MAGIC:
        content = content._replace(data=_unpack(content))
    if not len(content.data) and not allow_empty:
        again = " It can be read only once." if content.name == STANDARD_INPUT else ""
        raise InputError(f"{content.name} is empty: it has no header and no rows.{again}")
    rewritten = as_plain_utf8(content.data, content.name)
    if rewritten is not None:
        content = Content(content.name, rewritten)
    _refuse_nul(content)
    return content


def _refuse_nul(content: Content) -> None:
    """Refuse a file that begins with a NUL byte; inside a table one may be part of an id."""
    if bytes(content.data[:4096]).removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"\0"):
        raise InputError(
            f"{content.name} begins with NUL bytes, which no text does: it is damaged, or no "
            "table. Write it again as CSV, JSON lines or Parquet."
        )


def as_plain_utf8(data: memoryview, name: str) -> memoryview | None:
    r"""Return a table that a spreadsheet saved as plain UTF-8 text; None where it is that already.

    The line `sep=;` becomes a blank one, so that lines keep their numbers.

    >>> bytes(as_plain_utf8(memoryview("a;b".encode("utf-16")), "x.csv"))
    b'a;b'
    >>> bytes(as_plain_utf8(memoryview(b"sep=;" + b"\n" + b"a;b"), "x.csv"))
    b'\na;b'
    """
    is_changed = bytes(data[:2]) in UTF_16_MARKS
    if is_changed:
        data = memoryview(_from_utf_16(data, name).encode())
    first_line = SEPARATOR_LINE.match(bytes(data[:64]))
    if first_line is None:
        return data if is_changed else None
    if first_line["mark"] not in SEPARATORS:
        mark = first_line["mark"].decode(errors="replace")
        raise InputError(
            f"{name} says that {mark!r} separates its fields. Save it with a comma, a semicolon, "
            "a tab or '|' instead."
        )
    return memoryview(first_line["end"] + bytes(data[first_line.end() :]))


def is_packed(target: Any) -> bool:
    """Tell whether a path names a folder of packed responses, there or to be made."""
    if not isinstance(target, str | os.PathLike) or target == "-":
        return False
    path = Path(target)
    return path.suffix.lower() == PACKED or (path / ABOUT).is_file()


def format_of(content: Content, asked: str | None) -> Format:
    """Tell the format: as asked, else by the first bytes, else by the name (CSV if unknown)."""
    if asked is not None:
        return checked_format(asked)
    head = bytes(content.data[:4096])
    if head.startswith(b"PAR1"):
        return "parquet"
    for magic, (what, cure) in FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{content.name} is {what}, which cannot be read. {cure}.")
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"{") or is_json_list(content):
        return "jsonl"
    if not text and len(content.data) == len(head):
        raise InputError(f"{content.name} is empty: it holds only blank lines.")
    return format_of_name(content.name)[0]


def is_json_list(content: Content) -> bool:
    """Tell a JSON list of objects; a header in brackets, such as [task], is none."""
    start = bytes(content.data[:4096]).removeprefix(BYTE_ORDER_MARK).lstrip()
    return start.startswith(b"[") and start[1:].lstrip()[:1] in (b"{", b"]", b"")


def format_of_name(name: str) -> tuple[Format, bool]:
    """Tell the format by the name of a file, and whether it is packed with gzip.

    >>> format_of_name("labels.tsv.gz"), format_of_name("labels")
    (('tsv', True), ('csv', False))
    """
    path = Path(name.lower())
    packed = path.suffix == ".gz"
    suffix = path.with_suffix("").suffix if packed else path.suffix
    return EXTENSIONS.get(suffix, "csv"), packed


def checked_format(asked: str) -> Format:
    """Return the format asked for, or refuse it."""
    for known in FORMATS:
        if asked.lower() == known:
            return known
    raise OptionError.unknown("format", asked, FORMATS)


@dataclass(frozen=True, slots=True)
class LineFinder:
    """Callable: row (from 0) to line (from 1) of a text file; it pickles, as sources must.

    The file is read again for that, as only an error asks. `find` returns the line of a row in a
    text, or raises InputError; `n_header` is how many lines stand before the first row.
    """

    find: Callable[[io.TextIOWrapper, int], int]
    n_header: int
    path: Path | None = None
    data: bytes = b""

    def __call__(self, row: int) -> int:
        """Return the line on which a row starts."""
        try:
            with _open(self.path, self.data) as text:
                return self.find(text, row)
        except (OSError, EOFError, InputError):
            return row + 1 + self.n_header  # the file has changed since: the best guess


def source_of(
    content: Content, find: Callable[[io.TextIOWrapper, int], int], n_header: int
) -> Source:
    """Name the source of rows; lines where they can still be found, else rows."""
    if content.path is not None:
        return Source(content.name, LineFinder(find, n_header, path=content.path))
    if len(content.data) <= SMALL:
        return Source(content.name, LineFinder(find, n_header, data=bytes(content.data)))
    return Source(content.name)


def not_text(content: Content) -> InputError:
    """Describe the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    for start in range(0, len(content.data), CHUNK):
        chunk = bytes(content.data[start : start + CHUNK])
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + CHUNK >= len(content.data))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            line += chunk[: max(0, error.start - pending)].count(b"\n")
            return InputError(
                f"{content.name}, line {line}: byte 0x{content.data[at]:02x} at offset {at:,} is "
                "not UTF-8.\nSave the file again as UTF-8, for instance: "
                f"iconv -f WINDOWS-1252 -t UTF-8 {content.name}"
            )
        line += chunk.count(b"\n")
    return InputError(f"{content.name} is not UTF-8 text. Save it again as UTF-8.")


def open_text(content: Content) -> io.TextIOWrapper:
    """Read content as text, one line at a time, line ends kept."""
    return _open(content.path, b"" if content.path else bytes(content.data))


def _open(path: Path | None, data: bytes) -> io.TextIOWrapper:
    raw: Any = io.BytesIO(data) if path is None else path.open("rb")
    packed = raw.read(2) == GZIP_MAGIC
    raw.seek(0)
    if packed and path is not None:
        raw.close()
        raw = gzip.open(path)  # noqa: SIM115 - the text wrapper closes it
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")


def _read_path(path: Path) -> Content:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # a pipe: it can be read only once
                return Content(str(path), memoryview(file.read()))
            if not status.st_size:
                return Content(str(path), memoryview(b""), path)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return Content(str(path), memoryview(mapped), path)
    except FileNotFoundError:
        raise FileError(missing(path)) from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not a file. Name one file in it.") from None
    except PermissionError:
        raise FileError(_not_permitted(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise FileError(f"{str(path)!r} cannot be read: {error}.") from None


def _read_standard_input() -> memoryview:
    if sys.stdin is None:
        raise FileError("There is no standard input to read. Name a file instead of '-'.")
    return _read_stream(getattr(sys.stdin, "buffer", sys.stdin))


def _read_stream(stream: IO[Any]) -> memoryview:
    try:
        data = stream.read()
    except (OSError, ValueError) as error:  # ValueError: the stream is closed or not UTF-8
        name = STANDARD_INPUT if stream is getattr(sys.stdin, "buffer", None) else "The open file"
        raise FileError(f"{name} cannot be read: {error}.") from None
    return memoryview(data.encode() if isinstance(data, str) else data)


def _unpack(content: Content) -> memoryview:
    try:
        return memoryview(gzip.decompress(content.data))
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            f"{content.name} is a broken gzip file ({error}). Copy or make it again."
        ) from None


def _from_utf_16(data: memoryview, name: str) -> str:
    try:
        return str(data, "utf-16")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} begins as UTF-16 text, but is none at offset {error.start:,}. "
            "Save it again as UTF-8."
        ) from None


def missing(path: Path) -> str:
    """Say that a file is missing, and which one may have been meant."""
    if not path.parent.is_dir():
        return f"There is no file {path}: the folder {path.parent} does not exist."
    meant = _near_name(path)
    if meant is not None:
        return f"There is no file {path}. Did you mean {path.with_name(meant)}?"
    return f"There is no file {path}. Check the name and the folder ({Path.cwd()})."


def _near_name(path: Path) -> str | None:
    """Return the file beside a missing one with nearly its name, of a kind that could be read."""
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return None
    stem, kind = _stem_and_kind(path.name)
    near: dict[str, list[str]] = {}
    for name in beside:
        its_stem, its_kind = _stem_and_kind(name)
        if its_kind in EXTENSIONS or its_kind == kind:
            near.setdefault(its_stem, []).append(name)
    stems = difflib.get_close_matches(stem, near, n=1, cutoff=NEAR)
    names = near[stems[0]] if stems else []
    return next(iter(difflib.get_close_matches(path.name, names, n=1, cutoff=0.0)), None)


def _stem_and_kind(name: str) -> tuple[str, str]:
    """Return a name without its ending, and its ending, of a packed file the one before `.gz`."""
    path = Path(name.lower().removesuffix(".gz"))
    return path.stem, path.suffix


def _not_permitted(path: Path) -> str:
    if path.is_dir():  # Windows reports a folder this way
        return f"{path} is a folder, not a file. Name one file in it."
    return f"{path} may not be read by you. Change its permissions or use a copy."
