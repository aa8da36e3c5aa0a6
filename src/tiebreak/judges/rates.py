"""Rates: the share of tasks in each class, by system, with intervals that hold.

All methods start from what judges say of every task and the known class of some (`ClassEvidence`):
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
from tiebreak.errors import InputError, OptionError, note
from tiebreak.estimators.base import require_fitted
from tiebreak.judges.known import interval_of_share, known_codes, without_gold
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import require_number

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

METHODS = {
    "judges": "the judges' share, uncorrected",
    "gold": "gold alone",
    "ppi": "prediction-powered",
    "rogan-gladen": "Rogan-Gladen",
    "posterior": "model's posterior, set right by gold",
}


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

    def __str__(self) -> str:
        from tiebreak.judges.words import rates_as_text

        return rates_as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return lists of plain values, None where a number is not known."""
        return {
            "level": self.level,
            "rates": as_plain(self.rates),
            "differences": as_plain(self.differences),
        }


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
    """Estimate what share of tasks is of each class, with intervals that hold.

    Parameters
    ----------
    model
        Fitted to the judges' responses. Where it saw gold, it is fitted again without.
    gold
        Known labels of a sample of the tasks; None: those of the model. Without any, only the
        judges' own share is given, and no interval: shared errors cannot be seen.
    systems
        Which system each task is about (task, system): a rate for each, and their differences.
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
    task, truth = known_codes(model.gold_ if gold is None else gold, unseen.tasks_, unseen.classes_)
    chance = _chances(selection, task, unseen.tasks_)
    of_systems = _members(systems, unseen.tasks_)
    label = np.asarray(unseen.labels_.label)
    n_classes = len(unseen.classes_)
    one_class = len(np.unique(truth)) == 1 and n_classes > 1  # of gold, though judges know more
    n_known = {name: int(members[task].sum()) for name, members in of_systems.items()}
    if not len(task):
        note("rates-without-gold")
    elif few := tuple(name for name, n in n_known.items() if n < FEW_GOLD):
        note("few-known-of-systems", systems=few, least=FEW_GOLD)
    if one_class:
        note("rates-of-one-class")
    unlike = _unlike_all(label, task, chance, n_classes)
    if unlike is not None:
        k, of_known, of_all = unlike
        name = unseen.classes_[k]
        note("known-unlike-all", label=name, of_known=of_known, of_all=of_all, one_class=one_class)
    rng = np.random.default_rng(random_state)
    rates: list[Rate] = []
    differences: list[Difference] = []
    for k in range(n_classes):
        evidence = ClassEvidence.of(
            unseen.probabilities_[:, k], label == k, task, truth == k, chance
        )
        found = _of_class(evidence, of_systems, level, rng, two_classes=n_classes == 2)
        if unlike is not None and one_class:
            found = _nothing_known(found, rng)
        name = unseen.classes_[k]
        for (system, method), each in found.items():
            n = (int(of_systems[system].sum()), n_known[system])
            rates.append(Rate(system, name, method, *each[:3], *n, each.is_gold_alone))
        differences += _differences(found, list(of_systems), name, level)
    return RateTable(tuple(rates), tuple(differences), level)


def _of_class(
    evidence: ClassEvidence,
    systems: dict[str, Mask],
    level: float,
    rng: np.random.Generator,
    *,
    two_classes: bool,
) -> dict[tuple[str, str], RateEstimate]:
    """Return every method's estimate for every system."""
    found: dict[tuple[str, str], RateEstimate] = {}
    of_all = posterior(evidence, rng) if len(evidence.task) else None
    for system, members in systems.items():
        share = float(evidence.said[members].mean()) if members.any() else np.nan
        found[system, "judges"] = RateEstimate(share, np.nan, np.nan, np.empty(0))
        if of_all is None or np.count_nonzero(members[evidence.task]) < 2:
            continue
        found[system, "gold"] = gold_alone(evidence, members, level, rng)
        found[system, "ppi"] = prediction_powered(evidence, members, level, rng)
        rogan = rogan_gladen(evidence, members, level, rng) if two_classes else None
        if rogan is not None:
            found[system, "rogan-gladen"] = rogan
        found[system, "posterior"] = posterior_rate(
            evidence, members, of_all, level, rng, has_own_offset=system != ALL
        )
    return found


def _differences(
    found: dict[tuple[str, str], RateEstimate], systems: list[str], label: Hashable, level: float
) -> list[Difference]:
    names = [name for name in systems if name != ALL]
    if len(names) > MOST_SYSTEMS:
        return []
    rows = []
    for (left, right), method in product(combinations(names, 2), METHODS):
        if (left, method) not in found or (right, method) not in found:
            continue
        a, b = found[left, method], found[right, method]
        interval = (np.nan, np.nan)
        if len(a.draws) and len(b.draws):
            interval = _percentiles(a.draws - b.draws, level)
        alone = a.is_gold_alone or b.is_gold_alone
        rows.append(Difference(left, right, label, method, a.value - b.value, *interval, alone))
    return rows


