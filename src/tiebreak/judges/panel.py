"""Panels of judges: how good they are, what they share, and what would make a panel better.

A judge is named to go only if two other judges are surely more often right, on the known tasks that
they share. The error of that is at most one panel in twenty, so that the two best judges are safe.
The panel without the named judges is then scored on known tasks beside the whole one, by the method
that will be used (`known.CrossValidation`): it is "better" where the whole interval of the
difference in log-loss is below 0, "about as good" where it is within a margin, and else nothing is
said.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from tiebreak import tables
from tiebreak.arguments import (
    FLAG,
    FUNCTION,
    MAPPING,
    SEED,
    WITH_RESPONSES,
    checks,
    number,
    optional,
    whole,
)
from tiebreak.data import Responses
from tiebreak.data.frames import as_plain
from tiebreak.errors import InputError, OptionError, note
from tiebreak.judges.dependence import SharedErrors, shared_errors
from tiebreak.judges.known import (
    LEVEL,
    CrossValidation,
    GoldTable,
    PairedDifference,
    Scored,
    gold_table,
    interval_of_share,
    known_codes,
    paired_difference,
    reach,
)
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.options import require_number

LEAST_GOLD = 20  # known tasks, below which no panel is compared with another
LOSS_MARGIN = 0.05  # log-loss a task: a panel that is surely no more behind is about as good …
ACCURACY_MARGIN = 0.03  # … if it is surely no more than this behind in accuracy, too
LOSS_SPREAD = 0.5  # log-loss by which two panels differ on a task that is not seen yet
BEHIND = 0.05  # accuracy, by which a judge to look at is surely behind the others
TOO_OFTEN = 0.05  # share of tasks, by which a class is surely said too often
MOST_SUSPECTS = 3

N_TASKS = 50  # to label
EVEN = 0.5  # of them, drawn evenly; the others where the panel is unsure

N_BOOTSTRAP = 300  # of self-preference
LEAST_ANSWERS = 10  # of the own family and of others
INTERVAL = (2.5, 97.5)


class Judge(NamedTuple):
    """One judge on the known tasks; interval of 95 %. Its runs are those of `Responses.runs`."""

    worker: Hashable
    n_known: int
    accuracy: float
    interval: tuple[float, float]
    group: str | None
    self_agreement: float
    run_correlation: float
    flip_rate: float
    first_preference: float


class Versus(NamedTuple):
    """The panel against the judge that is best on the known tasks."""

    best: Hashable
    panel_accuracy: float
    panel_interval: tuple[float, float]
    best_accuracy: float
    probability_better: float  # that the panel is more often right


class SmallPanel(NamedTuple):
    """A part of the panel that is surely about as good as the whole, or better."""

    workers: tuple[Hashable, ...]  # that stay
    left_out: tuple[Hashable, ...]
    log_loss: float
    whole_log_loss: float
    change: PairedDifference  # of log-loss
    accuracy: float
    whole_accuracy: float
    price: float | None  # per task; of the whole: `whole_price`
    whole_price: float | None

    @property
    def is_better(self) -> bool:
        """Whether labels are surely better: log-loss falls, and accuracy does not."""
        return self.change.high < 0.0 and self.accuracy >= self.whole_accuracy


class GoldGain(NamedTuple):
    """What known labels are worth: log-loss with half of them and with all."""

    n_known: int
    half: float
    all: float
    change: PairedDifference


class Suspect(NamedTuple):
    """A judge to look at: much less often right than the others, or too fond of one class."""

    worker: Hashable
    accuracy: float  # on known tasks that others answered, too
    others: float  # accuracy of the other judges there
    behind: PairedDifference  # its accuracy less theirs
    label: Hashable | None  # the class that it says too often, or None
    said: float  # how often it says that
    true: float  # how often that is so


class SelfPreference(NamedTuple):
    """How much more a judge accepts answers of its own family; interval of 95 %."""

    worker: Hashable
    family: str
    n_own: int
    preference: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class PanelReport:
    """What is known of a panel of judges. Without gold most of it cannot be known."""

    n_tasks: int
    n_known: int
    judges: tuple[Judge, ...]
    shared: SharedErrors | None = None
    versus: Versus | None = None
    outdone: tuple[Hashable, ...] = ()  # judges that two others surely beat
    look_at: tuple[Suspect, ...] = ()
    smallest: SmallPanel | None = None
    cheapest: SmallPanel | None = None
    gold_gain: GoldGain | None = None
    self_preference: tuple[SelfPreference, ...] = ()
    unanimous_wrong: tuple[Hashable, ...] = field(default=(), repr=False)
    n_unanimous: int = 0
    to_label: tuple[Hashable, ...] = field(default=(), repr=False)
    to_label_probability: tuple[float, ...] = field(default=(), repr=False)
    workers: tuple[Hashable, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        from tiebreak.judges.words import panel_as_text

        return panel_as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text and lists; None where a number is not known."""
        return dict(as_plain(self))


