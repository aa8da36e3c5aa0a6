"""Questions of several kinds: for each unit the kind that is worth most for its cost.

A unit is what a question is about: a task, or a group of tasks that are tied. An answer about one
task of a group is an answer about all of them. An example with three classes: tasks 0 = 1 = 4 are
tied, 2 is known to be of class 1, and q has, for the two open units,

    unit  task  stake  classes  p
    0     0     3      0 2 1    .5 .4 .1     any of 0, 1 and 4 can be asked about
    1     3     1      1 0 2    .9 .1 .0     "same as 2?" asks whether it is of class 1

Where constraints say that at most one task of a group, or exactly one, is of a class, "which of
these is it, or none?" settles the whole group: it is worth the sum over its tasks.

A label settles a unit whatever its class is; a yes or no ("same", "is") costs less and settles it
where the likeliest class is right. So a label is worth stake · (1 − p₁) / cost, a yes or no
stake · p₂ / cost, and the larger is asked. Either makes the unit known, or takes a class from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak.arguments import MAPPING, SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import composed
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links.graph import OPEN
from tiebreak.options import require_word
from tiebreak.selection import adaptive, value
from tiebreak.selection.draws import Seed
from tiebreak.selection.state import TaskState, task_state

Cost = float | Mapping[Hashable, float]  # one number, or by worker for a vote
Costs = Mapping[str, Cost]
Prices = tuple[Floats, Offsets, Floats]  # gain, what is named, cost; each (n_units,)

DEFAULT_KINDS = ("same", "label")
LABEL_COST = 1.5  # of a label beside a yes or no, where nothing is said
DEFAULT_COSTS: dict[str, float] = {
    "same": 1.0,
    "label": LABEL_COST,
    "is": 1.0,
    "vote": 1.0,
    "which": LABEL_COST,
}
AT_MOST_ONE, EXACTLY_ONE = "0-1", "1"  # counts of constraints
LAST_RESORT = 1e-3  # of the gain without errors, where no one answer could change a label
SECOND = 0.9  # of the gain, for the second class: "different" leaves more. Chosen on Music, Web
MOST_VOTES = 200  # units in most doubt that votes are priced for: each worker is tried on each
# For more than two classes, chosen on Music, Web and Dog; experiments/03_asking shows others, too.
EXPENSIVE = (
    2.0  # yes-or-no questions for a label; where it costs less, units come by their margin, and
)
CAUTION = 0.6  # a yes or no counts so much less, for each unit below it


class Offer(NamedTuple):
    """A question that one could ask: what it is expected to correct, and what it costs.

    `other` is the second task of "same", `label` the class of "is" (or, of "same", the class that
    the other task is an example of), `worker` who is to give a "vote". Of "which", `members` are
    the tasks of which one may be of class `label`; None at the end: it may be none of them.
    """

    kind: str  # "same", "label", "is", "vote" or "which"
    task: Hashable
    other: Hashable | None = None
    label: Hashable | None = None
    worker: Hashable | None = None
    gain: float = float("nan")  # labels corrected, as expected
    cost: float = 1.0
    members: tuple[Hashable | None, ...] | None = None

    @property
    def worth(self) -> float:
        """Labels corrected for one unit of cost."""
        return self.gain / self.cost


class Offers(tuple[Offer, ...]):
    """Questions to ask, the best first."""

    frame = "pyarrow"  # the kind of table that `to_frame` returns

    def __new__(cls, rows: Iterable[Offer], frame: str = "pyarrow") -> Self:
        made = super().__new__(cls, rows)
        made.frame = frame
        return made

    def __repr__(self) -> str:
        return f"Offers({len(self):,} questions)"

    def columns(self) -> dict[str, Any]:
        """Return kind, task, other, label, worker, gain, cost, members and worth as columns."""
        found: dict[str, Any] = {
            name: [getattr(row, name) for row in self] for name in (*Offer._fields, "worth")
        }
        found["members"] = [
            each and composed([task for task in each if task is not None])
            for each in found["members"]
        ]
        for name in ("gain", "cost", "worth"):
            found[name] = np.array(found[name], dtype=np.float64)
        return found

    def to_frame(self) -> Any:
        """Return the questions as a table of the caller's kind."""
        return as_frame(self.columns(), self.frame)


