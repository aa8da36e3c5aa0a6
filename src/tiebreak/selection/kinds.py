"""Kinds of questions: what each would put right, unit by unit.

A unit is what a question is about: a task, or a group of tasks that are tied. An answer about one
task of a group is an answer about all of them. An example with three classes: tasks 0 = 1 = 4 are
tied, 2 is known to be of class 1, and q has, for the two open units,

    unit  task  stake  classes  p
    0     0     3      0 2 1    .5 .4 .1     any of 0, 1 and 4 can be asked about
    1     3     1      1 0 2    .9 .1 .0     "same as 2?" asks whether it is of class 1

A kind is one function in `PRICES`. It takes the units, the model and what a question costs, and
returns what a question about each unit would put right (−inf where it cannot be asked), the class
or the worker that it would name, and its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links.graph import OPEN
from tiebreak.selection import value
from tiebreak.selection.state import TaskState

Cost = float | Mapping[Hashable, float]  # one number, or by worker for a vote
Prices = tuple[Floats, Offsets, Floats]  # gain, what is named, cost; each (n_units,)

LAST_RESORT = 1e-3  # of the gain without errors, where no one answer could change a label
SECOND = 0.9  # of the gain, for the second class: "different" leaves more. Chosen on Music, Web
MOST_VOTES = 200  # units in most doubt that votes are priced for: each worker is tried on each


@dataclass(frozen=True, slots=True, eq=False)
class OpenUnits:
    """The units whose class is not known, and the tasks whose class is."""

    task: Offsets  # (n_units,) one task that can be asked about, for each
    stake: Floats  # (n_units,) how many labels hang on it
    classes: Offsets  # (n_units, n_classes), likeliest first
    p: Floats  # (n_units, n_classes), in that order
    examples: tuple[Offsets, ...]  # by class: tasks known to be of it that can be shown
    example_q: Floats | None = None  # (n_classes, n_classes) what examples of each class are
    error: float = 0.0  # how often answers are wrong
    gain_for_others: Floats | None = None  # (n_units,) what a label of each puts right in others

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.p.shape[1])

    def is_only_example(self) -> Mask:
        """Say of each unit whether its task is the only one it could be compared with.

        Where answers may be wrong, an example stays open, and could be asked about again.
        """
        found = np.zeros(len(self), dtype=bool)
        for label, tasks in enumerate(self.examples):
            if len(tasks) == 1:
                found |= (self.task == tasks[0]) & (self.classes[:, 0] == label)
        if self.n_classes == 2:
            found &= sum(map(len, self.examples)) == 1
        return found

    def has_example(self) -> Mask:
        """Say of each class whether a task is known that answers "is it of this class?".

        With two classes an example of either does.
        """
        found = np.array([len(tasks) > 0 for tasks in self.examples], dtype=bool)
        return np.full_like(found, found.any()) if self.n_classes == 2 else found

    def example(self, at: int, label: int, rng: np.random.Generator) -> tuple[int, int]:
        """Draw an example of a class for a unit, with two classes of the other where it has none.

        A task is not compared with itself.
        """
        others = [tasks[tasks != self.task[at]] for tasks in self.examples]
        if not len(others[label]):
            label = 1 - label
        return int(rng.choice(others[label])), label

    def with_example(self, at: int) -> OpenUnits:
        """Return the other units, with the task of this one as an example of its likeliest class.

        For two classes, where its label is asked for first: an example of either class will do.
        """
        label = int(self.classes[at, 0])
        examples = list(self.examples)
        examples[label] = np.append(examples[label], self.task[at])
        by_unit = ("task", "stake", "classes", "p", "gain_for_others")
        found = {name: getattr(self, name) for name in by_unit}
        others = {name: np.delete(v, at, axis=0) for name, v in found.items() if v is not None}
        return replace(self, examples=tuple(examples), **others)


def open_units(state: TaskState) -> OpenUnits:
    """Find the units that can be asked about."""
    task = np.flatnonzero(state.among)
    n_classes = state.q.shape[1]
    known = state.known[task]
    example = state.example[task]
    examples = tuple(task[example == k] for k in range(n_classes))
    open_task = task[known == OPEN]
    _, first = np.unique(state.settled.unit()[open_task], return_index=True)
    chosen = open_task[first]
    q = state.q[chosen]
    classes = np.argsort(-q, axis=1, kind="stable")
    stake = np.asarray(state.settled.at_stake()[chosen], dtype=np.float64)
    p = np.take_along_axis(q, classes, axis=1)
    example_q = _beliefs_of(examples, state.q) if state.error > 0.0 else None
    more = None if state.gain_for_others is None else state.gain_for_others[chosen]
    return OpenUnits(chosen, stake, classes, p, examples, example_q, state.error, more)


def _beliefs_of(examples: Sequence[Offsets], q: Floats) -> Floats:
    """Return what is believed of the examples of each class, (n_classes, n_classes).

    With two classes an example of the other class will do, where one has none.
    """
    found = np.eye(q.shape[1])
    for k, tasks in enumerate(examples):
        if not len(tasks) and len(examples) == 2:
            tasks = examples[1 - k]
        if len(tasks):
            found[k] = q[tasks].mean(axis=0)
    return found


# The kinds


def price_label(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Which class is this? The chance that the likeliest class is wrong, [eq:gold-gain].

    Where answers may be wrong it is what such an answer puts right, [eq:vote-gain]. If other labels
    hang on it, all doubt in what they hang on counts: one more answer may not settle it, but it is
    the way to find out before it misleads them.
    """
    gain = 1.0 - units.p[:, 0]
    if units.error > 0.0:
        gain = np.maximum(value.answer_gain(units.p, units.error), LAST_RESORT * gain)
    gain = units.stake * gain
    if units.gain_for_others is not None:
        gain = gain + units.gain_for_others
    return gain, units.classes[:, 0], np.full(len(units), one_cost(cost))


