"""Decide: what costs least for each task, which tasks an expert sees first, how many are right.

Probabilities are scaled by how much workers err together (`inference/calibration.py`). Without gold
that is a guess, with gold an estimate; either way it has a spread. At another scale s' the
probabilities of a task are p^(s' / s), up to their sum. So the accuracy of some tasks is known for
every scale, and its mean and quantiles follow from how probable each scale is. What is promised is
such a quantile, low enough to be kept.

No scale says that labels are surely wrong, as they are where all who err give the same wrong class.
Gold does: known tasks that would be decided too, by fits that have not seen their classes, are
counted, and what the model says of itself counts as a few more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import beta

from tiebreak.arguments import TEXT, WITH_TASKS, checks, number, optional, whole
from tiebreak.data.frames import as_frame, as_html, as_text
from tiebreak.data.ids import Column, Ids
from tiebreak.decide.costs import NO_LABEL, CostMatrix, read_cost_matrix
from tiebreak.decide.held_out import HeldOut, held_out_of
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.inference.calibration import Calibration
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Offsets, total_weights
from tiebreak.options import require_number
from tiebreak.wording import counted

SHOWN = 10  # rows
N_SCALES = 12  # of ρ, and as many of t: quantiles of each, equally probable
MOST_TASKS = 5_000  # more say the same of the scales
LOWEST = 1e-300
HALVINGS = 40
# What the model says of itself counts as so many known tasks at most. Chosen among 10, 20 and 40 on
# simulated crowds and eight of the ten datasets; shown on other crowds (docs/decide.md).
MODEL_COUNTS_AS = 10.0
JEFFREYS = 0.5
# The quantile that is promised: the largest of 5 %, 10 %, … 45 % that accuracy kept, within two
# points, in 95 % of the simulated decisions with and without gold whose calibration error is at
# most 0.05; shown on the ten datasets and on other crowds (docs/decide.md).
PROMISED_QUANTILE = 0.2


class AccuracyEstimate(NamedTuple):
    """The share of right labels: as expected, an interval that holds it with `level`, a promise.

    `promised` is the figure to state: so many are right, or more, by four chances in five. It does
    not depend on `level`. `n_known` says how many known tasks were counted for all of this.
    """

    expected: float
    low: float
    high: float
    level: float
    promised: float
    n_known: int = 0


class Stated(NamedTuple):
    """What was decided, with the probabilities it was decided on."""

    q: Floats  # (n_tasks, n_classes)
    label: Codes  # (n_tasks,) below 0: left open
    n_responses: Floats  # (n_tasks,)
    calibration: Calibration | None
    known: Codes | None = None  # tasks whose class was told
    # How many known tasks would be decided by fits that were not told, and how many rightly.
    recount: Callable[[], tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One decision per task: tasks[i] gets decisions[decision[i]].

    `expected_cost` is that of the decision, and `saving` what knowing the class would save, as
    expected: tasks with a large saving go to an expert first.
    """

    tasks: Ids
    costs: CostMatrix
    decision: Codes  # (n_tasks,)
    expected_cost: Floats  # (n_tasks,)
    saving: Floats  # (n_tasks,)
    argmax_cost: float  # expected cost of taking the likeliest class of each task
    probability: Floats  # (n_tasks,) of the class decided for; nan where none is
    stated: Stated = field(repr=False)  # what it was decided on
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.decision)

    def __str__(self) -> str:
        words = (
            f"{counted(len(self), 'task')}, expected cost {self.total_cost:.6g} "
            f"(by the likeliest class: {self.argmax_cost:.6g})"
        )
        if self.n_left_open:
            words += f"; {self.n_left_open:,} left open ({self.costs.decisions[-1]})"
        return words

    def __repr__(self) -> str:
        header, rows = self._first_rows()
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"Decisions({self})\n{as_text(header, rows)}{more}"

    def _repr_html_(self) -> str:
        return as_html(f"Decisions({self})", *self._first_rows())

    def _first_rows(self) -> tuple[list[str], list[list[object]]]:
        columns = self.columns(np.arange(min(len(self), SHOWN)))
        values = (v.tolist() if isinstance(v, np.ndarray) else v for v in columns.values())
        return list(columns), [list(row) for row in zip(*values, strict=True)]

    @property
    def total_cost(self) -> float:
        """The expected cost of all decisions together."""
        return float(self.expected_cost.sum())

    @property
    def is_open(self) -> Any:
        """Which tasks are decided for no class, (n_tasks,)."""
        return self.costs.label[self.decision] < 0

    @property
    def n_left_open(self) -> int:
        """How many tasks are decided for no class."""
        return int(self.is_open.sum())

    @property
    def expected_accuracy(self) -> float:
        """The share of right labels among the tasks that get a class, probabilities at their word.

        `estimate_accuracy` says how far to trust it, and what can be promised.
        """
        decided = self.probability[~self.is_open]
        return float(decided.mean()) if len(decided) else float("nan")

    def estimate_accuracy(self, level: float = 0.9) -> AccuracyEstimate:
        """Return the share of right labels among the tasks that get a class, with an interval.

        `promised` is the figure to state: accuracy is as high or higher by four chances in five.
        The more gold there was, the better it is known how much workers err together; without gold
        less is promised. With gold, known tasks that would be decided too are counted, by fits
        without a fourth of the gold each. They are taken to be like the others.

        Examples
        --------
        >>> import tiebreak as tb
        >>> crowd = tb.simulate.crowd(300, 10, 2, responses_per_task=5, random_state=0)
        >>> decided = tb.VariationalBayes().fit(crowd.responses).decide(abstain_rate=0.2)
        >>> found = decided.estimate_accuracy()
        >>> found.low < found.promised < found.expected < found.high
        True
        """
        return estimate_accuracy(self.stated, level)

    def best(self) -> dict[Hashable, str]:
        """Return a mapping of task to decision."""
        names = [self.costs.decisions[d] for d in self.decision]
        return dict(zip(self.tasks, names, strict=True))

    def expert_order(self) -> Offsets:
        """Return the places of tasks, those first whose class would save most; 0 is left out."""
        order = np.argsort(-self.saving, kind="stable")
        return order[self.saving[order] > 0.0]

    @checks(n=optional(whole(0)))
    def expert_first(self, n: int | None = None) -> list[Hashable]:
        """Return the tasks that an expert should see first."""
        return [self.tasks[int(i)] for i in self.expert_order()[:n]]

    def columns(self, at: Offsets | None = None) -> dict[str, Column]:
        """Return task, decision, expected_cost and saving, of all tasks or of those at places."""
        at = np.arange(len(self)) if at is None else at
        return {
            "task": self.tasks.take(at),
            "decision": [self.costs.decisions[d] for d in self.decision[at]],
            "expected_cost": self.expected_cost[at],
            "saving": self.saving[at],
        }

    @checks(frame=optional(TEXT))
    def to_frame(self, frame: str | None = None) -> Any:
        """Return the columns as a table: "pandas", "polars" or "pyarrow"."""
        return as_frame(self.columns(), frame or self.frame)


