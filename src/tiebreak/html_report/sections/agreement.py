"""Agreement: how far workers give the same labels, before any model."""

from __future__ import annotations

from typing import Any

from tiebreak import charts
from tiebreak.charts import Number, number
from tiebreak.html_report.subject import FINE, LOOK, Sentence, Subject, known, name
from tiebreak.juries import Alpha
from tiebreak.markup import Markup, join, tag
from tiebreak.wording import counted

TITLE = "Agreement"
GOOD = 0.8  # Krippendorff's own words for α: from here on conclusions can be drawn
FAIR = 0.667  # from here on, tentative ones


def measure(subject: Subject) -> dict[str, Any] | None:
    """Measure α and its kin, on a sample of tasks where there are many."""
    found = subject.agreement
    if found is None:
        return None
    is_sample = subject.sample is not subject.model
    spam = [] if is_sample else found.spam  # a sample has too few responses of each worker
    return {
        "n_tasks": found.n_tasks,
        "is_sample": is_sample,
        "alpha": _alpha(found.alpha),
        "alpha_ordinal": None if found.alpha_ordinal is None else _alpha(found.alpha_ordinal),
        "fleiss_kappa": known(found.fleiss_kappa),
        "cohen_kappa": known(found.cohen_kappa),
        "equal_pairs": known(found.percent),
        "spam": [
            {
                "worker": name(found.workers[each.worker]),
                "responses": each.n_answers,
                "kappa": known(each.kappa),
                "reason": each.reason,
            }
            for each in spam[: subject.limits.workers]
        ],
        "n_spam": len(spam),
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how large α is."""
    alpha = found["alpha"]["value"]
    if alpha is None:
        return []
    grade = "well" if alpha >= GOOD else "fairly" if alpha >= FAIR else "little"
    return [
        Sentence(
            f"Workers agree {grade}: Krippendorff's α is {alpha:.2f}.",
            FINE if alpha >= FAIR else LOOK,
        )
    ]


def show(found: dict[str, Any]) -> Markup:
    """Show the coefficients, and workers who stand out."""
    alpha = found["alpha"]
    ordinal = found["alpha_ordinal"]
    rows = [("Krippendorff's α", number(alpha["value"]), _between(alpha))]
    if ordinal is not None:
        rows.append(("α, classes in order", number(ordinal["value"]), _between(ordinal)))
    rows += [
        ("Fleiss' κ", number(found["fleiss_kappa"]), number(None)),
        ("Cohen's κ, mean of pairs", number(found["cohen_kappa"]), number(None)),
        ("share of equal pairs of labels", number(found["equal_pairs"]), number(None)),
    ]
    drawn = "drawn at random" if found["is_sample"] else "with two responses or more"
    caption = f"Measured on {counted(found['n_tasks'], 'task')} {drawn}"
    parts = [
        tag(
            "p",
            "1 is perfect agreement, 0 what chance would give. This looks at responses alone: "
            "a worker model may be right where they agree little, as it knows who confuses what.",
        ),
        charts.table(caption, ("coefficient", "value", "95 % interval"), rows),
    ]
    if found["spam"]:
        shown = f"Workers who look like spam: {len(found['spam']):,} of {found['n_spam']:,}"
        cells = [
            (each["worker"], number(each["responses"]), number(each["kappa"], 2), each["reason"])
            for each in found["spam"]
        ]
        header = ("worker", "responses", "κ with others", "why")
        parts.append(charts.table(shown, header, cells))
    return join(parts)


def _alpha(alpha: Alpha) -> dict[str, float | None]:
    return {"value": known(alpha.value), "low": known(alpha.low), "high": known(alpha.high)}


def _between(alpha: dict[str, float | None]) -> Number:
    if alpha["low"] is None or alpha["high"] is None:
        return number(None)
    return Number(f"{number(alpha['low'])} to {number(alpha['high'])}")