def price_is(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Is this of its likeliest class? "No" puts the label right if it is of the second."""
    gain = units.p[:, 1]
    if units.error > 0.0:
        of_class = np.zeros(units.p.shape)
        of_class[:, 0] = 1.0
        found = value.link_gain(units.p, of_class, units.error)
        gain = np.maximum(found, LAST_RESORT * gain)
    return units.stake * gain, units.classes[:, 0], np.full(len(units), one_cost(cost))


def price_same(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Is this the same as a known example of its likeliest class?

    "Different" puts the label right if it is of the second class. Where the likeliest class has no
    example, one of the second class is asked: "same" puts the label right as often.
    """
    has_example = units.has_example()
    first = has_example[units.classes[:, 0]]
    second = has_example[units.classes[:, 1]]
    share = np.where(first, 1.0, np.where(second, SECOND, -np.inf))
    about = np.where(first | ~second, units.classes[:, 0], units.classes[:, 1])
    gain = units.p[:, 1]
    if units.example_q is not None:
        example = np.take_along_axis(units.example_q[about], units.classes, axis=1)
        found = value.link_gain(units.p, example, units.error)
        gain = np.maximum(found, LAST_RESORT * gain)
    share[units.is_only_example()] = -np.inf
    gain = np.where(first | second, units.stake * gain, 1.0) * share
    return gain, about, np.full(len(units), one_cost(cost))


def price_vote(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """One more response, of the worker who has not answered and is worth most: [eq:vote-gain]."""
    who, price = _can_be_asked(model, cost)
    gain = np.full(len(units), -np.inf)
    worker = np.zeros(len(units), dtype=np.int64)
    costs = np.full(len(units), one_cost(cost))
    doubt = units.stake * (1.0 - units.p[:, 0])
    for at in np.argsort(-doubt, kind="stable")[:MOST_VOTES].tolist():
        answered, _ = model.responses_.of(int(units.task[at]))
        free = np.flatnonzero(~np.isin(who, answered))
        if len(free):
            q = np.zeros(units.n_classes)
            q[units.classes[at]] = units.p[at]
            found = value.vote_gain(q[None, :], model.confusion_[who[free]]) * units.stake[at]
            best = int(np.argmax(found / price[free]))
            gain[at], worker[at], costs[at] = found[best], who[free[best]], price[free[best]]
    return gain, worker, costs


def _can_be_asked(model: Estimator, cost: Cost) -> tuple[Offsets, Floats]:
    """Return the workers who can be asked for a vote, and what each costs."""
    if not isinstance(cost, Mapping):
        return np.arange(len(model.workers_)), np.full(len(model.workers_), float(cost))
    names = list(cost)
    who = model.workers_.codes(names).astype(np.int64)
    if len(who) and who.min() < 0:
        unknown = names[int(who.argmin())]
        raise OptionError("vote-of-unknown-worker", name=unknown)
    return who, np.array([require_cost("vote", each) for each in cost.values()])


PRICES: dict[str, Callable[[OpenUnits, Estimator, Cost], Prices]] = {
    "same": price_same,
    "label": price_label,
    "is": price_is,
    "vote": price_vote,
}
KINDS = tuple(PRICES)


def one_cost(cost: Cost) -> float:
    """Return the cost of a question where it is one number; 1 where workers differ."""
    return 1.0 if isinstance(cost, Mapping) else float(cost)


def require_cost(kind: str, cost: float) -> float:
    """Refuse a cost that is not above 0."""
    if not (np.isfinite(cost) and cost > 0.0):
        raise OptionError.must_be(f"The cost of a {kind}", "above 0 and finite", cost)
    return float(cost)
