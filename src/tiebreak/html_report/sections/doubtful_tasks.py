"""The tasks in most doubt, with their votes and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.charts import percent
from tiebreak.html_report.sections.labels import SURE
from tiebreak.html_report.subject import Sentence, Subject, name
from tiebreak.markup import Markup, clip, join, tag
from tiebreak.wording import counted

TITLE = "The tasks in most doubt"
LONGEST_WORKER = 30  # characters of a name beside a vote
MOST_LABELS = 8  # different labels of one task


def measure(subject: Subject) -> dict[str, Any] | None:
    """List the labels of lowest probability."""
    labels = subject.model.labels_
    if labels.probability is None:
        return None
    doubtful = np.flatnonzero(labels.probability < SURE)
    if not len(doubtful):
        return None
    order = np.lexsort((doubtful, labels.probability[doubtful]))
    first = doubtful[order[: subject.limits.tasks]]
    return {
        "n_doubtful": len(doubtful),
        "tasks": [_task(subject, task) for task in first.tolist()],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say nothing more: how many are doubtful is said already."""
    return []


def show(found: dict[str, Any]) -> Markup:
    """Show each task with what it may be and who said what."""
    shown = len(found["tasks"])
    n = found["n_doubtful"]
    said = f"The {shown:,} of {n:,} in most doubt" if shown < n else f"All {n:,}"
    return join(
        [
            tag("p", f"{said}, the least sure first.", class_="note"),
            tag("ol", *(_card(task) for task in found["tasks"]), class_="tasks"),
        ]
    )


def _task(subject: Subject, task: int) -> dict[str, Any]:
    model = subject.model
    q = model.probabilities_[task]
    label = int(model.labels_.label[task])
    others = q.copy()
    others[label] = -1.0
    second = int(others.argmax()) if len(q) > 1 else None
    workers, given = model.responses_.of(task)
    return {
        "task": name(model.tasks_[task]),
        "label": name(model.classes_[label]),
        "probability": float(model.labels_.probability[task]),  # type: ignore[index]
        "second": None if second is None else name(model.classes_[second]),
        "second_probability": None if second is None else float(q[second]),
        "n_votes": len(given),
        "votes": _votes(subject, workers, given),
        "text": subject.text(task),
    }


def _votes(subject: Subject, workers: Any, given: Any) -> list[dict[str, Any]]:
    """Return the labels that were given, the commonest first, with some of who gave them."""
    model = subject.model
    label, count = np.unique(given, return_counts=True)
    left = subject.limits.votes
    votes = []
    for at in np.argsort(-count, kind="stable")[:MOST_LABELS].tolist():
        who = workers[given == label[at]]
        shown = [clip(model.workers_[int(w)], LONGEST_WORKER) for w in who[:left].tolist()]
        left -= len(shown)
        votes.append(
            {"label": name(model.classes_[int(label[at])]), "n": int(count[at]), "workers": shown}
        )
    return votes


def _card(task: dict[str, Any]) -> Markup:
    label = tag("strong", task["label"], class_="id")
    guess = [label, f" {percent(task['probability'], 0)}"]
    if task["second"] is not None:
        guess += [", else ", tag("span", task["second"], class_="id")]
        guess += [f" {percent(task['second_probability'], 0)}"]
    text = None if task["text"] is None else tag("blockquote", task["text"])
    head = tag(
        "div", tag("span", task["task"], class_="id name"), tag("span", *guess), class_="head"
    )
    return tag("li", head, text, _vote_line(task))


def _vote_line(task: dict[str, Any]) -> Markup:
    if not task["votes"]:
        return tag("p", "No responses: links or the other tasks decide.", class_="votes")
    parts = []
    for vote in task["votes"]:
        hidden = vote["n"] - len(vote["workers"])
        who = ", ".join(vote["workers"]) + (
            f", {hidden:,} more" if hidden and vote["workers"] else ""
        )
        said = f" × {vote['n']:,}" + (f" ({who})" if who else "")
        parts.append(join([tag("b", vote["label"], class_="id"), said]))
    n_shown = sum(vote["n"] for vote in task["votes"])
    if n_shown < task["n_votes"]:
        parts.append(Markup(f"{task['n_votes'] - n_shown:,} other labels"))
    return tag("p", f"{counted(task['n_votes'], 'response')}: ", join(parts, "; "), class_="votes")
