"""What to do next: which questions, and what their answers would bring."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import charts, selection
from tiebreak.charts import number
from tiebreak.html_report.subject import Sentence, Subject, name
from tiebreak.ids import MISSING
from tiebreak.markup import Markup, clip, join, tag
from tiebreak.plots.worker_accuracy import worker_accuracy
from tiebreak.wording import counted

TITLE = "What to do next"
ASKED = {
    "link": "Are these two of the same class?",
    "gold": "What is the class of this task?",
    "vote": "One more response",
}
MOST_WORKERS = 20  # who may be asked for one more vote: the most accurate
LONGEST_TEXT = 120  # characters of a text beside a question


def measure(subject: Subject) -> dict[str, Any] | None:
    """Choose the questions that should put the most labels right."""
    model = subject.model
    if not model.supports_adaptive_selection or len(model.classes_) < 2:
        return None
    kinds = {kind: _best(subject, kind) for kind in ASKED}
    return {
        "expected_wrong": float((1.0 - np.asarray(model.labels_.probability)).sum()),
        "kinds": [
            {"kind": kind, "asks": ASKED[kind], "questions": questions}
            for kind, questions in kinds.items()
            if questions
        ],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say which kind of question brings most, and how much."""
    if not found["kinds"]:
        return [Sentence("Nothing is left to ask: no answer would change a label.")]
    best = max(found["kinds"], key=lambda kind: kind["questions"][0]["gain"])
    first = best["questions"][0]
    asked = first["task"] if first["other"] is None else f"{first['task']} and {first['other']}"
    return [
        Sentence(
            f"Ask next: “{best['asks']}” ({asked}). The answer should put "
            f"{first['gain']:.2f} labels right."
        )
    ]


def show(found: dict[str, Any]) -> Markup:
    """Show the best questions of each kind."""
    if not found["kinds"]:
        return tag("p", "Nothing is left to ask: no answer would change a label.")
    intro = (
        "How many wrong labels each answer should put right, by itself: the gains of questions "
        "about the same tasks do not add up."
    )
    return join([tag("p", intro), *(_kind(kind) for kind in found["kinds"]), _command()])


def _best(subject: Subject, kind: str) -> list[dict[str, Any]]:
    """Return the best questions of one kind; this is the one place that asks `selection`."""
    model = subject.model
    costs: dict[str, Any] = {"link": None, "gold": None, "vote": None}
    costs[kind] = 1.0
    if kind == "vote":
        best = np.argsort(-worker_accuracy(model).low, kind="stable")[:MOST_WORKERS]
        costs[kind] = {model.workers_[int(w)]: 1.0 for w in best}
        if not costs[kind]:
            return []
    offers = selection.compare(model, subject.limits.questions, **costs, random_state=0)
    return [_question(subject, offer) for offer in offers if offer.gain > 1e-6]


def _question(subject: Subject, offer: selection.Offer) -> dict[str, Any]:
    return {
        "task": name(offer.task),
        "other": None if offer.other is None else name(offer.other),
        "worker": None if offer.worker is None else name(offer.worker),
        "gain": float(offer.gain),
        "texts": [_text(subject, task) for task in (offer.task, offer.other) if task is not None],
    }


def _text(subject: Subject, task: Any) -> str | None:
    code = int(subject.model.tasks_.codes([task])[0])
    found = None if code == MISSING else subject.text(code)
    return None if found is None else clip(found, LONGEST_TEXT)


def _kind(kind: dict[str, Any]) -> Markup:
    questions = kind["questions"]
    has_text = any(text for each in questions for text in each["texts"])
    header = {"link": ("task", "and"), "gold": ("task",), "vote": ("task", "worker")}[kind["kind"]]
    rows = []
    for each in questions:
        row = [each["task"]]
        row += [each["other"]] if kind["kind"] == "link" else []
        row += [each["worker"]] if kind["kind"] == "vote" else []
        row += [" / ".join(text or "–" for text in each["texts"])] if has_text else []
        rows.append([*row, number(each["gain"], 3)])
    header = (*header, *(("text",) if has_text else ()), "labels put right")
    caption = f"“{kind['asks']}”: the {counted(len(rows), 'question')} that bring most"
    return charts.table(caption, header, rows)


def _command() -> Markup:
    return tag(
        "p",
        tag("code", "tiebreak ask RESPONSES --session answers.db"),
        " asks such questions one by one and keeps the answers.",
        class_="note",
    )