@checks(
    model=WITH_RESPONSES,
    prices=optional(MAPPING),
    n_to_label=whole(1),
    random_state=SEED,
    sub_panels=FLAG,
    progress=optional(FUNCTION),
)
def panel_report(
    model: Any,
    gold: Any = None,
    *,
    prices: Mapping[Any, float] | None = None,
    systems: Any = None,
    accepts: Hashable | None = None,
    n_to_label: int = N_TASKS,
    random_state: int = 0,
    sub_panels: bool = True,
    progress: Callable[[str], None] | None = None,
) -> PanelReport:
    """Report on the judges of a fitted model.

    Parameters
    ----------
    model
        Fitted to the judges' responses. Where it saw gold, it is fitted again with parts of that
        left out, so that it is scored on labels that it has not seen.
    gold
        Known labels; None: those of the model. Without any, accuracies and shared errors cannot be
        seen, and the report names the tasks to label first.
    prices
        Of one call of each judge: what the cheapest panel is found by.
    systems, accepts
        Which model made the answer that each task is about, and the class that accepts it: for
        self-preference.
    sub_panels
        Whether to score what is left without judges that look worst, and half of the gold: by some
        20 more fits of the same method, each with a part of the gold.
    progress
        Called with a few words before each panel that is scored.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(300, 5, responses_per_task=5, shared=0.5, random_state=0)
    >>> model = tb.VariationalBayes(dependence=0.5).fit(crowd.responses)
    >>> found = panel_report(model, crowd.gold)
    >>> found.shared.effective < 4, found.n_known
    (True, 300)
    """
    responses = model.responses_
    gold = model.gold_ if gold is None else gold
    found: dict[str, Any] = {"n_tasks": responses.n_tasks, "workers": tuple(responses.workers)}
    if systems is not None:
        found["self_preference"] = self_preferences(
            responses, systems, accepts, random_state=random_state
        )
    task, label = known_codes(gold, model.tasks_, model.classes_)
    if not len(task):
        drawn = sample_tasks(model, n_to_label, random_state=random_state)
        return PanelReport(
            **found,
            n_known=0,
            judges=_judges(responses, np.empty((0, responses.n_workers))),
            to_label=tuple(model.tasks_[int(i)] for i in drawn.task),
            to_label_probability=tuple(drawn.probability.tolist()),
        )
    table = gold_table(responses, task, label)
    n_known = len(table.task)
    one_class = len(np.unique(table.truth)) == 1 and len(table.classes) > 1
    if one_class:
        note("panel-of-one-class")
    if n_known < LEAST_GOLD:
        note("few-known-labels", n=n_known)
    priced = None if prices is None else _prices(prices, responses)
    answered = np.count_nonzero(np.diff(responses.start))
    n_answers = len(np.unique(_cells(responses)))
    found |= _unanimous(table, responses)
    found |= {
        "n_known": n_known,
        "judges": _judges(responses, table.error),
        "shared": shared_errors(table, n_answers / max(int(answered), 1)),
    }
    if one_class:
        return PanelReport(**found)  # what is best for one class may be worst for the others
    may_go = outdone(table)
    validation = CrossValidation(model, table.task, gold, progress)
    saw_gold = model.gold_ is not None and len(model.gold_) > 0
    compares = sub_panels and n_known >= LEAST_GOLD and responses.n_workers > 0
    everyone = np.ones(responses.n_workers, dtype=bool)
    whole = validation.score(everyone, "the panel") if saw_gold or compares else None
    if saw_gold and whole is not None:
        right = whole.right
    else:  # a model that saw no gold has not seen these labels either
        said = np.asarray(model.probabilities_)[table.task].argmax(axis=1)
        right = (said == table.truth).astype(np.float64)
    found |= {
        "versus": _versus(table, right),
        "outdone": tuple(table.workers[j] for j in may_go),
        "look_at": suspects(table, may_go),
    }
    if whole is not None and compares:
        small = smallest(validation, whole, table, may_go, priced)
        cheap = None
        if priced is not None and may_go:
            cheap = small
            if small is None or len(small.left_out) < len(may_go):
                by_price = sorted(may_go, key=lambda j: -priced[j])
                other = smallest(validation, whole, table, by_price, priced)
                tried = [each for each in (small, other) if each is not None]
                cheap = min(tried, key=lambda each: each.price or 0.0, default=None)
        gain = gold_gain(validation, whole)
        found |= {"smallest": small, "cheapest": cheap, "gold_gain": gain}
    return PanelReport(**found)


