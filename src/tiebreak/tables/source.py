"""Sources: the bytes of files, wherever they are, and where in a file a row is.

p1.csv p2.csv      as they are listed           in/           the tables in a folder, by name
p*.csv             by name; a file with this    s3://b/x/*    on any file system of pyarrow
                   very name wins               -             standard input
"""

from __future__ import annotations

import codecs
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from tiebreak.errors import FileError, InputError, OptionError, note
from tiebreak.tables import messages  # noqa: F401 - registers what errors and notes say
from tiebreak.wording import Source, counted

STANDARD_INPUT = "standard input"
SMALL = 16 << 20  # bytes kept for messages when a file cannot be read a second time
CHUNK = 1 << 20
HEAD = 1 << 12  # bytes by which the kind of a file is recognised
NEAR = 0.75  # of difflib: "asking" is not meant where "missing" is asked for
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
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
ENDINGS = tuple({*EXTENSIONS, ".gz"} - {PERHAPS})
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


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Several files that hold one table together, in order."""

    files: tuple[TableFile, ...]
    fetched: dict[str, Content | None] = field(default_factory=dict)  # by address

    @property
    def name(self) -> str:
        """How messages call them."""
        return f"{self.files[0].path} and {counted(len(self.files) - 1, 'other file')}"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def open(self, path: str) -> Content | None:
        """Open one of the files; None where it has no row. Remote ones are fetched once."""
        if is_packed(path):
            raise FileError("packed-among-tables", folder=path)
        if "://" not in path:
            return open_file(path)
        if path not in self.fetched:
            self.fetched[path] = open_file(path)
        return self.fetched[path]

    def contents(self) -> Iterator[tuple[str, Content]]:
        """Yield the path and the bytes of each file that has a row; report those without."""
        n_empty = 0
        for file in self.files:
            content = self.open(file.path)
            if content is None:
                n_empty += 1
            else:
                yield file.path, content
        if n_empty == len(self.files):
            raise InputError("files-empty", files=self.name)
        if n_empty:
            note("some-files-empty", n=n_empty, of=len(self.files))


class RecordPlace(NamedTuple):
    """Where a row or record is, so that an error can name it."""

    file: str
    noun: str  # "record", "line" or "row"
    number: int

    def __str__(self) -> str:
        return f"{self.file}, {self.noun} {self.number:,}"


@dataclass(frozen=True, slots=True)
class LineFinder:
    """Finds the line of a row by reading the file again, as only an error asks for it.

    `find` returns the line of a row of some bytes; `n_header` lines come before the first row.
    """

    name: str
    find: Callable[[memoryview, int], int]
    n_header: int
    path: Path | None = None
    data: bytes = b""

    def __call__(self, row: int) -> RecordPlace:
        """Return the line on which a row starts."""
        try:
            data = memoryview(self.data) if self.path is None else read_content(self.path).data
            return RecordPlace(self.name, "line", self.find(data, row))
        except (OSError, EOFError, InputError):  # the file has changed since: the best guess
            return RecordPlace(self.name, "line", row + 1 + self.n_header)


@dataclass(frozen=True, slots=True)
class RecordFinder:
    """Finds the record of a row by its number, in one file or in that of each row."""

    name: str
    noun: str
    numbers: Any = None  # array of the number of each row; None: 1, 2, 3 …
    files: list[tuple[str, str]] | None = None  # of each row: the file and the noun

    def __call__(self, row: int) -> RecordPlace:
        """Return the record of a row."""
        file, noun = (self.name, self.noun) if self.files is None else self.files[row]
        number = row + 1 if self.numbers is None else int(self.numbers[row])
        return RecordPlace(file, noun, number)


def source_of(content: Content, find: Callable[[memoryview, int], int], n_header: int) -> Source:
    """Return the source of rows: with lines where they can still be found."""
    if content.path is None and len(content.data) > SMALL:
        return Source(content.name)
    data = bytes(content.data) if content.path is None else b""
    return Source(content.name, LineFinder(content.name, find, n_header, content.path, data))


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
    if not name:
        raise OptionError("file-name-empty")
    if "://" in name or Path(name).is_dir():
        return not is_packed(name)
    return any(sign in name for sign in PATTERN_SIGNS) and not os.path.lexists(name)


def resolved(source: Any) -> Any:
    """Return the one path, `Content` or `TableFiles` that a list, folder, pattern or address names.

    Anything else stays as it is.
    """
    is_iterator = isinstance(source, Iterator) and not hasattr(source, "__arrow_c_stream__")
    if is_iterator and not is_file(source):  # such as folder.glob("*.csv")
        source = list(source)
    if not names_several(source):
        return source
    found = find_files(source)
    if len(found) > 1:
        return TableFiles(tuple(found))
    path = found[0].path
    return read_remote(path) if "://" in path else path


def opened(source: Any) -> Any:
    """Return the content of one file, or the files, that a source names; all else as it is."""
    source = resolved(source)
    return read_content(source) if is_file(source) else source


def read_content(origin: str | os.PathLike[str] | IO[Any], *, allow_empty: bool = False) -> Content:
    """Read a path, standard input ("-") or an open file; unpack gzip; refuse what is empty."""
    if isinstance(origin, str) and origin == "-":
        if sys.stdin is None:
            raise FileError("stdin-closed")
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        content = Content(STANDARD_INPUT, _read_stream(stream, STANDARD_INPUT))
    elif isinstance(origin, str | os.PathLike):
        content = _read_path(Path(origin))
    else:
        name = str(getattr(origin, "name", "the open file"))
        content = Content(name, _read_stream(origin, "The open file"))
    return _plain(content, allow_empty=allow_empty)


def open_file(path: str) -> Content | None:
    """Return the bytes of a file, local or at an address; None where it has no row."""
    read = read_remote if "://" in path else read_content
    content = read(path, allow_empty=True)
    return content if _has_rows(content) else None


def read_remote(address: str, *, allow_empty: bool = False) -> Content:
    """Return the bytes of a file on a file system of pyarrow, all of them in memory."""
    system, path = _filesystem(address)
    try:
        with system.open_input_file(path) as file:
            data = memoryview(file.read_buffer()).cast("B")  # of Arrow they are signed
    except OSError as error:
        raise FileError("file-unreadable", file=address, reason=error) from None
    return _plain(Content(address, data), allow_empty=allow_empty)


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
        raise InputError("file-blank", file=content.name)
    return format_of_name(content.name)[0]


def format_of_name(name: str) -> tuple[str, bool]:
    """Return the format by the name of a file, and whether it is packed with gzip.

    >>> format_of_name("labels.tsv.gz"), format_of_name("labels")
    (('tsv', True), ('csv', False))
    """
    path = Path(name.lower())
    packed = path.suffix == ".gz"
    suffix = path.with_suffix("").suffix if packed else path.suffix
    return EXTENSIONS.get(suffix, "csv"), packed


def checked_format(asked: str) -> str:
    """Return the plain format asked for, or refuse it."""
    if asked.lower() not in FORMATS:
        raise OptionError.unknown("format", asked, FORMATS)
    return asked.lower()


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


def missing_file(path: Path, hint: bool = False) -> FileError:
    """Describe a missing file, and name the one that may have been meant."""
    if not path.parent.is_dir():
        return FileError("folder-missing", file=path, folder=path.parent)
    meant = _near_name(path)
    suggestion = None if meant is None else path.with_name(meant)
    return FileError("file-missing", file=path, meant=suggestion, folder=Path.cwd(), is_row=hint)


def _plain(content: Content, *, allow_empty: bool) -> Content:
    """Unpack gzip, make UTF-8 of UTF-16, blank out `sep=;`; refuse what is empty or NUL bytes."""
    name = content.name
    if bytes(content.data[:2]) == GZIP_MAGIC:
        try:
            content = content._replace(data=memoryview(gzip.decompress(content.data)))
        except (OSError, EOFError, zlib.error) as error:
            raise FileError("gzip-broken", file=name, reason=error) from None
    if not len(content.data) and not allow_empty:
        raise InputError("file-empty", file=name, is_stdin=name == STANDARD_INPUT)
    if bytes(content.data[:2]) in UTF_16_MARKS:
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
        raise missing_file(path) from None
    except PermissionError:
        if path.is_dir():  # Windows reports a folder this way
            raise FileError("folder-given", folder=path) from None
        raise FileError("file-forbidden", file=path) from None
    except IsADirectoryError:
        raise FileError("folder-given", folder=path) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise FileError("file-unreadable", file=repr(str(path)), reason=f"{error}.") from None


def _read_stream(stream: IO[Any], name: str) -> memoryview:
    try:
        data = stream.read()
    except (OSError, ValueError) as error:  # ValueError: the stream is closed or not UTF-8
        raise FileError("file-unreadable", file=name, reason=f"{error}.") from None
    return memoryview(data.encode() if isinstance(data, str) else data)


def text_of(data: memoryview, errors: str = "replace") -> io.TextIOWrapper:
    """Read bytes as text, one line at a time, line ends kept."""
    import pyarrow as pa

    stream: Any = pa.BufferReader(pa.py_buffer(data))  # makes no copy of all of it
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="")


def not_text(name: str, data: memoryview) -> InputError:
    """Describe the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    for start in range(0, len(data), CHUNK):
        chunk = bytes(data[start : start + CHUNK])
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            line += chunk[: max(0, error.start - pending)].count(b"\n")
            return InputError("not-utf-8", file=name, line=line, offset=at, byte=data[at])
        line += chunk.count(b"\n")
    return InputError("not-utf-8", file=name, line=1, offset=0, byte=data[0])


