"""Count the modules of tiebreak that three small runs enter.

    python tools/trace_modules.py            all runs, each in a fresh process
    python tools/trace_modules.py --list     with the modules, and what of each ran

The runs are `tiebreak fuse` on a ten-row file with links; a fit of the same rows with exact links,
responses and links in memory; and that fit with the links in a file, which it reads itself: so the
review ran it. A module is entered when one of its functions is called, or when it is imported in
the run and has a class. The second number leaves out the classes: only modules with a call.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import inspect
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import tiebreak

PACKAGE = Path(tiebreak.__file__).parent

RESPONSES = [
    ("a", "ann", "cat"),
    ("a", "bob", "cat"),
    ("b", "ann", "dog"),
    ("b", "bob", "cat"),
    ("c", "ann", "dog"),
    ("c", "eve", "dog"),
    ("d", "bob", "cat"),
    ("d", "eve", "owl"),
    ("e", "ann", "owl"),
    ("e", "eve", "owl"),
]
LINKS = [("a", "b", "must"), ("b", "c", "cannot"), ("d", "e", "must")]


def codes_entered(run: Callable[[], object]) -> set[CodeType]:
    """Run, and return what was called of tiebreak: functions, and bodies of classes."""
    entered: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            entered.add(code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {code for code in entered if code.co_name != "<module>"}


def is_function(code: CodeType) -> bool:
    """Say whether this is the code of a function, not of the body of a class."""
    return bool(code.co_flags & inspect.CO_NEWLOCALS)


def modules_of(codes: set[CodeType]) -> list[str]:
    """Return the files of codes, sorted."""
    return sorted({str(Path(code.co_filename).relative_to(PACKAGE)) for code in codes})


def fuse_ten_rows() -> None:
    """Run `tiebreak fuse` on files in a temporary folder."""
    from tiebreak.__main__ import main

    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder, "responses.csv"), ("task", "worker", "label"), RESPONSES)
        write_rows(Path(folder, "links.csv"), ("left", "right", "link"), LINKS)
        sys.argv = ["tiebreak", "fuse", "responses.csv", "--links", "links.csv", "-o", "labels.csv"]
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            main()
        if not Path(folder, "labels.csv").exists():
            raise SystemExit("tiebreak fuse wrote no labels, so there is nothing to count.")


def write_rows(path: Path, header: tuple[str, ...], rows: list[tuple[str, str, str]]) -> None:
    """Write a small CSV file."""
    path.write_text("".join(",".join(row) + "\n" for row in (header, *rows)), encoding="utf-8")


def fit_in_memory() -> Callable[[], object]:
    """Fit rows in memory with links that always hold."""
    links = tiebreak.Links.from_rows(LINKS)
    return fit_with(links)


def fit_with_a_file() -> Callable[[], object]:
    """Fit rows in memory with links in a file."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "links.csv")
    write_rows(path, ("left", "right", "link"), LINKS)
    atexit.register(folder.cleanup)
    return fit_with(path)


def fit_with(links: object) -> Callable[[], object]:
    """Return a fit; what a caller has made or loaded already is no part of it."""
    responses = tiebreak.Responses.from_rows(RESPONSES)
    model = tiebreak.VariationalBayes(link_options=tiebreak.ExactLinkOptions())
    return lambda: model.fit(responses, links=links)


class Run(NamedTuple):
    """What is traced, and how many modules it entered in the code that was reviewed."""

    ready: Callable[[], Callable[[], object]]
    before: str


RUNS = {
    "fuse": Run(lambda: fuse_ten_rows, "75, goal 55"),
    "fit": Run(fit_in_memory, "35"),
    "fit-file": Run(fit_with_a_file, "44, goal 32"),
}


def report(name: str, *, listed: bool) -> None:
    """Make one run, and print how many modules it entered."""
    codes = codes_entered(RUNS[name].ready())
    called = {code for code in codes if is_function(code)}
    print(
        f"{name}: {len(modules_of(codes))} modules (at the review {RUNS[name].before}), "
        f"{len(modules_of(called))} with a call, {len(called)} functions",
        flush=True,
    )
    if listed:
        for module in modules_of(codes):
            names = sorted(c.co_name for c in called if c.co_filename == str(PACKAGE / module))
            print(f"  {module}: {', '.join(names) or '(classes only)'}")


def main() -> None:
    """Make the run that is named, or all, each in a process of its own."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("run", nargs="?", choices=tuple(RUNS))
    options.add_argument("--list", action="store_true", help="print the modules too")
    chosen = options.parse_args()
    if chosen.run:
        report(chosen.run, listed=chosen.list)
        return
    for name in RUNS:
        subprocess.run([sys.executable, __file__, name, *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