@checks(
    model=WITH_RESPONSES,
    n=whole(0),
    kinds=SEVERAL,
    costs=optional(MAPPING),
    among=optional(SEVERAL),
    random_state=SEED,
)
def questions(
    model: Estimator,
    n: int = 10,
    kinds: Sequence[str] = DEFAULT_KINDS,
    costs: Costs | None = None,
    among: Iterable[Hashable] | None = None,
    random_state: Seed = None,
) -> Offers:
    """Choose the next n questions, of several kinds, by what they correct for their cost.

    No unit (a task, or a group of tasks that links tie) is asked about twice.

    Parameters
    ----------
    model
        A fitted `VariationalBayes`. Fit it again with the answers as links and gold, and ask on.
    kinds
        "same": are these two the same class? The second task is one whose class is known. "label":
        which class is this? "is": is this of that class? "vote": one more response, from whom.
        "which": which task of a group is of the class of which constraints allow one, or none.
        With "same" alone pairs are chosen as `pairs` does.
    costs
        What each kind costs, by name, such as {"label": 2.0}; for "vote" also a mapping of worker
        to cost, for those who can be asked. A yes or no costs 1, a label 1.5 where it is not said.
    among
        Ask only about these tasks; None: about all.
    random_state
        A seed or a generator: which known example is shown.

    Returns
    -------
    Rows of kind, task, other, label, worker, gain (labels corrected, as expected), cost, members
    and worth (gain for one unit of cost), the best first.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(n_tasks=50, n_workers=5, n_classes=3, random_state=0)
    >>> known = dict(list(crowd.gold.to_dict().items())[:9])
    >>> model = tb.VariationalBayes().fit(crowd.responses, gold=known)
    >>> [row.kind for row in tb.selection.questions(model, 2, costs={"label": 30.0})]
    ['same', 'same']
    >>> [row.kind for row in tb.selection.questions(model, 2, costs={"label": 1.0})]
    ['label', 'label']
    """
    priced = check_costs(kinds, costs)
    if len(model.classes_) < 2:
        raise OptionError("nothing-to-ask")
    rng = np.random.default_rng(random_state)
    return choose_questions(model, task_state(model, among), n, kinds, priced, rng)


def choose_questions(
    model: Estimator,
    state: TaskState,
    n: int,
    kinds: Sequence[str],
    costs: Costs,
    rng: np.random.Generator,
) -> Offers:
    frame = model.responses_.frame
    cost = one_cost(costs["same"])
    if tuple(kinds) == ("same",):  # as `selection.pairs` does
        pairs = (
            Offer("same", model.tasks_[left], model.tasks_[right], gain=gain, cost=cost)
            for left, right, gain in adaptive.choose(state, n, rng)
        )
        return Offers(pairs, frame)
    plan = _Plan(model, open_units(state), kinds, costs)
    offers: list[Offer] = []
    has_example = plan.units.has_example().any()
    is_mixed = "same" in kinds and "label" in kinds
    if is_mixed and plan.units.n_classes == 2 and not has_example and len(plan.order) and n > 0:
        # One label lets the rest of the batch be cheap questions: with two classes any task serves
        # as the example, whatever its label turns out to be.
        best = int(plan.order[0])
        offers.append(plan.offer(best, rng))
        plan = _Plan(model, plan.units.with_example(best), kinds, costs)
    settled: set[Hashable] = set()  # tasks that are asked about, alone or in their group
    for at in plan.order.tolist():
        if len(offers) >= n:
            break
        offer = plan.offer(at, rng)
        tasks = {task for task in offer.members or (offer.task,) if task is not None}
        if settled.isdisjoint(tasks):
            offers.append(offer)
            settled |= tasks
    return Offers(offers, frame)


class _Plan:
    """What would be asked about each unit: the kind that is worth most; and in which order."""

    def __init__(
        self, model: Estimator, units: OpenUnits, kinds: Sequence[str], costs: Costs
    ) -> None:
        self.model = model
        self.units = units
        self.kinds = kinds
        prices = [PRICES[kind](units, model, costs[kind]) for kind in kinds]
        gain, about, cost = (np.stack(each) for each in zip(*prices, strict=True))
        worth = gain / cost
        # A label that costs no more than a yes or no is asked for. With more than two classes "no"
        # leaves several open: a yes or no counts for less, the less a label costs.
        yes_no = [one_cost(costs[kind]) for kind in kinds if kind in ("same", "is")]
        ratio = np.inf  # yes-or-no questions that a label costs
        if "label" in kinds:
            ratio = one_cost(costs["label"]) / min(yes_no) if yes_no else 1.0
        share = 1.0 if units.n_classes == 2 else 1.0 - CAUTION * max(EXPENSIVE - ratio, 0.0)
        is_yes_no = np.isin(kinds, ("same", "is"))[:, None]
        counts_for = np.where(is_yes_no, share * worth if ratio > 1.0 else -np.inf, worth)
        self.kind = np.argmax(counts_for, axis=0)
        every = np.arange(len(units))
        self.gain, self.about, self.cost, best = (
            each[self.kind, every] for each in (gain, about, cost, worth)
        )
        rank = best
        if "label" in kinds and units.n_classes > 2 and ratio < EXPENSIVE:
            by_margin = units.stake * (1.0 - units.p[:, 0] + units.p[:, 1])
            rank = np.where(np.isfinite(best), by_margin, best)
        order = np.argsort(-rank, kind="stable")
        self.order = order[best[order] > 0.0]  # without those that no question would help

    def offer(self, at: int, rng: np.random.Generator) -> Offer:
        model, kind, about = self.model, self.kinds[int(self.kind[at])], int(self.about[at])
        task = model.tasks_[int(self.units.task[at])]
        offer = Offer(kind, task, gain=float(self.gain[at]), cost=float(self.cost[at]))
        if kind == "same":  # an example is drawn, so that none wears out
            example, label = self.units.example(at, about, rng)
            return offer._replace(other=model.tasks_[example], label=model.classes_[label])
        if kind == "which":
            group = self.units.groups[about]
            members = (*model.tasks_.take(group.tasks), *[None] * group.may_be_none)
            return offer._replace(members=members, label=model.classes_[group.label])
        if kind == "is":
            return offer._replace(label=model.classes_[about])
        return offer._replace(worker=model.workers_[about]) if kind == "vote" else offer


