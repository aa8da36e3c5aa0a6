"""Who errs together, and who may copy whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import charts
from tiebreak.charts import number
from tiebreak.html_report.subject import (
    LOOK,
    MOST_SAMPLED,
    Sentence,
    Subject,
    known,
    name,
    restricted,
)
from tiebreak.ids import MISSING
from tiebreak.juries import Dependence, error_dependence
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.markup import Markup, join, tag
from tiebreak.plots.calibration_curve import subset
from tiebreak.wording import counted

TITLE = "Who errs together"
LEAST_KNOWN = 20  # known tasks with responses: fewer tell nothing of pairs
MUCH = 0.2  # mean correlation from which errors are shared a lot


def measure(subject: Subject) -> dict[str, Any] | None:
    """Correlate the errors of workers; where enough is known, by known labels."""
    model = subject.model
    if len(model.workers_) < 2 or len(model.classes_) < 2 or not model.responses_.n_responses:
        return None
    found = _dependence(subject)
    chosen = _most_correlated(found.correlation, subject.limits.correlated)
    copies = _copies(subject, found)
    matrix = found.correlation[np.ix_(chosen, chosen)]
    return {
        "by_gold": found.by_gold,
        "n_tasks": found.n_tasks,
        "n_workers": len(model.workers_),
        "mean_correlation": known(found.mean_correlation),
        "interval": [known(end) for end in found.interval],
        "responses_per_task": found.n_responses,
        "effective": found.effective,
        "effective_interval": [known(end) for end in found.effective_interval],
        "workers": [name(found.workers[at]) for at in chosen.tolist()],
        "correlation": [[known(value) for value in row] for row in np.round(matrix, 6)],
        "n_copies": len(copies),
        "copies": copies[: subject.limits.correlated],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say what responses are worth, and who looks like a copy."""
    said = []
    if found["n_copies"]:
        first = found["copies"][0]
        more = found["n_copies"] - 1
        others = f"; so do {counted(more, 'more pair')}" if more else ""
        said.append(
            Sentence(
                f"{first['left']} and {first['right']} look like copies of each other{others}.",
                LOOK,
            )
        )
    if found["by_gold"] and (found["mean_correlation"] or 0.0) >= MUCH:
        said.append(
            Sentence(
                f"Workers err together: {found['responses_per_task']:.1f} responses a task are "
                f"worth {found['effective']:.1f} that err apart.",
                LOOK,
            )
        )
    return said


def show(found: dict[str, Any]) -> Markup:
    """Show what responses are worth, the correlations, and likely copies."""
    parts: list[Markup | None] = [tag("p", _worth(found))]
    if found["workers"]:
        parts.append(_correlations(found).html("correlation"))
    else:
        words = "No two workers share enough tasks on which either errs to compare their errors."
        parts.append(tag("p", words, class_="note"))
    if found["copies"]:
        rows = [
            (each["left"], each["right"], number(each["common_tasks"]), each["why"])
            for each in found["copies"]
        ]
        header = ("worker", "and", "tasks of both", "why")
        shown = f"Likely copies: {len(rows):,} of {counted(found['n_copies'], 'pair')}"
        parts.append(charts.table(shown, header, rows))
    return join(parts)


def _worth(found: dict[str, Any]) -> str:
    low, high = found["effective_interval"]
    said = (
        f"{found['responses_per_task']:.1f} responses a task are worth {found['effective']:.1f} "
        f"({low:.1f} to {high:.1f}) that err apart. The mean correlation of two errors on a task "
        f"is {number(found['mean_correlation'], 2)}, on {counted(found['n_tasks'], 'task')}."
    )
    if not found["by_gold"]:
        said += (
            " These errors are against the model's own labels, so that what most workers get wrong "
            "together cannot be seen. Some 50 known labels would show it."
        )
    return said


def _correlations(found: dict[str, Any]) -> charts.Chart:
    n = len(found["workers"])
    return charts.heat_map(
        "Correlation of errors",
        f"The {n:,} of {counted(found['n_workers'], 'worker')} whose errors are most alike. 1: "
        "they always err together; 0: no more than by chance; –: itself, or too few tasks.",
        found["workers"],
        [
            [None if i == j else value for j, value in enumerate(row)]
            for i, row in enumerate(found["correlation"])
        ],
        corner="worker",
        row_title="",
        column_title="",
        diagonal=False,
    )


def _copies(subject: Subject, found: Dependence) -> list[dict[str, Any]]:
    """Return pairs that look like copies: by errors, and by answers that others do not give.

    A model may take two who always agree for two good workers; answers alone then tell.
    """
    pairs = {
        frozenset((pair.left, pair.right)): {
            "left": name(pair.left),
            "right": name(pair.right),
            "common_tasks": pair.n_common,
            "why": f"the same wrong label on {pair.n_same:,} of {pair.n_errors:,} tasks on which "
            "either errs",
        }
        for pair in found.copies
    }
    alike = [] if subject.agreement is None else subject.agreement.copies
    for each in alike:
        left = subject.model.workers_[each.first]
        right = subject.model.workers_[each.second]
        pairs.setdefault(
            frozenset((left, right)),
            {
                "left": name(left),
                "right": name(right),
                "common_tasks": each.n_shared,
                "why": each.reason,
            },
        )
    return list(pairs.values())


def _most_correlated(correlation: Floats, most: int) -> Offsets:
    """Return the workers of the most correlated pairs, in the order of workers."""
    upper = np.where(np.isnan(correlation), -np.inf, correlation)
    upper = np.where(np.triu(np.ones_like(upper), 1) > 0, upper, -np.inf)
    order = np.argsort(-upper, axis=None, kind="stable")[: most * most]
    chosen: list[int] = []
    for at in order.tolist():
        pair = divmod(at, len(upper))
        if upper[pair] == -np.inf or len(set(chosen) | set(pair)) > most:
            break
        chosen += [w for w in pair if w not in chosen]
    return np.array(sorted(chosen), dtype=np.int64)


def _dependence(subject: Subject) -> Dependence:
    """Compare errors by known labels, where enough of them have responses, else by the model's."""
    if subject.to_score is None:
        return error_dependence(subject.sample)
    gold = subject.to_score.gold
    model = subject.model
    task = model.tasks_.codes(gold.tasks)
    n_votes = np.diff(model.responses_.start)
    known_there = np.flatnonzero((task != MISSING) & (n_votes[np.maximum(task, 0)] > 0))
    if len(known_there) < LEAST_KNOWN:
        return error_dependence(subject.sample)
    if len(known_there) > MOST_SAMPLED:
        rng = np.random.default_rng(0)
        known_there = rng.choice(known_there, MOST_SAMPLED, replace=False)
    view = restricted(model, np.sort(task[known_there]).astype(np.int64))
    return error_dependence(view, subset(gold, known_there))