def _cells(responses: Responses) -> Offsets:
    """Return a number for the task and the worker of each response."""
    task = responses.task_of_each().astype(np.int64)
    return np.asarray(task * responses.n_workers + responses.worker_of_each())


def _judges(responses: Responses, error: Floats) -> tuple[Judge, ...]:
    """Return what is known of each judge, the most accurate first; `error` is (n, J)."""
    n = np.isfinite(error).sum(axis=0).tolist()
    right = (n - np.nansum(error, axis=0)).tolist()
    of_runs = ("group", "self_agreement", "run_correlation", "flip_rate", "first_preference")
    rows = []
    for j, worker in enumerate(responses.workers):
        runs = None if responses.runs is None else responses.runs.of(worker)
        shown = (None, *[np.nan] * 4) if runs is None else (getattr(runs, key) for key in of_runs)
        accuracy = right[j] / n[j] if n[j] else np.nan
        rows.append(Judge(worker, n[j], accuracy, interval_of_share(right[j], n[j]), *shown))
    return tuple(sorted(rows, key=lambda row: (row.n_known == 0, -np.nan_to_num(row.accuracy))))


def _versus(table: GoldTable, right: Floats) -> Versus:
    """Compare the panel with its best judge: the one that is best on the known tasks.

    That judge owes its place to luck, too. One that is picked for each task by the other known
    tasks does not; but of equal judges it is one that erred on the task left out. The truth lies
    between the two, and the probability is that which is nearer to one half.
    """
    best_right = _best_judge(table)
    chances = [
        _chance_better(right, each) for each in (best_right, _best_judge(table, leave_out=True))
    ]
    n = table.there.sum(axis=0)
    accuracy = 1.0 - np.nansum(table.error, axis=0) / np.maximum(n, 1)
    best = int(np.argmax(np.where(n >= max(n.max() / 2.0, 1.0), accuracy, -1.0)))
    return Versus(
        table.workers[best],
        float(right.mean()),
        interval_of_share(float(right.sum()), float(len(right))),
        float(best_right.mean()),
        sorted((*chances, 0.5))[1],
    )


def _chance_better(right: Floats, other: Floats) -> float:
    """Return how likely labels are more often right than other labels.

    Only tasks on which one is right and the other wrong tell them apart. Of these the share has a
    beta posterior with an even prior: after five to none it is .98, not 1.
    """
    change = right - other
    ahead = float(np.maximum(change, 0.0).sum())
    behind = float(np.maximum(-change, 0.0).sum())
    return float(beta.sf(0.5, ahead + 1.0, behind + 1.0))


def _best_judge(table: GoldTable, *, leave_out: bool = False) -> Floats:
    """Return how right the best judge is on each task; `leave_out`: the best by all other tasks.

    Where it did not answer, the next best stands in; where nobody did, the answer is wrong.
    """
    there = table.there
    error = np.where(there, table.error, 0.0)
    n = there.sum(axis=0) - leave_out * there
    wrong = error.sum(axis=0) - leave_out * error
    # One error in two tasks is added, so that a judge with two tasks is not the best of all.
    rate = (wrong + 1.0) / (n + 2.0)
    best = np.argmin(np.where(there, rate, np.inf), axis=1)
    rows = np.arange(len(best))
    return np.where(there.any(axis=1), 1.0 - error[rows, best], 0.0)


