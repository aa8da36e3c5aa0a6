"""Writing a report: the page and its numbers, both or neither."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from tiebreak.arguments import FLAG, FUNCTION, PATH, TEXT, checks, optional
from tiebreak.errors import FileError, OptionError
from tiebreak.html_report.figures import FORMAT, Watch, look_at, measure
from tiebreak.html_report.page import GENERATOR, render
from tiebreak.html_report.subject import Subject
from tiebreak.inference.estimator import Estimator
from tiebreak.tables.write import open_target

MOST_BYTES = 1_500_000  # of a page, whatever the input
ENDINGS = (".html", ".htm")
LOOKED_AT = 4096  # bytes at the beginning of a file, to know it again


@checks(path=PATH, source=optional(TEXT), overwrite=FLAG, watch=optional(FUNCTION))
def write(
    model: Estimator,
    path: str | os.PathLike[str],
    *,
    truth: Any = None,
    texts: Any = None,
    source: str | None = None,
    systems: Any = None,
    accepts: Hashable | None = None,
    overwrite: bool = False,
    watch: Watch | None = None,
) -> tuple[Path, Path]:
    """Write what a fit found as one page, and the same numbers as JSON beside it.

    The page needs no network and no script; it is below 1.5 MB for any input, because long lists
    are cut, and it says how much they leave out.

    Parameters
    ----------
    path
        Of the page, such as report.html; the numbers go to report.json.
    truth
        Known labels that the fit was not given, to compare with. Without them, a model that was
        given gold is fitted once more without it, and that fit is compared with the gold.
    texts
        What tasks look like: a mapping of task to text, or a table of task, text.
    source
        What the responses are called in the title.
    systems, accepts
        Which model made the answer that each task is about (a table of task, system), and the
        class that accepts an answer: for the self-preference of judges.
    overwrite
        Whether files that no report was written to before may be overwritten.
    watch
        Called with the name of each step, before it.

    Returns
    -------
    The paths of the page and of the numbers.
    """
    page, numbers = targets(path)
    if not overwrite:
        refuse_foreign(page, numbers)
    subject = look_at(model, truth, texts, source, watch, systems, accepts)
    found, text = make_page(subject, watch)
    with open_target(page) as out:
        out.write(text)
    with open_target(numbers) as out:
        out.write(json.dumps(found, ensure_ascii=False, indent=1).encode())
    return page, numbers


def targets(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return where the page and the numbers go."""
    page = Path(path)
    if page.suffix.lower() not in ENDINGS:
        raise OptionError(f"A report is written to a file that ends in .html; got {str(path)!r}.")
    return page, page.with_suffix(".json")


def refuse_foreign(page: Path, numbers: Path) -> None:
    """Refuse to overwrite what is not a report."""
    marks = {page: f'<meta name="generator" content="{GENERATOR}">', numbers: f'"{FORMAT}"'}
    for path, mark in marks.items():
        if not path.is_file():
            continue
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
        if start and mark.encode() not in start:
            raise FileError(
                f"{path} exists and is not a report. Name another file, or overwrite it "
                "(overwrite=True, --force)."
            )


def make_page(subject: Subject, watch: Watch | None) -> tuple[dict[str, Any], bytes]:
    """Return the numbers and the page, with shorter lists until it is small enough."""
    while True:
        found = measure(subject, watch)
        text = render(found).encode()
        shorter = subject.limits.halved()
        if len(text) <= MOST_BYTES or shorter == subject.limits:
            return found, text
        subject = subject._replace(limits=shorter)
