"""Scales: classes with an order, and how a worker reads them.

A scale is declared ("1..5", "0..100/20", a list of words) or found: numbers whose order brings
answers to one task nearer to each other than nearly all other orders do. A worker reads it through
a channel: a bias, a gain, a blur and a lapse.

    levels   1 2 3 4 5      bias −1    reads 3 as 2
    step     1              gain 1.6   reads 4 as 4.6, 2 as 1.4
    middle   3              blur .5    a normal error with half a step as its standard deviation
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.data import messages  # noqa: F401  # registered
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Column, Ids, arrow, as_numbers
from tiebreak.data.responses import Responses
from tiebreak.errors import GoldError, InputError, OptionError, ResponseError, note
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import AUTO

ScaleOption = Any  # None, "auto", a range, a list of levels, or a Scale

MOST_LEVELS = 21
FEWEST_LEVELS = 5  # with fewer, too few orders of the classes to tell one from chance
FEW_BINS = 6  # of a suggestion
# Share of all orders of the classes that may bring answers as near to each other as the order of
# the numbers. Chosen on simulated crowds, docs/scales.md; of 16 real sets it takes Web alone.
MOST_ORDERS_AS_GOOD = 0.035
ALL_ORDERS = 7  # classes, up to which every order is looked at: 2,520
DRAWN_ORDERS = 5_000
NEAR = 1e-9  # of a step: numbers that differ by less are one
SHOWN = 3  # answers named in a message
NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})(?:/({NUMBER}))?")
STEPS = (1.0, 2.0, 2.5, 5.0)  # of a suggestion, times a power of ten


@dataclass(frozen=True, slots=True)
class Scale:
    """Levels from the lowest to the highest, numbers or words.

    `declared`: somebody said so; else the order test did. `share_of_orders` is the share of all
    orders of the levels that bring answers to one task as near to each other as this one, None
    where no order can be told. `is_binned`: numbers between two levels count as the nearest.
    """

    levels: tuple[Any, ...]
    declared: bool = True
    share_of_orders: float | None = None
    is_binned: bool = field(default=False, repr=False)

    @property
    def is_of_numbers(self) -> bool:
        """Whether the levels are numbers."""
        return not isinstance(self.levels[0], str)

    @property
    def values(self) -> Floats:
        """The number of each level: itself, or its place, counted from 1, where levels are words.

        >>> Scale(("low", "high")).values.tolist()
        [1.0, 2.0]
        """
        given = self.levels if self.is_of_numbers else range(1, len(self.levels) + 1)
        return np.array(given, dtype=np.float64)

    @property
    def classes(self) -> Ids:
        """The levels as classes."""
        return Ids(list(self.levels))

    def codes(self, names: Column, *, is_binned: bool = False) -> Codes:
        """Return the level of each name: −1 where it is off the scale, −2 where between levels.

        "3", "3.0" and 3 are one level of a scale of numbers.

        >>> Scale((1, 2, 3)).codes(["3.0", "2.5", "7", "x"]).tolist()
        [2, -2, -1, -1]
        """
        if not self.is_of_numbers:
            return self.classes.codes(names)
        values = self.values
        numbers = np.asarray(as_numbers(names)[0])
        nearest = np.searchsorted((values[1:] + values[:-1]) / 2.0, numbers, side="right")
        close = NEAR * max(_step(values), 1.0)
        is_between = np.abs(values[nearest] - numbers) > close
        with np.errstate(invalid="ignore"):
            is_off = ~((numbers >= values[0] - close) & (numbers <= values[-1] + close))
        found = nearest.astype(np.int32)
        if not (is_binned or self.is_binned):
            found[is_between] = -2
        found[is_off] = -1
        return found

    def refuse(self, names: Sequence[Any], n: int, where: str) -> None:
        """Refuse answers that are no level; `names` are the first few, `where` their places."""
        code = "between-levels" if -2 in self.codes(list(names)) else "off-scale"
        numbers = as_numbers(list(names))[0] if code == "between-levels" else np.empty(0)
        cure = finer(self.values, numbers) if len(numbers) else None
        fields = {"names": list(names), "n": n, "where": where, "levels": self.levels}
        raise ResponseError(code, cure=cure, **fields)

    def require(self, labels: Column) -> Codes:
        """Return the level of each label; refuse what is none."""
        codes = self.codes(labels)
        if (codes < 0).any():
            wrong = np.flatnonzero(codes < 0)
            names = [arrow(labels)[int(i)].as_py() for i in wrong[:SHOWN]]
            self.refuse(names, len(wrong), "")
        return codes

    def on(self, responses: Responses) -> Responses:
        """Return the responses with the levels as their classes; refuse answers that are none."""
        if responses.is_class_ordered and responses.classes == self.classes:
            return responses
        codes = self.codes(responses.classes)
        label = responses.label_of_each()
        is_wrong = codes[label] < 0
        if is_wrong.any():
            first = np.flatnonzero(is_wrong)[:SHOWN]
            task, worker = responses.task_of_each(), responses.worker_of_each()
            places = [
                f"{responses.workers[int(worker[r])]} on {responses.tasks[int(task[r])]}"
                for r in first
            ]
            names = [responses.classes[int(label[r])] for r in first]
            self.refuse(names, int(is_wrong.sum()), "; ".join(places))
        made = responses.recoded(self.classes, np.maximum(codes, 0))
        return replace(made, is_class_ordered=True)

    def on_gold(self, gold: Gold) -> Gold:
        """Return gold with the levels as its classes; a number between two is the nearest."""
        codes = self.codes(gold.classes, is_binned=True)
        wrong = np.flatnonzero(codes[gold.label] < 0)
        if len(wrong):
            names = [gold.classes[int(gold.label[i])] for i in wrong[:SHOWN]]
            places = "; ".join(gold.source.where(int(gold.row[i])) for i in wrong[:SHOWN])
            raise GoldError(
                "gold-off-scale", names=names, n=len(wrong), where=places, levels=self.levels
            )
        n_between = int((self.codes(gold.classes)[gold.label] == -2).sum())
        if n_between and not self.is_binned:
            note("gold-between-levels", n=n_between)
        return replace(gold, label=codes[gold.label], classes=self.classes)

    def mean_answers(self, responses: Responses) -> Floats:
        """Return the mean answer to each task, by weight, NaN where there is none.

        The responses are on this scale.
        """
        task, weight = responses.task_of_each(), responses.weight_of_each()
        total = np.bincount(task, weight, responses.n_tasks)
        summed = np.bincount(
            task, weight * self.values[responses.label_of_each()], responses.n_tasks
        )
        nothing = np.full(len(total), np.nan)
        return np.asarray(np.divide(summed, total, out=nothing, where=total > 0.0))


# Declared


def read_scale(given: ScaleOption) -> Scale:
    """Read a scale that somebody declares: a range, or levels in their order.

    >>> read_scale("1..5").levels, read_scale("0..100/25").levels
    ((1, 2, 3, 4, 5), (0, 25, 50, 75, 100))
    >>> read_scale("none, mild, severe").levels
    ('none', 'mild', 'severe')
    """
    if isinstance(given, Scale):
        return given
    if isinstance(given, str):
        if ".." in given:
            return _read_range(given)
        if "," not in given:
            raise OptionError("no-scale", given=given)
        given = [part.strip() for part in next(csv.reader([given], skipinitialspace=True), [])]
    given = getattr(given, "categories", given)  # of a type of pandas or polars
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise OptionError("no-scale", given=given)
    levels = [each.item() if isinstance(each, np.generic) else each for each in given]
    if not levels or any(
        isinstance(e, bool) or not isinstance(e, str | int | float) for e in levels
    ):
        raise OptionError("no-scale", given=levels)
    numbers = as_numbers(levels)[0]
    if np.isnan(numbers).all() and all(isinstance(each, str) for each in levels):
        if len(set(levels)) < len(levels):
            raise OptionError("levels-twice", levels=levels)
        found: Sequence[Any] = levels
    else:
        if not np.isfinite(numbers).all():
            raise OptionError("levels-not-finite", levels=levels)
        if len(np.unique(numbers)) < len(numbers):
            raise OptionError("levels-twice", levels=levels)
        if (np.diff(numbers) < 0.0).any():
            raise OptionError("levels-fall", given=levels)
        found = _plain(numbers)
    _refuse_many(len(found), None if isinstance(found[0], str) else numbers)
    return Scale(tuple(found))


def _read_range(text: str) -> Scale:
    """Read low..high or low..high/step; with a step, numbers between levels are the nearest."""
    found = RANGE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise OptionError("no-scale", given=text)
    low, high = float(found[1]), float(found[2])
    step = 1.0 if found[3] is None else float(found[3])
    if high < low:
        raise OptionError("levels-fall", given=text)
    if step <= 0.0 or not math.isfinite((high - low) / step):
        raise OptionError("no-step", given=text)
    n_steps = round((high - low) / step)
    if abs(n_steps * step - (high - low)) > NEAR * step:
        raise OptionError("no-whole-steps", given=text, step=step)
    _refuse_many(n_steps + 1, np.array([low, high]))
    levels = _plain(np.round(low + step * np.arange(n_steps + 1), 9))
    return Scale(tuple(levels), is_binned=found[3] is not None)


def _plain(numbers: Floats) -> list[Any]:
    """Return whole numbers where all are whole, else fractions."""
    are_whole = bool((numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return list(map(int, numbers.tolist())) if are_whole else numbers.tolist()


def _refuse_many(n: int, numbers: Floats | None) -> None:
    if n > MOST_LEVELS:
        cure = None if numbers is None else suggested_bins(numbers)
        raise OptionError("too-many-levels", n=n, most=MOST_LEVELS, cure=cure)


def _step(values: Floats) -> float:
    return float(values[-1] - values[0]) / max(len(values) - 1, 1)


def finer(values: Floats, numbers: Floats) -> str | None:
    """Return the range with a step that these numbers fit; None where none of few levels does.

    >>> finer(np.array([1.0, 2.0, 3.0]), np.array([2.5]))
    '1..3/0.5'
    """
    low, high = values[0], values[-1]
    for part in (2.0, 4.0, 5.0, 10.0):
        step = _step(values) / part
        away = (numbers - low) / step
        if (np.abs(away - np.round(away)) < 1e-6).all() and (high - low) / step < MOST_LEVELS:
            return f"{low:g}..{high:g}/{step:g}"
    return None


def suggested_bins(numbers: Floats) -> tuple[str, int]:
    """Return a range with few levels for many numbers, and how many levels it has.

    >>> suggested_bins(np.array([0.0, 3.0, 71.5, 100.0]))
    ('0..100/20', 6)
    """
    low, high = float(np.min(numbers)), float(np.max(numbers))
    power = 10.0 ** (math.floor(math.log10(max(high - low, 1e-9))) - 1)
    for step in (power * size * each for size in (1.0, 10.0, 100.0) for each in STEPS):
        first, last = math.floor(low / step + NEAR), math.ceil(high / step - NEAR)
        if last - first + 1 <= FEW_BINS:
            break
    return f"{first * step:g}..{last * step:g}/{step:g}", last - first + 1


# Found


def coincidences(responses: Responses) -> Floats:
    """Return Krippendorff's coincidence matrix, (n_classes, n_classes).

    Pairs of answers to one task count, with weight 1 / (n − 1) where a task has n answers.
    """
    from scipy import sparse  # here: fits without a scale do without it

    cells = (responses.task_of_each(), responses.label_of_each())
    shape = (responses.n_tasks, responses.n_classes)
    table = sparse.csr_array(
        sparse.coo_array((np.ones(responses.n_responses), cells), shape=shape)
    )[np.diff(responses.start) >= 2]
    votes = np.asarray(table.sum(axis=1)).ravel()
    weighed = table.multiply((1.0 / np.maximum(votes - 1.0, 1.0))[:, None]).tocsr()
    pairs = (weighed.T @ table).toarray()
    return np.asarray(pairs - np.diag(np.asarray(weighed.sum(axis=0)).ravel()))


def disagreement(pairs: Floats, values: Floats) -> Floats:
    """Return how far answers to one task are apart, beside chance: 1 − the interval alpha.

    D = Σ O_ab (p_a − p_b)² / Σ E_ab (p_a − p_b)², for each row of `values`, (n, n_classes).
    """
    totals = pairs.sum(axis=1)
    square = values**2 @ totals
    observed = square - ((values @ pairs) * values).sum(axis=1)
    expected = square - (values @ totals) ** 2 / max(totals.sum(), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(observed / expected)


def share_of_orders(pairs: Floats) -> float | None:
    """Return how many of all orders of the classes bring answers as near as the order given.

    Orders and their reversals count once: all up to seven classes, else 5,000 that are drawn. None
    where no order can be told: fewer than three classes, or no task with different answers.
    """
    n_classes = len(pairs)
    if n_classes < 3 or not pairs.any():
        return None
    own = float(disagreement(pairs, np.arange(n_classes, dtype=np.float64)[None])[0])
    if not np.isfinite(own):
        return None
    if n_classes <= ALL_ORDERS:
        some = (p for p in permutations(range(n_classes)) if p[0] < p[-1])
        orders = np.array(list(some), dtype=np.float64)
    else:
        rng = np.random.default_rng(0)
        drawn = rng.permuted(np.tile(np.arange(n_classes), (DRAWN_ORDERS - 1, 1)), axis=1)
        orders = np.vstack([np.arange(n_classes), drawn]).astype(np.float64)
    return float((disagreement(pairs, orders) <= own + 1e-12).mean())


def find_scale(responses: Responses) -> Scale | None:
    """Return the scale that the classes of responses are, None where they are none.

    Classes in an order, as ordered categories of a frame give it, count as declared.
    """
    if responses.is_class_ordered:
        return read_scale(list(responses.classes))
    numbers = as_numbers(responses.classes)[0]
    if np.isnan(numbers).any():
        names = [responses.classes[int(i)] for i in np.flatnonzero(np.isnan(numbers))[:SHOWN]]
        raise InputError("scale-of-words", names=names)
    levels = np.unique(numbers)
    if len(levels) > MOST_LEVELS:
        raise InputError("too-many-numbers", n=len(levels), cure=suggested_bins(levels))
    scale = Scale(tuple(_plain(levels)), declared=False)
    if len(levels) < FEWEST_LEVELS:
        if len(levels) > 2:
            note("too-few-levels", n=len(levels), levels=scale.levels)
        return None
    share = share_of_orders(coincidences(scale.on(responses)))
    if share is None or share > MOST_ORDERS_AS_GOOD:
        note("no-order-found", levels=scale.levels, share=share)
        return None
    return replace(scale, share_of_orders=share)


def note_scale(responses: Responses) -> None:
    """Say so where labels look like a scale and are read without their order."""
    if responses.n_classes < FEWEST_LEVELS or responses.n_classes > 2 * MOST_LEVELS:
        return
    numbers = as_numbers(responses.classes)[0]
    levels = np.unique(numbers)
    if not np.isfinite(numbers).all() or not FEWEST_LEVELS <= len(levels) <= MOST_LEVELS:
        return
    pairs = coincidences(Scale(tuple(_plain(levels))).on(responses))
    share = share_of_orders(pairs)
    if share is not None and share <= MOST_ORDERS_AS_GOOD:
        totals = pairs.sum(axis=1)
        by_chance = totals.sum() - (totals**2).sum() / totals.sum()
        alpha = 1.0 - (pairs.sum() - np.trace(pairs)) / by_chance
        interval = 1.0 - float(disagreement(pairs, levels[None])[0])
        note("looks-like-scale", alpha=float(alpha), interval=interval)


def with_scale(
    given: ScaleOption, responses: Responses, gold: Gold | None
) -> tuple[Responses, Gold | None, Scale | None]:
    """Return responses and gold on the scale that an option names, and the scale; None: none."""
    if given is None:
        return responses, gold, None
    if isinstance(given, str) and given == AUTO:
        scale = find_scale(responses)
        if scale is None:
            return responses, gold, None
    else:
        scale = read_scale(given)
    responses = scale.on(responses)
    if scale.share_of_orders is None:
        scale = replace(scale, share_of_orders=share_of_orders(coincidences(responses)))
    return responses, None if gold is None else scale.on_gold(gold), scale


# How a worker reads a scale


def channels(
    values: Floats,
    share: Floats,
    bias: npt.ArrayLike,
    gain: npt.ArrayLike,
    blur: npt.ArrayLike,
    lapse: npt.ArrayLike,
) -> Floats:
    """Return how often each answer is given at each level, (n, level, answer).

    Parameters
    ----------
    values
        (n_levels,) of the levels, ascending.
    share
        (n_levels,) of each answer where a worker lapses.
    bias, gain, blur, lapse
        (n,) or one number; bias and blur in steps.

    Examples
    --------
    >>> channels(np.arange(3.0), np.full(3, 1 / 3), 1.0, 1.0, 0.1, 0.0)[0].round(2).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    from scipy.special import ndtr  # here: the command line starts without it

    b, a, s, e = (
        np.asarray(each, dtype=np.float64).reshape(-1, 1, 1) for each in (bias, gain, blur, lapse)
    )
    step = _step(values) or 1.0
    middle = (values[0] + values[-1]) / 2.0
    read = middle + b * step + a * (values[None, :, None] - middle)
    cuts = (values[1:] + values[:-1]) / 2.0
    below = ndtr((cuts - read) / (s * step))
    below = np.concatenate([np.zeros_like(read), below, np.ones_like(read)], axis=2)
    return np.asarray((1.0 - e) * np.diff(below, axis=2) + e * share)
