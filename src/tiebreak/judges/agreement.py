"""Agreement: how far workers give the same labels, before any model is fitted.

Krippendorff's α, Fleiss' κ and the percentage of equal pairs need only how often each task got each
label; tasks with one label are left out.

Cohen's κ and copies need, for each pair of workers, the number of tasks with some property that
they share. A sparse table A of tasks by workers, 1 where that holds, has these numbers in AᵀA:

    task   answers                A    ann  bob  eve     AᵀA   ann  bob  eve
    a      ann x, bob x, eve y         1    1    1       ann   2    2    1
    b      ann y, bob y                1    1    0       bob   2    2    1

Spam and copies are reasons to look at a worker, not proof. A worker model gives little weight to
workers that guess; it cannot see copies.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import bdtrc
from scipy.stats import t as student

from tiebreak import tables
from tiebreak.arguments import FUNCTION, SEVERAL, checks, optional
from tiebreak.data import Responses
from tiebreak.data.ids import Ids, as_numbers
from tiebreak.data.runs import plurality
from tiebreak.data.scale import MOST_LEVELS, coincidences, share_of_orders
from tiebreak.errors import InputError, OptionError
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import as_floats, require_word

Level = Literal["nominal", "ordinal", "interval"]
LEVELS = ("nominal", "ordinal", "interval")
COVERAGE = 0.95  # of the interval of α
AT_ONCE = 1 << 22  # numbers in memory
MAX_SHARED = 4_000_000  # about two seconds; of more, tasks are drawn

MIN_ANSWERS = 10  # a worker with fewer is not judged
GUESSING = 1 / 3  # of the median worker's κ: a worker guesses whose upper limit stays below
LEAST_ERRORS = 5  # tasks on which two workers give the same wrong label, for a suspicion
COPIED = 0.8  # of the tasks on which either errs, both do, alike
UNLIKELY = 1e-3  # chance that any pair of honest workers looks like this, all pairs together
MAX_SUSPECTS = 50  # of each kind, the clearest first


class AgreementReport(NamedTuple):
    """How far workers agree; codes of workers are places in `workers`."""

    n_tasks: int  # with at least two labels
    percent: float  # how often two labels of a task are equal, 0 to 1
    alpha: Alpha
    alpha_ordinal: Alpha | None  # None where the classes have no known order
    alpha_interval: Alpha | None  # by the numbers that classes are, or their places in the order
    share_of_orders: float | None  # that bring answers as near: at most 3.5 % looks like a scale
    fleiss_kappa: float
    cohen_kappa: float  # mean over pairs of workers, weighted by shared tasks
    pairs: CohenKappas
    spam: list[Spam]
    copies: list[Copies]
    workers: Ids


@checks(order=optional(SEVERAL), watch=optional(FUNCTION))
def agreement_report(
    responses: Any,
    *,
    order: Sequence[Hashable] | None = None,
    watch: Callable[[str], None] | None = None,
) -> AgreementReport:
    """Measure agreement in all the ways that papers report.

    Parameters
    ----------
    responses
        Responses, or anything that `read_responses` takes.
    order
        Classes from lowest to highest, for ordinal α. Labels that are numbers need none.
    watch
        Called with the name of each step, before it.
    """
    tell = watch or (lambda _: None)
    tell("counting labels")
    crowd = plurality(tables.read_responses(responses))
    counts = count_labels(crowd)
    if not counts.n_tasks:
        raise InputError("no-two-labels")
    percent = percent_agreement(counts)
    codes = _ordered_codes(crowd.classes, order)
    tell("Krippendorff's α")
    nominal = krippendorff_alpha(counts)
    ordinal = interval = share = None
    if codes is not None:
        ordinal = krippendorff_alpha(counts, "ordinal", order=codes)
        values = as_numbers(crowd.classes)[0][codes]
        values = values if np.isfinite(values).all() else np.arange(len(codes), dtype=np.float64)
        interval = krippendorff_alpha(counts, "interval", order=codes, values=values)
        if len(codes) <= MOST_LEVELS:
            share = share_of_orders(coincidences(crowd)[np.ix_(codes, codes)])
    tell("pairs of workers")
    some = few_enough(crowd)
    kappas = cohen_kappas(some)
    tell("workers that stand out")
    spam, share_equal = _compare_with_others(crowd)
    # A worker right with probability a agrees with others with about a · √percent.
    skill = share_equal / np.sqrt(max(percent, 1e-9))
    return AgreementReport(
        counts.n_tasks,
        percent,
        nominal,
        ordinal,
        interval,
        share,
        fleiss_kappa(counts),
        kappas.mean(),
        kappas,
        spam,
        find_copies(some, kappas, skill),
        crowd.workers,
    )


def _ordered_codes(classes: Ids, order: Sequence[Hashable] | None) -> npt.NDArray[np.int64] | None:
    """Return the codes of classes from lowest to highest, None where they have no order."""
    if order is not None:
        codes = classes.codes(list(order))
        if len(order) != len(classes) or set(codes.tolist()) != set(range(len(classes))):
            raise OptionError("order-not-classes", classes=tuple(classes), order=tuple(order))
        return codes.astype(np.int64)
    try:
        numbers = [float(str(name)) for name in classes]
    except ValueError:
        return None
    return np.argsort(numbers, kind="stable") if len(numbers) > 2 else None


# Coefficients over all workers


class Counts(NamedTuple):
    """How often labels were given to tasks that have at least two."""

    table: sparse.csr_array  # (n_tasks, n_classes)

    @property
    def n_tasks(self) -> int:
        """How many tasks have at least two labels."""
        return int(self.table.shape[0])

    def votes(self) -> Floats:
        """Count the labels of each task."""
        return np.asarray(self.table.sum(axis=1), dtype=np.float64).ravel()

    def squares(self) -> Floats:
        """Add up the squared counts of each task."""
        return np.asarray((self.table * self.table).sum(axis=1)).ravel()


class Alpha(NamedTuple):
    """Krippendorff's α, and its interval of 95 %."""

    value: float  # NaN where all labels are of one class
    low: float | None
    high: float | None
    level: Level