@checks(model=WITH_TASKS, abstain_rate=optional(number("from 0 to below 1", least=0.0, below=1.0)))
def decide(model: Any, cost_matrix: Any = None, *, abstain_rate: float | None = None) -> Decisions:
    """Return the decision of least expected cost for each task.

    Parameters
    ----------
    model
        Fitted; its probabilities are taken at their word.
    cost_matrix
        What each decision costs by the true class: see `read_cost_matrix`. "absolute" and
        "squared" decide for the median and the rounded mean on a scale. None: a wrong label
        costs 1.
    abstain_rate
        Leave this share of the tasks open, those whose decision is expected to cost most. The
        costs then have no column of their own for that.

    Examples
    --------
    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "ok"), ("a", "bob", "ok"), ("b", "ann", "bad"), ("b", "bob", "ok")]
    >>> model = tb.VariationalBayes().fit(votes)
    >>> costs = {"ok": {"ok": 0, "bad": 1}, "bad": {"ok": 10, "bad": 0}}
    >>> decide(model, costs).best()
    {'a': 'bad', 'b': 'bad'}
    """
    if "probabilities_" not in vars(model):
        raise NotFittedError("not-fitted", name=type(model).__name__)
    costs = read_cost_matrix(cost_matrix, model.classes_, model.scale_)
    q = model.probabilities_
    expected = costs.expected(q)
    decision = expected.argmin(axis=1).astype(np.int32)
    every = np.arange(len(decision))
    least = expected[every, decision]
    place = np.full(len(costs.cost), -1)  # of the decision for each class
    place[costs.label[costs.label >= 0]] = np.flatnonzero(costs.label >= 0)
    of_label = place[np.asarray(model.labels_.label)]
    # A label whose class is no decision costs what the worst decision does.
    of_labels = np.where(of_label < 0, expected.max(axis=1), expected[every, of_label])
    given = costs
    if abstain_rate is not None:
        if costs.may_abstain:
            raise OptionError("cost-of-abstaining", decision=costs.decisions[-1])
        expensive = np.argsort(-least, kind="stable")[: int(abstain_rate * len(decision))]
        costs = CostMatrix(
            np.column_stack([costs.cost, np.zeros(len(costs.cost))]),
            (*costs.decisions, NO_LABEL[0]),
            np.append(costs.label, -1).astype(np.int32),
        )
        decision[expensive] = len(costs.decisions) - 1
        least[expensive] = 0.0
    label = costs.label[decision]
    # With a share left open, the most that a task may cost, as expected, to get a class.
    highest = float(least[label >= 0].max(initial=-np.inf)) if abstain_rate else np.inf
    n_responses = total_weights(model.responses_.start, model.responses_.weight)
    if (carried := getattr(model, "_carried", None)) is not None:
        n_responses = n_responses + carried.n_dropped
    known = held_out_of(model)
    stated = Stated(
        q,
        label,
        n_responses,
        model.calibration_,
        None if known is None else model.gold_.on(model.tasks_, model.classes_).task,
        None if known is None else partial(_recount, known, given, highest),
    )
    return Decisions(
        model.tasks_,
        costs,
        decision,
        least,
        np.maximum(least - costs.of_knowing(q), 0.0),
        float(of_labels.sum()),
        np.where(label < 0, np.nan, q[every, np.maximum(label, 0)]),
        stated,
        model.responses_.frame,
    )


