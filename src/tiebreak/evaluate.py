"""Evaluate: how good labels are where some truth is known, and which links they break.

Every figure looks only at tasks that have both a label and a known class. Tasks of gold without
a label are not covered; `Report.coverage` says how many are. Labels and gold may be objects of
this package or anything that `read_labels` and `read_gold` take. Tasks of `given`, the gold that a
fit was given, are not scored.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from tiebreak import tables
from tiebreak.arguments import checks, number, whole
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Ids, as_numbers
from tiebreak.data.labels import Labels, Scores
from tiebreak.data.scale import ScaleOption, read_scale
from tiebreak.errors import InputError, register
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.links import Constraints, Links
from tiebreak.links import graph as link_graph
from tiebreak.options import require_word

__all__ = [
    "Report",
    "Violations",
    "accuracy",
    "brier_score",
    "broken_constraints",
    "calibration_error",
    "f_by_class",
    "f_score",
    "interval_coverage",
    "log_loss",
    "mean_absolute_error",
    "report",
    "violations",
    "weighted_kappa",
]

register(
    {
        "no-gold-to-score": "There is no gold to score against: it is empty, or all of it was "
        "given.",
        "gold-without-labels": "None of the {n:,} tasks of gold has a label. Gold names {gold}; "
        "the labels name {labels}.\nGive both the same task ids.",
        "labels-without-probability": "These labels carry no probability of {of_what}. "
        "Write them with probabilities=True, or pass "
        "model.labels_ itself.",
        "labels-without-score": "These labels carry no score_low and score_high. Fit them on a "
        "scale, such as scale='1..5'.",
        "no-numbers-to-score": "Classes are no numbers: {names}. Name their order with scale=.",
    }
)

Average = Literal["micro", "macro"]
Absent = Literal["skip", "zero"]
Weights = Literal["quadratic", "linear"]

OF_SCALE = ("mean_absolute_error", "weighted_kappa", "interval_coverage")
BINS = 15  # of calibration
LOG_LOSS_FLOOR = 1e-12  # a truth held impossible costs 27.6, not infinity


@dataclass(frozen=True, slots=True)
class Comparison:
    """The true and the stated class of each scored task, as codes, and the figures of both.

    `probability` is that of the stated class, (n_tasks,); `probabilities` (n_tasks, n_classes).
    """

    truth: Codes
    guess: Codes
    n_classes: int
    probability: Floats | None = None
    probabilities: Floats | None = None

    def accuracy(self) -> float:
        """Return the share of labels that are right, which is micro-F: a task has one label."""
        return float((self.truth == self.guess).mean())

    def f_by_class(self) -> Floats:
        """Return F of each class, 2 TP / (2 TP + FP + FN); NaN for a class that never occurs."""
        of_right = self.truth[self.truth == self.guess]
        right, stated, true = (
            np.bincount(codes, minlength=self.n_classes)
            for codes in (of_right, self.guess, self.truth)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(2.0 * right / (stated + true))

    def macro_f(self, absent: Absent = "skip") -> float:
        """Return the mean of F over classes, not the F of mean precision and mean recall."""
        f = self.f_by_class()
        return float(np.nanmean(f) if absent == "skip" else np.nan_to_num(f).mean())

    def log_loss(self, floor: float = LOG_LOSS_FLOOR) -> float:
        """Return −(1/n) Σ log max(q_i(truth_i), floor)."""
        q = _needed(self.probabilities, "every class")
        of_truth = q[np.arange(len(q)), self.truth]
        return float(-np.log(np.maximum(of_truth, floor)).mean())

    def brier_score(self) -> float:
        """Return (1/n) Σ_i Σ_k (q_i(k) − [truth_i = k])², between 0 and 2."""
        q = _needed(self.probabilities, "every class")
        # (q − 1)² − q² = 1 − 2 q at the truth: no second array of (n_tasks, n_classes)
        of_truth = q[np.arange(len(q)), self.truth]
        return float((np.einsum("ik,ik->i", q, q) + 1.0 - 2.0 * of_truth).mean())

    def calibration_error(self, bins: int = BINS) -> float:
        """Return the mean gap between stated probability and share right, over equal-width bins.

        A bin is min(floor(bins · p), bins − 1) and weighs as much as it has tasks.
        """
        stated = _needed(self.probability, "their label")
        bin_of = np.minimum((bins * stated).astype(np.int64), bins - 1)
        gap = np.bincount(bin_of, weights=stated - (self.truth == self.guess), minlength=bins)
        return float(np.abs(gap).sum() / len(stated))


def f_score(
    labels: Any,
    gold: Any,
    average: Average = "macro",
    *,
    absent: Absent = "skip",
    given: Any = None,
) -> float:
    """Return the F score of labels against gold.

    Parameters
    ----------
    average
        "macro": the mean of F over classes (not the F of mean precision and mean recall).
        "micro": F of all classes pooled, which is the accuracy.
    absent
        What "macro" does with classes that neither gold nor labels use: "skip" leaves them
        out, "zero" counts each as 0.
    given
        Gold that the fit was given: its tasks are not scored. Without it, all tasks are.

    Examples
    --------
    >>> labels, gold = {"a": "cat", "b": "dog", "c": "cat"}, {"a": "cat", "b": "dog", "c": "dog"}
    >>> round(f_score(labels, gold), 4), round(f_score(labels, gold, "micro"), 4)
    (0.6667, 0.6667)
    """
    require_word("average", average, ("micro", "macro"))
    require_word("absent", absent, ("skip", "zero"))
    scored = _scored(labels, gold, given)[0]
    return scored.accuracy() if average == "micro" else scored.macro_f(absent)


def f_by_class(labels: Any, gold: Any, *, given: Any = None) -> dict[Hashable, float]:
    """Return F of each class that gold or labels use.

    >>> f_by_class({"a": "cat", "b": "dog"}, {"a": "cat", "b": "dog"})
    {'cat': 1.0, 'dog': 1.0}
    """
    return _f_of_names(*_scored(labels, gold, given)[:2])


def accuracy(labels: Any, gold: Any, *, given: Any = None) -> float:
    """Return the share of labels that are right.

    >>> accuracy({"a": "cat", "b": "cat", "c": "cat"}, {"a": "cat", "b": "dog"})
    0.5
    """
    return _scored(labels, gold, given)[0].accuracy()


@checks(floor=number("a probability above 0", above=0.0, most=1.0))
def log_loss(labels: Any, gold: Any, *, given: Any = None, floor: float = LOG_LOSS_FLOOR) -> float:
    """Return the mean of -log q(truth); the labels must carry a probability for every class.

    Probabilities below `floor` count as it, so that a truth held impossible costs -log floor.

    >>> labels = {"task": ["a", "b"], "label": ["cat", "dog"]}
    >>> labels |= {"probability_cat": [0.9, 0.2], "probability_dog": [0.1, 0.8]}
    >>> round(log_loss(labels, {"a": "cat", "b": "cat"}), 4)
    0.8574
    """
    return _scored(labels, gold, given)[0].log_loss(floor)


def brier_score(labels: Any, gold: Any, *, given: Any = None) -> float:
    """Return the mean squared distance of probabilities from the truth, between 0 and 2.

    >>> labels = {"task": ["a", "b"], "label": ["cat", "dog"]}
    >>> labels |= {"probability_cat": [0.9, 0.2], "probability_dog": [0.1, 0.8]}
    >>> round(brier_score(labels, {"a": "cat", "b": "cat"}), 4)
    0.65
    """
    return _scored(labels, gold, given)[0].brier_score()


@checks(bins=whole(1))
def calibration_error(labels: Any, gold: Any, bins: int = BINS, *, given: Any = None) -> float:
    """Return how far the stated probabilities of the labels are from the share that is right.

    >>> labels = [("a", "cat", 0.9), ("b", "cat", 0.9)]
    >>> round(calibration_error(labels, {"a": "cat", "b": "dog"}), 4)
    0.4
    """
    return _scored(labels, gold, given)[0].calibration_error(bins)


def mean_absolute_error(
    labels: Any, gold: Any, *, given: Any = None, scale: ScaleOption = None
) -> float:
    """Return how far labels are from the truth in the mean, where classes are numbers.

    `scale` names the order of classes that are words; a step between two of these is 1.

    >>> mean_absolute_error({"a": 3, "b": 5}, {"a": 4, "b": 5})
    0.5
    """
    label, truth, _ = _on_line(labels, gold, given, scale)
    return float(np.abs(label - truth).mean())


def weighted_kappa(
    labels: Any,
    gold: Any,
    weights: Weights = "quadratic",
    *,
    given: Any = None,
    scale: ScaleOption = None,
) -> float:
    """Return Cohen's κ with errors weighed by how far they are off: [eq:weighted-kappa].

    By the squared difference of label and truth ("quadratic"), or the absolute one ("linear"). NaN
    where labels and truth are one class.

    >>> labels, gold = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 3}
    >>> round(weighted_kappa(labels, gold), 4), round(weighted_kappa(labels, gold, "linear"), 4)
    (0.8, 0.6667)
    """
    require_word("weights", weights, ("quadratic", "linear"))
    label, truth, _ = _on_line(labels, gold, given, scale)
    power = 2 if weights == "quadratic" else 1
    one, n_one = np.unique(label, return_counts=True)
    other, n_other = np.unique(truth, return_counts=True)
    by_chance = n_one @ np.abs(one[:, None] - other) ** power @ n_other / len(label) ** 2
    found = (np.abs(label - truth) ** power).mean()
    return float(1.0 - found / by_chance) if by_chance > 0.0 else float("nan")


def interval_coverage(
    labels: Any, gold: Any, *, given: Any = None, scale: ScaleOption = None
) -> float:
    """Return how many known scores lie in their interval of 90 %, ends included.

    The labels must carry scores: those of a fit with a scale, or a file of them.

    >>> labels = {"task": ["a", "b"], "label": [3, 5]}
    >>> labels |= {"score": [3.1, 4.8], "score_low": [3, 4], "score_high": [4, 5]}
    >>> interval_coverage(labels, {"a": 4, "b": 3})
    0.5
    """
    _, truth, scores = _on_line(labels, gold, given, scale)
    if scores is None:
        raise InputError("labels-without-score")
    return float(((scores.low <= truth) & (truth <= scores.high)).mean())


@dataclass(frozen=True, slots=True)
class Violations:
    """The links that labels break: how many of those given, how many of what follows from them.

    `given` counts each pair of tasks once, `links` shows one link for each. Nothing follows from
    links with a weight; `closed` counts them as given.
    """

    given: int
    closed: int
    links: Links

    def __repr__(self) -> str:
        return f"Violations({self.given:,} of the links given, {self.closed:,} of their closure)"


def violations(labels: Any, links: Any) -> Violations:
    """Find the links that labels break: must-linked tasks that differ, cannot-linked that agree.

    >>> labels = {"a": "cat", "b": "cat", "c": "dog"}
    >>> violations(labels, [("a", "b", "must"), ("b", "c", "must")])
    Violations(1 of the links given, 2 of their closure)
    """
    labels = tables.read_labels(labels)
    links = tables.read_links(links)
    codes = links.on(labels.tasks)
    is_broken = link_graph.violated(labels.label, codes)
    closure = link_graph.close(len(labels), codes)
    closed = closure.count_violated(labels.label, len(labels.classes))
    # The closure holds neither links with a weight nor cannot-links that must-links contradict.
    apart = ~codes.is_hard
    apart[closure.conflicts] = True
    closed += int(np.count_nonzero(is_broken & apart))
    return Violations(int(is_broken.sum()), closed, links.select(codes.row[is_broken]))


def broken_constraints(labels: Any, constraints: Any) -> Constraints:
    """Return the constraints that labels break; those of tasks without a label are left out.

    >>> rules = [{"tasks": ["a", "b"], "label": "cat", "count": "0-1"}, {"task": "a", "not": "dog"}]
    >>> broken_constraints({"a": "cat", "b": "cat"}, rules).say(0)
    "at most one of 'a', 'b' is 'cat'"
    """
    from tiebreak.inference.tasks.coupling.constrain import ConstraintCodes

    found: Labels = tables.read_labels(labels)
    table = tables.read_constraints(constraints)
    code = np.append(found.tasks.codes(table.tasks), 0)  # the last one: of rates
    n_without = np.add.reduceat(np.append(code[table.task] < 0, 0), table.start[:-1])
    table = table.select(n_without == 0)
    classes = found.classes.merge(table.used_labels())
    literals = table.on(found.tasks, classes)
    codes = ConstraintCodes(table, literals, len(found), len(classes), None, None)
    return table.select(codes.broken(found.label))


@dataclass(frozen=True, slots=True)
class Report:
    """All figures at once; None stands where the labels carry no such probabilities or links."""

    n_tasks: int
    n_gold: int
    coverage: float
    accuracy: float
    micro_f: float
    macro_f: float
    f_by_class: dict[Hashable, float]
    log_loss: float | None = None
    brier_score: float | None = None
    calibration_error: float | None = None
    violated_given: int | None = None
    violated_closed: int | None = None
    broken_constraints: int | None = None
    mean_absolute_error: float | None = None
    weighted_kappa: float | None = None
    interval_coverage: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a dictionary that JSON can hold."""
        figures = {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name not in (*OF_SCALE, "broken_constraints")
        }
        return figures | {"f_by_class": {str(k): f for k, f in self.f_by_class.items()}}