def _unanimous(table: GoldTable, responses: Responses) -> dict[str, Any]:
    """Find tasks on which all judges say the same and gold says otherwise; how many agree."""
    votes = np.where(table.there[:, :, None], table.share, 0.0).sum(axis=1)
    n = table.there.sum(axis=1)
    agree = (votes.max(axis=1) >= n - 1e-9) & (n > 1)
    wrong = table.task[agree & (votes.argmax(axis=1) != table.truth)]
    tasks = tuple(responses.tasks[int(i)] for i in wrong)
    return {"unanimous_wrong": tasks, "n_unanimous": int(np.count_nonzero(agree))}


def _prices(prices: Mapping[Any, float], responses: Responses) -> Floats:
    """Return the price of each judge; 0, and said, where none is given."""
    names = list(responses.workers)
    if unknown := tuple(name for name in prices if name not in names):
        raise OptionError("price-of-no-judge", names=unknown)
    if missing := tuple(name for name in names if name not in prices):
        note("no-price", names=missing)
    for price in prices.values():
        require_number("The price of a judge", price, "0 or more", least=0.0)
    return np.array([float(prices.get(name, 0.0)) for name in names])


# Which judges a panel could do without


def outdone(table: GoldTable) -> list[int]:
    """Return the judges that two others surely beat, the least accurate first.

    Pairs are compared on the known tasks that both answered. A judge that is one of the two best
    has at most one better judge; each of the two has J − 1 chances of a false one more, so that
    every interval leaves out .05 / J, half of it on either side.
    """
    there = table.there.astype(np.float64)
    error = np.where(table.there, table.error, 0.0)
    n = there.T @ there
    total = there.T @ error  # [i, j]: errors of j where i answered
    square = there.T @ error**2
    mean = (total - total.T) / np.maximum(n, 1.0)  # errors of j less those of i
    spread = square + square.T - 2.0 * error.T @ error - n * mean**2
    level = 1.0 - (1.0 - LEVEL) / max(n.shape[0], 1)
    half = reach(np.maximum(spread, 0.0), np.maximum(n, 1.0), 1.0, level)
    is_better = (mean > half) & (n >= LEAST_GOLD)  # [i, j]: i than j
    found = np.flatnonzero(is_better.sum(axis=0) >= 2)
    if len(table.workers) - len(found) < 2:
        return []  # judges of different tasks: nobody is seen to be best
    wrong = error.sum(axis=0) / np.maximum(table.there.sum(axis=0), 1)
    return sorted(found.tolist(), key=lambda j: (-wrong[j], str(table.workers[j])))