def by_label(responses: Responses) -> sparse.csr_array:
    """Count the labels of each task, (n_tasks, n_classes)."""
    cells = (responses.task_of_each(), responses.label_of_each())
    shape = (responses.n_tasks, responses.n_classes)
    return sparse.csr_array(sparse.coo_array((np.ones(responses.n_responses), cells), shape=shape))


@checks(responses=Responses)
def count_labels(responses: Responses) -> Counts:
    """Count labels by task and class, on tasks that have at least two."""
    return Counts(by_label(responses)[np.diff(responses.start) >= 2])


def as_counts(responses: Any) -> Counts:
    """Count labels, where that is not done yet; whatever `read_responses` takes will do."""
    if isinstance(responses, Counts):
        return responses
    return count_labels(tables.read_responses(responses))


def percent_agreement(responses: Any) -> float:
    """Return how often two labels of one task are equal, averaged over tasks."""
    counts = as_counts(responses)
    votes = counts.votes()
    return float(((counts.squares() - votes) / (votes * (votes - 1.0))).mean())


def fleiss_kappa(responses: Any) -> float:
    """Return Fleiss' κ (1971); tasks may have different numbers of labels.

    κ = (P − E) / (1 − E), P the mean share of equal pairs of a task and E = Σ p_c², with p_c the
    share of class c among all labels.
    """
    counts = as_counts(responses)
    totals = np.asarray(counts.table.sum(axis=0)).ravel()
    by_chance = float(((totals / totals.sum()) ** 2).sum())
    if by_chance >= 1.0:
        return float("nan")
    return (percent_agreement(counts) - by_chance) / (1.0 - by_chance)