def _near_name(path: Path) -> str | None:
    """Return the file beside a missing one with nearly its name, of a kind that could be read."""

    def bare(name: str) -> Path:
        return Path(name.lower().removesuffix(".gz"))

    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return None
    kinds = {*EXTENSIONS, bare(path.name).suffix}
    near = {bare(name).stem for name in beside if bare(name).suffix in kinds}
    stems = difflib.get_close_matches(bare(path.name).stem, near, n=1, cutoff=NEAR)
    names = [n for n in beside if bare(n).stem in stems and bare(n).suffix in kinds]
    return next(iter(difflib.get_close_matches(path.name, names, n=1, cutoff=0.0)), None)


def _files_of(name: str, is_perhaps_a_row: bool) -> list[TableFile]:
    if name == "-":
        raise InputError("stdin-among-files")
    if "://" in name:
        return _remote_files(name)
    path = Path(name)
    if path.is_dir() and not is_packed(name):
        try:
            inside = sorted(each.name for each in path.iterdir())
        except OSError as error:
            raise FileError("folder-unreadable", folder=path, reason=error.strerror) from None
        tables = {*_tables_of(inside), *(n for n in _shown(inside) if is_packed(path / n))}
        if not tables:
            raise FileError("no-tables", folder=path, names=inside)
        return [_local(str(path / each)) for each in sorted(tables)]
    if os.path.lexists(name) or not any(sign in name for sign in PATTERN_SIGNS):
        return [_local(name, is_perhaps_a_row)]
    matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - it may begin at the root
    found = [each for each in matches if is_packed(each) or not Path(each).is_dir()]
    if not found:
        raise FileError("no-match", pattern=name, folder=Path.cwd())
    return [_local(each) for each in found]