class TaskGroup(NamedTuple):
    """Tasks of which constraints allow one to be of a class."""

    tasks: Offsets
    label: int
    may_be_none: bool


def groups_of(model: Estimator) -> tuple[TaskGroup, ...]:
    """Return the groups of several tasks of which at most one, or exactly one, is of a class."""
    found = []
    for each in () if model.constraints_ is None else model.constraints_.records():
        labels, tasks, count = each.get("labels", ()), each.get("tasks", ()), each.get("count")
        if len(tasks) > 1 and len(labels) == 1 and count in (AT_MOST_ONE, EXACTLY_ONE):
            label = int(model.classes_.codes(labels)[0])
            codes = model.tasks_.codes(tasks).astype(np.int64)
            found.append(TaskGroup(codes, label, count == AT_MOST_ONE))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class OpenUnits:
    """The units whose class is not known, and the tasks whose class is."""

    task: Offsets  # (n_units,) one task that can be asked about, for each
    stake: Floats  # (n_units,) how many labels depend on it
    classes: Offsets  # (n_units, n_classes), likeliest first
    p: Floats  # (n_units, n_classes), in that order
    examples: tuple[Offsets, ...]  # by class: tasks known to be of it that can be shown
    example_q: Floats  # (n_classes, n_classes) what examples of each class are believed to be
    error: float = 0.0  # how often answers are wrong
    gain_for_others: Floats | None = None  # (n_units,) what a label of each corrects in others
    groups: tuple[TaskGroup, ...] = ()
    q: Floats | None = None  # (n_tasks, n_classes), where there are groups

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_classes(self) -> int:
        return int(self.p.shape[1])

    def is_only_example(self) -> Mask:
        """Return of each unit whether its task is the only one it could be compared with.

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
        """Return of each class whether a task is known that answers "is it of this class?".

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
    task = np.flatnonzero(state.among)
    n_classes = state.q.shape[1]
    known = state.known[task]
    example = state.example[task]
    examples = tuple(task[example == k] for k in range(n_classes))
    open_task = task[known == OPEN]
    _, first = np.unique(state.unit()[open_task], return_index=True)
    chosen = open_task[first]
    q = state.q[chosen]
    classes = np.argsort(-q, axis=1, kind="stable")
    stake = np.asarray(state.at_stake()[chosen], dtype=np.float64)
    p = np.take_along_axis(q, classes, axis=1)
    example_q = np.eye(n_classes)
    if state.error > 0.0:
        for k, tasks in enumerate(examples):
            # With two classes an example of the other class will do, where one has none.
            shown = tasks if len(tasks) or n_classes > 2 else examples[1 - k]
            if len(shown):
                example_q[k] = state.q[shown].mean(axis=0)
    more = None if state.gain_for_others is None else state.gain_for_others[chosen]
    groups = tuple(each for each in groups_of(state.model) if state.among[each.tasks].all())
    given = examples, example_q, state.error, more, groups, state.q
    return OpenUnits(chosen, stake, classes, p, *given)


# The kinds


