"""Questions of several kinds: for each unit the kind that is worth most for its cost.

A unit is a task, or a group of tasks that are tied. A label settles it whatever its class is; a
yes or no ("same", "is") costs less and settles it where the likeliest class is right. So a label is
worth stake · (1 − p₁) / cost, a yes or no stake · p₂ / cost, and the larger is asked. Either makes
the unit known, or takes a class from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.arguments import MAPPING, SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.options import require_word
from tiebreak.selection import adaptive
from tiebreak.selection.adaptive import TaskState
from tiebreak.selection.asking import task_state
from tiebreak.selection.draws import Seed
from tiebreak.selection.kinds import KINDS, Prices, QuestionKind, kinds_by_name
from tiebreak.selection.kinds.vote import OneMoreVote, require_cost
from tiebreak.selection.offers import Offer, Offers
from tiebreak.selection.units import OpenUnits, open_units

Costs = Mapping[str, float | Mapping[Hashable, float]]

DEFAULT_KINDS = ("same", "label")
LABEL_COST = 1.5  # of a label beside a yes or no, where nothing is said
DEFAULT_COSTS: dict[str, float] = {"same": 1.0, "label": LABEL_COST, "is": 1.0, "vote": 1.0}
# For more than two classes, chosen on Music, Web and Dog; experiments/03_asking shows others, too.
DEAR = 2.0  # yes-or-no questions for a label; where it costs less, units come by their margin, and
TWO_WAY = 0.9  # of the two likeliest classes together, for a unit that is as good as of two classes
CAUTION = 0.6  # a yes or no counts so much less, for each unit below it


class QuestionPlan(NamedTuple):
    """What would be asked about each unit, and in which order."""

    kind: Offsets  # (n_units,) place among the kinds
    about: Offsets
    gain: Floats
    cost: Floats
    order: Offsets  # units, the best first; those that no question would help left out


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
    if tuple(kinds) == ("same",):
        return Offers(tuple(_choose_pairs(model, state, n, costs, rng)), frame)
    known = kinds_by_name()
    chosen = [_with_costs(known[name], costs[name]) for name in kinds]
    units = open_units(state)
    plan = _priced(model, units, chosen, costs)
    offers: list[Offer] = []
    if _wants_example(units, kinds) and len(plan.order) and n > 0:
        best = int(plan.order[0])
        offers.append(_offer(model, units, chosen, plan, best, rng))
        units = units.with_example(best)
        plan = _priced(model, units, chosen, costs)
    labelled: dict[frozenset[int], int] = {}  # by its two likeliest classes: whose label is asked
    may_compare = _is_dear(kinds, costs) and not units.has_example().any()
    for at in plan.order[: n - len(offers)].tolist():
        is_label = kinds[int(plan.kind[at])] == "label"
        top_two = frozenset(units.classes[at, :2].tolist())
        if is_label and top_two in labelled and may_compare:
            offers.append(_same_as(model, units, at, labelled[top_two], costs))
            continue
        if is_label and units.p[at, :2].sum() >= TWO_WAY:
            labelled.setdefault(top_two, at)
        offers.append(_offer(model, units, chosen, plan, at, rng))
    return Offers(tuple(offers), frame)


def _choose_pairs(
    model: Estimator, state: TaskState, n: int, costs: Costs, rng: np.random.Generator
) -> Iterator[Offer]:
    """Yield pairs as `selection.pairs` chooses them, where no other kind may be asked."""
    cost = _one_cost(costs["same"])
    for left, right, gain in adaptive.choose(state, n, rng):
        yield Offer("same", model.tasks_[left], model.tasks_[right], gain=gain, cost=cost)


def _is_dear(kinds: Sequence[str], costs: Costs) -> bool:
    """Say whether a label costs so much that a first batch compares with what it asks for."""
    return "same" in kinds and _one_cost(costs["label"]) >= DEAR * _one_cost(costs["same"])


def _same_as(model: Estimator, units: OpenUnits, at: int, other: int, costs: Costs) -> Offer:
    """Compare a unit with one whose label is asked for before it, in the same batch.

    Both are of one of the same two classes, so that either label of the other tells this one.
    """
    task = model.tasks_[int(units.task[at])]
    example = model.tasks_[int(units.task[other])]
    gain = float(units.stake[at] * units.p[at, 1])
    return Offer("same", task, example, gain=gain, cost=_one_cost(costs["same"]))


def _priced(
    model: Estimator, units: OpenUnits, kinds: Sequence[QuestionKind], costs: Costs
) -> QuestionPlan:
    prices = [kind.price(model, units, _one_cost(costs[kind.name])) for kind in kinds]
    return plan_questions(units, [kind.name for kind in kinds], prices)


def _offer(
    model: Estimator,
    units: OpenUnits,
    kinds: Sequence[QuestionKind],
    plan: QuestionPlan,
    at: int,
    rng: np.random.Generator,
) -> Offer:
    offer = kinds[int(plan.kind[at])].offer(model, units, at, int(plan.about[at]), rng)
    return offer._replace(gain=float(plan.gain[at]), cost=float(plan.cost[at]))


def _wants_example(units: OpenUnits, kinds: Sequence[str]) -> bool:
    """Say whether one label would let the rest of a batch be cheap questions.

    With two classes any task serves as the example, whatever its label turns out to be.
    """
    is_mixed = "same" in kinds and "label" in kinds
    return is_mixed and units.n_classes == 2 and not units.has_example().any()


def plan_questions(
    units: OpenUnits, kinds: Sequence[str], prices: Sequence[Prices]
) -> QuestionPlan:
    """Take the kind that is worth most for each unit, and put the units in order."""
    if not len(units) or not prices:
        nothing = np.empty(0, dtype=np.int64)
        return QuestionPlan(nothing, nothing, nothing.astype(float), nothing.astype(float), nothing)
    gain = np.stack([each.gain for each in prices])
    cost = np.stack([each.cost for each in prices])
    about = np.stack([each.about for each in prices])
    worth = gain / cost
    ratio = _ratio(kinds, cost)
    kind = np.argmax(_cautious(worth, kinds, units.n_classes, ratio), axis=0)
    every = np.arange(len(units))
    best = worth[kind, every]
    rank = best
    if "label" in kinds and units.n_classes > 2 and ratio < DEAR:
        rank = np.where(
            np.isfinite(best), units.stake * (1.0 - units.p[:, 0] + units.p[:, 1]), best
        )
    order = np.argsort(-rank, kind="stable")
    return QuestionPlan(
        kind,
        about[kind, every],
        gain[kind, every],
        cost[kind, every],
        order[best[order] > 0.0],
    )


def _ratio(kinds: Sequence[str], cost: Floats) -> float:
    """Return how many yes-or-no questions a label costs."""
    if "label" not in kinds:
        return np.inf
    label = float(cost[list(kinds).index("label"), 0])
    cheaper = [float(cost[at, 0]) for at, kind in enumerate(kinds) if kind in ("same", "is")]
    return label / min(cheaper) if cheaper else 1.0


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


def _with_costs(kind: QuestionKind, cost: float | Mapping[Hashable, float]) -> QuestionKind:
    return OneMoreVote(cost) if isinstance(cost, Mapping) else kind


def _one_cost(cost: float | Mapping[Hashable, float]) -> float:
    return 1.0 if isinstance(cost, Mapping) else float(cost)