def _shown(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "_"))]


def _tables_of(names: list[str]) -> list[str]:
    """Return the names of tables; hidden ones, and those with _, are none."""
    tables = [name for name in _shown(names) if name.lower().endswith(ENDINGS)]
    return tables or [name for name in _shown(names) if name.lower().endswith(PERHAPS)]


def _local(path: str, is_perhaps_a_row: bool = False) -> TableFile:
    if is_packed(path):
        return TableFile(path)
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise missing_file(Path(path), is_perhaps_a_row) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise FileError("file-unreadable", file=repr(path), reason=f"{error}.") from None
    return TableFile(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


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
        is_file = info.type == fs.FileType.File
        inside = fs.FileSelector(path, allow_not_found=True)
        listed = [info] if is_file else system.get_file_info(inside)
    except OSError as error:
        raise FileError("address-unlisted", address=address, reason=error) from None
    found = {each.base_name: each for each in listed if each.type == fs.FileType.File}
    chosen = list(found) if is_file else _tables_of(list(found))
    if pattern is not None:
        chosen = fnmatch.filter(found, pattern)
    if not chosen:
        raise FileError("address-empty", address=address, pattern=pattern)
    before = start.removesuffix(path) if start.endswith(path) else f"{scheme}://"
    return [
        TableFile(f"{before}{i.path}{mark}{options}", i.size, f"{i.size}-{i.mtime_ns}")
        for i in (found[each] for each in sorted(chosen))
    ]


def _filesystem(address: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(address)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError("address-unreachable", address=address, reason=error) from None
