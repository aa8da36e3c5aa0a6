"""Questions of several kinds: for each unit the kind that is worth most for its cost.

A unit is a task, or a group of tasks that are tied. A label settles it whatever its class is; a
yes or no ("same", "is") costs less and settles it where the likeliest class is right. So a label is
worth stake · (1 − p₁) / cost, a yes or no stake · p₂ / cost, and the larger is asked. Either makes
the unit known, or takes a class from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import MAPPING, SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.data.frames import as_frame
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats
from tiebreak.options import require_word
from tiebreak.selection import adaptive
from tiebreak.selection.draws import Seed
from tiebreak.selection.kinds import (
    KINDS,
    PRICES,
    Cost,
    OpenUnits,
    one_cost,
    open_units,
    require_cost,
)
from tiebreak.selection.state import TaskState, task_state

Costs = Mapping[str, Cost]

DEFAULT_KINDS = ("same", "label")
LABEL_COST = 1.5  # of a label beside a yes or no, where nothing is said
DEFAULT_COSTS: dict[str, float] = {"same": 1.0, "label": LABEL_COST, "is": 1.0, "vote": 1.0}
# For more than two classes, chosen on Music, Web and Dog; experiments/03_asking shows others, too.
DEAR = 2.0  # yes-or-no questions for a label; where it costs less, units come by their margin, and
TWO_WAY = 0.9  # of the two likeliest classes together, for a unit that is as good as of two classes
CAUTION = 0.6  # a yes or no counts so much less, for each unit below it


class Offer(NamedTuple):
    """A question that one could ask: what it is expected to put right, and what it costs.

    `other` is the second task of "same", `label` the class of "is" (or, of "same", the class that
    the other task is an example of), `worker` who is to give a "vote".
    """

    kind: str  # "same", "label", "is" or "vote"
    task: Hashable
    other: Hashable | None = None
    label: Hashable | None = None
    worker: Hashable | None = None
    gain: float = float("nan")  # labels put right, as expected
    cost: float = 1.0

    @property
    def worth(self) -> float:
        """Labels put right for one unit of cost."""
        return self.gain / self.cost


@dataclass(frozen=True, slots=True, eq=False)
class Offers(Sequence[Offer]):
    """Questions to ask, the best first."""

    rows: tuple[Offer, ...]
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    def __iter__(self) -> Iterator[Offer]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Offers) and other.rows == self.rows

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        return f"Offers({len(self):,} questions)"

    def columns(self) -> dict[str, Any]:
        """Return kind, task, other, label, worker, gain, cost and worth as columns."""
        found: dict[str, Any] = {
            name: [getattr(row, name) for row in self.rows] for name in (*Offer._fields, "worth")
        }
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
    """Choose the next n questions, of several kinds, by what they put right for their cost.

    No unit (a task, or a group of tasks that links tie) is asked about twice.

    Parameters
    ----------
    model
        A fitted `VariationalBayes`. Fit it again with the answers as links and gold, and ask on.
    kinds
        "same": are these two the same class? The second task is one whose class is known. "label":
        which class is this? "is": is this of that class? "vote": one more response, from whom.
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
    Rows of kind, task, other, label, worker, gain (labels put right, as expected), cost and worth
    (gain for one unit of cost), the best first.

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
    """Choose n questions by what is known of the tasks."""
    frame = model.responses_.frame
    cost = one_cost(costs["same"])
    if tuple(kinds) == ("same",):  # as `selection.pairs` does
        pairs = (
            Offer("same", model.tasks_[left], model.tasks_[right], gain=gain, cost=cost)
            for left, right, gain in adaptive.choose(state, n, rng)
        )
        return Offers(tuple(pairs), frame)
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
    units = plan.units
    labelled: dict[frozenset[int], int] = {}  # by its two likeliest classes: whose label is asked
    is_dear = "same" in kinds and one_cost(costs["label"]) >= DEAR * cost
    may_compare = is_dear and not units.has_example().any()
    for at in plan.order[: n - len(offers)].tolist():
        is_label = kinds[int(plan.kind[at])] == "label"
        top_two = frozenset(units.classes[at, :2].tolist())
        if is_label and top_two in labelled and may_compare:
            # Both are of one of the same two classes, so that either label of the other, which is
            # asked for before this in the same batch, tells this one.
            task, other = (model.tasks_[int(units.task[i])] for i in (at, labelled[top_two]))
            gain = float(units.stake[at] * units.p[at, 1])
            offers.append(Offer("same", task, other, gain=gain, cost=cost))
            continue
        if is_label and units.p[at, :2].sum() >= TWO_WAY:
            labelled.setdefault(top_two, at)
        offers.append(plan.offer(at, rng))
    return Offers(tuple(offers), frame)


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
        ratio = _ratio(kinds, costs)
        every = np.arange(len(units))
        self.kind = np.argmax(_cautious(worth, kinds, units.n_classes, ratio), axis=0)
        self.gain, self.about, self.cost, best = (
            each[self.kind, every] for each in (gain, about, cost, worth)
        )
        rank = best
        if "label" in kinds and units.n_classes > 2 and ratio < DEAR:
            by_margin = units.stake * (1.0 - units.p[:, 0] + units.p[:, 1])
            rank = np.where(np.isfinite(best), by_margin, best)
        order = np.argsort(-rank, kind="stable")
        self.order = order[best[order] > 0.0]  # without those that no question would help

    def offer(self, at: int, rng: np.random.Generator) -> Offer:
        """Put the question about one unit."""
        model = self.model
        kind, about = self.kinds[int(self.kind[at])], int(self.about[at])
        offer = Offer(
            kind,
            model.tasks_[int(self.units.task[at])],
            gain=float(self.gain[at]),
            cost=float(self.cost[at]),
        )
        if kind == "same":  # an example is drawn, so that none wears out
            example, label = self.units.example(at, about, rng)
            return offer._replace(other=model.tasks_[example], label=model.classes_[label])
        if kind == "is":
            return offer._replace(label=model.classes_[about])
        return offer._replace(worker=model.workers_[about]) if kind == "vote" else offer


def _ratio(kinds: Sequence[str], costs: Costs) -> float:
    """Return how many yes-or-no questions a label costs."""
    if "label" not in kinds:
        return np.inf
    cheaper = [one_cost(costs[kind]) for kind in kinds if kind in ("same", "is")]
    return one_cost(costs["label"]) / min(cheaper) if cheaper else 1.0


def _cautious(worth: Floats, kinds: Sequence[str], n_classes: int, ratio: float) -> Floats:
    """Return what each kind counts for when one is chosen for a unit.

    A label that costs no more than a yes or no is asked for. With more than two classes "no" leaves
    several open: a yes or no counts for less, the less a label costs.
    """
    share = 1.0 if n_classes == 2 else 1.0 - CAUTION * max(DEAR - ratio, 0.0)
    is_yes_no = np.isin(kinds, ("same", "is"))[:, None]
    if ratio <= 1.0:
        return np.where(is_yes_no, -np.inf, worth)
    return np.where(is_yes_no, share * worth, worth)


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
