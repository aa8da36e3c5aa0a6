"""Rates: the share of tasks in each class, by system, with intervals that hold.

All methods start from what judges say of every task and the known class of some (`ClassRates`):
prediction-powered inference, Rogan-Gladen, the model's posterior corrected by gold, gold alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import t as student

from tiebreak import tables
from tiebreak.arguments import NAME, SEED, TEXT, checks
from tiebreak.data.frames import as_plain
from tiebreak.data.pairs import FIRST, SECOND, TIE, WORDS
from tiebreak.decide.held_out import without_gold
from tiebreak.errors import InputError, OptionError, note
from tiebreak.estimators.base import require_fitted
from tiebreak.judges.known import interval_of_share, known_codes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import require_number
from tiebreak.wording import aligned

ALL = "all"  # the system of all tasks
LEVEL = 0.9
MOST_SYSTEMS = 10  # with more, differences are left out
FEW_GOLD = 20  # of a system, below which a note says that its interval is wide
UNLIKE = 3.3  # standard errors: known tasks so far from all are no random sample, 1,000 to 1

PRIOR_RESIDUALS = 3.0  # residuals of the size that judges expect, added to the known ones
LEAST_KNOWN = 5.0  # known tasks of a class, and of the others, for its predictions to be used
LEAST_VARIANCE = 0.05  # expected of a residual, however sure the judges are
N_DRAWS = 4000
OFFSET_SPREAD = 1.0  # of the posterior's offset, before gold
SLOPE_SPREAD = 0.5  # of its slope around 1
SYSTEM_SPREAD = 0.7  # of a system's own offset around that of all
EDGE = 1e-3
N_STEPS = 30
MAX_CLASSES = 10  # in the text, the most frequent first; to_dict has all

METHODS = {
    "judges": "the judges' share, uncorrected",
    "gold": "gold alone",
    "ppi": "prediction-powered",
    "rogan-gladen": "Rogan-Gladen",
    "posterior": "model's posterior, corrected by gold",
}
ORDER = ("ppi", "posterior", "rogan-gladen", "gold", "judges")  # of columns in the text


class Rate(NamedTuple):
    """The share of one class among the tasks of a system; low and high are nan without interval.

    `is_gold_alone`: a rate by ppi that is that of gold, as too few known tasks are of the class, or
    of the others, for predictions to be of use.
    """

    system: str
    label: Hashable
    method: str
    rate: float
    low: float
    high: float
    n_tasks: int
    n_known: int
    is_gold_alone: bool = False


class Difference(NamedTuple):
    """Rate of `left` less rate of `right`; `is_gold_alone` where one of the two is."""

    left: str
    right: str
    label: Hashable
    method: str
    difference: float
    low: float
    high: float
    is_gold_alone: bool = False


@dataclass(frozen=True)
class RateTable:
    """Rates by every method beside each other; `ppi` is the one to quote where it is not gold's."""

    rates: tuple[Rate, ...]
    differences: tuple[Difference, ...] = field(default=())
    level: float = LEVEL

    @checks(label=NAME, system=TEXT, method=TEXT)
    def of(self, label: Hashable, system: str = ALL, method: str = "ppi") -> Rate:
        """Return one rate."""
        for rate in self.rates:
            if (rate.label, rate.system, rate.method) == (label, system, method):
                return rate
        raise OptionError("no-such-rate", label=label, system=system, method=method)

    def to_dict(self) -> dict[str, Any]:
        """Return lists of plain values, None where a number is not known."""
        return dict(as_plain(self))

    def __str__(self) -> str:
        found = {(rate.system, rate.label, rate.method): rate for rate in self.rates}
        systems = list(dict.fromkeys(rate.system for rate in self.rates))
        labels = sorted(
            dict.fromkeys(rate.label for rate in self.rates),
            key=lambda label: -found[systems[0], label, "judges"].rate,
        )
        methods = [method for method in ORDER if any(rate.method == method for rate in self.rates)]
        rows = [["system", "class", "tasks", "known", *methods]]
        for system, label in product(systems, labels[:MAX_CLASSES]):
            of_judges = found[system, label, "judges"]
            row = [system, str(label), f"{of_judges.n_tasks:,}", f"{of_judges.n_known:,}"]
            for method in methods:
                rate = found.get((system, label, method))
                if rate is None or rate.is_gold_alone:
                    row.append("–" if rate is None else "gold alone")
                elif np.isnan(rate.low):
                    row.append(f"{rate.rate:.3f}")
                else:
                    row.append(f"{rate.rate:.3f} ({rate.low:.3f} to {rate.high:.3f})")
            rows.append(row)
        lines = aligned(rows)
        if len(labels) > MAX_CLASSES:
            lines.append(f"… and {len(labels) - MAX_CLASSES:,} more classes")
        alone = {(r.system, r.label) for r in self.rates if r.is_gold_alone}
        rows = [["difference", "class", "ppi"]]
        for each in self.differences:
            if each.method == "ppi" and each.label in labels[:MAX_CLASSES]:
                words = [f"{each.difference:+.3f} ({each.low:+.3f} to {each.high:+.3f})"]
                words += [f"{s}: gold alone" for s in each[:2] if (s, each.label) in alone]
                rows.append([f"{each.left} − {each.right}", str(each.label), ", ".join(words)])
        if len(rows) > 1:
            lines += ["", *aligned(rows)]
        if "ppi" in methods:
            few = f"there are fewer than {LEAST_KNOWN:g} known tasks of the class or of the others"
            quote = "quote ppi"
            if all(rate.is_gold_alone for rate in self.rates if rate.method == "ppi"):
                quote = f"quote gold: {few}, so that ppi makes no use of the judges"
            elif alone:
                quote = f"quote ppi; where it is gold alone {few}, and judges play no part"
            lines.append(f"Intervals of {self.level:.0%}; {quote}.")
        return "\n".join(lines)