def report(
    labels: Any,
    gold: Any,
    links: Any = None,
    *,
    given: Any = None,
    scale: ScaleOption = None,
    constraints: Any = None,
) -> Report:
    """Compute every figure that the labels allow; those of a scale where labels have scores.

    >>> labels = {"a": "cat", "b": "cat", "c": "dog"}
    >>> figures = report(labels, {"a": "cat", "b": "dog", "z": "dog"})
    >>> figures.n_tasks, figures.accuracy, round(figures.coverage, 4), figures.log_loss
    (2, 0.5, 0.6667, None)
    """
    labels = tables.read_labels(labels)
    scored, classes, n_gold = _scored(labels, gold, given)
    q = scored.probabilities
    broken = None if links is None else violations(labels, links)
    of_scale: dict[str, float] = {}
    are_numbers = np.isfinite(as_numbers(labels.classes)[0]).all()
    if scale is not None or (labels.scores is not None and are_numbers):
        figures = [mean_absolute_error, weighted_kappa]
        figures += [interval_coverage] if labels.scores is not None else []
        of_scale = {each.__name__: each(labels, gold, given=given, scale=scale) for each in figures}
    return Report(
        n_tasks=len(scored.truth),
        n_gold=n_gold,
        coverage=len(scored.truth) / n_gold,
        accuracy=scored.accuracy(),
        micro_f=scored.accuracy(),
        macro_f=scored.macro_f(),
        f_by_class=_f_of_names(scored, classes),
        log_loss=None if q is None else scored.log_loss(),
        brier_score=None if q is None else scored.brier_score(),
        calibration_error=None if scored.probability is None else scored.calibration_error(),
        violated_given=None if broken is None else broken.given,
        violated_closed=None if broken is None else broken.closed,
        broken_constraints=(
            None if constraints is None else len(broken_constraints(labels, constraints))
        ),
        **of_scale,
    )


