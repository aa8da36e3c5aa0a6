"""Assumptions: the crowd, tasks, priors, start and links that a theorem is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import as_floats, require_count, require_number, require_word
from tiebreak.data.ids import Ids
from tiebreak.errors import LinkError, OptionError
from tiebreak.inference.dirichlet import confusion_prior
from tiebreak.research import messages  # noqa: F401

SMALLEST_PRIOR = 0.5  # ψ(x) > ln(x − ½) needs x > ½ in every posterior count
SUM_ERROR = 1e-6  # of probabilities that are scaled to sum to 1
SUPPORTS = ("corrected", "printed", "printed, wrong classes only", "proof's last line")

Floats = npt.NDArray[np.float64]
WholeNumbers = npt.NDArray[np.int64]
SupportVersion = Literal["corrected", "printed", "printed, wrong classes only", "proof's last line"]


@dataclass(frozen=True)
class AssumedStart:
    """How good the first class prior, confusions and labels are assumed to be.

    The theorems do not promise a start, they build on one: every error below is an upper bound
    on the distance from the truth. `label_error` matters only where tasks are linked. The totals
    are the pseudo-counts behind the start; None means those of counting every response once:
    n_tasks for the class prior, and a worker's share of each class for a confusion row, each with
    the prior's own counts on top.
    """

    class_prior_error: float = 0.02
    confusion_error: float = 0.02
    label_error: float = 0.5
    class_prior_total: float | None = None
    confusion_total: float | None = None

    def __post_init__(self) -> None:
        for name in ("class_prior_error", "confusion_error", "label_error"):
            value = getattr(self, name)
            require_number(f"start {name}", value, "between 0 and 1", least=0.0, most=1.0)
        for name in ("class_prior_total", "confusion_total"):
            if (total := getattr(self, name)) is not None:
                require_number(f"start {name}", total, "above 0", above=0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Assumptions:
    """What a theorem needs to know: who answers, how well, on how many tasks.

    Workers come in kinds: `confusion[kind]` is shared by `n_workers[kind]` workers, so that
    "forty workers like this" is one matrix and one number.

    Parameters
    ----------
    class_prior
        (n_classes,), above 0, sums to 1: how often each class is the truth.
    confusion
        (n_kinds, n_classes, n_classes) = [kind, truth, answer], or one (n_classes, n_classes)
        matrix. Rows sum to 1. Every entry is above 0: the theorems exclude perfect workers.
    n_tasks
        How many tasks.
    n_workers
        How many workers of each kind; a number serves every kind.
    response_rate
        The probability, above 0, with which a worker of each kind answers a task.
    failure_probability
        ν: the bounds hold together with probability at least 1 − ν.
    class_prior_counts, confusion_counts
        Dirichlet pseudo-counts α₀ and β₀ of the method, ½ or more: a number or an array for the
        class prior; "diagonal", "uniform", (right, wrong) or an array for the confusions.
    start
        How good the start is assumed to be.
    most_responses
        The most responses on any one task; None means that all workers may meet on one.

    Examples
    --------
    >>> crowd = Assumptions(
    ...     class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.2, 0.8]], n_tasks=1000, n_workers=40
    ... )
    >>> crowd
    Assumptions(40 workers, 1,000 tasks, 2 classes, 40 responses a task)
    >>> round(crowd.evidence_per_worker, 4)
    1.1457
    """

    class_prior: Any
    confusion: Any
    n_tasks: int
    n_workers: Any = 1
    response_rate: Any = 1.0
    failure_probability: float = 0.05
    class_prior_counts: Any = 1.0
    confusion_counts: Any = field(default="diagonal")
    start: AssumedStart = field(default_factory=AssumedStart)
    most_responses: int | None = None

    def __post_init__(self) -> None:
        gamma = as_floats("confusion", self.confusion)
        gamma = gamma[None] if gamma.ndim == 2 else gamma
        shape = gamma.shape
        if len(shape) != 3 or shape[1] != shape[2] or not shape[0]:
            words = "one square matrix or a stack of them"
            raise OptionError.must_be("confusion", words, self.confusion)
        n_kinds, n_classes = shape[:2]
        if n_classes < 2:
            raise OptionError("one-class-theory")
        if not (gamma > 0).all():
            at = np.argwhere(~(gamma > 0))[0].tolist()
            raise OptionError("perfect-worker", at="][".join(map(str, at)))
        words = "between 0 and 1, both excluded"
        require_number("failure_probability", self.failure_probability, words, above=0.0, below=1.0)
        require_count("n_tasks", self.n_tasks, 1)
        n_workers = _counts("n_workers", self.n_workers, (n_kinds,), 1)
        total = int(n_workers.sum())
        if self.most_responses is not None:
            require_count("most_responses", self.most_responses, 1)
        rate = _numbers(
            "response_rate",
            self.response_rate,
            (n_kinds,),
            "above 0 and at most 1: leave out workers who never answer",
            lambda given: (given > 0) & (given <= 1),
        )
        values = {
            "class_prior": _shares("class_prior", self.class_prior, (n_classes,)),
            "confusion": _shares("confusion", gamma, shape),
            "n_workers": n_workers,
            "response_rate": rate,
            "class_prior_counts": _prior_counts(
                "class_prior_counts", self.class_prior_counts, (n_classes,)
            ),
            "confusion_counts": _prior_counts(
                "confusion_counts", _spelt_out(self.confusion_counts, n_classes), shape
            ),
            "most_responses": min(self.most_responses or total, total),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"Assumptions({self.total_workers:,} workers, "
            f"{self.n_tasks:,} tasks, {self.n_classes:,} classes, {self.responses_per_task:.3g} "
            "responses a task)"
        )

    @property
    def n_classes(self) -> int:
        """K, how many classes."""
        return len(self.class_prior)

    @property
    def total_workers(self) -> int:
        """M, how many workers of all kinds."""
        return int(self.n_workers.sum())

    @property
    def responses_per_task(self) -> float:
        """How many responses a task gets on average."""
        return float(self.n_workers @ self.response_rate)

    @property
    def rarest_class(self) -> float:
        """ρ_π, the smallest class probability."""
        return float(self.class_prior.min())

    @property
    def rarest_answer(self) -> float:
        """ρ_γ, the smallest entry of a confusion matrix."""
        return float(self.confusion.min())

    @property
    def class_prior_gap(self) -> float:
        """D_π = ln(min π / max π), at most 0: what the class prior may say against the truth."""
        return float(np.log(self.class_prior.min() / self.class_prior.max()))

    @property
    def evidence_per_task(self) -> float:
        """M·D_γ in nats, [eq:thm-evidence]: what the responses on a task say, worst two classes."""
        log_confusion = np.log(self.confusion)
        weight = self.n_workers * self.response_rate
        own = np.einsum("g,gkc,gkc->k", weight, self.confusion, log_confusion)
        other = np.einsum("g,gkc,glc->kl", weight, self.confusion, log_confusion)
        divergence = own[:, None] - other
        np.fill_diagonal(divergence, np.inf)
        return max(float(divergence.min()), 0.0)

    @property
    def evidence_per_worker(self) -> float:
        """D_γ in nats: the same for the average worker."""
        return self.evidence_per_task / self.total_workers


def assumptions_from(
    model: Any, *, failure_probability: float = 0.05, start: AssumedStart | None = None
) -> Assumptions:
    """Put a fitted model's estimates in where the theorems ask for the truth.

    The bounds that follow are no certificate for these responses: they say what would hold for
    a crowd of which the estimates were true. Response rates are each worker's share of the
    tasks; workers who never answered are left out.
    """
    responses = model.responses_
    if responses.n_classes < 2 or not responses.n_responses:
        raise OptionError("one-class-theory")
    by_worker = np.bincount(responses.worker_of_each(), minlength=responses.n_workers)
    active = by_worker > 0
    return Assumptions(
        class_prior=model.class_prior_,
        confusion=model.confusion_[active],
        n_tasks=responses.n_tasks,
        response_rate=np.minimum(by_worker[active] / responses.n_tasks, 1.0),
        failure_probability=failure_probability,
        start=start or AssumedStart(),
        most_responses=int(np.bincount(responses.task_of_each()).max()),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkedTasks:
    """The tasks that take part in links, in kinds: how many, and what they are linked to.

    Every link is assumed to be correct, and asked without regard to the responses.

    Parameters
    ----------
    must
        (n_kinds,): must-links of each task of this kind.
    cannot
        (n_kinds, n_classes): its cannot-links, by the true class of the other end.
    truth
        (n_kinds,): its own true class.
    n_tasks
        How many tasks of each kind; a number serves every kind.
    strength
        η > 0, the weight of one link in mean-field inference.

    Examples
    --------
    >>> linked = LinkedTasks(must=[1, 0], cannot=[[0, 0], [0, 2]], truth=[0, 0], strength=2.0)
    >>> linked.total_tasks
    2
    >>> linked.support(label_error=0.05)
    array([0.9, 1.8])
    """

    must: Any
    cannot: Any
    truth: Any
    n_tasks: Any = 1
    strength: float = 1.0

    def __post_init__(self) -> None:
        kinds = (np.size(self.truth),)
        cannot = np.atleast_2d(as_floats("cannot", self.cannot))
        cannot = _counts("cannot", cannot, (*kinds, cannot.shape[-1]), 0)
        values = {name: _counts(name, getattr(self, name), kinds, 0) for name in ("must", "truth")}
        values |= {"cannot": cannot, "n_tasks": _counts("n_tasks", self.n_tasks, kinds, 0)}
        truth = values["truth"]
        if not len(truth) or (truth >= cannot.shape[1]).any():
            words = f"below {cannot.shape[1]}, the number of columns of cannot"
            raise OptionError.must_be("truth", words, self.truth)
        if cannot[np.arange(len(truth)), truth].any():
            raise LinkError("false-cannot-link")
        require_number("link strength", self.strength, "above 0", above=0.0)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_pairs(
        cls, left: Any, right: Any, is_must: Any, truth: Any, *, n_classes: int, strength: float
    ) -> LinkedTasks:
        """Count the links of every task from pairs of task codes; truth[i] is task i's class."""
        classes = _counts("truth", truth, np.shape(truth), 0)
        one, other = np.asarray(left), np.asarray(right)
        ends = np.concatenate([one, other])
        others = np.concatenate([other, one])
        must = np.tile(np.asarray(is_must), 2)
        wrong = np.flatnonzero(must != (classes[ends] == classes[others]))
        if len(wrong):
            first = (int(ends[wrong[0]]), int(others[wrong[0]]))
            raise LinkError("false-links", n=len(wrong) // 2, left=first[0], right=first[1])
        linked, row = np.unique(ends, return_inverse=True)
        table = np.zeros((len(linked), 2 + n_classes), dtype=np.int64)
        table[:, 0] = classes[linked]
        np.add.at(table, (row[must], 1), 1)
        np.add.at(table, (row[~must], 2 + classes[others[~must]]), 1)
        kinds, copies = np.unique(table, axis=0, return_counts=True)
        columns = {"truth": kinds[:, 0], "must": kinds[:, 1], "cannot": kinds[:, 2:]}
        return cls(**columns, n_tasks=copies, strength=strength)

    @property
    def total_tasks(self) -> int:
        """How many tasks take part in a link."""
        return int(self.n_tasks.sum())

    def support(self, label_error: float, version: SupportVersion = "corrected") -> Floats:
        """W of each kind, (n_kinds,): see `link_support`."""
        kinds = zip(self.must, self.cannot, self.truth, strict=True)
        return np.array([link_support(*kind, label_error, version) for kind in kinds])


def link_support(
    n_must: int,
    n_cannot: npt.ArrayLike,
    truth: int,
    label_error: float,
    version: SupportVersion = "corrected",
) -> float:
    """W: what a task's links add to the lead of its true class, in units of the strength.

    Implements [eq:thm-links], ε the error of the linked neighbours:

        W = n_must (1 − 2ε) + (1 − ε) min_(l≠truth) n_cannot_l − ε n_cannot

    Departs from the paper, which has three other versions (errata 25 and 26): −2ε n_cannot with
    the smallest n_cannot over all classes, the true one with its zero included; the same over
    wrong classes only; and, in the last line of the proof, −(1 + ε) n_cannot.

    >>> round(link_support(2, [0, 3, 1], truth=0, label_error=0.1), 6)
    2.1
    >>> round(link_support(2, [0, 3, 1], truth=0, label_error=0.1, version="printed"), 6)
    0.8
    """
    require_word("version", version, SUPPORTS)
    by_class = np.asarray(n_cannot, dtype=np.float64)
    total = float(by_class.sum())
    least = float(np.delete(by_class, truth).min())
    from_must = n_must * (1 - 2 * label_error)
    return {
        "corrected": from_must + (1 - label_error) * least - label_error * total,
        "printed": from_must - 2 * label_error * total + float(by_class.min()),
        "printed, wrong classes only": from_must - 2 * label_error * total + least,
        "proof's last line": from_must - (1 + label_error) * total + least,
    }[version]


def _numbers(
    name: str,
    value: Any,
    shape: tuple[int, ...],
    words: str,
    are_right: Callable[[Floats], npt.NDArray[np.bool_]],
) -> Floats:
    """Return numbers as an array of a shape, which one number fills; refuse those that are not."""
    given = as_floats(
        name,
        value,
        f"{words}; of shape {shape} or one number",
        shapes=((), shape),
        are_right=lambda found: np.isfinite(found) & are_right(found),
    )
    return np.broadcast_to(given, shape).copy()


def _counts(name: str, value: Any, shape: tuple[int, ...], least: int) -> WholeNumbers:
    words = f"{least} or more, whole numbers"
    found = _numbers(name, value, shape, words, lambda n: (n >= least) & (n == np.round(n)))
    return found.astype(np.int64)


def _shares(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return rows of probabilities above 0, scaled so that each sums to 1."""

    def are_right(rows: Floats) -> npt.NDArray[np.bool_]:
        sums = rows.sum(axis=-1, keepdims=True)
        return np.asarray((rows > 0) & (np.abs(sums - 1) <= SUM_ERROR))

    rows = _numbers(name, value, shape, "above 0, with rows that sum to 1", are_right)
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _prior_counts(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    value = np.broadcast_to(value, shape) if np.shape(value) == shape[1:] else value
    words = f"{SMALLEST_PRIOR} or more, else the bounds do not hold"
    return _numbers(name, value, shape, words, lambda given: given >= SMALLEST_PRIOR)


def _spelt_out(counts: Any, n_classes: int) -> Any:
    """Make a matrix of the names and numbers that estimators take as a prior of confusions."""
    if not isinstance(counts, str) and np.shape(counts) not in ((), (2,)):
        return counts
    try:
        return confusion_prior(counts, Ids([]), n_classes)[0]
    except OptionError as error:
        raise OptionError("theory-counts", reason=error) from None
