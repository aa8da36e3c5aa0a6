"""Workers: how often they are right, and what they confuse."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import charts
from tiebreak.charts import percent
from tiebreak.html_report.subject import LOOK, Sentence, Subject, histogram, name
from tiebreak.markup import Markup, join, tag
from tiebreak.plots import drawings
from tiebreak.plots.drawings import WorkerRow
from tiebreak.plots.model_plots import guessing, worker_rows
from tiebreak.plots.worker_accuracy import ALONE, FEWEST, POOR, WorkerAccuracy, worker_accuracy
from tiebreak.wording import counted

TITLE = "Workers"
SIDE_BY_SIDE = 5  # classes: confusion matrices with more stand below each other
NAMED = 3  # workers that the top of the report names


def measure(subject: Subject) -> dict[str, Any] | None:
    """Measure how often workers are right and what they confuse."""
    model = subject.model
    if not len(model.workers_) or not model.responses_.n_responses:
        return None
    found = _with_loners(subject, worker_accuracy(model))
    rows = worker_rows(model, subject.limits.workers, found)
    verdicts, n_each = np.unique(np.array(found.verdict, dtype=str), return_counts=True)
    return {
        "n_workers": len(model.workers_),
        "guessing": guessing(model),
        "verdicts": dict(zip(verdicts.tolist(), n_each.tolist(), strict=True)),
        "rows": [row._replace(worker=name(row.worker))._asdict() for row in rows],
        **histogram(found.accuracy),
        "poor": [name(model.workers_[w]) for w in _poor(found)[:NAMED]],
        "matrices": _matrices(subject, found),
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how many workers are no better than chance."""
    n = sum(found["verdicts"].get(verdict, 0) for verdict in POOR)
    if not n:
        return [Sentence(f"None of {counted(found['n_workers'], 'worker')} looks like a guesser.")]
    named = ", ".join(found["poor"]) + (", …" if n > len(found["poor"]) else "")
    verb = "is" if n == 1 else "are"
    crowd = counted(found["n_workers"], "worker")
    text = f"{n:,} of {crowd} {verb} hardly better than chance: {named}."
    return [Sentence(text, LOOK)]


def show(found: dict[str, Any]) -> Markup:
    """Show accuracies with intervals, and confusion matrices."""
    rows = [WorkerRow(**row) for row in found["rows"]]
    n_workers = found["n_workers"]
    parts: list[Markup] = []
    if len(rows) < n_workers:
        said = (
            f"{len(rows):,} of {n_workers:,} workers are shown: those that are surely worst and, "
            "of the others, those with the most responses."
        )
        parts.append(tag("p", said, class_="note"))
        parts.append(_spread(found).html("accuracies"))
    parts.append(drawings.worker_accuracies(rows, n_workers, found["guessing"]).html("workers"))
    matrices = [
        drawings.confusion_matrix(
            each["title"], each["classes"], each["matrix"], each["description"]
        ).html(f"confusion-{at}")
        for at, each in enumerate(found["matrices"])
    ]
    parts.append(tag("h3", "Who confuses what"))
    is_small = len(found["matrices"][0]["classes"]) <= SIDE_BY_SIDE
    parts.append(tag("div", *matrices, class_="columns") if is_small else join(matrices))
    return join(parts)


def _spread(found: dict[str, Any]) -> charts.Chart:
    return charts.histogram(
        "How accurate workers are",
        f"All {found['n_workers']:,} workers by the share of answers that are right.",
        ("accuracy", "workers"),
        found["edges"],
        found["counts"],
    )


def _with_loners(subject: Subject, found: WorkerAccuracy) -> WorkerAccuracy:
    """Add what responses alone tell: who agrees with nobody, whatever a prior hopes of them."""
    if subject.agreement is None or subject.sample is not subject.model:
        return found  # a sample has too few responses of each worker to judge by
    verdict = list(found.verdict)
    for each in subject.agreement.spam:
        verdict[each.worker] = ALONE if verdict[each.worker] not in POOR else verdict[each.worker]
    return found._replace(verdict=tuple(verdict))


def _poor(found: WorkerAccuracy) -> list[int]:
    """Return workers who are hardly better than chance, those with the most responses first."""
    is_poor = np.isin(np.array(found.verdict, dtype=str), POOR)
    poor = np.flatnonzero(is_poor)
    return [int(w) for w in poor[np.argsort(-found.n_responses[poor], kind="stable")]]


def _matrices(subject: Subject, found: WorkerAccuracy) -> list[dict[str, Any]]:
    """Return the confusion matrix of all responses together, of poor workers and of busy ones."""
    model = subject.model
    average = np.einsum(
        "w,wkl->kl", found.n_responses / max(found.n_responses.sum(), 1), model.confusion_
    )
    made = [
        _matrix(
            model,
            average,
            "All workers together",
            "Each row: of tasks of this class, the share of answers that name each class.",
        )
    ]
    for worker in _chosen(found, subject.limits.matrices - 1):
        right = percent(float(found.accuracy[worker]), 0)
        given = counted(int(found.n_responses[worker]), "response")
        said = f"{found.verdict[worker].capitalize()}; right {right}, on {given}."
        matrix = model.confusion_[worker]
        made.append(_matrix(model, matrix, name(model.workers_[worker]), said))
    return made


def _chosen(found: WorkerAccuracy, most: int) -> list[int]:
    """Return half poor workers, where there are so many, and the busiest of the others."""
    poor = _poor(found)[: max(most // 2, 1)]
    busy = np.argsort(-found.n_responses, kind="stable")
    others = [int(w) for w in busy if int(w) not in poor and found.n_responses[w] >= FEWEST]
    return [*poor, *others][:most]


def _matrix(model: Any, matrix: Any, title: str, description: str) -> dict[str, Any]:
    classes = [name(each) for each in model.classes_]
    names, merged = drawings.merge_rare_classes(classes, model.class_prior_, matrix)
    return {
        "title": title,
        "description": description,
        "classes": names,
        "matrix": np.round(merged, 6).tolist(),
    }