@checks(random_state=SEED)
def estimate_rates(
    model: Any,
    gold: Any = None,
    *,
    systems: Any = None,
    selection: Any = None,
    level: float = LEVEL,
    random_state: int = 0,
) -> RateTable:
    """RateEstimate what share of tasks is of each class, with intervals that hold.

    Parameters
    ----------
    model
        Fitted to the judges' responses. Where it saw gold, it is fitted again without.
    gold
        Known labels of a sample of the tasks; None: those of the model. Without any, only the
        judges' own share is given, and no interval: shared errors cannot be seen.
    systems
        Which system each task is about (task, system): a rate for each, and their differences. Of
        verdicts on pairs, the two systems of each task (task, model_a, model_b): how often each
        wins, and ties.
    selection
        With which chance each known task was drawn (task, probability), where gold is not a random
        sample; `sample_tasks` returns it.
    level
        Of the intervals.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(500, 5, 2, responses_per_task=5, shared=0.5, random_state=0)
    >>> some = dict(list(crowd.gold.to_dict().items())[:60])
    >>> rate = estimate_rates(tb.VariationalBayes().fit(crowd.responses), some).of("c0")
    >>> rate.low < rate.rate < rate.high
    True
    """
    require_fitted(model)
    require_number("level", level, "between 0 and 1, both excluded", above=0.0, below=1.0)
    unseen = without_gold(model)
    tasks, classes = unseen.tasks_, unseen.classes_
    task, truth = known_codes(model.gold_ if gold is None else gold, tasks, classes)
    chance = _chances(selection, task, tasks)
    of_systems, is_second = _members(systems, tasks)
    label = np.asarray(unseen.labels_.label)
    one_class = len(np.unique(truth)) == 1 and len(classes) > 1  # of gold, though judges know more
    n_known = {name: int(members[task].sum()) for name, members in of_systems.items()}
    if not len(task):
        note("rates-without-gold")
    elif few := tuple(name for name, n in n_known.items() if n < FEW_GOLD):
        note("few-known-of-systems", systems=few, least=FEW_GOLD)
    if one_class:
        note("rates-of-one-class")
    unlike = _unlike_all(label, task, chance, len(classes))
    if unlike is not None:
        k, of_known, of_all = unlike
        name = classes[k]
        note("known-unlike-all", label=name, of_known=of_known, of_all=of_all, one_class=one_class)
    rng = np.random.default_rng(random_state)
    rates: list[Rate] = []
    differences: list[Difference] = []
    every = np.arange(len(label))
    for name, (first, second) in _outcomes(classes, is_second).items():
        found: dict[tuple[str, str], RateEstimate] = {}
        each: ClassRates | None = None
        for system, members in of_systems.items():
            if each is None or is_second:  # of pairs: a win of this system
                of_task = np.where(is_second.get(system, np.zeros(len(label), bool)), second, first)
                known = (task, truth == of_task[task], chance)
                f = unseen.probabilities_[every, of_task]
                each = ClassRates(f, label == of_task, known, level, rng)
            two = len(classes) == 2
            methods = each.estimates(members, is_part=system != ALL, two_classes=two)
            if unlike is not None and one_class and "ppi" in methods:
                # Nothing is known: ppi says what judges say, and that it may be anything.
                anything = RateEstimate(methods["judges"].value, 0.0, 1.0, rng.random(N_DRAWS))
                methods = {"judges": methods["judges"], "ppi": anything}
            for method, estimate in methods.items():
                found[system, method] = estimate
                n = (int(members.sum()), n_known[system])
                rates.append(Rate(system, name, method, *estimate[:3], *n, estimate.is_gold_alone))
        names = [system for system in of_systems if system != ALL]
        for (left, right), method in product(combinations(names, 2), METHODS):
            if len(names) > MOST_SYSTEMS or not {(left, method), (right, method)} <= found.keys():
                continue
            a, b = found[left, method], found[right, method]
            interval = (np.nan, np.nan)
            if len(a.draws) and len(b.draws):
                interval = _percentiles(a.draws - b.draws, level)
            alone = a.is_gold_alone or b.is_gold_alone
            change = a.value - b.value
            differences.append(Difference(left, right, name, method, change, *interval, alone))
    return RateTable(tuple(rates), tuple(differences), level)


