"""The panel's report: how good its judges are, what they share, and what would make it better."""

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
    optional,
    whole,
)
from tiebreak.errors import OptionError, note
from tiebreak.frames import as_plain
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import require_number
from tiebreak.panel.held_out import CrossValidation
from tiebreak.panel.sampling import N_TASKS, sample
from tiebreak.panel.self_preference import SelfPreference, self_preference
from tiebreak.panel.shared_errors import SharedErrors, shared_errors
from tiebreak.panel.subsets import (
    LEAST_GOLD,
    GoldGain,
    SmallPanel,
    Suspect,
    gold_gain,
    outdone,
    smallest,
    suspects,
)
from tiebreak.panel.table import GoldTable, gold_table, known_codes
from tiebreak.responses import Responses

LEVEL = 0.95


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


@dataclass(frozen=True)
class PanelReport:
    """What is known of a panel of judges. Without gold most of it cannot be known."""

    n_tasks: int
    n_known: int
    judges: tuple[Judge, ...]
    shared: SharedErrors | None = None
    versus: Versus | None = None
    outdone: tuple[Hashable, ...] = ()  # judges than whom two others are surely better
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
        from tiebreak.panel.text import as_text

        return as_text(self)

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
def report(
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
        left out, so that it is not praised for what it was told.
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
        20 more fits of the same method, each told a part of the gold.
    progress
        Called with a few words before each panel that is scored.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(300, 5, responses_per_task=5, shared=0.5, random_state=0)
    >>> model = tb.VariationalBayes(dependence=0.5).fit(crowd.responses)
    >>> found = report(model, crowd.gold)
    >>> found.shared.effective < 4, found.n_known
    (True, 300)
    """
    responses = model.responses_
    gold = model.gold_ if gold is None else gold
    preferences: tuple[SelfPreference, ...] = ()
    if systems is not None:
        preferences = preferences_of(responses, systems, accepts, random_state)
    task, label = known_codes(gold, model.tasks_, model.classes_)
    if not len(task):
        return _without_gold(model, preferences, n_to_label, random_state)
    table = gold_table(responses, task, label)
    _note_odd_gold(table)
    unanimous_wrong, n_unanimous = _unanimous(table, responses)
    priced = None if prices is None else _prices(prices, responses)
    found = PanelReport(
        responses.n_tasks,
        len(table.task),
        _judges(table, responses),
        shared_errors(table, _judges_per_task(responses)),
        self_preference=preferences,
        unanimous_wrong=unanimous_wrong,
        n_unanimous=n_unanimous,
        workers=tuple(responses.workers),
    )
    if _has_one_class(table):
        return found  # what is best for one class may be worst for the others
    may_go = outdone(table)
    validation = CrossValidation(model, table, gold, progress)
    told = model.gold_ is not None and len(model.gold_) > 0
    compares = sub_panels and len(table.task) >= LEAST_GOLD and responses.n_workers > 0
    everyone = np.ones(responses.n_workers, dtype=bool)
    whole = validation.score(everyone, "the panel") if told or compares else None
    # A model that saw no gold has not seen these labels either.
    right = whole.right if told and whole is not None else _right(model, table)
    found = replace(
        found,
        versus=_versus(table, right),
        outdone=tuple(table.workers[j] for j in may_go),
        look_at=suspects(table, may_go),
    )
    if whole is None or not compares:
        return found
    small = smallest(validation, whole, table, may_go, priced)
    cheap = None
    if priced is not None and may_go:
        cheap = small
        if small is None or len(small.left_out) < len(may_go):
            by_price = sorted(may_go, key=lambda j: -priced[j])
            others = (small, smallest(validation, whole, table, by_price, priced))
            cheap = min(
                (each for each in others if each is not None),
                key=lambda each: each.price or 0.0,
                default=None,
            )
    return replace(found, smallest=small, cheapest=cheap, gold_gain=gold_gain(validation, whole))


def _right(model: Any, table: GoldTable) -> Floats:
    """Return where the model's labels are right, as it stands."""
    q = np.asarray(model.probabilities_)[table.task]
    return np.asarray(q.argmax(axis=1) == table.truth, dtype=np.float64)


def _without_gold(
    model: Any, preferences: tuple[SelfPreference, ...], n: int, seed: int
) -> PanelReport:
    drawn = sample(model, n, random_state=seed)
    responses = model.responses_
    nothing = np.zeros(responses.n_workers)
    return PanelReport(
        responses.n_tasks,
        0,
        tuple(_judge(responses, j, nothing, nothing) for j in range(responses.n_workers)),
        self_preference=preferences,
        to_label=tuple(model.tasks_[int(i)] for i in drawn.task),
        to_label_probability=tuple(drawn.probability.tolist()),
        workers=tuple(responses.workers),
    )


def _note_odd_gold(table: GoldTable) -> None:
    """Say where gold cannot carry what is said of it."""
    if _has_one_class(table):
        note(
            "All gold is of one class: judges that always say that class look perfect, and nothing "
            "is known of the others. Whether the panel is better than its best judge, and what a "
            "smaller one would do, cannot be told. Label tasks of other classes."
        )
    if len(table.task) < LEAST_GOLD:
        note(
            f"With {len(table.task):,} known labels all figures are rough; 50 are enough to see "
            "shared errors."
        )


def _has_one_class(table: GoldTable) -> bool:
    return len(np.unique(table.truth)) == 1 and len(table.classes) > 1


def _judges_per_task(responses: Responses) -> float:
    """Return how many judges answer a task in the mean, of those with any answer."""
    worker = responses.code // responses.n_classes
    task = responses.task_of_each()
    is_new = np.ones(len(worker), dtype=bool)
    is_new[1:] = (np.diff(worker) != 0) | (np.diff(task) != 0)
    answered = np.count_nonzero(np.diff(responses.start))
    return float(np.count_nonzero(is_new)) / float(max(int(answered), 1))


def _judges(table: GoldTable, responses: Responses) -> tuple[Judge, ...]:
    n = table.there.sum(axis=0)
    right = n - np.nansum(table.error, axis=0)
    rows = [_judge(responses, j, n, right) for j in range(len(table.workers))]
    return tuple(sorted(rows, key=lambda row: (row.n_known == 0, -np.nan_to_num(row.accuracy))))


def _judge(responses: Responses, j: int, n: Floats | Codes, right: Floats) -> Judge:
    worker = responses.workers[j]
    shown = None if responses.runs is None else responses.runs.of(worker)
    known = int(n[j])
    return Judge(
        worker,
        known,
        float(right[j] / known) if known else np.nan,
        interval_of_share(float(right[j]), float(known)),
        None if shown is None else shown.group,
        np.nan if shown is None else shown.self_agreement,
        np.nan if shown is None else shown.run_correlation,
        np.nan if shown is None else shown.flip_rate,
        np.nan if shown is None else shown.first_preference,
    )


def interval_of_share(right: float, n: float) -> tuple[float, float]:
    """Return the interval of a share after `right` of n, by Jeffreys' prior.

    >>> [round(x, 2) for x in interval_of_share(45, 50)]
    [0.79, 0.96]
    """
    tail = (1.0 - LEVEL) / 2.0
    low = float(beta.ppf(tail, right + 0.5, n - right + 0.5)) if right > 0.0 else 0.0
    high = float(beta.ppf(1.0 - tail, right + 0.5, n - right + 0.5)) if right < n else 1.0
    return low, high


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


def _unanimous(table: GoldTable, responses: Responses) -> tuple[tuple[Hashable, ...], int]:
    """Return tasks on which all judges say the same and gold says otherwise; how many agree."""
    votes = np.where(table.there[:, :, None], table.share, 0.0).sum(axis=1)
    n = table.there.sum(axis=1)
    agree = (votes.max(axis=1) >= n - 1e-9) & (n > 1)
    wrong = np.flatnonzero(agree & (votes.argmax(axis=1) != table.truth))
    tasks = tuple(responses.tasks[int(table.task[i])] for i in wrong)
    return tasks, int(np.count_nonzero(agree))


@checks(responses=Responses, seed=SEED)
def preferences_of(
    responses: Responses, systems: Any, accepts: Hashable | None, seed: int = 0
) -> tuple[SelfPreference, ...]:
    """Return by how much judges prefer answers of their own family; see `report`."""
    made_by = tables.read_systems(systems)
    if accepts is None:
        raise OptionError("Self-preference needs accepts=, the class that accepts an answer.")
    code = int(responses.classes.codes([accepts])[0])
    if code < 0:
        raise OptionError.unknown("accepts", accepts, tuple(map(str, responses.classes)))
    families = {} if responses.runs is None else responses.runs.groups()
    return self_preference(responses, made_by, families, code, seed)


def _prices(prices: Mapping[Any, float], responses: Responses) -> Floats:
    """Return the price of each judge; 0, and said, where none is given."""
    names = list(responses.workers)
    unknown = [str(name) for name in prices if name not in names]
    if unknown:
        raise OptionError(f"prices name no judge of the responses: {', '.join(unknown[:5])}.")
    missing = [str(name) for name in names if name not in prices]
    if missing:
        note(f"{len(missing):,} judges have no price and count as free: {', '.join(missing[:5])}.")
    for price in prices.values():
        require_number("The price of a judge", price, "0 or more", least=0.0)
    return np.array([float(prices.get(name, 0.0)) for name in names])