def price_label(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Which class is this? What the answer corrects: `value.answer_gain`.

    If other labels depend on it, all doubt in it counts: one more answer may not
    settle it, but it is the way to find out before it misleads them.
    """
    gain = np.maximum(value.answer_gain(units.p, units.error), LAST_RESORT * (1.0 - units.p[:, 0]))
    gain = units.stake * gain
    if units.gain_for_others is not None:
        gain = gain + units.gain_for_others
    if units.groups and units.q is not None:  # "yes" settles the others
        settles = np.zeros(len(units.q))
        for group, (worth, doubt) in zip(units.groups, doubt_in_groups(units), strict=True):
            settles[group.tasks] += units.q[group.tasks, group.label] * (worth - doubt)
        gain = gain + settles[units.task]
    return gain, units.classes[:, 0], np.full(len(units), one_cost(cost))


def price_is(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Is this of its likeliest class? "No" corrects the label if it is of the second."""
    likeliest = np.eye(units.n_classes)[0]  # classes are in the order of p
    gain = value.link_gain(units.p, likeliest, units.error)
    gain = units.stake * np.maximum(gain, LAST_RESORT * units.p[:, 1])
    return gain, units.classes[:, 0], np.full(len(units), one_cost(cost))


def price_same(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Is this the same as a known example of its likeliest class?

    "Different" corrects the label if it is of the second class. Where the likeliest class has no
    example, one of the second class is asked: "same" corrects the label as often.
    """
    has_example = units.has_example()
    first = has_example[units.classes[:, 0]]
    second = has_example[units.classes[:, 1]]
    about = np.where(first | ~second, units.classes[:, 0], units.classes[:, 1])
    example = np.take_along_axis(units.example_q[about], units.classes, axis=1)
    gain = value.link_gain(units.p, example, units.error)
    gain = units.stake * np.maximum(gain, LAST_RESORT * units.p[:, 1])
    gain = np.where(first, gain, np.where(second, SECOND * gain, -np.inf))
    gain[units.is_only_example()] = -np.inf
    return gain, about, np.full(len(units), one_cost(cost))


def price_vote(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """One more response, of the worker who has not answered and is worth most."""
    who, price = _can_be_asked(model, cost)
    gain = np.full(len(units), -np.inf)
    worker = np.zeros(len(units), dtype=np.int64)
    costs = np.full(len(units), one_cost(cost))
    doubt = units.stake * (1.0 - units.p[:, 0])
    for at in np.argsort(-doubt, kind="stable")[:MOST_VOTES].tolist():
        answered, _ = model.responses_.of(int(units.task[at]))
        free = np.flatnonzero(~np.isin(who, answered))
        if len(free):
            confusion = model.confusion_[who[free]][:, units.classes[at]]  # in the order of p
            found = value.vote_gain(units.p[at], confusion) * units.stake[at]
            best = int(np.argmax(found / price[free]))
            gain[at], worker[at], costs[at] = found[best], who[free[best]], price[free[best]]
    return gain, worker, costs


def price_which(units: OpenUnits, model: Estimator, cost: Cost) -> Prices:
    """Which of these is of the class, or none? An answer settles each task of the group."""
    best = np.full(len(model.tasks_), -np.inf)
    about = np.zeros(len(best), dtype=np.int64)
    for at, (worth, _) in enumerate(doubt_in_groups(units)):
        tasks = units.groups[at].tasks
        better = tasks[worth > best[tasks]]
        best[better], about[better] = worth, at
    return best[units.task], about[units.task], np.full(len(units), one_cost(cost))


def doubt_in_groups(units: OpenUnits) -> list[tuple[float, Floats]]:
    """Return how many labels of each group an answer corrects, in all and by task."""
    assert units.q is not None
    doubt = value.answer_gain(-np.sort(-units.q, axis=1), units.error)
    return [(float(doubt[each.tasks].sum()), doubt[each.tasks]) for each in units.groups]


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
    "which": price_which,
}
KINDS = tuple(PRICES)


def one_cost(cost: Cost) -> float:
    """Return the cost of a question where it is one number; 1 where workers differ."""
    return 1.0 if isinstance(cost, Mapping) else float(cost)


def require_cost(kind: str, cost: float) -> float:
    if not (np.isfinite(cost) and cost > 0.0):
        raise OptionError.must_be(f"The cost of a {kind}", "above 0 and finite", cost)
    return float(cost)


def check_costs(kinds: Sequence[str], costs: Costs | None) -> Costs:
    """Return the cost of every kind, and refuse what is none."""
    if isinstance(kinds, str) or not len(kinds):
        raise OptionError.must_be("kinds", "one kind of question or more", kinds)
    for name in (*kinds, *(costs or ())):
        require_word("A kind of question", name, KINDS)
    if len(set(kinds)) < len(kinds):
        raise OptionError("kinds-twice", kinds=list(kinds))
    found = {**DEFAULT_COSTS, **(costs or {})}
    for name, cost in found.items():
        if isinstance(cost, Mapping):
            if name != "vote":
                raise OptionError.must_be(f"The cost of {name}", "one number", cost)
        else:
            require_cost(name, cost)
    return found
