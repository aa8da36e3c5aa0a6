"""What to do next: which questions, and what their answers would bring."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tiebreak import charts, selection
from tiebreak.charts import number
from tiebreak.html_report.subject import NEXT, Sentence, Subject, name, restricted
from tiebreak.inference.estimator import Estimator
from tiebreak.markup import Markup, clip, join, tag
from tiebreak.plots.worker_accuracy import worker_accuracy
from tiebreak.wording import counted

TITLE = "What to do next"
ASKED = {
    "same": "Are these two of the same class?",
    "label": "What is the class of this task?",
    "vote": "One more response, by whom?",
}
NOTHING_LEFT = "Nothing is left to ask: no answer would change a label."
MOST_TASKS = 100_000  # among which questions are looked for
MOST_WORKERS = 20  # who may be asked for one more vote: the most accurate
LEAST_GAIN = 1e-6  # labels put right: below, an answer changes nothing
LONGEST_TEXT = 120  # characters of a text beside a question


def measure(subject: Subject) -> dict[str, Any] | None:
    """Choose the questions that should put the most labels right."""
    model = subject.model
    if not model.supports_adaptive_selection or len(model.classes_) < 2:
        return None
    view = _worth_asking(model)
    offers = {kind: _best(view, kind, subject.limits.questions) for kind in ASKED}
    texts = _texts(subject, [offer for each in offers.values() for offer in each])
    return {
        "n_tasks": len(view.tasks_),
        "is_sample": view is not model,
        "expected_wrong": float((1.0 - np.asarray(model.labels_.probability)).sum()),
        "kinds": [
            {
                "kind": kind,
                "asks": ASKED[kind],
                "questions": [_question(offer, texts) for offer in each],
            }
            for kind, each in offers.items()
            if each
        ],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say which kind of question brings most, and how much."""
    if not found["kinds"]:
        return [Sentence(NOTHING_LEFT, NEXT)]
    best = max(found["kinds"], key=lambda kind: kind["questions"][0]["gain"])
    first = best["questions"][0]
    asked = first["task"] if first["other"] is None else f"{first['task']} and {first['other']}"
    return [
        Sentence(
            f"Ask next: “{best['asks']}” ({asked}). The answer should put "
            f"{first['gain']:.2f} labels right.",
            NEXT,
        )
    ]


def show(found: dict[str, Any]) -> Markup:
    """Show the best questions of each kind."""
    if not found["kinds"]:
        return tag("p", NOTHING_LEFT)
    intro = (
        "How many wrong labels each answer should put right, by itself: the gains of questions "
        "about the same tasks do not add up."
    )
    if found["is_sample"]:
        intro += (
            f" Looked for among {counted(found['n_tasks'], 'task')}, the most doubtful ones too."
        )
    questions = [each for kind in found["kinds"] for each in kind["questions"]]
    has_text = any(text for each in questions for text in each["texts"])
    tables = [_kind(kind, has_text=has_text) for kind in found["kinds"]]
    shown = join(tables) if has_text else tag("div", *tables, class_="columns thirds")
    command = tag(
        "p",
        tag("code", "tiebreak ask RESPONSES --session answers.db"),
        " asks such questions one by one and keeps the answers.",
        class_="note",
    )
    return join([tag("p", intro), shown, command])


def _worth_asking(model: Estimator) -> Estimator:
    """Return the model on the tasks among which questions are looked for.

    Of very many, those in most doubt, as many of the others to compare them with, and all that
    links or gold name.
    """
    n_tasks = len(model.tasks_)
    if n_tasks <= MOST_TASKS:
        return model
    probability = np.asarray(model.labels_.probability)
    doubtful = np.argpartition(probability, MOST_TASKS // 2)[: MOST_TASKS // 2]
    others = np.random.default_rng(0).choice(n_tasks, MOST_TASKS // 2, replace=False)
    named = [each.tasks for each in (model.links_, model.gold_) if each is not None]
    tied = [model.tasks_.codes(tasks) for tasks in named]
    return restricted(model, np.unique(np.concatenate([doubtful, others, *tied])))


def _best(model: Estimator, kind: str, n: int) -> list[selection.Offer]:
    """Return the best questions of one kind; this is the one place that asks `selection`."""
    costs: dict[str, Any] = {kind: 1.0}
    if kind == "vote":
        best = np.argsort(-worker_accuracy(model).low, kind="stable")[:MOST_WORKERS]
        costs[kind] = {model.workers_[int(w)]: 1.0 for w in best}
        if not costs[kind]:
            return []
    offers = selection.questions(model, n, kinds=(kind,), costs=costs, random_state=0)
    return [offer for offer in offers if offer.gain > LEAST_GAIN]


def _question(offer: selection.Offer, texts: dict[Hashable, str]) -> dict[str, Any]:
    tasks = [task for task in (offer.task, offer.other) if task is not None]
    return {
        "task": name(offer.task),
        "other": None if offer.other is None else name(offer.other),
        "worker": None if offer.worker is None else name(offer.worker),
        "gain": float(offer.gain),
        "texts": [texts.get(task) for task in tasks],
    }


def _texts(subject: Subject, offers: list[selection.Offer]) -> dict[Hashable, str]:
    """Return the texts of the tasks that questions are about, by task."""
    if not subject.texts:
        return {}
    asked = {task for offer in offers for task in (offer.task, offer.other) if task is not None}
    tasks = list(asked)
    codes = subject.model.tasks_.codes(tasks).tolist()
    found = {task: subject.text(code) for task, code in zip(tasks, codes, strict=True)}
    return {task: clip(text, LONGEST_TEXT) for task, text in found.items() if text is not None}


def _kind(kind: dict[str, Any], *, has_text: bool) -> Markup:
    questions = kind["questions"]
    header = {"same": ("task", "and"), "label": ("task",), "vote": ("task", "worker")}[kind["kind"]]
    rows = []
    for each in questions:
        row = [each["task"]]
        row += [each["other"]] if kind["kind"] == "same" else []
        row += [each["worker"]] if kind["kind"] == "vote" else []
        row += [" / ".join(text or "–" for text in each["texts"])] if has_text else []
        rows.append([*row, number(each["gain"], 3)])
    header = (*header, *(("text",) if has_text else ()), "labels put right")
    caption = f"{kind['asks']} The {len(rows):,} that bring most"
    return charts.table(caption, header, rows)