def _members(systems: Any, tasks: Any) -> tuple[dict[str, Mask], dict[str, Mask]]:
    """Return which tasks each system has, all tasks first; of pairs also where it is the second."""
    everything = np.ones(len(tasks), dtype=bool)
    if systems is None:
        return {ALL: everything}, {}
    by_task = tables.read_systems(systems)
    code = tasks.codes(list(by_task))
    if not (code >= 0).any():
        raise InputError("no-task-of-systems")
    if n := int(np.count_nonzero(code < 0)):
        note("systems-without-responses", n=n)
    both = ((each,) if isinstance(each, str) else each for each in by_task.values())
    sides = list(zip(*both, strict=True))
    members: list[dict[str, Mask]] = []
    for side in sides:
        names = np.array(side, dtype=object)
        shown = sorted(set(names[code >= 0]))
        members.append(
            {name: np.isin(np.arange(len(tasks)), code[names == name]) for name in shown}
        )
    if any(ALL in each for each in members):
        raise InputError("system-called-all")
    if len(sides) == 1:
        return {ALL: everything} | members[0], {}
    none = np.zeros(len(tasks), dtype=bool)
    first, second = members
    every = sorted({*first, *second})
    of_both = {name: first.get(name, none) | second.get(name, none) for name in every}
    return of_both, {name: second.get(name, none) for name in every}


def _outcomes(classes: Any, is_second: dict[str, Mask]) -> dict[Hashable, tuple[int, int]]:
    """Return what rates are of: classes or, of pairs, wins and ties.

    Each has the code of its class where the system is the first of a pair, and where the second.
    """
    if not is_second:
        return {name: (k, k) for k, name in enumerate(classes)}
    said = {WORDS.get(str(name).casefold()): k for k, name in enumerate(classes)}
    if not {FIRST, SECOND} <= said.keys():
        raise InputError("no-classes-of-pairs", classes=classes)
    found: dict[Hashable, tuple[int, int]] = {"win": (said[FIRST], said[SECOND])}
    return found | ({"tie": (said[TIE], said[TIE])} if TIE in said else {})


