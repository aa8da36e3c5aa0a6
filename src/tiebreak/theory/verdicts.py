"""Verdicts: what bounds promise, or why they say nothing, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.frames import as_plain
from tiebreak.theory.crowd import Assumptions
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.theory.recursion import Bounds

VACUOUS = "vacuous"


def percent(probability: float) -> str:
    """Write a probability as a percentage, rounded down: what is promised is kept.

    >>> percent(0.9), percent(0.2058), percent(0.99951), percent(1 - 1e-13)
    ('90 %', '20 %', '99.95 %', 'more than 99.999999 %')
    """
    exact = round(100 * probability, 10)  # 100 · 0.29 is 28.999999999999996
    for digits in range(9):
        shown = floor(round(exact * 10**digits, 9)) / 10**digits
        if exact - shown <= 0.15 * (100 - exact) and shown < 100:
            return f"{shown:.{digits}f} %"
    return "more than 99.999999 %"


def number(value: float) -> str:
    """Write a bound with three digits; 1 or more is vacuous.

    >>> number(0.06123), number(2.4e-06), number(1.0)
    ('0.0612', '2.4e-06', 'vacuous')
    """
    return VACUOUS if value >= 1 else f"{value:.3g}"


def crowd_in_words(crowd: Assumptions) -> str:
    """Say who answers what.

    >>> crowd = Assumptions(class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.1, 0.9]], n_tasks=500)
    >>> crowd_in_words(crowd)
    'With 1 worker this good on 500 tasks'
    """
    workers = f"{counted(crowd.total_workers, 'worker')} this good"
    on_tasks = counted(crowd.n_tasks, "task")
    if crowd.responses_per_task == crowd.total_workers:
        return f"With {workers} on {on_tasks}"
    return f"With {workers}, {crowd.responses_per_task:.3g} responses a task, on {on_tasks}"


def verdict(found: Bounds) -> str:
    """Say in one sentence what the last bounds promise."""
    who = crowd_in_words(found.assumptions)
    if found.version == "as printed":
        last = number(found.worst_label_error)
        printed = 1 - found.assumptions.failure_probability - found.ingredients.evidence_failure
        return (
            f"{who}, the paper's printed formulas give a label error of {last} and the "
            f"probability {printed:.3g}: neither can be relied on (see the errata)."
        )
    if found.vacuous:
        return f"{who} the bounds are {VACUOUS}: they promise nothing about the labels."
    after = f"after {found.n_iter} iteration{'s' if found.n_iter > 1 else ''}"
    parameters = (
        f"class prior: {_within(found.class_prior_error[-1])}; "
        f"confusions: {_within(found.confusion_error[-1])}"
    )
    chance = percent(found.probability)
    if found.labels_right:
        promise = f"every label is right {after} with probability at least {chance}"
        return f"{who}, {promise} ({parameters})."
    return (
        f"{who}, every label probability is within {number(found.worst_label_error)} of the truth "
        f"{after} with probability at least {chance}; this does not prove the labels right."
    )


def reasons(found: Bounds) -> tuple[str, ...]:
    """Say why bounds are vacuous, most basic reason first."""
    if not found.vacuous or found.version == "as printed":
        return ()
    return tuple(_reasons(found))


def _reasons(found: Bounds) -> Iterator[str]:
    crowd = found.assumptions
    parts = found.ingredients
    if found.probability <= 0:
        yield (
            f"Too little evidence: the responses on a task are worth {parts.evidence_per_task:.3g} "
            "nats between the two classes hardest to tell apart. The chance that one of "
            f"{crowd.n_tasks:,} tasks gets less than {percent(parts.evidence_threshold)} of that "
            f"is only known to be below {parts.evidence_failure:.3g}, and it would have to be "
            f"below {crowd.failure_probability:g}. More, or better, responses a task help."
        )
        return
    if np.isinf(parts.class_prior_radius).any() or np.isinf(parts.answer_radius).any():
        yield (
            "Too few tasks: the rarest answer of a worker is too rare to be counted reliably. "
            "More tasks, or the sharp bounds, help."
        )
    if found.label_error[0] >= 1:
        first = float(found.label_exponent[0])
        yield (
            f"The start is too rough: {_lead(first)} at the first iteration. "
            f"A better start, or {_cure(found, first)}, help."
        )
        return
    step = int(np.argmax(found.label_error >= 1))
    yield (
        f"Too few tasks to learn the workers: after iteration {step} confusions are "
        f"{_within(found.confusion_error[step - 1])}, while the rarest answer has probability "
        f"{parts.rarest_answer:.3g}; {_lead(float(found.label_exponent[step]))} at iteration "
        f"{step + 1}. More tasks help."
    )


def _cure(found: Bounds, exponent: float) -> str:
    """Say what could outweigh a rough start: more responses, if each says more than it loses."""
    parts = found.ingredients
    kept = parts.evidence_threshold * parts.evidence_per_task
    lost = kept + parts.class_prior_gap - exponent
    return "more responses a task" if lost < parts.evidence_per_task else "better workers"


def _within(error: float) -> str:
    return VACUOUS if error >= 1 else f"within {number(error)}"


def _lead(exponent: float) -> str:
    """Say how far the true class is known to lead."""
    if exponent == -np.inf:
        return "nothing is known of the true class's lead"
    return f"the true class is only known to lead by {exponent:.3g} nats"


def as_dict(found: Bounds) -> dict[str, Any]:
    """Return the bounds as plain numbers and lists, ready for JSON."""
    crowd = found.assumptions
    errors = ("label_error", "linked_label_error", "class_prior_error", "confusion_error")
    steps = ("label_exponent", "link_support")
    return {
        "version": found.version,
        "vacuous": found.vacuous,
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "probability": found.probability,
        **{name: as_plain(getattr(found, name)) for name in errors + steps},
        "ingredients": as_plain(found.ingredients),
        "assumptions": {
            "n_tasks": crowd.n_tasks,
            "n_workers": crowd.total_workers,
            "n_classes": crowd.n_classes,
            "responses_per_task": crowd.responses_per_task,
            "failure_probability": crowd.failure_probability,
            "start": asdict(crowd.start),
        },
    }