def _members(systems: Any, tasks: Any) -> dict[str, Mask]:
    everything = {ALL: np.ones(len(tasks), dtype=bool)}
    if systems is None:
        return everything
    by_task = tables.read_systems(systems)
    code = tasks.codes(list(by_task))
    if not (code >= 0).any():
        raise InputError("no-task-of-systems")
    if n := int(np.count_nonzero(code < 0)):
        note("systems-without-responses", n=n)
    names = np.array(list(by_task.values()), dtype=object)
    for name in sorted(set(names[code >= 0])):
        if name == ALL:
            raise InputError("system-called-all")
        everything[name] = np.isin(np.arange(len(tasks)), code[names == name])
    return everything


def _chances(selection: Any, task: Codes, tasks: Any) -> Floats:
    """Return with which chance each known task was drawn; equal where nothing is said."""
    if selection is None:
        return np.full(len(task), max(len(task), 1) / max(len(tasks), 1))
    said = tables.read_selection(selection)
    code = tasks.codes(list(said))
    by_code = np.full(len(tasks), np.nan)
    by_code[code[code >= 0]] = np.array(list(said.values()))[code >= 0]
    chance = by_code[task]
    missing = np.flatnonzero(np.isnan(chance))
    if len(missing):
        raise InputError(
            "no-selection-probability", n=len(missing), task=tasks[int(task[missing[0]])]
        )
    return np.asarray(chance)


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


def _nothing_known(
    found: dict[tuple[str, str], RateEstimate], rng: np.random.Generator
) -> dict[tuple[str, str], RateEstimate]:
    """Keep the judges' own share; ppi says the same, and that it may be anything."""
    kept = {key: each for key, each in found.items() if key[1] == "judges"}
    for system in [system for system, method in found if method == "ppi"]:
        share = kept[system, "judges"].value
        kept[system, "ppi"] = RateEstimate(share, 0.0, 1.0, rng.random(N_DRAWS))
    return kept


# The methods, on arrays. Each returns the rate among `members`, a mask of the tasks.


class ClassEvidence(NamedTuple):
    """What is known of one class."""

    f: Floats  # (n_tasks,) its probability, by the judges
    said: Mask  # (n_tasks,) whether the judges' label is this class
    task: Codes  # known ones
    y: Floats  # whether these are of the class
    weight: Floats  # of the known tasks: 1 / chance of being drawn, 1 in the mean

    @classmethod
    def of(cls, f: Floats, said: Mask, task: Codes, y: Mask, chance: Floats) -> ClassEvidence:
        """Turn chances of being drawn into weights."""
        return cls(f, said, task, y.astype(np.float64), _of_mean_1(1.0 / chance))

    def known(self, members: Mask) -> tuple[Floats, Floats, Floats]:
        """Return f, y and weight of the known tasks among some tasks; weights are 1 in the mean."""
        mine = members[self.task]
        return self.f[self.task[mine]], self.y[mine], _of_mean_1(self.weight[mine])


class RateEstimate(NamedTuple):
    """A rate with its interval and draws of it, for differences."""

    value: float
    low: float
    high: float
    draws: Floats
    is_gold_alone: bool = False  # of ppi that makes no use of predictions


def _of_mean_1(weight: Floats) -> Floats:
    return np.asarray(weight * len(weight) / max(weight.sum(), 1e-300))


def effective_number(weight: Floats) -> float:
    """Return (Σ w)² / Σ w²: tasks of equal weight that tell as much."""
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _percentiles(draws: Floats, level: float) -> tuple[float, float]:
    """Return the ends of the middle part of the draws."""
    low, high = np.percentile(draws, [50.0 * (1.0 - level), 50.0 * (1.0 + level)])
    return float(low), float(high)


def gold_alone(
    evidence: ClassEvidence, members: Mask, level: float, rng: np.random.Generator
) -> RateEstimate:
    """Return the share among the known tasks, judges left aside: Jeffreys' interval.

    Known tasks count for more as they cover all tasks, and for less where their weights differ.
    """
    _, y, weight = evidence.known(members)
    n, n_tasks = len(y), np.count_nonzero(members)
    value = float(np.average(y, weights=weight))
    if n >= n_tasks:
        return RateEstimate(value, value, value, np.full(N_DRAWS, value))
    counted = effective_number(weight) / (1.0 - n / n_tasks)
    low, high = interval_of_share(value * counted, counted, level)
    draws = rng.beta(value * counted + 0.5, (1.0 - value) * counted + 0.5, N_DRAWS)
    return RateEstimate(value, low, high, draws)


