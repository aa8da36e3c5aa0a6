"""What workers are: accuracy and confusions with intervals, information, and a word for each.

`chance` is how often a worker would be right who gives the same answers, as often, whatever the
task is. Skill is the way from chance to always right: 0 is chance, 1 is perfect, below 0 is worse
than chance.

| verdict | when |
|---|---|
| too few to tell | the interval holds chance, and ends above a skill of `RELIABLE` |
| no better than chance | the interval holds chance |
| inverted | the interval ends below chance |
| biased towards c | c is said of other classes often, and twice as often as c is missed |
| reliable | skill of at least `RELIABLE` |
| weak | better than chance, but not by that much |
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
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
from tiebreak.inference import worker_intervals
from tiebreak.inference.door import Inputs, Rows, lay_out
from tiebreak.inference.worker_intervals import Spread, Votes
from tiebreak.inference.workers import PLAIN
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.options import require_number

LEVEL = 0.9
SHOWN = 10  # rows
LEAST_COUNT = 1e-6  # of maximum likelihood without smoothing: a cell that was never used

RELIABLE = 0.5  # skill
OFTEN = 0.25  # of tasks of other classes: so often is a class said wrongly by who is biased
TWICE = 2.0  # as often as the class is missed


class Interval(NamedTuple):
    """An estimate, and the ends of its credible interval; all of one shape."""

    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, mean: Floats, variance: Floats, level: float) -> Interval:
        """Return the central interval of the Beta distribution with this mean and variance.

        >>> found = Interval.of(np.array([0.5]), np.array([1.0 / 12.0]), 0.9)
        >>> found.low.round(3).tolist(), found.high.round(3).tolist()
        ([0.05], [0.95])
        """
        inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
        widest = inside * (1.0 - inside)
        size = widest / np.clip(variance, 1e-12, 0.999 * widest) - 1.0
        tail = (1.0 - level) / 2.0
        low, high = (
            betaincinv(inside * size, (1.0 - inside) * size, each) for each in (tail, 1.0 - tail)
        )
        return cls(np.asarray(mean), np.minimum(low, mean), np.maximum(high, mean))


class Reader(NamedTuple):
    """How a worker reads a scale, with the ends of each interval. Bias and blur are in steps."""

    worker: Hashable
    bias: float
    bias_low: float
    bias_high: float
    gain: float
    gain_low: float
    gain_high: float
    blur: float
    blur_low: float
    blur_high: float
    lapse: float
    lapse_low: float
    lapse_high: float

    def sentence(self) -> str:
        """Say it in a line.

        >>> Reader("ann", -0.9, -1.2, -0.5, 0.6, 0.5, 0.8, 0.7, 0.5, 1.1, 0.02, 0, 0.1).sentence()
        'ann: 0.9 steps low (0.5 to 1.2), uses 0.6 of the range, blur 0.7, lapses 2 %'
        """
        way = "low" if self.bias < 0.0 else "high"
        ends = sorted(abs(each) for each in (self.bias_low, self.bias_high))
        between = f"{ends[0]:.1f} to {ends[1]:.1f}"
        if self.bias_low < 0.0 < self.bias_high:
            between = f"{-self.bias_low:.1f} low to {self.bias_high:.1f} high"
        return (
            f"{self.worker}: {abs(self.bias):.1f} steps {way} ({between}), uses {self.gain:.1f} of "
            f"the range, blur {self.blur:.1f}, lapses {100.0 * self.lapse:.0f} %"
        )


@dataclass(frozen=True, slots=True, eq=False)
class WorkersTable:
    """What is known of each worker, in the order of `workers`.

    `accuracy` is expected over the class prior, and `confusion` is (worker, truth, answer); each
    with the ends of its interval (`…_low`, `…_high`), which holds with probability `level`.
    `information` is how many bits an answer tells about the truth. `agreement` is how often a
    worker gives the label that the model came to. `chance` is how often the worker
    would be right with the same answers given blindly. `traits` are what the worker model knows
    beside that: on a scale `bias`, `gain`, `blur` and `lapse`, with their ends.
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
    traits: dict[str, Floats] = field(default_factory=dict, repr=False)

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
            **self.traits,
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
    if "responses_" not in vars(model):
        raise NotFittedError("not-fitted", name=type(model).__name__)
    crowd = model.responses_
    prior = model.class_prior_
    moments = vars(model).get("moments_")
    if moments is None:
        found = _spread(model)
        accuracy, confusion = _accuracy(found, level), _confusion(found, level)
    else:  # draws: their own moments
        spread = moments.accuracy_square - moments.accuracy**2
        accuracy = Interval.of(moments.accuracy, spread, level)
        square, mean = (
            each.transpose(0, 2, 1) for each in (moments.confusion_square, moments.confusion)
        )
        confusion = Interval.of(mean, square - mean**2, level)
    chance = chance_of(confusion.mean, prior)
    return WorkersTable(
        model.workers_,
        model.classes_,
        np.bincount(crowd.worker_of_each(), minlength=crowd.n_workers),
        *accuracy,
        chance,
        information_bits(confusion.mean, prior),
        _agreement(crowd, model.labels_.label),
        verdicts(accuracy, chance, confusion.mean, prior, model.classes_),
        *confusion,
        level=level,
        frame=crowd.frame,
        traits=_traits(model, level),
    )


