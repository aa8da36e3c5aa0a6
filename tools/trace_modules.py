"""Count what three small runs pass through: modules, functions, types of named tuples, frames.

    python tools/trace_modules.py            all runs, each in a fresh process
    python tools/trace_modules.py --list     with the modules, and which functions of each ran

The runs are `tiebreak fuse` on a ten-row file with links; a fit of the same rows with exact links,
responses and links in memory; and that fit with the links in a file, which it reads itself.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

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


class Trace:
    """Calls of functions of tiebreak, as `sys.setprofile` reports them."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.tuples: set[str] = set()
        self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        module = str(frame.f_globals.get("__name__", ""))
        if event == "call" and module.startswith("namedtuple_"):
            self.tuples.add(module.removeprefix("namedtuple_"))
        # Bodies of modules run when something is imported for the first time: no step of a run.
        if not code.co_filename.startswith(str(PACKAGE)) or code.co_name == "<module>":
            return
        if event == "call":
            self.functions.add(code)
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        elif event == "return":
            self.depth -= 1

    def of(self, run: Callable[[], object]) -> Trace:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            run()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self


def fuse(folder: Path) -> Callable[[], object]:
    """Return a run of `tiebreak fuse` on files."""

    def run() -> None:
        from tiebreak.__main__ import main

        sys.argv = ["tiebreak", "fuse", "responses.csv", "--links", "links.csv", "-o", "labels.csv"]
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            main()
        if not (folder / "labels.csv").exists():
            raise SystemExit("tiebreak fuse wrote no labels, so there is nothing to count.")

    return run


def fit(folder: Path, *, links_in_file: bool = False) -> Callable[[], object]:
    """Return a fit; what the caller has made or loaded already is no part of it."""
    responses = tiebreak.Responses.from_rows(RESPONSES)
    links = folder / "links.csv" if links_in_file else tiebreak.Links.from_rows(LINKS)
    model = tiebreak.VariationalBayes()
    model.fit(responses, links=links)  # what is imported or compiled once is no part of it either
    return lambda: model.fit(responses, links=links)


RUNS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "fuse": fuse,
    "fit": fit,
    "fit-file": lambda folder: fit(folder, links_in_file=True),
}


def report(name: str, *, listed: bool) -> None:
    """Make one run, and print what it passed through."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, header, rows in (
            ("responses.csv", ("task", "worker", "label"), RESPONSES),
            ("links.csv", ("left", "right", "link"), LINKS),
        ):
            lines = (",".join(row) + "\n" for row in (header, *rows))
            (folder / file).write_text("".join(lines), encoding="utf-8")
        trace = Trace().of(RUNS[name](folder))
    by_module = collections.defaultdict(set)
    for code in trace.functions:
        module = str(Path(code.co_filename).relative_to(PACKAGE))
        by_module[module].add(f"{code.co_name}:{code.co_firstlineno}")
    print(
        f"{name}: {len(by_module)} modules, {len(trace.functions)} functions, "
        f"{len(trace.tuples)} types of named tuples, {trace.deepest} frames deep"
    )
    if listed:
        for module, functions in sorted(by_module.items()):
            print(f"  {module}: {', '.join(sorted(functions))}")
        print(f"  named tuples: {', '.join(sorted(trace.tuples))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", nargs="?", choices=RUNS)
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args()
    if chosen.run is not None:
        report(chosen.run, listed=chosen.list)
        return
    for name in RUNS:
        arguments = [name, *(["--list"] if chosen.list else [])]
        subprocess.run([sys.executable, __file__, *arguments], check=True)


if __name__ == "__main__":
    main()
