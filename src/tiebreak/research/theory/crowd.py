"""Assumptions: the crowd, tasks, priors, start and links that a theorem is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tiebreak.data.ids import Ids
from tiebreak.errors import LinkError, OptionError
from tiebreak.inference.dirichlet import confusion_prior
from tiebreak.options import require_number, require_word
from tiebreak.research import messages  # noqa: F401

SMALLEST_PRIOR = 0.5  # ψ(x) > ln(x − ½) needs x > ½ in every posterior count
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
        confusion = _floats("confusion", self.confusion)
        confusion = confusion[None] if confusion.ndim == 2 else confusion
        shape = confusion.shape
        if len(shape) != 3 or shape[1] != shape[2] or not shape[0]:
            raise OptionError("confusion-shape", shape=shape)
        n_kinds, n_classes = shape[:2]
        if n_classes < 2:
            raise OptionError("one-class-theory")
        if not (confusion > 0).all():
            at = np.argwhere(~(confusion > 0))[0].tolist()
            raise OptionError("perfect-worker", at="][".join(map(str, at)))
        prior = _floats("class_prior", self.class_prior)
        if prior.shape != (n_classes,):
            raise OptionError("class-prior-shape", n_classes=n_classes, shape=prior.shape)
        if not (prior > 0).all():
            raise OptionError("class-prior-zero", given=prior.tolist())
        n_workers = _for_each("n_workers", self.n_workers, n_kinds, "kinds of worker")
        rate = _for_each("response_rate", self.response_rate, n_kinds, "kinds of worker")
        if not ((rate > 0) & (rate <= 1)).all():
            raise OptionError("response-rate", given=rate.tolist())
        words = "between 0 and 1, both excluded"
        require_number("failure_probability", self.failure_probability, words, above=0.0, below=1.0)
        counts = _for_each("class_prior_counts", self.class_prior_counts, n_classes, "classes")
        n_workers = np.array([_whole("n_workers", n) for n in n_workers], dtype=np.int64)
        total = int(n_workers.sum())
        most = (
            total if self.most_responses is None else _whole("most_responses", self.most_responses)
        )
        self._keep(
            class_prior=_summing("class_prior", prior),
            confusion=_summing("each row of confusion", confusion),
            n_tasks=_whole("n_tasks", self.n_tasks),
            n_workers=n_workers,
            response_rate=rate,
            class_prior_counts=_enough("class_prior_counts", counts),
            confusion_counts=_spelt_out(self.confusion_counts, (n_kinds, n_classes, n_classes)),
            start=self.start or AssumedStart(),
            most_responses=min(most, total),
        )

    def _keep(self, **values: Any) -> None:
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
        cannot = np.atleast_2d(_counts("cannot", self.cannot))
        truth = np.atleast_1d(_counts("truth", self.truth))
        if len(cannot) != len(truth) or not len(truth):
            raise OptionError("linked-kinds", n_truth=len(truth), n_cannot=len(cannot))
        if (truth >= cannot.shape[1]).any():
            raise OptionError("linked-truth", n_classes=cannot.shape[1], given=int(truth.max()))
        if cannot[np.arange(len(truth)), truth].any():
            raise LinkError("false-cannot-link")
        require_number("link strength", self.strength, "above 0", above=0.0)
        values = {"cannot": cannot, "truth": truth}
        for name in ("must", "n_tasks"):
            given = _counts(name, getattr(self, name))
            if given.shape not in ((), (1,), truth.shape):
                raise OptionError("linked-each", name=name, n=len(truth))
            values[name] = np.broadcast_to(given, truth.shape)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_pairs(
        cls, left: Any, right: Any, is_must: Any, truth: Any, *, n_classes: int, strength: float
    ) -> LinkedTasks:
        """Count the links of every task from pairs of task codes; truth[i] is task i's class."""
        classes = _counts("truth", truth)
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


def _floats(name: str, value: Any) -> Floats:
    try:
        given = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("not-numbers", name=name, given=value) from None
    if not np.isfinite(given).all():
        raise OptionError("not-finite", name=name, given=value)
    return given


def _counts(name: str, value: Any) -> WholeNumbers:
    given = np.asarray(value)
    if given.dtype.kind not in "iu" or (given < 0).any():
        raise OptionError("not-counts", name=name, given=value)
    return given.astype(np.int64)


def _for_each(name: str, value: Any, n: int, what: str) -> Floats:
    given = _floats(name, value)
    if given.shape not in {(), (n,)}:
        raise OptionError("one-for-each", name=name, n=n, what=what, shape=given.shape)
    return np.broadcast_to(given, n).copy()


def _summing(name: str, rows: Floats) -> Floats:
    sums = rows.sum(axis=-1, keepdims=True)
    if np.abs(sums - 1).max() > 1e-6:
        worst = float(sums.flat[np.abs(sums - 1).argmax()])
        raise OptionError("not-summing", name=name, given=worst)
    return np.asarray(rows / sums)


def _spelt_out(counts: Any, shape: tuple[int, ...]) -> Floats:
    """Spell out β₀ as (n_kinds, n_classes, n_classes)."""
    given = counts if isinstance(counts, str) else _floats("confusion_counts", counts)
    if np.shape(given) in ((), (2,)):
        try:
            given = confusion_prior(given, Ids([]), shape[1])[0]
        except OptionError as error:
            raise OptionError("theory-counts", reason=error) from None
    if np.shape(given) not in {shape, shape[1:]}:
        raise OptionError("theory-counts-shape", shape=shape, given=np.shape(given))
    return _enough("confusion_counts", np.broadcast_to(given, shape).copy())


def _enough(name: str, counts: Floats) -> Floats:
    if not (counts >= SMALLEST_PRIOR).all():
        raise OptionError("prior-too-small", name=name, least=SMALLEST_PRIOR, given=counts.min())
    return counts


def _whole(name: str, value: float) -> int:
    words = "a whole number, 1 or more"
    require_number(name, value, words, least=1, below=2**63)
    if value != int(value):
        raise OptionError("not-whole", name=name, given=value)
    return int(value)
