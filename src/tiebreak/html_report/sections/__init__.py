"""Sections of a report: each measures a fitted model and shows what it measured.

`measure` returns numbers and names that JSON can hold, or None where there is nothing to say;
`show` makes markup of them and looks at nothing else, so that the page and `report.json` have the
same numbers. `words` says the most important thing in a sentence or two, for the top of the report.
A new section is a file here and a line in SECTIONS.
"""

from __future__ import annotations

from typing import Any, Protocol

from tiebreak.html_report.sections import (
    agreement,
    doubtful_tasks,
    fit,
    from_vote,
    judges,
    labels,
    links,
    questions,
    scores,
    shared_errors,
    workers,
)
from tiebreak.html_report.subject import Sentence, Subject
from tiebreak.markup import Markup


class Section(Protocol):
    """What a module of this folder has."""

    TITLE: str

    def measure(self, subject: Subject) -> dict[str, Any] | None:
        """Return the numbers, None where there are none."""

    def show(self, found: dict[str, Any]) -> Markup:
        """Return what stands below the title."""

    def words(self, found: dict[str, Any]) -> list[Sentence]:
        """Return what the top of the report says of it."""


SECTIONS: dict[str, Section] = {
    "labels": labels,
    "from_vote": from_vote,
    "doubtful_tasks": doubtful_tasks,
    "workers": workers,
    "shared_errors": shared_errors,
    "judges": judges,
    "agreement": agreement,
    "links": links,
    "scores": scores,
    "fit": fit,
    "questions": questions,
}
