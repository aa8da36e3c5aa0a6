"""Panels of judges: how good they are, what they share, and what would make a panel better.

A judge is named to go only if two other judges are surely more often right, on the known tasks that
they share. The error of that is at most one panel in twenty, so that the two best judges are safe.
The panel without the named judges is then scored on known tasks beside the whole one, held out and
by the method that will be used: it is "better" where the whole interval of the difference in
log-loss is below 0, "about as good" where it is within a margin, and else nothing is said.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta
from scipy.stats import t as student

from tiebreak import arguments, tables, templating
from tiebreak.data import Gold, Responses
from tiebreak.data.frames import as_plain
from tiebreak.decide.held_out import N_FOLDS, held_out
from tiebreak.errors import InputError, OptionError, note
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.known import deal
from tiebreak.inference.worker_summary import Reader, readers
from tiebreak.judges import known as known_tasks
from tiebreak.judges.agreement import by_worker
from tiebreak.judges.dependence import SharedErrors, shared_errors
from tiebreak.judges.known import LEVEL, GoldTable, PairedDifference, interval_of_share, reach
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import require_number
from tiebreak.wording import aligned, counted, first_few

LEAST_GOLD = 20  # known tasks, below which no panel is compared with another
LOSS_MARGIN = 0.05  # log-loss a task: a panel that is surely no more behind is about as good …
ACCURACY_MARGIN = 0.03  # … if it is surely no more than this behind in accuracy, too
LOSS_SPREAD = 0.5  # log-loss by which two panels differ on a task that is not seen yet
LOSS_FLOOR = 1e-4  # smallest probability in a log-loss
MOST_TASKS = 10_000  # in a fit that scores a panel; of more, the known ones and a sample
BEHIND = 0.05  # accuracy, by which a judge to look at is surely behind the others
TOO_OFTEN = 0.05  # share of tasks, by which a class is surely said too often
MOST_SUSPECTS = 3
SURE = 0.95  # a sentence says yes or no from this probability on

N_TASKS = 50  # to label
EVEN = 0.5  # of them, drawn evenly; the others where the panel is unsure

LEAST_ANSWERS = 10  # of the own family and of others, for self-preference

MAX_SHOWN = 20  # judges in the text; to_dict has all
MAX_TO_LABEL = 60  # tasks that are named
WIDTH = 100  # characters of a line of tasks
OF_RUNS = {
    "agrees with itself": "self_agreement",
    "flips with order": "flip_rate",
    "prefers first": "first_preference",
}


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
    readers: tuple[Reader, ...] = field(default=(), repr=False)  # of a scale
    readers_know_gold: bool = field(default=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text and lists; None where a number is not known."""
        return dict(as_plain(self))

    def __str__(self) -> str:
        lines = []
        if not self.n_known:
            shown = first_few(list(map(str, self.to_label)), MAX_TO_LABEL)
            lines = [
                "Shared errors cannot be seen without gold: what most judges get wrong counts as "
                "right.",
                f"Label these {counted(len(self.to_label), 'task')}, and give them as gold:",
                *textwrap.wrap(shown, WIDTH, initial_indent="  ", subsequent_indent="  "),
            ]
        lines += self._table()
        findings = self.sentences()
        if self.shared is not None or self.readers:
            lines.append("")
        return "\n".join([*lines, *findings])

    def _table(self) -> list[str]:
        judges = self.judges[:MAX_SHOWN]
        columns = {"judge": [str(each.worker) for each in judges]}
        if self.n_known:
            columns["accuracy"] = [_share(each.accuracy) for each in judges]
            columns["95 %"] = [" to ".join(map(_share, each.interval)) for each in judges]
            columns["known"] = [f"{each.n_known:,}" for each in judges]
        for title, name in OF_RUNS.items():
            values = [getattr(each, name) for each in judges]
            if not np.isnan(values).all():
                columns[title] = list(map(_share, values))
        if any(each.group is not None for each in judges):
            columns["group"] = [each.group or "–" for each in judges]
        lines = aligned([list(columns), *zip(*columns.values(), strict=True)], to_right=True)
        more = len(self.judges) - len(judges)
        return [*lines, f"… and {more:,} more"] if more > 0 else lines

    def sentences(self) -> list[str]:
        """Return what is found beside the table of judges, a sentence or two each."""
        return templating.sentences(
            "tiebreak.judges",
            "panel.txt",
            r=self,
            several=len(self.workers) > 1,
            judges=lambda codes: [self.workers[j] for j in codes],
            sure=SURE,
            most=MAX_SHOWN,
            share=_share,
            shares=lambda interval: " to ".join(map(_share, interval)),
            number=lambda value, digits=2: f"{value:.{digits}f}",
            between=lambda ends, digits=2: " to ".join(f"{end:.{digits}f}" for end in ends),
            some=lambda names: first_few(list(map(str, names)), 6),
            repr=repr,
        )


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1) if value < 1 else "1.00"


