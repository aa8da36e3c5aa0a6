"""A panel of judges: what each is worth, and what all of them are worth together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiebreak import charts, juries
from tiebreak.charts import Number, number
from tiebreak.errors import InputNote
from tiebreak.html_report.subject import LOOK, Sentence, Subject, known, name, restricted
from tiebreak.juries.words import sentences
from tiebreak.markup import Markup, join, tag

TITLE = "The panel"
MOST_JUDGES = 30  # a crowd of more is no panel: the section on workers looks at it
LEAST_SHARE = 0.2  # of the tasks, that a judge has seen in the mean
LEAST_KNOWN = 20  # labels: with fewer nothing can be said of what judges share


def measure(subject: Subject) -> dict[str, Any] | None:
    """Report on workers who are few and saw many tasks.

    What they share is shown where enough labels are known, self-preference where it is known who
    made the answers.
    """
    responses = subject.sample.responses_
    seen = responses.n_responses / max(responses.n_workers * responses.n_tasks, 1)
    if not 2 <= responses.n_workers <= MOST_JUDGES or seen < LEAST_SHARE:
        return None
    found = _by_gold(subject)
    judged = subject.judged
    if judged is None:
        return found
    preferences = juries.self_preferences(subject.model.responses_, judged.systems, judged.accepts)
    found = found or {"n_known": 0, "judges": [], "effective": None, "sentences": []}
    found["self_preference"] = [
        {
            "worker": name(each.worker),
            "family": name(each.family),
            "own": each.n_own,
            "preference": known(each.preference),
            "low": known(each.interval[0]),
            "high": known(each.interval[1]),
        }
        for each in preferences[: subject.limits.workers]
    ]
    return found


def _by_gold(subject: Subject) -> dict[str, Any] | None:
    """Compare judges with known labels; None where these are too few."""
    model = subject.sample
    if subject.to_score is None:
        return None
    gold = subject.to_score.gold
    codes = subject.model.tasks_.codes(gold.tasks)
    n_known = int((codes >= 0).sum())
    if n_known < LEAST_KNOWN:
        return None
    if subject.sample is not subject.model:
        model = restricted(subject.model, codes[codes >= 0].astype(np.int64))
    with warnings.catch_warnings(record=True) as notes:  # said on the page
        warnings.simplefilter("always", InputNote)
        found = juries.panel_report(model, gold, sub_panels=False)
    return {
        "n_known": found.n_known,
        "judges": [
            {
                "worker": name(each.worker),
                "known": each.n_known,
                "accuracy": known(each.accuracy),
                "low": known(each.interval[0]),
                "high": known(each.interval[1]),
            }
            for each in found.judges[: subject.limits.workers]
        ],
        "effective": None if found.shared is None else known(found.shared.effective),
        "sentences": [*(str(each.message) for each in notes), *sentences(found)],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say whether the panel is better than its best judge."""
    answers = [each for each in found["sentences"] if each.startswith("Is the panel better")]
    return [Sentence(each, LOOK) for each in answers]


def show(found: dict[str, Any]) -> Markup:
    """Show each judge on the known tasks, what is said of all of them, and self-preference."""
    parts = []
    if found["judges"]:
        rows = [
            (
                each["worker"],
                number(each["accuracy"], 2),
                Number(f"{number(each['low'], 2)} to {number(each['high'], 2)}"),
                number(each["known"]),
            )
            for each in found["judges"]
        ]
        header = ("judge", "accuracy", "95 % interval", "known tasks")
        parts.append(charts.table("Judges on the known tasks", header, rows))
    parts += [tag("p", each) for each in found["sentences"]]
    if "self_preference" in found:
        parts += _show_preferences(found["self_preference"])
    return join(parts)


def _show_preferences(found: list[dict[str, Any]]) -> list[Markup]:
    """Show by how much judges prefer answers of their own family."""
    title = "Self-preference"
    if not found:
        return [
            tag("p", f"{title}: no judge is of a family that made enough of the judged answers.")
        ]
    rows = [
        (
            each["worker"],
            each["family"],
            signed(each["preference"]),
            Number(f"{signed(each['low'])} to {signed(each['high'])}"),
            number(each["own"]),
        )
        for each in found
    ]
    header = ("judge", "own family", "accepts its own more by", "95 % interval", "own answers")
    said = (
        "How much more a judge accepts answers of its own family than other judges do; what is "
        "merely lenient, or merely a good answer, is taken out."
    )
    return [charts.table(title, header, rows), tag("p", said)]


def signed(value: float | None) -> Number:
    """Write a difference with its sign."""
    return Number("–" if value is None else f"{value:+.2f}".replace("-", "−"))