def _chances(selection: Any, task: Codes, tasks: Any) -> Floats:
    """Return with which chance each known task was drawn; equal where nothing is said."""
    if selection is None:
        return np.full(len(task), max(len(task), 1) / max(len(tasks), 1))
    said = tables.read_selection(selection)
    code = tasks.codes(list(said))
    by_code = np.full(len(tasks), np.nan)
    by_code[code[code >= 0]] = np.array(list(said.values()))[code >= 0]
    missing = np.flatnonzero(np.isnan(by_code[task]))
    if len(missing):
        first = tasks[int(task[missing[0]])]
        raise InputError("no-selection-probability", n=len(missing), task=first)
    return np.asarray(by_code[task])


def _unlike_all(
    label: Codes, task: Codes, chance: Floats, n_classes: int
) -> tuple[int, float, float] | None:
    """Compare what judges say of known tasks and of all, without the truth.

    Returns the class that they give to known tasks far more, or less, often, its share of these
    and its share of all tasks; None if known tasks look like a random sample.
    """
    n, n_tasks = len(task), len(label)
    if n < 2 or n >= n_tasks:
        return None
    weight = 1.0 / chance
    share = np.bincount(label[task], weights=weight, minlength=n_classes) / weight.sum()
    of_all = np.bincount(label, minlength=n_classes) / n_tasks
    smoothed = (of_all * n_tasks + 0.5) / (n_tasks + 1.0)
    expected = smoothed * (1.0 - smoothed) / effective_number(weight)
    # Where weights go with what judges say, what is seen may vary more than that.
    said = np.arange(n_classes) == label[task][:, None]
    seen = np.square(weight[:, None] * (said - share)).sum(axis=0) / weight.sum() ** 2
    error = np.sqrt(np.maximum(expected, seen) * (1.0 - n / n_tasks))
    away = np.abs(share - of_all) / np.maximum(error, 1.0 / (2.0 * n))
    k = int(away.argmax())
    return (k, float(share[k]), float(of_all[k])) if away[k] > UNLIKE else None


class RateEstimate(NamedTuple):
    """A rate with its interval and draws of it, for differences."""

    value: float
    low: float
    high: float
    draws: Floats
    is_gold_alone: bool = False  # of ppi that makes no use of predictions


