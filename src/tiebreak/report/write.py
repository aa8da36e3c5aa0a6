"""The report as one HTML file: its style inside, no script, nothing from the network."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tiebreak.arguments import FLAG, PATH, checks, optional
from tiebreak.errors import FileError, OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.report import charts
from tiebreak.report.charts import Found
from tiebreak.report.explain import chart_of
from tiebreak.report.measure import SECTIONS, measure
from tiebreak.tables.write import open_target

GENERATOR = '<meta name="generator" content="tiebreak">'
# Nothing may be loaded and no script may run, whatever an id or a text holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
ENDINGS = (".html", ".htm")
LOOKED_AT = 4096  # bytes at the beginning of a file, to recognise a report


@checks(path=PATH, json_path=optional(PATH), overwrite=FLAG)
def write(
    model: Estimator,
    path: str | os.PathLike[str],
    *,
    json_path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    **about: Any,
) -> Path:
    """Write what a fit found as one page, below 1.5 MB for any input.

    Parameters
    ----------
    path
        Of the page, such as report.html.
    json_path
        Where to write the same numbers as JSON; None: nowhere.
    overwrite
        Whether to overwrite a file that is not a report.
    about
        What is known beside the model: `truth`, `texts` and what else `measure` takes.

    Returns
    -------
    The path of the page.
    """
    check_target(path, overwrite=overwrite)
    found = measure(model, **about)
    page = render(found).encode()
    if json_path is not None:
        with open_target(json_path) as out:
            out.write(json.dumps(found, ensure_ascii=False, indent=1).encode())
    with open_target(path) as out:
        out.write(page)
    return Path(path)


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a path that is not of an HTML file, and a file that is not a report."""
    page = Path(path)
    if page.suffix.lower() not in ENDINGS:
        raise OptionError("report-ending", path=str(path))
    if overwrite or not page.is_file():
        return
    with page.open("rb") as file:
        start = file.read(LOOKED_AT)
    if start and GENERATOR.encode() not in start:
        raise FileError("report-foreign-file", path=page)


def render(found: Found) -> str:
    """Return the page of what `measure` found."""
    if not isinstance(found, dict) or not found.keys() >= {"sections", "verdict"}:
        raise OptionError("report-not-measured", type=type(found).__name__)
    template = charts.templates().get_template("report.html")
    written = datetime.strptime(found["written"], "%Y-%m-%d %H:%M UTC")
    sections = found["sections"]
    has_cards = sections["doubtful_tasks"] or (sections["from_vote"] or {}).get("tasks")
    titles = {
        key: title
        for key, (title, _) in SECTIONS.items()
        if sections[key] is not None or (key == "doubtful_tasks" and has_cards)
    }
    return template.render(
        found=found,
        sections=sections,
        titles=titles,
        date=f"{written.day} {written:%B %Y}",
        charts=charts,
        chart_of=chart_of,
        style=charts.stylesheet() + charts.stylesheet("report"),
        policy=POLICY,
        generator=Markup(GENERATOR),
    )