def _scored(labels: Any, gold: Any, given: Any) -> tuple[Comparison, tuple[Hashable, ...], int]:
    """Line labels up with gold, without the tasks of `given`; name the classes, count the gold."""
    found: Labels = tables.read_labels(labels)
    known: Gold = tables.read_gold(gold)
    row, is_scored, n_asked = _lined_up(found, known, given)
    # Classes that only gold uses come last; labels give them the probability 0.
    code = found.classes.codes(known.classes).copy()
    new = np.flatnonzero(code == MISSING)
    code[new] = len(found.classes) + np.arange(len(new), dtype=np.int32)
    classes = (*found.classes, *(known.classes[int(k)] for k in new))
    stated, q = found.probability, found.probabilities
    if stated is None and q is not None:
        stated = q[np.arange(len(q)), found.label]
    scored = Comparison(
        truth=code[known.label[is_scored]],
        guess=found.label[row],
        n_classes=len(classes),
        probability=None if stated is None else stated[row],
        probabilities=None if q is None else np.pad(q[row], ((0, 0), (0, len(new)))),
    )
    return scored, classes, n_asked


def _lined_up(found: Labels, known: Gold, given: Any) -> tuple[Codes, Mask, int]:
    """Return the rows of labels to score, which known tasks these are, and how many were asked."""
    asked = np.ones(len(known), dtype=bool)
    if given is not None:
        told = known.tasks.codes(tables.read_gold(given).tasks)
        asked[told[told != MISSING]] = False
    row = found.tasks.codes(known.tasks)
    is_scored = asked & (row != MISSING)
    if not asked.any():
        raise InputError("no-gold-to-score")
    if not is_scored.any():
        of_gold, of_labels = (", ".join(map(repr, ids[:3])) for ids in (known.tasks, found.tasks))
        of_labels = of_labels or "no task"
        raise InputError("gold-without-labels", n=len(known), gold=of_gold, labels=of_labels)
    return row[is_scored], is_scored, int(asked.sum())


