"""Labels that differ from the majority vote: where a model does more than count."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import charts
from tiebreak.charts import percent
from tiebreak.html_report.subject import Sentence, Subject, name
from tiebreak.inference import committee
from tiebreak.markup import Markup, join, tag

TITLE = "Labels that differ from the vote"


def measure(subject: Subject) -> dict[str, Any] | None:
    """List tasks whose label most votes are not for, the surest first; known tasks are left out."""
    model = subject.model
    if "from_vote_" not in vars(model):
        return None
    vote = committee.vote_of_each(model.responses_)
    label = model.labels_.label
    differs = (vote >= 0) & (vote != label)
    if model.gold_ is not None:
        differs[model.gold_.on(model.tasks_, model.classes_).task] = False
    at = np.flatnonzero(differs)
    q = model.probabilities_
    gain = q[at, label[at]] - q[at, vote[at]]
    first = at[np.lexsort((at, -gain))][: subject.limits.tasks]
    from_vote = model.from_vote_
    n_workers = len(model.workers_)
    tells = n_workers > committee.FEW_WORKERS
    return {
        "n_differ": from_vote.n_differ,
        "n_tasks": len(model.labels_),
        "expected_right": float(from_vote.expected_right) if tells else None,
        "sentence": from_vote.sentence(
            len(model.labels_), n_workers, has_gold=model.gold_ is not None
        ),
        "tasks": [
            {
                "task": name(model.tasks_[i]),
                "label": name(model.classes_[int(label[i])]),
                "probability": float(q[i, label[i]]),
                "vote": name(model.classes_[int(vote[i])]),
                "vote_probability": float(q[i, vote[i]]),
            }
            for i in first.tolist()
        ],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how many labels differ from the vote, and what is expected of them."""
    return [Sentence(found["sentence"])]


def show(found: dict[str, Any]) -> Markup:
    """Show the tasks, with both classes and their probabilities."""
    if not found["tasks"]:
        return tag("p", "No label differs from the majority vote.", class_="note")
    rows = [
        (
            each["task"],
            each["label"],
            percent(each["probability"], 0),
            each["vote"],
            percent(each["vote_probability"], 0),
        )
        for each in found["tasks"]
    ]
    said = "Label some of these yourself: they show whether the model or the vote is right."
    header = ("task", "label", "probability", "vote", "probability of the vote")
    table = charts.table("Where label and vote differ, the surest first", header, rows)
    return join([tag("p", said, class_="note"), table])