def readers(model: Any, level: float = LEVEL) -> tuple[Reader, ...]:
    """Return how each worker reads the scale of a fitted model; nothing where it has none."""
    if getattr(model, "scale_", None) is None:
        return ()
    traits = _traits(model, level)
    columns = (traits[name].tolist() for name in Reader._fields[1:] if name in traits)
    return tuple(map(Reader, model.workers_, *columns)) if traits else ()


def _traits(model: Any, level: float) -> dict[str, Floats]:
    """Return what the worker model knows of each worker by name; of a committee its last member."""
    if "_state" in vars(model):
        return dict(model._crowd_model.workers.traits(model._state.parameters[-1], level))
    for each in reversed(vars(model).get("_opinions", ())):
        if each.model is not None:
            return dict(each.model.workers.traits(each.parameters[-1], level))
    return {}


def _spread(model: Any) -> Spread:
    """Return the cells of a fitted model and how far they may be off.

    A model of variational Bayes is refined first; a committee's workers are as its probabilities
    show them.
    """
    crowd = model.responses_
    votes, moves = _votes_of(model)
    state = vars(model).get("_state")
    if state is not None:
        states, workers = model._crowd_model
        alpha, beta = state.parameters
        cells = workers.cells(beta).with_states(states)
        q, counts = worker_intervals.refine(cells, votes, state.q, alpha - states.prior, moves)
        return worker_intervals.respond(cells, votes, q, counts)
    nothing = Inputs(crowd, None, None, None, None, None, scale=model.scale_)
    rows = Rows(lay_out(crowd))
    if "_opinions" in vars(model):
        problem = model._plain_problem(PLAIN, rows, nothing)
    elif hasattr(model, "smoothing"):
        smoothing = max(model.smoothing, LEAST_COUNT)
        smoothed = type(model)(**{**model.get_params(), "smoothing": smoothing})
        problem = smoothed._problem(rows, nothing)
    else:
        raise OptionError("no-worker-model", name=type(model).__name__)
    q = model.probabilities_
    cells = problem.workers.cells(problem.implied(q)[-1]).with_states(problem.tasks.shares)
    counts = worker_intervals.tally(cells, votes, q, q.sum(axis=0))
    return worker_intervals.respond(cells, votes, q, counts)


def _votes_of(model: Any) -> tuple[Votes, Mask]:
    """Return the responses with tasks that hard links make one, and which tasks may move.

    Those do that no link and no known label holds.
    """
    crowd = model.responses_
    n_tasks = len(model.tasks_)
    flip = np.zeros(n_tasks, dtype=np.int32)
    alone = np.arange(n_tasks, dtype=np.int32)
    votes = Votes(crowd.task_of_each(), crowd.code, crowd.weight_of_each(), alone, flip)
    moves = np.ones(n_tasks, dtype=bool)
    gold = None
    if model.gold_ is not None:
        gold = model.gold_.on(model.tasks_, model.classes_)
        moves[gold.task] = False
    if model.links_ is None or not len(model.links_):
        return votes, moves
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # said when the model was fitted
        links = model.links_.on(model.tasks_)
    moves[links.tasks()] = False
    n_classes = len(model.classes_)
    may_err = model.link_error is not None or getattr(model, "link_strength_", None) is not None
    if may_err or n_classes != model.class_prior_.size or n_classes < 2:
        return votes, moves
    implied = link_graph.imply(links, n_classes, gold=gold)
    first = np.full(len(implied.group_class), n_tasks, dtype=np.int64)
    np.minimum.at(first, implied.group, implied.task)
    unit = alone.copy()
    unit[implied.task] = first[implied.group]
    flip[implied.task] = implied.flip
    _, numbered = np.unique(unit, return_inverse=True)
    return votes._replace(unit=numbered.astype(np.int32)), moves