def smallest(
    validation: CrossValidation,
    whole: Scored,
    table: GoldTable,
    may_go: list[int],
    prices: Floats | None = None,
) -> SmallPanel | None:
    """Leave out as many of the judges that may go, the first ones first, as is surely harmless.

    All of them, half of them, the first: three panels at most are scored.
    """
    tries = sorted({len(may_go), (len(may_go) + 1) // 2, min(len(may_go), 1)} - {0}, reverse=True)
    for size in tries:
        stays = np.ones(len(table.workers), dtype=bool)
        stays[may_go[:size]] = False
        scored = validation.score(stays, f"the panel without {size} of {len(stays)} judges")
        level = 1.0 - (1.0 - LEVEL) / len(tries)
        change = paired_difference(scored.loss, whole.loss, LOSS_SPREAD, level)
        lost = paired_difference(whole.right, scored.right, 1.0, level)
        if change.high <= LOSS_MARGIN and lost.high <= ACCURACY_MARGIN:
            kept = np.flatnonzero(stays & validation.answers)
            return SmallPanel(
                tuple(table.workers[int(j)] for j in kept),
                tuple(table.workers[j] for j in may_go[:size]),
                float(scored.loss.mean()),
                float(whole.loss.mean()),
                change,
                float(scored.right.mean()),
                float(whole.right.mean()),
                None if prices is None else float(prices[kept].sum()),
                None if prices is None else float(prices.sum()),
            )
    return None


def gold_gain(validation: CrossValidation, whole: Scored) -> GoldGain:
    """Compare log-loss with half of the gold and with all, on tasks left out of the fit."""
    everyone = np.ones(len(validation.answers), dtype=bool)
    half = validation.score(everyone, "the panel with half of the gold", half_of_gold=True)
    return GoldGain(
        len(whole.loss),
        float(half.loss.mean()),
        float(whole.loss.mean()),
        paired_difference(whole.loss, half.loss, LOSS_SPREAD),
    )


def suspects(table: GoldTable, may_go: list[int]) -> tuple[Suspect, ...]:
    """Return judges to look at, the one furthest behind the others first.

    Either two judges are surely better, and the mean of the others is by far; or it says one class
    surely too often, and is not one of the two that are most often right.
    """
    n_judges, n_classes = table.share.shape[1:]
    n = table.there.sum(axis=0)
    wrong = (np.nansum(table.error, axis=0) + 1.0) / (n + 2.0)
    best = set(np.argsort(wrong, kind="stable")[:2].tolist())
    found = []
    for j in range(n_judges):
        others = np.delete(table.error, j, axis=1)
        n_others = np.isfinite(others).sum(axis=1)
        rows = np.flatnonzero(table.there[:, j] & (n_others > 0))
        if len(rows) < LEAST_GOLD:
            continue
        mine = 1.0 - table.error[rows, j]
        theirs = 1.0 - np.nansum(others[rows], axis=1) / n_others[rows]
        behind = paired_difference(mine, theirs, 1.0, 1.0 - (1.0 - LEVEL) / n_judges)
        level = 1.0 - (1.0 - LEVEL) / (n_judges * n_classes)
        is_true = np.eye(n_classes + 1)[table.truth[rows]]
        excess = [
            paired_difference(table.share[rows, j, k], is_true[:, k], 1.0, level)
            for k in range(n_classes)
        ]
        k = int(np.argmax([each.low for each in excess]))
        is_fond = excess[k].low > TOO_OFTEN
        if (j in may_go and behind.high < -BEHIND) or (is_fond and j not in best):
            found.append(
                Suspect(
                    table.workers[j],
                    float(mine.mean()),
                    float(theirs.mean()),
                    behind,
                    table.classes[k] if is_fond else None,
                    float(table.share[rows, j, k].mean()) if is_fond else np.nan,
                    float(is_true[:, k].mean()) if is_fond else np.nan,
                )
            )
    return tuple(sorted(found, key=lambda each: each.behind.value)[:MOST_SUSPECTS])


# Which tasks to label


class Sample(NamedTuple):
    """Tasks to label, and the chance with which each was drawn."""

    task: Codes
    probability: Floats


@checks(model=WITH_RESPONSES, n=whole(1), random_state=SEED)
def sample_tasks(model: Any, n: int = N_TASKS, *, random_state: int | None = 0) -> Sample:
    """Draw tasks to label from those that have responses and are not known.

    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 5, random_state=0)
    >>> drawn = sample_tasks(tb.VariationalBayes().fit(crowd.responses), 20)
    >>> len(drawn.task), bool(drawn.probability.min() > 0.04)
    (20, True)
    """
    free = np.diff(model.responses_.start) > 0
    if model.gold_ is not None:
        free[model.gold_.on(model.tasks_, model.classes_).task] = False
    among = np.flatnonzero(free)
    if not len(among):
        raise InputError("no-task-to-label")
    n = min(n, len(among))
    top = model.probabilities_[among].max(axis=1)
    unsure = np.sqrt(np.maximum(top * (1.0 - top), 1e-6))
    chance = inclusion(EVEN / len(among) + (1.0 - EVEN) * unsure / unsure.sum(), n)
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(among))
    # Systematic sampling: one start, equal steps along the sum of chances.
    marks = np.floor(np.cumsum(chance[order]) + rng.random())
    drawn = order[np.flatnonzero(np.diff(marks, prepend=0.0) > 0.0)][:n]
    drawn = np.sort(drawn)
    return Sample(among[drawn].astype(np.int32), chance[drawn])


def inclusion(share: Floats, n: int) -> Floats:
    """Return chances of being drawn, n in sum and none above 1, in proportion to shares."""
    chance = np.minimum(n * share, 1.0)
    for _ in range(20):
        free = chance < 1.0
        rest = n - float(np.count_nonzero(~free))
        if not free.any() or rest <= 0.0:
            break
        new = np.where(free, np.minimum(rest * share / share[free].sum(), 1.0), 1.0)
        if np.allclose(new, chance):
            break
        chance = new
    return np.asarray(chance)


# Families of judges


@checks(responses=Responses, random_state=SEED)
def self_preferences(
    responses: Responses, systems: Any, accepts: Hashable | None, *, random_state: int = 0
) -> tuple[SelfPreference, ...]:
    """Return how much more each judge accepts answers of its own family than other judges do.

        acceptance of             by gpt   by the other judges
        answers of gpt            .80      .66
        answers of other models   .60      .58

    gpt prefers its own by (.80 − .60) − (.66 − .58) = .12: leniency, and answers that are better,
    cancel. `systems` and `accepts` are those of `panel_report`. The family of a judge is its group
    in the responses, or else its own name; it is that of a system if one name contains the other.
    """
    if accepts is None:
        raise OptionError("no-accepting-class")
    accepted_code = int(responses.classes.codes([accepts])[0])
    if accepted_code < 0:
        raise OptionError(
            "unknown-accepting-class", label=accepts, classes=tuple(responses.classes)
        )
    made_by = tables.read_systems(systems)
    task = responses.tasks.codes(list(made_by))
    names = [
        name.casefold() for name, code in zip(made_by.values(), task, strict=True) if code >= 0
    ]
    judged = responses.on_tasks(task[task >= 0])
    shape = (judged.n_tasks, judged.n_workers)
    weight = judged.weight_of_each()
    yes = weight * (judged.label_of_each() == accepted_code)
    total, accepted = (
        np.bincount(_cells(judged), weights=each, minlength=shape[0] * shape[1]).reshape(shape)
        for each in (weight, yes)
    )
    share = np.where(total > 0.0, accepted / np.maximum(total, 1e-300), np.nan)
    families = {} if responses.runs is None else responses.runs.groups()
    rng = np.random.default_rng(random_state)
    found = []
    for j, judge in enumerate(responses.workers):
        family = families.get(judge, str(judge))
        known_as = family.casefold()
        own = np.array([known_as in name or name in known_as for name in names], dtype=bool)
        others = np.delete(share, j, axis=1)
        n_others = np.isfinite(others).sum(axis=1)
        gap = share[:, j] - np.nansum(others, axis=1) / np.maximum(n_others, 1)
        usable = np.isfinite(share[:, j]) & (n_others > 0)
        mine, theirs = np.flatnonzero(usable & own), np.flatnonzero(usable & ~own)
        if min(len(mine), len(theirs)) < LEAST_ANSWERS:
            continue
        draws = [
            gap[rng.choice(mine, len(mine))].mean() - gap[rng.choice(theirs, len(theirs))].mean()
            for _ in range(N_BOOTSTRAP)
        ]
        low, high = np.percentile(draws, INTERVAL)
        preference = float(gap[mine].mean() - gap[theirs].mean())
        interval = (float(low), float(high))
        found.append(SelfPreference(judge, family, len(mine), preference, interval))
    return tuple(sorted(found, key=lambda each: -each.preference))


@checks(
    responses=Responses,
    groups=optional(MAPPING),
    dependence=number("between 0 and 1", least=0.0, most=1.0),
)
def share_discount(
    responses: Responses,
    groups: Mapping[Any, str] | None = None,
    dependence: float = 0.3,
) -> Responses:
    """Let the judges of a group share one discount: 1 / (1 + dependence (n − 1)) for n of them.

    `groups` names the group of each judge; None: the column `group` of the responses.

    >>> rows = [("a", "gpt-5", "x"), ("a", "gpt-4", "x"), ("a", "claude", "y")]
    >>> crowd = Responses.from_rows(rows)
    >>> share_discount(crowd, {"gpt-5": "gpt", "gpt-4": "gpt"}, 1.0).weight.tolist()
    [0.5, 0.5, 1.0]
    """
    if groups is None:
        groups = {} if responses.runs is None else responses.runs.groups()
    if not groups:
        raise OptionError("no-groups")
    names = [groups.get(worker, f"\0{j}") for j, worker in enumerate(responses.workers)]
    _, group = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    weight = responses.weight_of_each()
    key = responses.task_of_each().astype(np.int64) * (int(group.max()) + 1)
    key = key + group[responses.worker_of_each()]
    total = np.bincount(key, weights=weight)[key]
    return replace(responses, weight=weight / (1.0 + dependence * np.maximum(total - 1.0, 0.0)))
