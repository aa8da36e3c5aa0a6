"""Watching: how far the labels are, which tasks are in doubt, who answers how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from tiebreak.ask import Desk
from tiebreak.ask.fitting import FittedSession
from tiebreak.ask.log import Event
from tiebreak.ask.storage import FitPoint
from tiebreak.ids import MISSING
from tiebreak.kernels.layout import Codes, Floats, Mask

PAGE = 20  # tasks listed at once
LEAST_TIME = 60.0  # seconds by which a pace is told
MOST_POINTS = 200  # of the curve


class Outlook(NamedTuple):
    """Where the session is going."""

    points: list[FitPoint]  # the curve, thinned where it is long
    wrong: float
    n_tasks: int
    n_asked: int
    allowed: float | None  # wrong labels at which the target is met
    questions_left: float | None  # until it is, or the budget is used up, as it looks now
    per_hour: float  # answers an hour, by those of the last hour
    n_changed: int  # labels, by the last fit

    @property
    def hours_left(self) -> float | None:
        """How long that takes at the pace of the last hour."""
        if self.questions_left is None or not self.per_hour:
            return None
        return self.questions_left / self.per_hour


class Wanted(NamedTuple):
    """Which tasks to list."""

    words: str = ""  # in the id or the text
    label: Hashable | None = None
    worker: str = ""
    low: float = 0.0
    high: float = 1.0
    page: int = 0


class Doubt(NamedTuple):
    """A task in a list."""

    code: int
    task: Hashable
    label: Hashable
    probability: float
    text: str | None
    votes: Counter[Hashable]


class Listing(NamedTuple):
    """The tasks that are wanted, those in most doubt first."""

    rows: list[Doubt]
    n_found: int
    n_pages: int


class PersonSummary(NamedTuple):
    """What one person did."""

    who: str
    n_answers: int
    n_unsure: int
    n_contradicted: int  # answers that the labels of the last fit speak against
    error_rate: float | None
    seconds: float | None  # median, of one answer
    last: str  # when (UTC)


def outlook(desk: Desk) -> Outlook:
    """Return where a session stands and how it goes on; hold `desk.lock`."""
    progress = desk.progress()
    points = list(desk.fits.history)
    allowed = None if desk.target is None else (1.0 - desk.target) * progress.n_tasks
    left = None
    if allowed is not None:
        left = questions_to(points, allowed)
    if desk.budget is not None:
        of_budget = float(max(desk.budget - progress.asked, 0))
        left = of_budget if left is None else min(left, of_budget)
    return Outlook(
        _thinned(points),
        progress.wrong,
        progress.n_tasks,
        progress.asked,
        allowed,
        left,
        pace(desk.log.answers.values()),
        points[-1].n_changed if points else 0,
    )


def questions_to(points: list[FitPoint], allowed: float) -> float | None:
    """Return how many more questions bring the wrong labels down so far, as the curve goes now.

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


def listing(desk: Desk, fit: FittedSession, wanted: Wanted) -> Listing:
    """Return the tasks that are wanted, those in most doubt first; needs no lock."""
    label = fit.model.labels_.label
    probability = fit.q[np.arange(len(label)), label]
    chosen = np.flatnonzero(_is_wanted(desk, wanted, label, probability))
    order = chosen[np.argsort(probability[chosen], kind="stable")]
    n_pages = max(-(-len(order) // PAGE), 1)
    page = min(max(wanted.page, 0), n_pages - 1)
    codes = order[page * PAGE : (page + 1) * PAGE].tolist()
    rows = [_doubt(desk, code, int(label[code]), float(probability[code])) for code in codes]
    return Listing(rows, len(order), n_pages)


def people(desk: Desk) -> list[PersonSummary]:
    """Return what each person did, the busiest first; hold `desk.lock`."""
    fit = desk.last_fit()
    by_person: dict[str, list[Event]] = {}
    for event in desk.log.answers.values():
        if not event.is_by_hand:
            by_person.setdefault(event.who, []).append(event)
    rates = desk.error_rates()
    found = [_summary(desk, fit, who, events, rates) for who, events in by_person.items()]
    return sorted(found, key=lambda each: (-each.n_answers, each.who))


def _summary(
    desk: Desk, fit: FittedSession, who: str, events: list[Event], rates: dict[str, float]
) -> PersonSummary:
    timed = [event.seconds for event in events if event.seconds is not None]
    said = [event for event in events if event.is_evidence]
    return PersonSummary(
        who,
        len(events),
        sum(event.kind == "unsure" for event in events),
        sum(_is_contradicted(desk, fit, event) for event in said),
        rates.get(who),
        float(np.median(timed)) if timed else None,
        max(event.at for event in events),
    )


def _is_contradicted(desk: Desk, fit: FittedSession, event: Event) -> bool:
    """Say whether the labels of a fit speak against an answer."""
    label = fit.model.labels_.label
    left = int(label[desk.job.code[event.left or ""]])
    if event.is_link:
        right = int(label[desk.job.code[event.right or ""]])
        return (left == right) != (event.kind == "same")
    return (left == desk.job.class_code[event.label or ""]) != (event.kind != "no")


def _is_wanted(desk: Desk, wanted: Wanted, label: Codes, probability: Floats) -> Mask:
    job = desk.job
    is_wanted: Mask = (probability >= wanted.low) & (probability <= wanted.high)
    if wanted.label is not None:
        is_wanted &= label == job.code_of_class(wanted.label)
    if wanted.worker:
        is_wanted &= _answered_by(desk, wanted.worker)
    if wanted.words:
        words = wanted.words.casefold()
        places = np.flatnonzero(is_wanted).tolist()
        hits = [at for at in places if words in f"{job.key[at]}\n{job.texts.get(at)}".casefold()]
        is_wanted = np.zeros(len(label), dtype=bool)
        is_wanted[hits] = True
    return is_wanted


def _answered_by(desk: Desk, worker: str) -> Mask:
    """Return which tasks a worker answered, named as it prints."""
    crowd = desk.job.responses
    is_theirs = np.zeros(crowd.n_tasks, dtype=bool)
    code = int(crowd.workers.codes([worker])[0])
    if code == MISSING:
        code = next((at for at, each in enumerate(crowd.workers) if str(each) == worker), MISSING)
    if code != MISSING:
        is_theirs[crowd.task_of_each()[crowd.worker_of_each() == code]] = True
    return is_theirs


def _doubt(desk: Desk, code: int, label: int, probability: float) -> Doubt:
    job = desk.job
    task = job.responses.tasks[code]
    votes = Counter(vote.label for vote in job.votes(task))
    return Doubt(code, task, job.responses.classes[label], probability, job.texts.get(code), votes)


def _thinned(points: list[FitPoint]) -> list[FitPoint]:
    """Leave out points in between, so that a long curve stays quick to draw."""
    if len(points) <= MOST_POINTS:
        return points
    at = np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).astype(int))
    return [points[each] for each in at.tolist()]


def pace(answers: Iterable[Event], now: datetime | None = None) -> float:
    """Return how many answers an hour people give, by those of the last hour."""
    until = now or datetime.now(UTC)
    since = (until - timedelta(hours=1)).isoformat(timespec="milliseconds")
    recent = [event.at for event in answers if event.at >= since]
    if not recent:
        return 0.0
    first = datetime.fromisoformat(min(recent).replace("Z", "+00:00"))
    hours = max((until - first).total_seconds(), LEAST_TIME) / 3600.0
    return len(recent) / hours
