"""Sources: which files a name stands for, their bytes, and where in a file a row is.

p1.csv p2.csv      as they are listed           in/           the tables in a folder, by name
p*.csv             by name; a file with this    s3://b/x/*    on any file system of pyarrow
                   very name wins               -             standard input
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import glob
import gzip
import io
import mmap
import os
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from tiebreak.errors import FileError, InputError, OptionError, note
from tiebreak.tables import messages  # noqa: F401 - registers what errors and notes say
from tiebreak.wording import Source, counted

STANDARD_INPUT = "standard input"
SMALL = 16 << 20  # bytes kept for messages where a file cannot be read a second time
HEAD = 1 << 12  # bytes by which the kind of a file is recognised
NEAR = 0.75  # of difflib: "asking" is not meant where "missing" is asked for
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SEPARATOR_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=(?P<mark>[^\r\n]*?)"?(?P<end>\r?\n)', re.I)
SEPARATORS = (b",", b";", b"\t", b"|")
PATTERN_SIGNS = "*?["
PACKED = ".tb"  # the name of a folder of packed responses ends so
ABOUT = "about.json"  # in a folder of arrays: what it is
FORMATS = ("csv", "tsv", "jsonl", "parquet")
EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PERHAPS = ".json"  # a table where a folder has no other; beside tables it describes them
CONLL = "conll"  # sentences, a token a line
CONLL_ENDINGS = (".conll", ".bio", ".iob", ".iob2", ".bioes")
ENDINGS = tuple({*EXTENSIONS, *CONLL_ENDINGS, ".gz"} - {PERHAPS})
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

    @property
    def start(self) -> bytes:
        """The first bytes, without a byte order mark and blanks."""
        return bytes(self.data[:HEAD]).removeprefix(BYTE_ORDER_MARK).lstrip()

    @property
    def is_list(self) -> bool:
        """Whether it is a JSON list of objects; a header in brackets, such as [task], is none."""
        return self.start.startswith(b"[") and self.start[1:].lstrip()[:1] in (b"{", b"]", b"")

    @property
    def is_json(self) -> bool:
        """Whether it is JSON: a list of objects, or one object after another."""
        return self.start.startswith(b"{") or self.is_list


class TableFile(NamedTuple):
    """A file, or a folder of packed responses, as found; a changed one has another stamp."""

    path: str  # or its address
    size: int = 0
    stamp: str = ""


class NoRowsError(InputError):
    """A table is as it should be, and has no rows."""


@dataclass(frozen=True)
class TableFiles:
    """Several files that hold one table together, in order."""

    files: tuple[TableFile, ...]
    fetched: dict[str, Content | None] = field(default_factory=dict)  # by address

    @property
    def name(self) -> str:
        """How messages call them."""
        return f"{self.files[0].path} and {counted(len(self.files) - 1, 'other file')}"

    @cached_property
    def paths(self) -> list[str]:
        """The files that have rows; those without are reported."""
        found = [file.path for file in self.files if self._open(file.path) is not None]
        if not found:
            raise NoRowsError("no-rows", table=self.name)
        if len(found) < len(self.files):
            note("some-files-empty", n=len(self.files) - len(found), of=len(self.files))
        return found

    def content(self, path: str) -> Content:
        """Return the bytes of one of the files that have rows."""
        content = self._open(path)
        if content is None:
            raise InputError("file-emptied", file=path)
        return content

    def _open(self, path: str) -> Content | None:
        """Open a file; None where it has no row. Remote ones are fetched once."""
        if is_packed(path):
            raise FileError("packed-among-tables", folder=path)
        if "://" not in path:
            return open_file(path)
        if path not in self.fetched:
            self.fetched[path] = open_file(path)
        return self.fetched[path]


# Where a row is


class Place(NamedTuple):
    """A row or record of a source; where it is in a file is found when an error asks for it."""

    source: Source
    row: int  # from 0

    def __str__(self) -> str:
        return self.source.where(self.row)


def numbered(name: str, noun: str) -> Source:
    """Return a source whose rows are called by their number: record 1, record 2 …"""
    return Source(name, partial(_numbered, name, noun))


def _numbered(name: str, noun: str, row: int) -> str:
    return f"{name}, {noun} {row + 1:,}"


def line_finder(
    content: Content, find: Callable[[memoryview, int], int | None], n_header: int
) -> Callable[[int], str]:
    """Return what finds the line of a row by reading the file again, as only an error asks for it.

    `find` returns the line of a row of some bytes; `n_header` lines come before the first row.
    """
    # What cannot be read again, such as standard input, is kept where it is small.
    is_kept = content.path is None and len(content.data) <= SMALL
    again = content.path or (bytes(content.data) if is_kept else b"")
    return partial(_line_place, content.name, again, find, n_header)


def _line_place(
    name: str,
    again: Path | bytes,
    find: Callable[[memoryview, int], int | None],
    n_header: int,
    row: int,
) -> str:
    """Return the line on which a row starts; the best guess where the file has changed."""
    try:
        line = find(
            memoryview(again) if isinstance(again, bytes) else read_content(again).data, row
        )
    except (OSError, EOFError, InputError):
        line = None
    return f"{name}, line {line or row + 1 + n_header:,}"


# What a name stands for


def is_packed(target: Any) -> bool:
    """Return whether a path names a folder of packed responses, existing or to be made."""
    if not isinstance(target, str | os.PathLike) or target == "-":
        return False
    path = Path(target)
    return path.suffix.lower() == PACKED or (path / ABOUT).is_file()


def is_file(source: Any) -> bool:
    """Return whether a source is a path or an open file."""
    return isinstance(source, str | os.PathLike) or (
        hasattr(source, "read") and not hasattr(source, "batches")
    )


def names_several(source: Any) -> bool:
    """Return whether a source is a list of files, a folder, a pattern or an address.

    A file whose name looks like a pattern is that file.
    """
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(each, str | os.PathLike) for each in source)
    if not isinstance(source, str | os.PathLike):
        return False
    name = os.fspath(source)
    if "://" in name or (name and Path(name).is_dir()):
        return not is_packed(name)
    return any(sign in name for sign in PATTERN_SIGNS) and not os.path.lexists(name)


def located(source: Any) -> Any:
    """Return the `Content` of one file, or the `TableFiles`, that a source names.

    The path of a folder of packed responses, and what names no file, stay as they are.
    """
    is_iterator = isinstance(source, Iterator) and not hasattr(source, "__arrow_c_stream__")
    if is_iterator and not is_file(source):  # such as folder.glob("*.csv")
        source = list(source)
    if names_several(source):
        found = find_files(source)
        if len(found) > 1:
            return TableFiles(tuple(found))
        source = found[0].path
    return read_content(source) if is_file(source) and not is_packed(source) else source


def find_files(source: Any) -> list[TableFile]:
    """Return the files that a path, a pattern, a folder, an address or a list of them names.

    A name with a scheme, such as s3://bucket/shards/*.parquet, is read with pyarrow's file systems.
    """
    given = source if isinstance(source, list | tuple) else [source]
    for each in given:
        if not isinstance(each, str | os.PathLike):
            raise InputError("no-file-name", value=each)
    names = [os.fspath(each) for each in given]
    # A list of texts names files; where none exists, the caller may have meant a row.
    is_perhaps_a_row = len(names) > 1 and not any(Path(name).suffix for name in names)
    found = [file for name in names for file in _files_of(name, is_perhaps_a_row)]
    paths = (f.path if "://" in f.path else os.path.realpath(f.path) for f in found)
    twice = [path for path, n in Counter(paths).items() if n > 1]
    if twice:
        raise InputError("file-named-twice", file=min(twice))
    return found


def _files_of(name: str, is_perhaps_a_row: bool) -> list[TableFile]:
    """List what a name stands for: a file, the tables in a folder, or what matches a pattern."""
    if name == "-":
        raise InputError("stdin-among-files")
    if "://" in name:
        return _remote_files(name)
    path = Path(name)
    paths = [path]
    if path.is_dir() and not is_packed(name):
        try:
            inside = {each.name: is_packed(each) for each in path.iterdir()}
        except OSError as error:
            raise FileError("file-unreadable", file=path, reason=f"{error.strerror}.") from None
        paths = [path / each for each in _tables_among(inside)]
        if not paths:
            raise FileError("no-tables", folder=path, names=sorted(inside))
    elif any(sign in name for sign in PATTERN_SIGNS) and not os.path.lexists(name):
        matches = map(Path, sorted(glob.glob(name, recursive=True)))  # noqa: PTH207 - may be /…
        paths = [each for each in matches if is_packed(each) or not each.is_dir()]
        if not paths:
            raise FileError("no-match", pattern=name, folder=Path.cwd())
    return [_local_file(each, is_perhaps_a_row) for each in paths]


def _tables_among(inside: Mapping[str, bool]) -> list[str]:
    """Return the names of tables in a folder, sorted; of each, whether it is packed responses.

    Hidden files, and those whose names begin with _, are none.
    """
    shown = sorted(name for name in inside if not name.startswith((".", "_")))
    found = [name for name in shown if name.lower().endswith(ENDINGS)]
    found = found or [name for name in shown if name.lower().endswith(PERHAPS)]
    return [name for name in shown if name in found or inside[name]]


def _local_file(path: Path, is_perhaps_a_row: bool) -> TableFile:
    if is_packed(path):
        return TableFile(str(path))
    try:
        status = path.stat()
    except FileNotFoundError:
        raise _missing(path, is_perhaps_a_row) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise FileError("file-unreadable", file=repr(str(path)), reason=f"{error}.") from None
    return TableFile(str(path), status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _remote_files(address: str) -> list[TableFile]:
    """List what an address names; a star in its last part stands for any text.

    Options of the file system follow a question mark, such as `?endpoint_override=…`.
    """
    from pyarrow import fs

    name, mark, options = address.rpartition("?")
    if "=" not in options:  # none, or a pattern with a question mark
        name, mark, options = address, "", ""
    scheme, _, place = name.partition("://")
    if "@" in place.partition("/")[0]:
        raise FileError("keys-in-address", scheme=scheme)
    folder, _, last = name.rpartition("/")
    pattern = last if any(sign in last for sign in PATTERN_SIGNS) else None
    start = name if pattern is None else folder
    system, path = _filesystem(start + mark + options)
    try:
        info = system.get_file_info(path)
        inside = fs.FileSelector(path, allow_not_found=True)
        is_file = info.type == fs.FileType.File
        listed = [info] if is_file else system.get_file_info(inside)
    except OSError as error:
        raise FileError("file-unreadable", file=address, reason=error) from None
    found = {each.base_name: each for each in listed if each.type == fs.FileType.File}
    chosen = list(found) if is_file else _tables_among(dict.fromkeys(found, False))
    if pattern is not None:
        chosen = sorted(fnmatch.filter(found, pattern))
    if not chosen:
        raise FileError("address-empty", address=address, pattern=pattern)
    before = start.removesuffix(path) if start.endswith(path) else f"{scheme}://"
    return [
        TableFile(f"{before}{i.path}{mark}{options}", i.size, f"{i.size}-{i.mtime_ns}")
        for i in map(found.__getitem__, chosen)
    ]


def _filesystem(address: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(address)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError("file-unreadable", file=address, reason=error) from None


def _missing(path: Path, is_perhaps_a_row: bool = False) -> FileError:
    """Describe a missing file, and name the one beside it that may have been meant."""
    kinds = {*EXTENSIONS, _bare(path.name).suffix}
    beside: dict[str, Path] = {}
    with contextlib.suppress(OSError):
        files = filter(Path.is_file, path.parent.iterdir())
        beside = {_bare(f.name).stem: f for f in files if _bare(f.name).suffix in kinds}
    near = difflib.get_close_matches(_bare(path.name).stem, beside, n=1, cutoff=NEAR)
    meant = beside[near[0]] if near else None
    folder = Path.cwd() if path.parent.is_dir() else path.parent
    return FileError("file-missing", file=path, meant=meant, folder=folder, is_row=is_perhaps_a_row)


def _bare(name: str) -> Path:
    return Path(name.lower().removesuffix(".gz"))


# The bytes of a file


def open_file(path: str) -> Content | None:
    """Return the bytes of a file, local or at an address; None where it has no row."""
    content = read_content(path, allow_empty=True)
    return content if _has_rows(content) else None


def read_content(origin: str | os.PathLike[str] | IO[Any], *, allow_empty: bool = False) -> Content:
    """Read a path, an address, "-" or an open file; unpack gzip, make UTF-8 of UTF-16.

    What is empty, or begins with NUL bytes, is refused. `sep=;` in a first line is blanked out.
    """
    if isinstance(origin, str) and origin == "-":
        if sys.stdin is None:
            raise FileError("stdin-closed")
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        content = Content(STANDARD_INPUT, _read_stream(stream, STANDARD_INPUT))
    elif isinstance(origin, str) and "://" in origin:
        content = Content(origin, _read_address(origin))
    elif isinstance(origin, str | os.PathLike):
        content = _read_path(Path(origin) if os.fspath(origin) else None)
    else:
        name = str(getattr(origin, "name", "the open file"))
        content = Content(name, _read_stream(origin, "The open file"))
    name = content.name
    if bytes(content.data[:2]) == b"\x1f\x8b":
        try:
            content = content._replace(data=memoryview(gzip.decompress(content.data)))
        except (OSError, EOFError, zlib.error) as error:
            raise FileError("gzip-broken", file=name, reason=error) from None
    if not len(content.data) and not allow_empty:
        raise InputError("file-empty", file=name, is_stdin=name == STANDARD_INPUT)
    if bytes(content.data[:2]) in (b"\xff\xfe", b"\xfe\xff"):
        try:
            content = Content(name, memoryview(str(content.data, "utf-16").encode()))
        except UnicodeDecodeError as error:
            raise InputError("utf-16-broken", file=name, offset=error.start) from None
    first = SEPARATOR_LINE.match(bytes(content.data[:64]))
    if first is not None:
        if first["mark"] not in SEPARATORS:
            mark = first["mark"].decode(errors="replace")
            raise InputError("separator-unknown", file=name, mark=mark)
        blank = first["end"] + bytes(content.data[first.end() :])  # lines keep their numbers
        content = Content(name, memoryview(blank))
    if content.start.startswith(b"\0"):
        raise InputError("nul-bytes", file=name)
    return content


def _read_path(path: Path | None) -> Content:
    if path is None:
        raise OptionError("file-name-empty")
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
        raise _missing(path) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        reason = "it is a folder." if path.is_dir() else f"{error}."
        if isinstance(error, PermissionError):  # which Windows says of folders
            reason = "you may not read it. Change its permissions or use a copy."
        raise FileError("file-unreadable", file=repr(str(path)), reason=reason) from None


def _read_address(address: str) -> memoryview:
    system, path = _filesystem(address)
    try:
        with system.open_input_file(path) as file:
            return memoryview(file.read_buffer()).cast("B")  # of Arrow they are signed
    except OSError as error:
        raise FileError("file-unreadable", file=address, reason=error) from None


def _read_stream(stream: IO[Any], name: str) -> memoryview:
    try:
        data = stream.read()
    except (OSError, ValueError) as error:  # ValueError: the stream is closed or not UTF-8
        raise FileError("file-unreadable", file=name, reason=f"{error}.") from None
    return memoryview(data.encode() if isinstance(data, str) else data)


def _has_rows(content: Content) -> bool:
    """Return whether a file holds more than a header, which JSON does not have."""
    start = content.start
    if start.startswith(b"PAR1"):
        import pyarrow as pa
        from pyarrow import parquet

        try:
            reader = pa.BufferReader(pa.py_buffer(content.data))
            return bool(parquet.read_metadata(reader).num_rows)
        except (pa.ArrowException, OSError):
            return True  # the reader says what is wrong with it
    if start.startswith((b"{", *FOREIGN_MAGIC)):
        return True
    if content.is_list:
        return not start[1:].lstrip().startswith(b"]")
    return len(list(islice(filter(str.strip, text_of(content.data)), 2))) > 1


# Kinds of files


def format_of(content: Content, asked: str | None) -> str:
    """Return the format: as asked, else by the first bytes, else by the name (CSV if unknown)."""
    if asked is not None:
        return checked_format(asked)
    if bytes(content.data[:4]) == b"PAR1":
        return "parquet"
    for magic, (what, cure) in FOREIGN_MAGIC.items():
        if bytes(content.data[: len(magic)]) == magic:
            raise InputError("foreign-file", file=content.name, what=what, cure=cure)
    if content.is_json:
        return "jsonl"
    if not content.start and len(content.data) <= HEAD:
        raise InputError("file-empty", file=content.name, is_stdin=False)
    return format_of_name(content.name)[0]


def format_of_name(name: str) -> tuple[str, bool]:
    """Return the format by the name of a file, and whether it is packed with gzip.

    >>> format_of_name("labels.tsv.gz"), format_of_name("labels")
    (('tsv', True), ('csv', False))
    """
    return EXTENSIONS.get(_bare(name).suffix, "csv"), name.lower().endswith(".gz")


def is_conll(name: str) -> bool:
    """Say whether a file is of sentences, by its name."""
    return _bare(name).suffix in CONLL_ENDINGS


def checked_format(asked: str) -> str:
    """Return the plain format asked for, or refuse it."""
    if asked.lower() not in FORMATS:
        raise OptionError.unknown("format", asked, FORMATS)
    return asked.lower()


def byte_stream(data: memoryview) -> io.BufferedReader:
    """Return bytes as a file that makes no copy of them."""
    import pyarrow as pa

    stream: Any = pa.BufferReader(pa.py_buffer(data))
    return io.BufferedReader(stream)


def text_of(data: memoryview, errors: str = "replace", encoding: str = "utf-8-sig") -> Any:
    """Return bytes as a file of text, with its line ends as they are."""
    return io.TextIOWrapper(byte_stream(data), encoding, errors, newline="")


def not_text(name: str, data: memoryview) -> InputError:
    """Describe the first byte that is not UTF-8."""
    start = 0
    for number, line in enumerate(byte_stream(data), start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            at = start + error.start
            return InputError("not-utf-8", file=name, line=number, offset=at, byte=data[at])
        start += len(line)
    return InputError("not-utf-8", file=name, line=1, offset=0, byte=data[0])
