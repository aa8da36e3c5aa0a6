"""Figures: everything that a report says, as numbers and names that JSON can hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from typing import Any

from tiebreak import files
from tiebreak._version import __version__
from tiebreak.arguments import FUNCTION, TEXT, checks, optional
from tiebreak.ask.job import read_texts
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.html_report.sections import SECTIONS
from tiebreak.html_report.subject import (
    JudgedSystems,
    Limits,
    Subject,
    agreement_of,
    sampled,
)
from tiebreak.inference.estimator import Estimator
from tiebreak.markup import clip
from tiebreak.plots.calibration_curve import labels_to_score

FORMAT = "tiebreak-report"
VERSION = 1  # of the figures: raised when a name goes or changes its meaning

Watch = Callable[[str], None]


@checks(source=optional(TEXT), watch=optional(FUNCTION))
def gather(
    model: Estimator,
    *,
    truth: Any = None,
    texts: Any = None,
    source: str | None = None,
    systems: Any = None,
    accepts: Hashable | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Measure a fitted model: the dictionary that `report.json` holds and the page is made from.

    The parameters are those of `write`.
    """
    subject = look_at(model, truth, texts, source, watch, systems, accepts)
    return measure(subject, watch)


def look_at(
    model: Estimator,
    truth: Any,
    texts: Any,
    source: str | None,
    watch: Watch | None,
    systems: Any = None,
    accepts: Hashable | None = None,
) -> Subject:
    """Read what is known beside the model."""
    if not isinstance(model, Estimator):
        raise OptionError(f"A report is of a fitted model; got {type(model).__name__}.")
    if "labels_" not in vars(model):
        raise NotFittedError("The model was not fitted yet. Call its fit first.")
    if watch is not None and truth is None and model.gold_ is not None:
        watch("fitting without gold, to compare with it")
    sample = sampled(model)
    return Subject(
        model,
        clip(source or "responses", 120),
        labels_to_score(model, truth),
        {} if texts is None else read_texts(texts, model.tasks_),
        sample,
        agreement_of(sample.responses_),
        Limits(),
        _judged(model, systems, accepts),
    )


def _judged(model: Estimator, systems: Any, accepts: Hashable | None) -> JudgedSystems | None:
    if systems is None and accepts is None:
        return None
    if systems is None or accepts is None:
        raise OptionError(
            "Self-preference needs both systems=, which says who made each answer, and accepts=, "
            "the class that accepts one."
        )
    if model.classes_.codes([accepts])[0] < 0:
        raise OptionError.unknown("accepts", accepts, tuple(map(str, model.classes_)))
    return JudgedSystems(files.read_systems(systems), accepts)


def measure(subject: Subject, watch: Watch | None = None) -> dict[str, Any]:
    """Measure section by section."""
    responses = subject.model.responses_
    links = subject.model.links_
    found: dict[str, Any] = {}
    for key, section in SECTIONS.items():
        if watch is not None:
            watch(section.TITLE.lower())
        found[key] = section.measure(subject)
    return {
        "format": FORMAT,
        "version": VERSION,
        "tiebreak": __version__,
        "written": _now(),
        "source": subject.source,
        "counts": {
            "responses": responses.n_given,
            "tasks": responses.n_tasks,
            "workers": responses.n_workers,
            "classes": responses.n_classes,
            "links": 0 if links is None else len(links),
            "gold": 0 if subject.model.gold_ is None else len(subject.model.gold_),
        },
        "sections": found,
    }


def _now() -> str:
    """Return the time in UTC; SOURCE_DATE_EPOCH, where set, so that reports can be made again."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M UTC")