def _recount(held_out: HeldOut, costs: CostMatrix, highest: float) -> tuple[int, int]:
    """Return how many known tasks get a class by these costs, held out, and how many the right one.

    `highest` is what a task may cost at most, as expected, to get a class.
    """
    if held_out.known is None:
        return 0, 0
    gold, q = held_out.known
    expected = costs.expected(q)
    label = costs.label[expected.argmin(axis=1)]
    decided = (label >= 0) & (expected.min(axis=1) <= highest)
    return int(decided.sum()), int((label == gold.label)[decided].sum())


# How many are right


def estimate_accuracy(stated: Stated, level: float) -> AccuracyEstimate:
    """Return the accuracy of what was decided: [eq:promise], and with gold [eq:promise-known]."""
    require_number("level", level, "between 0 and 1, both excluded", above=0.0, below=1.0)
    decided = np.flatnonzero(stated.label >= 0)
    if not len(decided):
        return AccuracyEstimate(np.nan, np.nan, np.nan, level, np.nan)
    tail = (1.0 - level) / 2.0
    at = (tail, 1.0 - tail, PROMISED_QUANTILE)
    others = decided if stated.known is None else np.setdiff1d(decided, stated.known)
    n, n_right = stated.recount() if stated.recount is not None and len(others) else (0, 0)
    if not n:
        by_scale, spread = _by_scale(stated, decided.astype(np.int32))
        low, high, promised = (_quantile(by_scale, spread, each) for each in at)
        return AccuracyEstimate(float(by_scale.mean()), low, high, level, promised)
    by_scale, _ = _by_scale(stated, others.astype(np.int32))
    share = len(others) / len(decided)  # what was told is right
    found = 1.0 - share * (1.0 - _by_known(by_scale, n, n_right, len(others), at))
    expected, low, high, promised = found.tolist()
    return AccuracyEstimate(expected, low, high, level, promised, n)


def _by_scale(stated: Stated, decided: Codes) -> tuple[Floats, Floats]:
    """Return the accuracy of some tasks at equally probable scales, and its spread by chance."""
    some = decided[:: -(-len(decided) // MOST_TASKS)]
    q, label, n = stated.q[some], stated.label[some], stated.n_responses[some]
    every = np.arange(len(some))
    found = stated.calibration
    if found is None:
        right = q[every, label][None]
    else:
        scores = np.log(np.maximum(q, LOWEST)) / found.scale(n)[:, None]
        # logit ρ and log t are normal, and correlated.
        first, second = np.meshgrid(*[ndtri((np.arange(N_SCALES) + 0.5) / N_SCALES)] * 2)
        one = np.sqrt(found.dependence_variance)
        slope = found.covariance / one if one > 0.0 else 0.0
        rest = np.sqrt(max(found.multiplier_variance - slope**2, 0.0))
        rho = expit(logit(np.clip(found.dependence, 1e-9, 1.0 - 1e-9)) + one * first)
        t = found.multiplier * np.exp(slope * first + rest * second)
        pairs = np.stack([rho.ravel(), t.ravel()], axis=1)
        scales = [found._replace(dependence=a, multiplier=b) for a, b in pairs]
        right = np.stack([softmax(scores, each.scale(n))[every, label] for each in scales])
    by_chance = (right * (1.0 - right)).mean(axis=1)
    return right.mean(axis=1), np.sqrt(by_chance / len(decided))


def _by_known(
    by_scale: Floats, n_known: int, n_right: int, n_tasks: int, at: tuple[float, ...]
) -> Floats:
    """Return the mean and quantiles of a Beta: known tasks, and what the scales say as the prior.

    The prior has the mean and the variance that the scales give, or is as wide as a few known tasks
    leave it; half a task on each side, as Jeffreys has it, lets nothing be sure. Labels that are
    right or wrong by chance make the interval of n tasks wider.
    """
    mean = float(np.clip(by_scale.mean(), 1e-6, 1.0 - 1e-6))
    variance = float(by_scale.var())
    even = MODEL_COUNTS_AS
    if variance > 0.0:
        even = float(np.clip(mean * (1.0 - mean) / variance - 1.0, 1.0, MODEL_COUNTS_AS))
    right = even * mean + n_right + JEFFREYS
    n = even + n_known + 2.0 * JEFFREYS
    size = 1.0 / (1.0 / n + 1.0 / n_tasks)
    return np.append(right / n, beta.ppf(at, size * right / n, size * (n - right) / n))


def _quantile(mean: Floats, spread: Floats, at: float) -> float:
    """Return a quantile of equally probable normals, by halving."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(spread > 0.0, ndtr((middle - mean) / spread), mean <= middle)
        low, high = (middle, high) if below.mean() < at else (low, middle)
    return high
