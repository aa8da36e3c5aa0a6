"""Honest rates: what share of tasks is of each class, by system, and how systems differ."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.arguments import NAME, SEED, TEXT, checks
from tiebreak.errors import InputError, OptionError, note
from tiebreak.frames import as_plain
from tiebreak.inference.estimator import require_fitted
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import require_number
from tiebreak.panel.held_out import blind
from tiebreak.panel.table import known_codes
from tiebreak.rates import arrays
from tiebreak.rates.arrays import KnownSample, RateEstimate
from tiebreak.wording import counted

ALL = "all"
LEVEL = 0.9
MOST_SYSTEMS = 10  # of which all pairs are compared
FEW_GOLD = 20  # of a system, below which its interval is said to be wide

UNLIKE = 3.3  # standard errors: known tasks so far from all are no random sample, 1,000 to 1

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
        raise OptionError(f"There is no rate of {label!r} for {system!r} by {method!r}.")

    def __str__(self) -> str:
        from tiebreak.rates.text import as_text

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return lists of plain values, None where a number is not known."""
        return {
            "level": self.level,
            "rates": as_plain(self.rates),
            "differences": as_plain(self.differences),
        }


class _Setting(NamedTuple):
    """What all classes and systems share."""

    probabilities: Floats
    label: Codes
    task: Codes  # known ones
    truth: Codes
    chance: Floats
    systems: dict[str, Mask]
    level: float
    n_classes: int


@checks(random_state=SEED)
def estimate(
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
        sample; `tiebreak.panel.sample` says it.
    level
        Of the intervals.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(500, 5, 2, responses_per_task=5, shared=0.5, random_state=0)
    >>> some = dict(list(crowd.gold.to_dict().items())[:60])
    >>> rate = estimate(tb.VariationalBayes().fit(crowd.responses), some).of("c0")
    >>> rate.low < rate.rate < rate.high
    True
    """
    require_fitted(model)
    require_number("level", level, "between 0 and 1, both excluded", above=0.0, below=1.0)
    unseen = blind(model)
    known = model.gold_ if gold is None else gold
    task, truth = known_codes(known, unseen.tasks_, unseen.classes_)
    setting = _Setting(
        np.asarray(unseen.probabilities_),
        np.asarray(unseen.labels_.label),
        task,
        truth,
        _chances(selection, task, unseen.tasks_),
        _members(systems, unseen.tasks_),
        level,
        len(unseen.classes_),
    )
    _note_gold(setting)
    unlike = _unlike_all(setting)
    if unlike is not None:
        _note_unlike(unlike, unseen.classes_, _has_one_class(setting))
    rng = np.random.default_rng(random_state)
    rates: list[Rate] = []
    differences: list[Difference] = []
    for k in range(setting.n_classes):
        found = _of_class(setting, k, rng)
        if unlike is not None and _has_one_class(setting):
            found = _nothing_known(found, rng)
        name = unseen.classes_[k]
        for (system, method), each in found.items():
            n_known = int(np.count_nonzero(setting.systems[system][task]))
            n = int(np.count_nonzero(setting.systems[system]))
            interval = (each.low, each.high)
            rates.append(
                Rate(system, name, method, each.value, *interval, n, n_known, each.is_gold_alone)
            )
        differences += _differences(found, list(setting.systems), name, level)
    return RateTable(tuple(rates), tuple(differences), level)


def _of_class(
    setting: _Setting, k: int, rng: np.random.Generator
) -> dict[tuple[str, str], RateEstimate]:
    """Return every method's estimate for every system."""
    f = setting.probabilities[:, k]
    said = setting.label == k
    y = (setting.truth == k).astype(np.float64)
    found: dict[tuple[str, str], RateEstimate] = {}
    known = None
    of_all = None
    if len(setting.task):
        known = arrays.known_of(setting.task, y, setting.chance)
        of_all = arrays.posterior(f, known, rng)
    for system, members in setting.systems.items():
        share = float(said[members].mean()) if members.any() else np.nan
        nothing = np.empty(0)
        found[system, "judges"] = RateEstimate(share, np.nan, np.nan, nothing)
        own = _own(setting, y, members)
        if known is None or of_all is None or own is None:
            continue
        inside, place = own
        n = int(np.count_nonzero(members))
        found[system, "gold"] = arrays.gold_alone(inside, n, setting.level, rng)
        found[system, "ppi"] = arrays.prediction_powered(f[place], inside, setting.level, rng)
        if setting.n_classes == 2:
            rogan = arrays.rogan_gladen(said, members, known, setting.level, rng)
            if rogan is not None:
                found[system, "rogan-gladen"] = rogan
        found[system, "posterior"] = arrays.posterior_rate(
            f, members, known, of_all, setting.level, rng, has_own_offset=system != ALL
        )
    return found


def _own(setting: _Setting, y: Floats, members: Mask) -> tuple[KnownSample, Codes] | None:
    """Return the known tasks of a system, numbered among its own, and all its tasks."""
    place = np.flatnonzero(members).astype(np.int32)
    mine = members[setting.task]
    if np.count_nonzero(mine) < 2:
        return None
    at = np.searchsorted(place, setting.task[mine]).astype(np.int32)
    return arrays.known_of(at, y[mine], setting.chance[mine]), place


def _differences(
    found: dict[tuple[str, str], RateEstimate], systems: list[str], label: Hashable, level: float
) -> list[Difference]:
    names = [name for name in systems if name != ALL]
    if len(names) > MOST_SYSTEMS:
        return []
    tail = 50.0 * (1.0 - level)
    rows = []
    for left, right in combinations(names, 2):
        for method in METHODS:
            a = found.get((left, method))
            b = found.get((right, method))
            if a is None or b is None:
                continue
            low = high = np.nan
            if len(a.draws) and len(b.draws):
                low, high = np.percentile(a.draws - b.draws, [tail, 100.0 - tail]).tolist()
            alone = a.is_gold_alone or b.is_gold_alone
            rows.append(Difference(left, right, label, method, a.value - b.value, low, high, alone))
    return rows


def _members(systems: Any, tasks: Any) -> dict[str, Mask]:
    everything = {ALL: np.ones(len(tasks), dtype=bool)}
    if systems is None:
        return everything
    by_task = tables.read_systems(systems)
    code = tasks.codes(list(by_task))
    if not (code >= 0).any():
        raise InputError(
            "No task of systems= (--by) is among the responses. Use the ids of tasks there."
        )
    away = int(np.count_nonzero(code < 0))
    if away:
        tasks = f"{counted(away, 'task')} of systems"
        note(f"{tasks} not among the responses: left out.")
    names = np.array(list(by_task.values()), dtype=object)
    for name in sorted(set(names[code >= 0])):
        if name == ALL:
            raise InputError(f"A system cannot be called {ALL!r}, which stands for all tasks.")
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
            f"{len(missing):,} known tasks have no selection probability; the first is "
            f"{tasks[int(task[missing[0]])]!r}. Give one for every task of gold, or none at all."
        )
    return np.asarray(chance)


