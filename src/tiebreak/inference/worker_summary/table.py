"""The table of workers: what a fitted model knows of each, and how well it knows it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv

from tiebreak.arguments import WITH_RESPONSES, checks
from tiebreak.data import Responses
from tiebreak.data.frames import as_frame, as_html, as_text
from tiebreak.data.ids import Column, Ids
from tiebreak.errors import InputNote, NotFittedError, OptionError
from tiebreak.inference import vb
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.problem import Patterns
from tiebreak.inference.stages import lay_out
from tiebreak.inference.vb import Beliefs
from tiebreak.inference.worker_summary import linear_response, refine
from tiebreak.inference.worker_summary.cells import Cells, cells_of, plain_cells
from tiebreak.inference.worker_summary.linear_response import TaskUnits
from tiebreak.inference.worker_summary.refine import Votes
from tiebreak.inference.worker_summary.verdicts import Skill, chance_of, verdicts
from tiebreak.inference.workers import PLAIN, WorkerCells
from tiebreak.inference.workers.coin import Coins
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.options import require_number

LEVEL = 0.9
SHOWN = 10  # rows
LEAST_COUNT = 1e-6  # of maximum likelihood without smoothing: a cell that was never used


class Interval(NamedTuple):
    """An estimate, and the ends of its credible interval; all of one shape."""

    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class WorkersTable:
    """What is known of each worker, in the order of `workers`.

    `accuracy` is expected over the class prior, and `confusion` is (worker, truth, answer); each
    with the ends of its interval (`…_low`, `…_high`), which holds with probability `level`.
    `information` is how many bits an answer tells about the truth. `agreement` is how often a
    worker gives the label that the model came to. `chance` is how often the worker
    would be right with the same answers given blindly.
    """

    workers: Ids
    classes: Ids
    n_responses: Offsets
    accuracy: Floats
    accuracy_low: Floats
    accuracy_high: Floats
    chance: Floats
    information: Floats
    agreement: Floats
    verdict: list[str]
    confusion: Floats
    confusion_low: Floats
    confusion_high: Floats
    level: float = LEVEL
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.workers)

    def __repr__(self) -> str:
        header, rows = self._first_rows()
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"{self._title()}\n{as_text(header, rows)}{more}"

    def _repr_html_(self) -> str:
        return as_html(self._title(), *self._first_rows())

    def _title(self) -> str:
        return f"WorkersTable({len(self):,} workers, intervals of {100 * self.level:g} %)"

    def _first_rows(self) -> tuple[list[str], list[list[object]]]:
        columns = self.columns(confusion=False)
        header = list(columns)
        n_shown = min(len(self), SHOWN)
        names = [self.workers[i] for i in range(n_shown)]
        rest = [columns[name] for name in header[1:]]
        rows = [[names[i], *(_shown(column[i]) for column in rest)] for i in range(n_shown)]
        return header, rows

    def columns(self, *, confusion: bool = True) -> dict[str, Column]:
        """Return one column per figure and, if asked, three per truth and answer.

        `says_b_of_a` is how probably the worker says b of a task whose class is a.
        """
        columns: dict[str, Column] = {
            "worker": self.workers.values,
            "responses": self.n_responses,
            "accuracy": self.accuracy,
            "accuracy_low": self.accuracy_low,
            "accuracy_high": self.accuracy_high,
            "chance": self.chance,
            "information": self.information,
            "agreement": self.agreement,
            "verdict": self.verdict,
        }
        if not confusion:
            return columns
        for k, truth in enumerate(self.classes):
            for a, answer in enumerate(self.classes):
                name = f"says_{answer}_of_{truth}"
                columns[name] = self.confusion[:, k, a]
                columns[f"{name}_low"] = self.confusion_low[:, k, a]
                columns[f"{name}_high"] = self.confusion_high[:, k, a]
        return columns

    def to_frame(self, frame: str | None = None, *, confusion: bool = True) -> Any:
        """Return the columns as a table: "pandas", "polars" or "pyarrow"."""
        return as_frame(self.columns(confusion=confusion), frame or self.frame)


@checks(model=WITH_RESPONSES)
def workers_table(model: Any, *, level: float = LEVEL) -> WorkersTable:
    """Return what a fitted model knows of each worker, with intervals.

    Intervals of variational Bayes are made as wide as what tasks leave open demands; those of
    `GibbsSampler` are of its draws; those of `DawidSkene` are by missing information.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(300, 5, 2, responses_per_task=5, random_state=0)
    >>> table = tb.VariationalBayes().fit(crowd.responses).workers_table()
    >>> bool((table.accuracy_low < table.accuracy_high).all()), len(table)
    (True, 5)
    """
    require_number("level", level, "between 0 and 1, both excluded", above=0.0, below=1.0)
    accuracy, confusion = intervals(model, level)
    crowd = model.responses_
    prior = model.class_prior_
    chance = chance_of(confusion.mean, prior)
    skill = Skill(*accuracy, chance, confusion.mean, prior)
    return WorkersTable(
        model.workers_,
        model.classes_,
        np.bincount(crowd.worker_of_each(), minlength=crowd.n_workers),
        *accuracy,
        chance,
        information_bits(confusion.mean, prior),
        _agreement(crowd, model.labels_.label),
        verdicts(skill, model.classes_),
        *confusion,
        level=level,
        frame=crowd.frame,
    )


def intervals(model: Any, level: float) -> tuple[Interval, Interval]:
    """Return accuracy, (n_workers,), and confusions, (worker, truth, answer), with intervals."""
    moments = getattr(model, "moments_", None) if "moments_" in vars(model) else None
    if moments is not None:  # draws: their own moments
        variance = moments.confusion_square - moments.confusion**2
        confusion = beta_interval(moments.confusion, variance, level)
        turned = Interval(*(np.ascontiguousarray(e.transpose(0, 2, 1)) for e in confusion))
        spread = moments.accuracy_square - moments.accuracy**2
        return beta_interval(moments.accuracy, spread, level), turned
    cells, votes, units, q, counts = _fitted_cells(model)
    found = linear_response.respond(cells, votes, units, q, counts)
    return _accuracy(cells, found, level), _confusion(cells, found, level)


class _Fitted(NamedTuple):
    cells: Cells
    votes: Votes
    units: TaskUnits
    q: Floats
    counts: Floats


def _fitted_cells(model: Any) -> _Fitted:
    """Return the cells of a fitted model with their counts, refined where the model is Bayesian."""
    if "responses_" not in vars(model):
        raise NotFittedError(f"{type(model).__name__} was not fitted yet. Call fit first.")
    crowd = model.responses_
    votes = Votes(crowd.task_of_each(), crowd.code, crowd.weight_of_each())
    units, moves = _units_of(model)
    if "_warm_start" in vars(model):
        warm = model._warm_start
        nothing = Inputs(crowd, None, None, None, None, None, None)
        problem = model._problem(Patterns(warm.tasks), nothing)
        of_workers, totals = warm.added
        beliefs = Beliefs(problem.states.prior + totals, problem.workers.prior + of_workers)
        cells = cells_of(problem, beliefs)
        found = refine.refine(cells, votes, warm.q, totals, moves)
        return _Fitted(cells, votes, units, found.q, found.counts)
    if "_opinions" in vars(model):  # a committee: workers as its probabilities show them
        nothing = Inputs(crowd, None, None, None, None, None, None)
        problem = model._plain_problem(PLAIN, Patterns(lay_out(crowd)), nothing)
        q = model.probabilities_
        cells = cells_of(problem, vb.implied_beliefs(problem, q))
        counts = refine.count_cells(cells, votes, q, q.sum(axis=0))
        return _Fitted(cells, votes, units, q, counts)
    smoothing = getattr(model, "smoothing", None)
    if smoothing is None:
        raise OptionError(
            f"{type(model).__name__} does not model workers, so there are no intervals to give. "
            "Use Auto, VariationalBayes, DawidSkene or GibbsSampler."
        )
    cells = _maximum_likelihood_cells(crowd, model.worker_model, max(smoothing, LEAST_COUNT))
    q = model.probabilities_
    counts = refine.count_cells(cells, votes, q, q.sum(axis=0))
    return _Fitted(cells, votes, units, q, counts)


def _maximum_likelihood_cells(crowd: Responses, worker_model: str, smoothing: float) -> Cells:
    n_classes = crowd.n_classes
    if worker_model == "coin":
        right = smoothing * n_classes
        prior = np.tile([right, right * max(n_classes - 1, 1)], (crowd.n_workers, 1))
        of_workers = Coins(prior, crowd.n_workers, prior[:1], n_classes).cells(prior)
    else:
        flat = np.full((crowd.n_workers, n_classes, n_classes), smoothing)
        of_workers = WorkerCells.of_confusions(flat)
    return plain_cells(of_workers, np.full(n_classes, smoothing))


def _units_of(model: Any) -> tuple[TaskUnits, Mask]:
    """Return which tasks hard links make one, and which no link and no known label holds."""
    n_tasks = len(model.tasks_)
    unit = np.arange(n_tasks, dtype=np.int32)
    flip = np.zeros(n_tasks, dtype=np.int32)
    moves = np.ones(n_tasks, dtype=bool)
    gold = None
    if model.gold_ is not None:
        gold = model.gold_.on(model.tasks_, model.classes_)
        moves[gold.task] = False
    if model.links_ is None or not len(model.links_):
        return TaskUnits(unit, flip), moves
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # said when the model was fitted
        links = model.links_.on(model.tasks_)
    moves[links.tasks()] = False
    n_classes = len(model.classes_)
    may_err = model.link_error is not None or getattr(model, "link_strength_", None) is not None
    if may_err or n_classes != model.class_prior_.size or n_classes < 2:
        return TaskUnits(unit, flip), moves
    implied = link_graph.imply(links, n_classes, gold=gold)
    first = np.full(len(implied.group_class), n_tasks, dtype=np.int64)
    np.minimum.at(first, implied.group, implied.task)
    unit[implied.task] = first[implied.group]
    flip[implied.task] = implied.flip
    _, numbered = np.unique(unit, return_inverse=True)
    return TaskUnits(numbered.astype(np.int32), flip), moves


def _accuracy(cells: Cells, found: linear_response.Spread, level: float) -> Interval:
    """Return the accuracy of each worker over the class prior."""
    n_classes = cells.n_classes
    n_workers = len(cells.of_code) // n_classes
    share = state_shares(cells, found.mean)
    class_of = cells.of_state[0] - cells.of_state[0].min()
    states = np.arange(cells.n_states)
    code = np.arange(n_workers)[:, None] * n_classes + class_of[None, :]
    right = cells.of_code[code, states[None, :]]
    prior = np.bincount(class_of, share)
    by_class = np.zeros((n_workers, n_classes))
    np.add.at(by_class.T, class_of, (found.mean[right] * (share / prior[class_of])).T)
    worker = np.repeat(np.arange(n_workers), cells.n_states)
    of_class = np.repeat(np.arange(n_workers), n_classes)
    classes = np.tile(cells.of_state[0].min() + np.arange(n_classes), n_workers)
    weight = sparse.csr_array(
        (
            np.concatenate([np.tile(share, n_workers), by_class.ravel()]),
            (np.concatenate([worker, of_class]), np.concatenate([right.ravel(), classes])),
        ),
        shape=(n_workers, len(found.mean)),
    )
    return beta_interval(by_class @ prior, found.variance_of(weight), level)


def _confusion(cells: Cells, found: linear_response.Spread, level: float) -> Interval:
    """Return the confusions of each worker by class; subtypes are taken together."""
    n_classes = cells.n_classes
    share = state_shares(cells, found.mean)
    class_of = cells.of_state[0] - cells.of_state[0].min()
    within = share / np.bincount(class_of, share)[class_of]
    weight = within[None, :] * cells.share
    variance = found.variance()[cells.of_code] * weight**2
    mean = found.mean[cells.of_code] * weight
    n_workers = len(cells.of_code) // n_classes

    def by_class(values: Floats) -> Floats:
        added = values.reshape(len(values), n_classes, -1).sum(axis=2)
        return np.ascontiguousarray(
            added.reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
        )

    return beta_interval(by_class(mean), by_class(variance), level)


def state_shares(cells: Cells, mean: Floats) -> Floats:
    """Return the expected share of each state."""
    return np.asarray(np.prod(mean[cells.of_state], axis=0))


def beta_interval(mean: Floats, variance: Floats, level: float) -> Interval:
    """Return the central interval of the Beta distribution with this mean and variance.

    >>> found = beta_interval(np.array([0.5]), np.array([1.0 / 12.0]), 0.9)
    >>> found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.05], [0.95])
    """
    inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
    widest = inside * (1.0 - inside)
    size = widest / np.clip(variance, 1e-12, 0.999 * widest) - 1.0
    tail = (1.0 - level) / 2.0
    low = betaincinv(inside * size, (1.0 - inside) * size, tail)
    high = betaincinv(inside * size, (1.0 - inside) * size, 1.0 - tail)
    return Interval(np.asarray(mean), np.minimum(low, mean), np.maximum(high, mean))


def information_bits(confusion: Floats, class_prior: Floats) -> Floats:
    """Return the mutual information of truth and answer, in bits, of each worker.

    >>> information_bits(np.array([np.eye(2), np.full((2, 2), 0.5)]), np.full(2, 0.5)).tolist()
    [1.0, 0.0]
    """
    joint = class_prior[None, :, None] * confusion
    said = joint.sum(axis=1, keepdims=True)
    apart = class_prior[None, :, None] * said
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=(joint > 0.0) & (apart > 0.0))
    return np.asarray(np.maximum((joint * np.log2(ratio)).sum(axis=(1, 2)), 0.0))


def _agreement(crowd: Responses, label: Any) -> Floats:
    """Return how often each worker gives the label of the model; nan without responses."""
    worker = crowd.worker_of_each()
    agrees = crowd.label_of_each() == label[crowd.task_of_each()]
    weight = crowd.weight_of_each()
    total = np.bincount(worker, weight, minlength=crowd.n_workers)
    same = np.bincount(worker, weight * agrees, minlength=crowd.n_workers)
    return np.asarray(np.divide(same, total, out=np.full(len(total), np.nan), where=total > 0.0))


def _shown(value: Any) -> object:
    if isinstance(value, str):
        return value
    return float(value) if isinstance(value, np.floating) else int(value)