def prediction_powered(
    evidence: ClassEvidence, members: Mask, level: float, rng: np.random.Generator
) -> RateEstimate:
    """Return the mean of f corrected by what gold says of it, PPI++: [eq:ppi].

    θ = λ mean(f) + mean over known of (y − λ f), λ the slope that makes the variance least, between
    0 and 1 and drawn to 1 where there is little gold. Gold is a sample of these very tasks, so that
    its variance shrinks as it covers them. Where fewer than five known tasks are of the class, or
    of the others, residuals are too rare to be trusted, and gold stands alone.
    """
    f = evidence.f[members]
    on_known, y, weight = evidence.known(members)
    n = len(y)
    n_of_class = float((weight * y).sum())
    if min(n_of_class, n - n_of_class) < LEAST_KNOWN:
        return gold_alone(evidence, members, level, rng)._replace(is_gold_alone=True)
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
    half = float(student.ppf((1.0 + level) / 2.0, freedom)) * scale
    low, high = (float(expit(logit(centre) + each)) for each in (-half, half))
    draws = expit(logit(centre) + scale * rng.standard_t(freedom, N_DRAWS))
    return RateEstimate(value, min(low, value), max(high, value), draws)


def rogan_gladen(
    evidence: ClassEvidence, members: Mask, level: float, rng: np.random.Generator
) -> RateEstimate | None:
    """Return (p + specificity − 1) / (sensitivity + specificity − 1), [eq:rogan-gladen].

    Sensitivity and specificity are those of all known tasks: judges are taken to err alike on every
    system. None where gold lacks one of the two classes, or does not show that what judges say has
    to do with it: the divisor may then be 0. It may be negative, where judges say the opposite.
    """
    positive = evidence.y > 0.5
    if not (positive.any() and (~positive).any()):
        return None
    hit = evidence.said[evidence.task]
    weight = evidence.weight
    design = effective_number(weight) / len(weight)
    counts = [
        design * float(weight[part].sum())
        for part in (positive & hit, positive & ~hit, ~positive & ~hit, ~positive & hit)
    ]
    sensitivity = rng.beta(counts[0] + 0.5, counts[1] + 0.5, N_DRAWS)
    specificity = rng.beta(counts[2] + 0.5, counts[3] + 0.5, N_DRAWS)
    share = float(evidence.said[members].mean())  # of these very tasks: nothing uncertain about it
    power = sensitivity + specificity - 1.0
    least, most = _percentiles(power, level)
    if least <= 0.0 <= most:
        return None
    power = np.maximum(power, EDGE) if least > 0.0 else np.minimum(power, -EDGE)
    draws = np.clip((share + specificity - 1.0) / power, 0.0, 1.0)
    return RateEstimate(float(np.median(draws)), *_percentiles(draws, level), draws)


def posterior(evidence: ClassEvidence, rng: np.random.Generator) -> Floats:
    """Draw a and b of σ(a + b logit f), the chances corrected by gold: [eq:posterior-rate].

    Their priors are normal, around 0 and 1.
    """
    x = _log_odds(evidence.f[evidence.task])
    weight = evidence.weight
    design = np.stack([np.ones_like(x), x], axis=1)
    precision = np.diag([OFFSET_SPREAD**-2.0, SLOPE_SPREAD**-2.0])
    at, hessian = _logistic(design, np.array([0.0, 1.0]), precision, evidence.y, weight)
    covariance = np.linalg.inv(hessian)
    if len(x) >= 2 and np.ptp(weight) >= EDGE:
        # Known tasks of unequal weight: the sandwich, as the weighted sum is no likelihood.
        score = weight * (evidence.y - expit(design @ at))
        middle = (design * np.square(score)[:, None]).T @ design + precision
        covariance = covariance @ middle @ covariance
    return np.asarray(rng.multivariate_normal(at, covariance, N_DRAWS).T)


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


def posterior_rate(
    evidence: ClassEvidence,
    members: Mask,
    of_all: Floats,
    level: float,
    rng: np.random.Generator,
    *,
    has_own_offset: bool,
) -> RateEstimate:
    """Return the rate of some tasks by the posterior that gold has set right.

    A system's own offset is fitted to its own gold, around that of all systems.
    """
    mine = members[evidence.task]
    y, weight = evidence.y[mine], evidence.weight[mine]
    offset, slope = of_all
    if has_own_offset:
        base = offset.mean() + slope.mean() * _log_odds(evidence.f[evidence.task[mine]])
        precision = np.array([[SYSTEM_SPREAD**-2.0]])
        own, hessian = _logistic(np.ones((len(y), 1)), np.zeros(1), precision, y, weight, base)
        offset = offset + (own[0] + rng.standard_normal(N_DRAWS) / np.sqrt(hessian[0, 0]))
    rest = members.copy()
    rest[evidence.task] = False
    levels, counts = np.unique(np.round(_log_odds(evidence.f[rest]), 2), return_counts=True)
    p = expit(offset[:, None] + slope[:, None] * levels)
    noise = np.sqrt(np.maximum((p * (1.0 - p)) @ counts, 0.0)) * rng.standard_normal(N_DRAWS)
    n = max(np.count_nonzero(members), 1)
    draws = np.clip((y.sum() + p @ counts + noise) / n, 0.0, 1.0)
    return RateEstimate(float(draws.mean()), *_percentiles(draws, level), draws)