def krippendorff_alpha(
    responses: Any,
    level: Level = "nominal",
    *,
    order: npt.NDArray[np.int64] | None = None,
    values: Floats | None = None,
) -> Alpha:
    """Return Krippendorff's α, and its interval by the jackknife over tasks.

    Parameters
    ----------
    responses
        Responses, or anything that `read_responses` takes; or what `count_labels` returned.
    level
        "nominal": two labels are equal or not. "ordinal": classes have an order, and labels far
        apart count as more different. "interval": by the squared difference of their values.
    order
        Codes of the classes from lowest to highest; as they are sorted if not given.
    values
        The number of each class, in this order; if not given, 0, 1, 2, …
    """
    require_word("level", level, LEVELS)
    counts = as_counts(responses)
    n_tasks, n_classes = counts.table.shape
    if order is not None:
        given = as_floats("order", order)
        if given.ndim != 1 or sorted(given.tolist()) != list(range(n_classes)):
            words = f"the codes 0 to {n_classes - 1}, each once"
            raise OptionError.must_be("order", words, order)
        counts = Counts(sparse.csr_array(counts.table[:, given.astype(np.int64)]))
    if values is None:
        values = np.arange(n_classes, dtype=np.float64)
    words = f"{n_classes} numbers"
    values = as_floats("values", values, words, shapes=[(n_classes,)], are_right=np.isfinite)
    without = _alpha_without(counts, level, values)
    value = float(without(np.zeros((1, n_classes)))[0])
    if n_tasks < 2 or np.isnan(value):
        return Alpha(value, None, None, level)
    step = max(AT_ONCE // n_classes, 1)
    parts = (counts.table[low : low + step].toarray() for low in range(0, n_tasks, step))
    left = np.concatenate([without(part) for part in parts])
    left = left[~np.isnan(left)]  # nan without a task that alone has another class
    n = max(len(left), 2)
    error = np.sqrt((n - 1.0) / n * np.square(left - left.mean()).sum())
    half = float(student.ppf((1.0 + COVERAGE) / 2.0, n - 1.0) * error)
    return Alpha(value, value - half, min(value + half, 1.0), level)


def _alpha_without(counts: Counts, level: Level, values: Floats) -> Callable[[Floats], Floats]:
    """Return α = 1 − D_o / D_e as a function of the labels of a task to leave out, (n, n_classes).

    D_o = Σ_u Σ_{c,k} n_uc n_uk d_ck / (m_u − 1) and D_e = Σ_{c,k} n_c n_k d_ck / (n − 1). The
    squared difference d_ck of two nominal classes is 1 unless c = k. That of ordinal ones is
    (r_c − r_k)², r the mid-ranks of classes among all labels, so that
    Σ_{c,k} n_c n_k d_ck = 2 (n Σ n_c r_c² − (Σ n_c r_c)²), and D_o = rᵀ A r; with intervals r are
    the values.
    """
    table, votes = counts.table, counts.votes()
    totals = np.asarray(table.sum(axis=0)).ravel()
    share = 1.0 / (votes - 1.0)
    nominal = share @ (votes**2 - counts.squares())
    quadratic = np.diag(table.T @ (share * votes)) - (table.T @ (table * share[:, None])).toarray()

    def without(task: Floats) -> Floats:
        m = task.sum(axis=1)
        others = np.maximum(m - 1.0, 1.0)
        rest = totals - task
        n = rest.sum(axis=1)
        if level == "nominal":
            observed = nominal - (m**2 - (task**2).sum(axis=1)) / others
            expected = n**2 - (rest**2).sum(axis=1)
        else:
            r = np.cumsum(rest, axis=1) - rest / 2.0
            if level == "interval":
                r = np.broadcast_to(values, rest.shape)
            own = m * (task * r**2).sum(axis=1) - (task * r).sum(axis=1) ** 2
            observed = 2.0 * ((r @ quadratic * r).sum(axis=1) - own / others)
            expected = 2.0 * (n * (rest * r**2).sum(axis=1) - (rest * r).sum(axis=1) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 1.0 - observed * (n - 1.0) / expected
        return np.where(expected > 0.0, found, np.nan)

    return without


# Pairs of workers


class CohenKappas(NamedTuple):
    """Cohen's κ of each pair of workers that share a task."""

    first: Codes  # worker
    second: Codes
    n_shared: npt.NDArray[np.int64]  # tasks that both answered
    n_equal: npt.NDArray[np.int64]  # of these, with the same label
    kappa: Floats  # NaN where both gave one and the same label only

    def mean(self) -> float:
        """Return the mean κ, weighted by shared tasks; NaN where no pair has one."""
        known = ~np.isnan(self.kappa)
        weights = self.n_shared[known].astype(np.float64)
        return float(self.kappa[known] @ weights / weights.sum()) if known.any() else float("nan")


def few_enough(responses: Responses) -> Responses:
    """Return responses with at most MAX_SHARED pairs of answers: all, or those to drawn tasks."""
    votes = np.diff(responses.start)
    n_pairs = votes * (votes - 1) // 2
    if n_pairs.sum() <= MAX_SHARED:
        return responses
    order = np.random.default_rng(0).permutation(np.flatnonzero(votes >= 2))
    n_kept = int(np.searchsorted(np.cumsum(n_pairs[order]), MAX_SHARED))
    return responses.on_tasks(np.sort(order[: max(n_kept, 1)]))


def by_worker(
    responses: Responses,
    which: Mask | slice = slice(None),
    values: Floats | None = None,
    *,
    by_label: bool = False,
) -> sparse.csr_array:
    """Count some answers, or add up their values, by task and worker.

    `table.T @ table` then counts, for each pair of workers, the tasks that they share; `by_label`:
    with a row for each task and label, those on which they give the same label.
    """
    row, worker = responses.task_of_each()[which], responses.worker_of_each()[which]
    n_rows = responses.n_tasks
    if by_label:
        row = row.astype(np.int64) * responses.n_classes + responses.label_of_each()[which]
        n_rows *= responses.n_classes
    values = np.ones(len(row)) if values is None else values[which]
    shape = (n_rows, responses.n_workers)
    return sparse.csr_array(sparse.coo_array((values, (row, worker)), shape=shape))


@checks(responses=Responses)
def cohen_kappas(responses: Responses) -> CohenKappas:
    """Return Cohen's κ of every pair of workers with shared tasks.

    κ = (P − E) / (1 − E): P how often both gave the same label to a shared task, E how often they
    would if each kept to its own shares of labels there.
    """
    answered = by_worker(responses)
    shared = answered.T @ answered
    labelled = by_worker(responses, by_label=True)
    equal = labelled.T @ labelled
    chance = sparse.csr_array(shared.shape)
    for k in range(responses.n_classes):
        # [a, b]: how often a says the class, on tasks that b answered
        said = by_worker(responses, responses.label_of_each() == k).T @ answered
        chance = chance + said * said.T
    first, second = (each.astype(np.int32) for each in sparse.triu(shared, 1).tocsr().nonzero())
    n_shared, n_equal, n_chance = (_at(each, first, second) for each in (shared, equal, chance))
    by_chance = n_chance / np.maximum(n_shared, 1) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = (n_equal / np.maximum(n_shared, 1) - by_chance) / (1.0 - by_chance)
    kappa[by_chance >= 1.0] = np.nan
    return CohenKappas(first, second, n_shared, n_equal, kappa)


def _at(table: sparse.csr_array, first: Codes, second: Codes) -> npt.NDArray[np.int64]:
    """Return the counts of pairs of workers in a table of all workers by all workers."""
    if not len(first):  # scipy makes an array of no pairs sparse
        return np.empty(0, dtype=np.int64)
    return np.asarray(table[first, second]).ravel().astype(np.int64)


# Suspects


class Spam(NamedTuple):
    """A worker that looks like spam."""

    worker: int  # code
    n_answers: int
    kappa: float  # agreement with the others, beyond chance
    reason: str


class Copies(NamedTuple):
    """Two workers that look like copies of each other."""

    first: int  # code of a worker
    second: int
    n_shared: int
    n_equal: int
    reason: str


@checks(responses=Responses)
def find_spam(responses: Responses) -> list[Spam]:
    """Return workers that agree with the others no better than chance, or give one label only."""
    return _compare_with_others(responses)[0]


def _compare_with_others(responses: Responses) -> tuple[list[Spam], Floats]:
    """Compare each answer with the other answers to its task.

    P is the mean share of others that say the same, E what the worker's own shares of labels and
    those of the others give by chance, κ = (P − E) / (1 − E). Returns suspects, and P of each
    worker.
    """
    n_workers, n_classes = responses.n_workers, responses.n_classes
    every, label = responses.worker_of_each(), responses.label_of_each()
    n_others = np.repeat(np.diff(responses.start) - 1, np.diff(responses.start))
    compared = n_others > 0
    n_equal = np.asarray(by_label(responses)[responses.task_of_each(), label]).ravel() - 1.0
    share = n_equal[compared] / n_others[compared]
    worker = every[compared]
    n_compared = np.bincount(worker, minlength=n_workers).astype(np.float64)
    n = np.maximum(n_compared, 1.0)
    mean = np.bincount(worker, share, n_workers) / n
    variance = np.maximum(np.bincount(worker, share**2, n_workers) / n - mean**2, 0.0)
    cell = worker.astype(np.int64) * n_classes + label[compared]
    own = np.bincount(cell, minlength=n_workers * n_classes).reshape(n_workers, n_classes)
    overall = own.sum(axis=0) / max(own.sum(), 1)
    by_chance = np.minimum(own @ overall / n, 1.0 - 1e-12)
    kappa = (mean - by_chance) / (1.0 - by_chance)
    error = np.sqrt(variance / n) / (1.0 - by_chance)
    is_judged = n_compared >= MIN_ANSWERS
    usual = float(np.median(kappa[is_judged])) if is_judged.any() else 0.0
    guesses = is_judged & (kappa + 2.0 * error < GUESSING * usual)
    # One label only, though others gave another one mostly.
    alike = is_judged & (own.max(axis=1) == n_compared) & (mean < 0.5)
    reasons = ("hardly agrees with others more than chance would", "gives one label only")
    n_answers = np.bincount(every, minlength=n_workers)
    suspects = [int(w) for w in np.argsort(kappa, kind="stable") if guesses[w] or alike[w]]
    return [
        Spam(w, int(n_answers[w]), float(kappa[w]), reasons[int(alike[w])])
        for w in suspects[:MAX_SUSPECTS]
    ], mean


def find_copies(responses: Responses, kappas: CohenKappas, skill: Floats) -> list[Copies]:
    """Return pairs that share their errors, or agree on more tasks than honest workers would.

    `skill` is with what probability each worker is right.
    """
    n_same, n_any = _stand_against_others(responses, kappas)
    n_pairs = max(len(kappas.first), 1)
    usual = n_same.sum() / max(n_any.sum(), 1.0)
    by_chance = bdtrc(n_same - 1.0, n_any, min(max(usual, 0.01), 0.99))
    shares_errors = (n_same >= LEAST_ERRORS) & (n_same >= COPIED * n_any)
    shares_errors &= by_chance < UNLIKELY / n_pairs
    likely = np.clip(skill[kappas.first] * skill[kappas.second], 0.5, 1.0)
    log_chance = kappas.n_shared * np.log(likely)
    always = (kappas.n_equal == kappas.n_shared) & (log_chance < np.log(UNLIKELY / n_pairs))
    chosen = np.flatnonzero(shares_errors | always)
    order = chosen[np.argsort(-(n_same[chosen] + kappas.n_equal[chosen]), kind="stable")]
    return [
        Copies(
            int(kappas.first[p]),
            int(kappas.second[p]),
            int(kappas.n_shared[p]),
            int(kappas.n_equal[p]),
            f"both stand against the others on {int(n_same[p]):,} tasks, with the same label"
            if shares_errors[p]
            else "equal answers to all shared tasks",
        )
        for p in order[:MAX_SUSPECTS].tolist()
    ]


def _stand_against_others(
    responses: Responses, kappas: CohenKappas
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count, by pair, tasks on which both differ alike from more than half of the others.

    Return that and on how many tasks either of them does.
    """
    task, label = responses.task_of_each(), responses.label_of_each()
    table = by_label(responses)
    n, n_top = np.diff(responses.start), table.max(axis=1).toarray().ravel()
    differs = label != np.asarray(table.argmax(axis=1)).ravel()[task]
    # Of the n − 2 others, n_top say the top label where neither of the pair does, one less where
    # one of the pair does.
    is_clear = differs & ((n >= 4) & (2 * n_top > n - 2))[task]
    is_clearer = ((n >= 4) & (2 * n_top > n))[task]
    both = by_worker(responses, is_clear)
    alone = by_worker(responses, is_clearer & differs).T @ by_worker(
        responses, is_clearer & ~differs
    )
    alike = by_worker(responses, is_clear, by_label=True)
    either = both.T @ both + alone + alone.T
    pair = (kappas.first, kappas.second)
    return _at(alike.T @ alike, *pair), _at(either, *pair)
