"""Watching: how far the labels are, which tasks are in doubt, who answers how well."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from tiebreak.ask import Desk
from tiebreak.ask.log import Event, spelled_out
from tiebreak.ask.storage import FitPoint
from tiebreak.estimators.committee import vote_of_each
from tiebreak.page.room import whole
from tiebreak.report import charts
from tiebreak.tables.write import safe_cells

PAGE = 20  # tasks listed at once
LEAST_TIME = 60.0  # seconds after which a pace is shown
MOST_POINTS = 200  # of the curve
FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
TABLES = ("labels", "links", "known")


def outlook(desk: Desk) -> dict[str, Any]:
    """Return where a session stands and how it goes on."""
    with desk.lock:
        progress, fit = desk.progress(), desk.last_fit()
        points = list(desk.fits.history)
        per_hour = pace(desk.log.answers.values())
    allowed = None if desk.target is None else (1.0 - desk.target) * progress.n_tasks
    # Questions until the target is met or the budget used up, as it looks now.
    left = None if allowed is None else questions_to(points, allowed)
    if desk.budget is not None:
        of_budget = float(max(desk.budget - progress.asked, 0))
        left = of_budget if left is None else min(left, of_budget)
    label = fit.model.labels_.label
    vote = vote_of_each(fit.model.responses_)  # below 0 where classes tie for it
    return {
        "progress": progress,
        "allowed": allowed,
        "questions_left": left,
        "per_hour": per_hour,
        "hours_left": left / per_hour if left is not None and per_hour else None,
        "n_changed": points[-1].n_changed if points else 0,
        "n_from_vote": int(((vote >= 0) & (vote != label)).sum()),
        "curve": _curve(points),
    }


def _curve(points: list[FitPoint]) -> Markup:
    """Draw the wrong labels after each fit, some of them where there are many."""
    if len(points) > MOST_POINTS:
        at = np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).astype(int))
        points = [points[each] for each in at.tolist()]
    chart = charts.line(
        ("Labels expected to be wrong", "After each fit."),
        ("answers", "expected wrong labels"),
        [(f"{point.n_answers:,}", f"{point.wrong:,.1f}") for point in points],
        [(float(point.n_answers), point.wrong) for point in points],
    )
    return Markup(chart.html("curve"))


def questions_to(points: list[FitPoint], allowed: float) -> float | None:
    """Return how many more questions reach this number of wrong labels, as the curve goes now.

    A straight line through its second half; None where that does not fall.

    >>> questions_to([FitPoint(0, 100.0, 0), FitPoint(10, 90.0, 3), FitPoint(20, 80.0, 2)], 50.0)
    30.0
    """
    if not points or points[-1].wrong <= allowed:
        return 0.0 if points else None
    recent = points[len(points) // 2 - 1 if len(points) > 3 else 0 :]
    x = np.array([point.n_answers for point in recent], dtype=float)
    y = np.array([point.wrong for point in recent])
    spread = ((x - x.mean()) ** 2).sum()
    if spread == 0.0:
        return None
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread)
    return None if slope >= 0.0 else round((points[-1].wrong - allowed) / -slope, 6)


def pace(answers: Iterable[Event], now: datetime | None = None) -> float:
    """Return how many answers an hour people give, by those of the last hour."""
    until = now or datetime.now(UTC)
    since = (until - timedelta(hours=1)).isoformat(timespec="milliseconds")
    recent = [event.at for event in answers if event.at >= since]
    if not recent:
        return 0.0
    hours = max((until - datetime.fromisoformat(min(recent))).total_seconds(), LEAST_TIME) / 3600.0
    return len(recent) / hours


def listing(desk: Desk, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the tasks that a query asks for, those in most doubt first.

    `words` are looked for in ids and texts, `label` is the place of a class, `low` and `high` are
    of the probability.
    """
    job, crowd = desk.job, desk.job.responses
    wanted: dict[str, Any] = {
        "words": query.get("words", "").strip()[:200],
        "worker": query.get("worker", "").strip()[:200],
        "low": _share(query, "low", 0.0),
        "high": _share(query, "high", 1.0),
        "label": None,
    }
    with desk.lock:
        fit = desk.last_fit()
    label = fit.model.labels_.label
    probability = fit.q[np.arange(len(label)), label]
    is_wanted = (probability >= wanted["low"]) & (probability <= wanted["high"])
    at = query.get("label", "")
    if at.isascii() and at.isdigit() and int(at[:9]) < crowd.n_classes:
        wanted["label"] = int(at)
        is_wanted &= label == wanted["label"]
    if wanted["worker"]:
        is_named = np.array([str(each) == wanted["worker"] for each in crowd.workers], dtype=bool)
        theirs = crowd.task_of_each()[is_named[crowd.worker_of_each()]]
        is_wanted &= np.bincount(theirs, minlength=len(label)) > 0
    chosen = np.flatnonzero(is_wanted)
    if words := wanted["words"].casefold():
        texts = ((at, f"{job.key[at]}\n{job.texts.get(at)}") for at in chosen.tolist())
        chosen = np.array([at for at, text in texts if words in text.casefold()], dtype=np.int64)
    order = chosen[np.argsort(probability[chosen], kind="stable")]
    n_pages = max(-(-len(order) // PAGE), 1)
    page = min(whole(query, "page", "0"), n_pages - 1)
    rows = [
        {
            "code": code,
            "task": crowd.tasks[code],
            "text": job.texts.get(code),
            "label": crowd.classes[int(label[code])],
            "probability": float(probability[code]),
            "votes": Counter(vote.label for vote in job.votes(crowd.tasks[code])),
        }
        for code in order[page * PAGE : (page + 1) * PAGE].tolist()
    ]
    return {"rows": rows, "n_found": len(order), "page": page, "n_pages": n_pages, "wanted": wanted}


def _share(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(query.get(name) or default)
    except ValueError:
        return default
    return min(max(value, 0.0), 1.0) if value == value else default


def people(desk: Desk) -> list[dict[str, Any]]:
    by_person: dict[str, list[Event]] = {}
    with desk.lock:
        label = desk.last_fit().model.labels_.label
        rates = desk.error_rates()
        for event in desk.log.answers.values():
            if not event.is_by_hand:
                by_person.setdefault(event.who, []).append(event)

    def is_contradicted(event: Event) -> bool:
        for each in spelled_out([event]):
            left, right, named = desk.job.codes(each)
            other = label[right] if each.is_link else named
            is_yes = each.kind not in ("different", "no")
            if each.is_evidence and bool(label[left] == other) != is_yes:
                return True
        return False

    found = [
        {
            "who": who,
            "n_answers": len(said),
            "n_unsure": sum(not event.is_evidence for event in said),
            "n_contradicted": sum(map(is_contradicted, said)),
            "error_rate": rates.get(who),
            "seconds": [event.seconds for event in said if event.seconds is not None],
            "last": max(event.at for event in said),
        }
        for who, said in by_person.items()
    ]
    return sorted(found, key=lambda each: (-each["n_answers"], each["who"]))


def download(desk: Desk, table: str, form: str) -> bytes:
    """Return a table as bytes, written as `tiebreak ask` and `tiebreak fuse` write theirs.

    Downloads are opened in spreadsheets, and what people typed must not run there.
    """
    with safe_cells(), tempfile.TemporaryDirectory(prefix="tiebreak-") as folder:
        path = Path(folder) / f"{table}.{form}"
        if table == "labels":
            desk.fused().write(path)
        elif table == "links":
            desk.links().write(path)
        else:
            desk.labels().write(path)
        return path.read_bytes()