def _on_line(
    labels: Any, gold: Any, given: Any, scale: ScaleOption
) -> tuple[Floats, Floats, Scores | None]:
    """Return labels and truth of the scored tasks as numbers, and the scores that labels carry."""
    found: Labels = tables.read_labels(labels)
    known: Gold = tables.read_gold(gold)
    row, is_scored, _ = _lined_up(found, known, given)
    numbers = [_numbers(ids, scale) for ids in (found.classes, known.classes)]
    label, truth = numbers[0][found.label[row]], numbers[1][known.label[is_scored]]
    return label, truth, None if found.scores is None else found.scores.take(row)


def _numbers(classes: Ids, scale: ScaleOption) -> Floats:
    """Return the number of each class: itself, or that of its level; refuse words."""
    values = None if scale is None else read_scale(scale)
    if values is not None and not values.is_of_numbers:
        return values.values[values.require(classes)]
    found: Floats = as_numbers(classes)[0]
    if not np.isfinite(found).all():
        names = ", ".join(map(repr, classes[:3]))
        raise InputError("no-numbers-to-score", names=names)
    return found


def _f_of_names(scored: Comparison, classes: Sequence[Hashable]) -> dict[Hashable, float]:
    f = zip(classes, scored.f_by_class().tolist(), strict=True)
    return {name: value for name, value in f if value == value}  # those that occur


def _needed(probabilities: Floats | None, of_what: str) -> Floats:
    if probabilities is None:
        raise InputError("labels-without-probability", of_what=of_what)
    return probabilities
