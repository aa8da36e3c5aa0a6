"""Make the reference of the public names from their docstrings, and check its links.

    python tools/make_reference.py [FOLDER]     # else docs/reference, which git does not keep

Needs pdoc, which requirements/dev.txt has. Every link of the pages must lead to a page and a name
that are there; what does not is listed, and the command fails.
"""

from __future__ import annotations

import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pdoc
import pdoc.render

import tiebreak as tb

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
MODULES = ("tiebreak", "tiebreak.estimators.base")  # with its rooms; what estimators share
FOREIGN = re.compile(r"[a-z]+:")


class Page(HTMLParser):
    """The names that a page has, and the links that it makes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down names and links."""
        found = dict(attrs)
        self.names.update(found[key] or "" for key in ("id", "name") if key in found)
        target = found.get("href")
        if tag == "a" and target:
            self.links.add(target)


def make(folder: Path) -> None:
    """Write one page per room of the package, and an index."""
    for name in tb.__all__:  # names are loaded when they are used; pages need all of them
        setattr(tb, name, getattr(tb, name))
    footer = f"tiebreak {tb.__version__}"
    pdoc.render.configure(docformat="numpy", show_source=False, footer_text=footer)
    with warnings.catch_warnings():
        # Types of a generated __init__ are named in the module of the class, not where it is shown.
        warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
        pdoc.pdoc(*MODULES, output_directory=folder)


def broken_links(folder: Path) -> list[str]:
    """Return every link of the pages that leads nowhere, with its page."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            if FOREIGN.match(link):
                continue
            target, name = urldefrag(link)
            other = (path.parent / unquote(target)).resolve() if target else path
            is_there = other in pages and (not name or unquote(name) in pages[other].names)
            if not is_there:
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken


def main(folder: Path) -> int:
    """Make the pages; return how many links are broken."""
    make(folder)
    broken = broken_links(folder.resolve())
    for one in broken:
        print(f"broken link: {one}", file=sys.stderr)
    print(f"{len(list(folder.rglob('*.html')))} pages in {folder}; {len(broken)} broken links")
    return len(broken)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    sys.exit(min(main(chosen), 1))