def _accuracy(found: Spread, level: float) -> Interval:
    """Return the accuracy of each worker over the class prior."""
    cells, class_of = found.cells, found.cells.class_of
    n_classes = int(class_of.max()) + 1
    share = np.prod(found.mean[cells.of_state], axis=0)
    prior = np.bincount(class_of, share)
    of_worker = cells.of_code.reshape(-1, n_classes, len(class_of))
    right = of_worker[:, class_of, np.arange(len(class_of))]  # the cell of a right answer
    by_class = found.mean[right] * (share / prior[class_of])
    by_class = by_class.reshape(len(right), n_classes, -1).sum(axis=2)
    classes = cells.of_state[0].min() + np.arange(n_classes)
    # Accuracy depends on the cells of right answers and, as their weights, on those of classes.
    cell = np.hstack([right, np.tile(classes, (len(right), 1))])
    slope = np.hstack([np.tile(share, (len(right), 1)), by_class])
    worker = np.repeat(np.arange(len(right)), cell.shape[1])
    shape = (len(right), len(found.mean))
    weight = sparse.csr_array((slope.ravel(), (worker, cell.ravel())), shape=shape)
    return Interval.of(by_class @ prior, found.variance_of(weight), level)


def _confusion(found: Spread, level: float) -> Interval:
    """Return the confusions of each worker by class; subtypes are taken together."""
    cells, class_of = found.cells, found.cells.class_of
    n_classes = int(class_of.max()) + 1
    share = np.prod(found.mean[cells.of_state], axis=0)
    weight = cells.share * (share / np.bincount(class_of, share)[class_of])

    def by_class(values: Floats) -> Floats:
        added = values.reshape(-1, n_classes, n_classes, len(class_of) // n_classes).sum(axis=3)
        return np.ascontiguousarray(added.transpose(0, 2, 1))

    mean, variance = (each[cells.of_code] for each in (found.mean, found.variance()))
    return Interval.of(by_class(mean * weight), by_class(variance * weight**2), level)


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


def chance_of(confusion: Floats, class_prior: Floats) -> Floats:
    """Return how often each worker would be right with the same answers, given blindly.

    >>> always_first = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> chance_of(always_first, np.array([0.9, 0.1])).tolist()
    [0.9]
    """
    said = np.einsum("k,wkl->wl", class_prior, confusion)
    return np.asarray(said @ class_prior)


def verdicts(
    accuracy: Interval, chance: Floats, confusion: Floats, class_prior: Floats, classes: Ids
) -> list[str]:
    """Return a word for each worker."""
    right = np.diagonal(confusion, axis1=1, axis2=2)
    others = np.maximum(1.0 - class_prior, np.finfo(float).tiny)
    said = np.einsum("k,wkl->wl", class_prior, confusion)
    wrongly = (said - class_prior * right) / others  # Pr(said c | truth is not c)
    towards = wrongly.argmax(axis=1)  # the class that each worker says too often
    worst = wrongly.max(axis=1)
    rest = (wrongly.sum(axis=1) - worst) / max(wrongly.shape[1] - 1, 1)
    missed = 1.0 - right[np.arange(len(towards)), towards]
    is_biased = (worst >= OFTEN) & (worst >= TWICE * np.maximum(missed, rest))
    reliable_from = chance + RELIABLE * (1.0 - chance)
    words = []
    for w, (mean, low, high) in enumerate(zip(*accuracy, strict=True)):
        if low <= chance[w] <= high:
            word = "too few to tell" if high > reliable_from[w] else "no better than chance"
        elif high < chance[w]:
            word = "inverted"
        elif is_biased[w]:
            word = f"biased towards {classes[int(towards[w])]}"
        else:
            word = "reliable" if mean >= reliable_from[w] else "weak"
        words.append(word)
    return words