def _note_gold(setting: _Setting) -> None:
    if not len(setting.task):
        note(
            "Without gold only the judges' own share is known, and no interval holds: judges share "
            "errors that cannot be seen. `tiebreak panel --sample FILE` draws tasks to label."
        )
        return
    if _has_one_class(setting):
        note("All gold is of one class; intervals of the others rest on that alone.")
    few = [
        name
        for name, members in setting.systems.items()
        if np.count_nonzero(members[setting.task]) < FEW_GOLD
    ]
    if few:
        note(
            f"Fewer than {FEW_GOLD} known labels for {', '.join(few[:5])}: intervals are wide, or "
            "missing."
        )


def _has_one_class(setting: _Setting) -> bool:
    return len(np.unique(setting.truth)) == 1 and setting.n_classes > 1


class _Unlike(NamedTuple):
    """A class that judges give to known tasks far more, or less, often than to all."""

    label: int
    of_known: float
    of_all: float


def _unlike_all(setting: _Setting) -> _Unlike | None:
    """Compare what judges say of known tasks with what they say of all; None: about the same.

    It needs no truth: a random sample of tasks looks like all of them to any judge.
    """
    n = len(setting.task)
    n_tasks = len(setting.label)
    if n < 2 or n >= n_tasks:
        return None
    weight = 1.0 / setting.chance
    on_known = setting.label[setting.task]
    share = np.bincount(on_known, weights=weight, minlength=setting.n_classes) / weight.sum()
    of_all = np.bincount(setting.label, minlength=setting.n_classes) / n_tasks
    even = weight.sum() ** 2 / np.square(weight).sum()
    smoothed = (of_all * n_tasks + 0.5) / (n_tasks + 1.0)
    expected = smoothed * (1.0 - smoothed) / even
    # Where weights go with what judges say, what is seen may vary more than that.
    said = np.arange(setting.n_classes) == on_known[:, None]
    seen = np.square(weight[:, None] * (said - share)).sum(axis=0) / weight.sum() ** 2
    error = np.sqrt(np.maximum(expected, seen) * (1.0 - n / n_tasks))
    away = np.abs(share - of_all) / np.maximum(error, 1.0 / (2.0 * n))
    k = int(away.argmax())
    return _Unlike(k, float(share[k]), float(of_all[k])) if away[k] > UNLIKE else None


def _nothing_known(
    found: dict[tuple[str, str], RateEstimate], rng: np.random.Generator
) -> dict[tuple[str, str], RateEstimate]:
    """Keep the judges' own share; ppi says the same, and that it may be anything."""
    kept = {key: each for key, each in found.items() if key[1] == "judges"}
    for system in [system for system, method in found if method == "ppi"]:
        share = kept[system, "judges"].value
        kept[system, "ppi"] = RateEstimate(share, 0.0, 1.0, rng.random(arrays.N_DRAWS))
    return kept


def _note_unlike(found: _Unlike, classes: Any, has_one_class: bool) -> None:
    nothing = " As gold has one class too, nothing is known: intervals are 0 to 1."
    end = nothing if has_one_class else ""
    note(
        f"Known tasks are not like all tasks: judges call {found.of_known:.0%} of them "
        f"{classes[found.label]!r}, and {found.of_all:.0%} of all. Intervals hold for a random "
        f"sample; else say with which chance each task was drawn (--selection).{end}"
    )