@arguments.checks(
    model=arguments.WITH_RESPONSES,
    prices=arguments.optional(arguments.MAPPING),
    n_to_label=arguments.whole(1),
    random_state=arguments.SEED,
    sub_panels=arguments.FLAG,
    progress=arguments.optional(arguments.FUNCTION),
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
    found |= {"readers": readers(model), "readers_know_gold": model.gold_ is not None}
    if systems is not None:
        found["self_preference"] = self_preferences(responses, systems, accepts)
    task, label = known_tasks.known_codes(gold, model.tasks_, model.classes_)
    if not len(task):
        drawn = sample_tasks(model, n_to_label, random_state=random_state)
        return PanelReport(
            **found,
            n_known=0,
            judges=_judges(responses, np.empty((0, responses.n_workers))),
            to_label=tuple(model.tasks_[int(i)] for i in drawn.task),
            to_label_probability=tuple(drawn.probability.tolist()),
        )
    table = known_tasks.gold_table(responses, task, label)
    n_known = len(table.task)
    one_class = len(np.unique(table.truth)) == 1 and len(table.classes) > 1
    if one_class:
        note("panel-of-one-class")
    if n_known < LEAST_GOLD:
        note("few-known-labels", n=n_known)
    priced = None if prices is None else _prices(prices, responses)
    n_answered = int(np.count_nonzero(np.diff(responses.start)))
    cells = responses.task_of_each().astype(np.int64) * responses.n_workers
    n_judges = len(np.unique(cells + responses.worker_of_each())) / n_answered
    votes = np.where(table.there[:, :, None], table.share, 0.0).sum(axis=1)
    n_votes = table.there.sum(axis=1)
    agree = (votes.max(axis=1) >= n_votes - 1e-9) & (n_votes > 1)
    wrong = table.task[agree & (votes.argmax(axis=1) != table.truth)]
    found |= {
        "n_known": n_known,
        "judges": _judges(responses, table.error),
        "shared": shared_errors(table, n_judges),
        "n_unanimous": int(np.count_nonzero(agree)),
        "unanimous_wrong": tuple(responses.tasks[int(i)] for i in wrong),
    }
    if one_class:
        return PanelReport(**found)  # what is best for one class may be worst for the others
    may_go = outdone(table)
    panels = _Panels(model, table, gold, progress)
    saw_gold = model.gold_ is not None and len(model.gold_) > 0
    compares = sub_panels and n_known >= LEAST_GOLD
    everyone = panels.score([], "the panel") if saw_gold or compares else None
    if saw_gold and everyone is not None:
        right = everyone[1]
    else:  # a model that saw no gold has not seen these labels either
        said = np.asarray(model.probabilities_)[table.task].argmax(axis=1)
        right = (said == table.truth).astype(np.float64)
    found |= {
        "versus": _versus(table, right),
        "outdone": tuple(table.workers[j] for j in may_go),
        "look_at": suspects(table, may_go),
    }
    if compares and everyone is not None:
        small = panels.smallest(everyone, may_go, priced)
        cheap = small
        if priced is not None and may_go and (small is None or len(small.left_out) < len(may_go)):
            by_price = sorted(may_go, key=lambda j: -priced[j])
            tried = [small, panels.smallest(everyone, by_price, priced)]
            cheap = min(
                (each for each in tried if each is not None),
                key=lambda each: each.price or 0.0,
                default=None,
            )
        half, _ = panels.score([], "the panel with half of the gold", half_of_gold=True)
        change = PairedDifference.of(everyone[0], half, LOSS_SPREAD)
        losses = (float(half.mean()), float(everyone[0].mean()))
        found |= {
            "smallest": small,
            "cheapest": None if priced is None else cheap,
            "gold_gain": GoldGain(n_known, *losses, change),
        }
    return PanelReport(**found)


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


def _versus(table: GoldTable, right: Floats) -> Versus:
    """Compare the panel with its best judge: the one that is best on the known tasks.

    That judge owes its place to luck, too. One that is picked for each task by the other known
    tasks does not; but of equal judges it is one that erred on the task left out. The truth lies
    between the two, and the probability is that which is nearer to one half.
    """
    there = table.there
    error = np.where(there, table.error, 0.0)
    chances = []
    best_rights = []
    for leave_out in (0.0, 1.0):
        # One error in two tasks is added, so that a judge with two tasks is not the best of all.
        # Where the best did not answer, the next best stands in; where nobody did, it is wrong.
        wrong = error.sum(axis=0) - leave_out * error + 1.0
        rate = wrong / (there.sum(axis=0) - leave_out * there + 2.0)
        best = np.argmin(np.where(there, rate, np.inf), axis=1)
        best_right = np.where(there.any(axis=1), 1.0 - error[np.arange(len(best)), best], 0.0)
        # Only tasks on which one is right and the other wrong tell them apart. Of these the share
        # has a beta posterior with an even prior: after five to none it is .98, not 1.
        change = right - best_right
        ahead = np.maximum(change, 0.0).sum()
        chances.append(float(beta.sf(0.5, ahead + 1.0, ahead - change.sum() + 1.0)))
        best_rights.append(float(best_right.mean()))
    n = there.sum(axis=0)
    accuracy = 1.0 - error.sum(axis=0) / np.maximum(n, 1)
    return Versus(
        table.workers[int(np.argmax(np.where(n >= max(n.max() / 2.0, 1.0), accuracy, -1.0)))],
        float(right.mean()),
        interval_of_share(float(right.sum()), float(len(right))),
        best_rights[0],
        sorted((*chances, 0.5))[1],
    )


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


def suspects(table: GoldTable, may_go: list[int]) -> tuple[Suspect, ...]:
    """Return judges to look at, the one furthest behind the others first.

    Either two judges are surely better, and the mean of the others is by far; or it says one class
    surely too often, and is not one of the two that are most often right.
    """
    n_judges, n_classes = table.share.shape[1:]
    wrong = (np.nansum(table.error, axis=0) + 1.0) / (table.there.sum(axis=0) + 2.0)
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
        behind = PairedDifference.of(mine, theirs, 1.0, 1.0 - (1.0 - LEVEL) / n_judges)
        level = 1.0 - (1.0 - LEVEL) / (n_judges * n_classes)
        said, is_true = table.share[rows, j], np.eye(n_classes + 1)[table.truth[rows], :-1]
        excess = [
            PairedDifference.of(said[:, k], is_true[:, k], 1.0, level).low for k in range(n_classes)
        ]
        k = int(np.argmax(excess))
        is_fond = excess[k] > TOO_OFTEN
        if (j in may_go and behind.high < -BEHIND) or (is_fond and j not in best):
            fond_of = (table.classes[k], float(said[:, k].mean()), float(is_true[:, k].mean()))
            accuracies = (float(mine.mean()), float(theirs.mean()), behind)
            shown = fond_of if is_fond else (None, np.nan, np.nan)
            found.append(Suspect(table.workers[j], *accuracies, *shown))
    return tuple(sorted(found, key=lambda each: each.behind.value)[:MOST_SUSPECTS])


class _Panels:
    """Scores a panel, and parts of it, on known tasks held out: one fit for each fold of gold."""

    def __init__(
        self, model: Any, table: GoldTable, gold: Any, progress: Callable[[str], None] | None
    ) -> None:
        self.model, self.table, self.progress = model, table, progress
        responses: Responses = model.responses_
        if responses.n_tasks > MOST_TASKS and model.links_ is None:
            # The known tasks and a sample. With links all stay, as any may depend on any other.
            chosen = np.zeros(responses.n_tasks, dtype=bool)
            chosen[known_tasks.drawn_by_name(responses.tasks, MOST_TASKS)] = True
            chosen[table.task] = True
            responses = responses.on_tasks(np.flatnonzero(chosen))
        self.responses = responses
        known = {} if model.gold_ is None else model.gold_.to_dict()
        known |= tables.read_gold({} if gold is None else gold).to_dict()
        codes = responses.tasks.codes(list(known)).tolist()  # 7 may be text in gold, no number
        pairs = zip(codes, known.values(), strict=True)
        by_task = {responses.tasks[code]: label for code, label in pairs if code >= 0}
        self.gold = Gold.from_dict(by_task)
        names = [model.tasks_[int(i)] for i in table.task]
        self.rows = self.gold.tasks.codes(names)  # of the table's tasks in gold
        self.dealt = np.full(len(self.gold), -1, dtype=np.int32)
        self.dealt[self.rows] = deal_alike(
            model.responses_, table.task, [by_task[name] for name in names]
        )

    def score(
        self, left_out: Sequence[int], what: str, *, half_of_gold: bool = False
    ) -> tuple[Floats, Floats]:
        if self.progress is not None:
            self.progress(f"scoring {what}")
        responses = self.responses
        if left_out:  # they stay, without responses
            kept = ~np.isin(responses.worker_of_each(), left_out)
            n_each = np.bincount(responses.task_of_each()[kept], minlength=responses.n_tasks)
            responses = replace(
                responses,
                start=np.concatenate([[0], np.cumsum(n_each)]).astype(responses.start.dtype),
                code=responses.code[kept],
                weight=None if responses.weight is None else responses.weight[kept],
            )
        fold = np.where(self.dealt < 0, -1, self.dealt % N_FOLDS).astype(np.int32)
        hidden: Mask | None = self.dealt >= N_FOLDS if half_of_gold else None
        classes, q = held_out(self.model, self.gold, fold, hidden=hidden, responses=responses)
        q, label = q[self.rows], classes.codes(self.gold.classes)[self.gold.label[self.rows]]
        p = q[np.arange(len(q)), label]
        return -np.log(np.maximum(p, LOSS_FLOOR)), (q.argmax(axis=1) == label) * 1.0

    def smallest(
        self, everyone: tuple[Floats, Floats], may_go: list[int], prices: Floats | None = None
    ) -> SmallPanel | None:
        """Leave out as many of those who may go, the first ones first, as surely does no harm.

        All of them, half of them, the first: three panels at most are scored.
        """
        n, workers = len(may_go), self.table.workers
        tries = sorted({n, (n + 1) // 2, min(n, 1)} - {0}, reverse=True)
        for size in tries:
            what = f"the panel without {size} of {len(workers)} judges"
            loss, right = self.score(may_go[:size], what)
            level = 1.0 - (1.0 - LEVEL) / len(tries)
            change = PairedDifference.of(loss, everyone[0], LOSS_SPREAD, level)
            lost = PairedDifference.of(everyone[1], right, 1.0, level)
            if change.high <= LOSS_MARGIN and lost.high <= ACCURACY_MARGIN:
                answers = np.unique(self.responses.worker_of_each())
                kept = np.setdiff1d(answers, may_go[:size])
                return SmallPanel(
                    tuple(workers[int(j)] for j in kept),
                    tuple(workers[j] for j in may_go[:size]),
                    float(loss.mean()),
                    float(everyone[0].mean()),
                    change,
                    float(right.mean()),
                    float(everyone[1].mean()),
                    None if prices is None else float(prices[kept].sum()),
                    None if prices is None else float(prices.sum()),
                )
        return None


def deal_alike(responses: Responses, task: Codes, truth: Sequence[Hashable]) -> Codes:
    """Deal known tasks into 2 N_FOLDS parts; parts f and f + N_FOLDS are a fold.

    Tasks are sorted by their class and responses: folds are alike, and the order of rows has no
    influence. Ties are in the order of ids, which matters only with links.
    """
    workers, classes = list(map(str, responses.workers)), list(map(str, responses.classes))
    weight = responses.weight_of_each()
    keys = []
    for i, known in zip(task.tolist(), truth, strict=True):
        said = zip(*responses.of(i), weight[slice(*responses.start[i : i + 2])], strict=True)
        what = sorted((workers[int(w)], classes[int(k)], float(n)) for w, k, n in said)
        keys.append((str(known), what, str(responses.tasks[i])))
    return deal(np.array(sorted(range(len(keys)), key=keys.__getitem__)), 2 * N_FOLDS)


# Which tasks to label


class Sample(NamedTuple):
    """Tasks to label, and the chance with which each was drawn."""

    task: Codes
    probability: Floats


@arguments.checks(model=arguments.WITH_RESPONSES, n=arguments.whole(1), random_state=arguments.SEED)
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
    share = EVEN / len(among) + (1.0 - EVEN) * unsure / unsure.sum()
    # In proportion to shares, but none above 1: what is cut off goes to the others.
    chance = np.minimum(n * share, 1.0)
    for _ in range(20):
        free = chance < 1.0
        rest = n - np.count_nonzero(~free)
        before = chance
        if free.any() and rest > 0:
            chance = np.where(free, np.minimum(rest * share / share[free].sum(), 1.0), 1.0)
        if np.allclose(chance, before):
            break
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(among))
    # Systematic sampling: one start, equal steps along the sum of chances.
    marks = np.floor(np.cumsum(chance[order]) + rng.random())
    drawn = np.sort(order[np.flatnonzero(np.diff(marks, prepend=0.0) > 0.0)][:n])
    return Sample(among[drawn].astype(np.int32), chance[drawn])


# Families of judges


@arguments.checks(responses=Responses)
def self_preferences(
    responses: Responses, systems: Any, accepts: Hashable | None
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
    accepted = int(responses.classes.codes([accepts])[0])
    if accepted < 0:
        classes = tuple(responses.classes)
        raise OptionError("unknown-accepting-class", label=accepts, classes=classes)
    made_by = tables.read_texts(systems, of="system")
    task = responses.tasks.codes(list(made_by))
    names = [name.casefold() for name, i in zip(made_by.values(), task, strict=True) if i >= 0]
    judged = responses.on_tasks(task[task >= 0])
    weight = judged.weight_of_each()
    total = by_worker(judged, values=weight).toarray()
    yes = by_worker(judged, values=weight * (judged.label_of_each() == accepted)).toarray()
    share = np.divide(yes, total, out=np.full(total.shape, np.nan), where=total > 0.0)
    families = {} if responses.runs is None else responses.runs.groups()
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
        preference = float(gap[mine].mean() - gap[theirs].mean())
        error = np.sqrt(sum(gap[each].var(ddof=1) / len(each) for each in (mine, theirs)))
        half = float(student.ppf((1.0 + LEVEL) / 2.0, min(len(mine), len(theirs)) - 1) * error)
        interval = (preference - half, preference + half)
        found.append(SelfPreference(judge, family, len(mine), preference, interval))
    return tuple(sorted(found, key=lambda each: -each.preference))


@arguments.checks(
    responses=Responses,
    groups=arguments.optional(arguments.MAPPING),
    dependence=arguments.number("between 0 and 1", least=0.0, most=1.0),
)
def share_discount(
    responses: Responses,
    groups: Mapping[Any, str] | None = None,
    dependence: float = 0.3,
) -> Responses:
    """Let the judges of a group share one discount, the design effect, as responses of a task do.

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
    total = np.bincount(key, weights=weight).astype(np.float64)[key]
    return replace(responses, weight=weight * Calibration(dependence).scale(total))