class ClassRates:
    """The rate of one class among some tasks, a mask of all, by each method.

    Parameters
    ----------
    f
        The probability of the class by the judges, (n_tasks,).
    said
        Whether the judges' label is this class, (n_tasks,).
    known
        Known tasks, whether they are of the class, and with which chance each was drawn.
    """

    def __init__(
        self,
        f: Floats,
        said: Mask,
        known: tuple[Codes, Mask, Floats],
        level: float,
        rng: np.random.Generator,
    ) -> None:
        self.f, self.said = f, said
        self.task, y, chance = known
        self.y = y.astype(np.float64)
        self.weight = _of_mean_1(1.0 / chance)
        self.level, self.rng = level, rng
        # Drawn first, so that they do not depend on systems.
        self.corrected = self._corrected() if len(self.task) else np.empty((2, 0))

    def estimates(
        self, members: Mask, *, is_part: bool, two_classes: bool
    ) -> dict[str, RateEstimate]:
        """Return what each method says of some tasks; of a part of them, with its own offset."""
        share = float(self.said[members].mean()) if members.any() else np.nan
        found = {"judges": RateEstimate(share, np.nan, np.nan, np.empty(0))}
        if np.count_nonzero(members[self.task]) < 2:
            return found
        found["gold"] = self.gold_alone(members)
        found["ppi"] = self.prediction_powered(members)
        rogan = self.rogan_gladen(members) if two_classes else None
        if rogan is not None:
            found["rogan-gladen"] = rogan
        found["posterior"] = self.posterior(members, is_part=is_part)
        return found

    def gold_alone(self, members: Mask) -> RateEstimate:
        """Return the share among the known tasks, judges left aside: Jeffreys' interval.

        Known tasks count for more as they cover all tasks, and for less where their weights differ.
        """
        _, y, weight = self._known(members)
        n, n_tasks = len(y), np.count_nonzero(members)
        value = float(np.average(y, weights=weight))
        if n >= n_tasks:
            return RateEstimate(value, value, value, np.full(N_DRAWS, value))
        counted = effective_number(weight) / (1.0 - n / n_tasks)
        low, high = interval_of_share(value * counted, counted, self.level)
        draws = self.rng.beta(value * counted + 0.5, (1.0 - value) * counted + 0.5, N_DRAWS)
        return RateEstimate(value, low, high, draws)

    def prediction_powered(self, members: Mask) -> RateEstimate:
        """Return the mean of f corrected by what gold says of it, PPI++: [eq:ppi].

        θ = λ mean(f) + mean over known of (y − λ f), λ the slope that makes the variance least,
        between 0 and 1 and drawn to 1 where there is little gold. Gold is a sample of these very
        tasks, so that its variance shrinks as it covers them. Where fewer than five known tasks are
        of the class, or of the others, residuals are too rare to be trusted, and gold stands alone.
        """
        f = self.f[members]
        on_known, y, weight = self._known(members)
        n = len(y)
        n_of_class = float((weight * y).sum())
        if min(n_of_class, n - n_of_class) < LEAST_KNOWN:
            return self.gold_alone(members)._replace(is_gold_alone=True)
        away = on_known - np.average(on_known, weights=weight)
        both = float((weight * away * (y - np.average(y, weights=weight))).sum())
        power = float(np.clip((both + 0.1) / ((weight * np.square(away)).sum() + 0.1), 0.0, 1.0))
        residual = y - power * on_known
        shift = float(np.average(residual, weights=weight))
        value = float(np.clip(power * f.mean() + shift, 0.0, 1.0))
        spread = weight**2 * np.square(residual - shift)
        expected = max(float((f * (1.0 - f)).mean()), LEAST_VARIANCE)
        freedom = n - 1.0 + PRIOR_RESIDUALS
        variance = (spread.sum() + PRIOR_RESIDUALS * expected) / freedom
        error = float(np.sqrt(variance * max(1.0 - n / len(f), 0.0) / n))
        if error <= 0.0:
            return RateEstimate(value, value, value, np.full(N_DRAWS, value))
        # An interval that is even on the scale of log-odds stays within 0 and 1.
        centre = float(np.clip(value, 0.5 / (n + 1.0), 1.0 - 0.5 / (n + 1.0)))
        scale = error / (centre * (1.0 - centre))
        half = float(student.ppf((1.0 + self.level) / 2.0, freedom)) * scale
        low, high = (float(expit(logit(centre) + each)) for each in (-half, half))
        draws = expit(logit(centre) + scale * self.rng.standard_t(freedom, N_DRAWS))
        return RateEstimate(value, min(low, value), max(high, value), draws)

    def rogan_gladen(self, members: Mask) -> RateEstimate | None:
        """Return (p + specificity − 1) / (sensitivity + specificity − 1), [eq:rogan-gladen].

        Sensitivity and specificity are those of all known tasks: judges are taken to err alike on
        every system. None where gold lacks one of the two classes, or does not show that what
        judges say has to do with it: the divisor may then be 0. It may be negative, where judges
        say the opposite.
        """
        positive = self.y > 0.5
        if positive.all() or not positive.any():
            return None
        right = self.said[self.task] == positive
        design = effective_number(self.weight) / len(self.weight)
        sensitivity, specificity = (
            self.rng.beta(
                design * self.weight[part & right].sum() + 0.5,
                design * self.weight[part & ~right].sum() + 0.5,
                N_DRAWS,
            )
            for part in (positive, ~positive)
        )
        share = float(self.said[members].mean())  # of these very tasks: nothing uncertain about it
        power = sensitivity + specificity - 1.0
        least, most = _percentiles(power, self.level)
        if least <= 0.0 <= most:
            return None
        power = np.maximum(power, EDGE) if least > 0.0 else np.minimum(power, -EDGE)
        draws = np.clip((share + specificity - 1.0) / power, 0.0, 1.0)
        return RateEstimate(float(np.median(draws)), *_percentiles(draws, self.level), draws)

    def _corrected(self) -> Floats:
        """Draw a and b of σ(a + b logit f), chances corrected by gold: [eq:posterior-rate].

        Their priors are normal, around 0 and 1.
        """
        x = _log_odds(self.f[self.task])
        design = np.stack([np.ones_like(x), x], axis=1)
        precision = np.diag([OFFSET_SPREAD**-2.0, SLOPE_SPREAD**-2.0])
        centre = np.array([0.0, 1.0])
        at, hessian = _logistic(design, centre, precision, self.y, self.weight)
        covariance = np.linalg.inv(hessian)
        if len(x) >= 2 and np.ptp(self.weight) >= EDGE:
            # Known tasks of unequal weight: the sandwich, as the weighted sum is no likelihood.
            score = self.weight * (self.y - expit(design @ at))
            middle = (design * np.square(score)[:, None]).T @ design + precision
            covariance = covariance @ middle @ covariance
        return np.asarray(self.rng.multivariate_normal(at, covariance, N_DRAWS).T)

    def posterior(self, members: Mask, *, is_part: bool) -> RateEstimate:
        """Return the rate of some tasks by the posterior that gold has corrected.

        The offset of a part of the tasks is fitted to its own gold, around that of all tasks.
        """
        mine = members[self.task]
        y, weight = self.y[mine], self.weight[mine]
        offset, slope = self.corrected
        if is_part:
            base = offset.mean() + slope.mean() * _log_odds(self.f[self.task[mine]])
            precision = np.array([[SYSTEM_SPREAD**-2.0]])
            own, hessian = _logistic(np.ones((len(y), 1)), np.zeros(1), precision, y, weight, base)
            offset = offset + (own[0] + self.rng.standard_normal(N_DRAWS) / np.sqrt(hessian[0, 0]))
        rest = members.copy()
        rest[self.task] = False
        levels, counts = np.unique(np.round(_log_odds(self.f[rest]), 2), return_counts=True)
        p = expit(offset[:, None] + slope[:, None] * levels)
        noise = np.sqrt(np.maximum((p * (1.0 - p)) @ counts, 0.0))
        total = y.sum() + p @ counts + noise * self.rng.standard_normal(N_DRAWS)
        draws = np.clip(total / max(np.count_nonzero(members), 1), 0.0, 1.0)
        return RateEstimate(float(draws.mean()), *_percentiles(draws, self.level), draws)

    def _known(self, members: Mask) -> tuple[Floats, Floats, Floats]:
        """Return f, y and weight of the known tasks among some tasks; weights are 1 in the mean."""
        mine = members[self.task]
        return self.f[self.task[mine]], self.y[mine], _of_mean_1(self.weight[mine])


def _of_mean_1(weight: Floats) -> Floats:
    return np.asarray(weight * len(weight) / max(weight.sum(), 1e-300))


def effective_number(weight: Floats) -> float:
    """Return (Σ w)² / Σ w²: tasks of equal weight that tell as much."""
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _percentiles(draws: Floats, level: float) -> tuple[float, float]:
    low, high = np.percentile(draws, [50.0 * (1.0 - level), 50.0 * (1.0 + level)])
    return float(low), float(high)


def _log_odds(f: Floats) -> Floats:
    return np.asarray(logit(np.clip(f, EDGE, 1.0 - EDGE)))


def _logistic(
    design: Floats,
    centre: Floats,
    precision: Floats,
    y: Floats,
    weight: Floats,
    base: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the mode of a logistic regression with a normal prior, and the Hessian there.

    `base` is added to the log-odds.
    """
    at = centre.copy()
    hessian = precision
    for _ in range(N_STEPS):
        p = expit(base + design @ at)
        gradient = design.T @ (weight * (y - p)) - precision @ (at - centre)
        hessian = (design * (weight * p * (1.0 - p))[:, None]).T @ design + precision
        at = at + np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
    return at, hessian
