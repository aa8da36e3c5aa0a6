"""Assumptions: the crowd, the tasks, the priors and the start that a theorem speaks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import checks, having, optional
from tiebreak.errors import OptionError
from tiebreak.ids import Ids
from tiebreak.inference.dirichlet import confusion_prior
from tiebreak.kernels.layout import Floats
from tiebreak.options import require_number
from tiebreak.responses import Responses

SMALLEST_PRIOR = 0.5  # ψ(x) > ln(x − ½) needs x > ½ in every posterior count


@dataclass(frozen=True, slots=True)
class AssumedStart:
    """How good the first class prior, confusions and labels are assumed to be.

    The theorems do not promise a start, they build on one: every error below is an upper bound
    on the distance from the truth. `label_error` matters only where tasks are linked. The totals
    say how many pseudo-counts stand behind the start; None means those of counting every
    response once: n_tasks for the class prior, and a worker's share of each class for a
    confusion row, each with the prior's own counts on top.
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
            total = getattr(self, name)
            if total is not None:
                require_number(f"start {name}", total, "above 0", above=0.0)


@dataclass(frozen=True, slots=True, eq=False, init=False)
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
    Assumptions(40 workers of 1 kind, 1,000 tasks, 2 classes, 40 responses a task)
    >>> round(crowd.evidence_per_worker, 4)
    1.1457
    """

    class_prior: Floats
    confusion: Floats
    n_tasks: int
    n_workers: npt.NDArray[np.int64]
    response_rate: Floats
    failure_probability: float
    class_prior_counts: Floats = field(repr=False)
    confusion_counts: Floats = field(repr=False)
    start: AssumedStart
    most_responses: int

    @checks(start=optional(AssumedStart))
    def __init__(
        self,
        *,
        class_prior: npt.ArrayLike,
        confusion: npt.ArrayLike,
        n_tasks: int,
        n_workers: npt.ArrayLike = 1,
        response_rate: npt.ArrayLike = 1.0,
        failure_probability: float = 0.05,
        class_prior_counts: npt.ArrayLike = 1.0,
        confusion_counts: str | Sequence[float] | npt.ArrayLike = "diagonal",
        start: AssumedStart | None = None,
        most_responses: int | None = None,
    ) -> None:
        matrices = _confusion(confusion)
        n_kinds, n_classes = matrices.shape[:2]
        workers = _for_each("n_workers", n_workers, n_kinds, "kinds of worker")
        class_counts = _for_each("class_prior_counts", class_prior_counts, n_classes, "classes")
        values: dict[str, Any] = {
            "class_prior": _class_prior(class_prior, n_classes),
            "confusion": matrices,
            "n_tasks": _whole("n_tasks", n_tasks),
            "n_workers": np.array([_whole("n_workers", n) for n in workers], dtype=np.int64),
            "response_rate": _rates(response_rate, n_kinds),
            "failure_probability": _open_unit("failure_probability", failure_probability),
            "class_prior_counts": _enough("class_prior_counts", class_counts),
            "confusion_counts": _confusion_counts(confusion_counts, n_kinds, n_classes),
            "start": start or AssumedStart(),
        }
        total = int(np.sum(values["n_workers"]))
        most = total if most_responses is None else _whole("most_responses", most_responses)
        values["most_responses"] = min(most, total)
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        kinds = f"{len(self.n_workers)} kind{'s' if len(self.n_workers) > 1 else ''}"
        return (
            f"Assumptions({self.total_workers:,} workers of {kinds}, {self.n_tasks:,} tasks, "
            f"{self.n_classes:,} classes, {self.responses_per_task:.3g} responses a task)"
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


class FittedModel(Protocol):
    """What a fitted estimator offers: its beliefs and the responses behind them."""

    class_prior_: Floats
    confusion_: Floats
    responses_: Responses


@checks(model=having("class_prior_", "confusion_", "responses_"), start=optional(AssumedStart))
def assumptions_from(
    model: FittedModel, *, failure_probability: float = 0.05, start: AssumedStart | None = None
) -> Assumptions:
    """Put a fitted model's estimates in where the theorems ask for the truth.

    The bounds that follow are no certificate for these responses: they say what would hold for
    a crowd of which the estimates were true. Response rates are each worker's share of the
    tasks; workers who never answered are left out.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("c", "bob", "y")]
    >>> fitted = SimpleNamespace(
    ...     class_prior_=np.array([0.4, 0.6]),
    ...     confusion_=np.full((2, 2, 2), 0.5),
    ...     responses_=Responses.from_rows(votes),
    ... )
    >>> assumptions_from(fitted)
    Assumptions(2 workers of 2 kinds, 3 tasks, 2 classes, 1.33 responses a task)
    """
    responses = model.responses_
    if responses.n_classes < 2 or not responses.n_responses:
        raise OptionError(
            "The theorems need two classes or more; "
            f"the responses have {responses.n_classes} and {responses.n_responses:,} labels."
        )
    by_worker = np.bincount(responses.worker_of_each(), minlength=responses.n_workers)
    by_task = np.bincount(responses.task_of_each(), minlength=responses.n_tasks)
    active = by_worker > 0
    return Assumptions(
        class_prior=model.class_prior_,
        confusion=model.confusion_[active],
        n_tasks=responses.n_tasks,
        response_rate=np.minimum(by_worker[active] / responses.n_tasks, 1.0),
        failure_probability=failure_probability,
        start=start,
        most_responses=int(by_task.max()),
    )


def _confusion(confusion: npt.ArrayLike) -> Floats:
    matrices = _array("confusion", confusion)
    if matrices.ndim == 2:
        matrices = matrices[None]
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not len(matrices):
        raise OptionError(
            f"confusion must be one square matrix or a stack of them; got shape {matrices.shape}."
        )
    if matrices.shape[1] < 2:
        raise OptionError("There must be two classes or more; confusion has one.")
    if not (matrices > 0).all():
        kind, truth, answer = np.argwhere(~(matrices > 0))[0]
        raise OptionError(
            f"confusion[{kind}][{truth}][{answer}] is {matrices[kind, truth, answer]:g}: the "
            "theorems exclude workers who never confuse two classes.\n"
            "Give every entry a small positive probability, for instance 0.001."
        )
    _check_sums("each row of confusion", matrices)
    return np.asarray(matrices / matrices.sum(axis=2, keepdims=True))


def _class_prior(class_prior: npt.ArrayLike, n_classes: int) -> Floats:
    prior = _array("class_prior", class_prior)
    if prior.shape != (n_classes,):
        raise OptionError(
            f"class_prior must have one entry for each of the {n_classes} classes of confusion; "
            f"got shape {prior.shape}."
        )
    if not (prior > 0).all():
        raise OptionError(f"class_prior must be above 0 for every class; got {prior.tolist()}.")
    _check_sums("class_prior", prior)
    return np.asarray(prior / prior.sum())


def _rates(response_rate: npt.ArrayLike, n_kinds: int) -> Floats:
    rates = _for_each("response_rate", response_rate, n_kinds, "kinds of worker")
    if not ((rates > 0) & (rates <= 1)).all():
        raise OptionError(
            f"response_rate must be above 0 and at most 1; got {rates.tolist()}.\n"
            "Leave out workers who never answer."
        )
    return rates


def _confusion_counts(
    counts: str | Sequence[float] | npt.ArrayLike, n_kinds: int, n_classes: int
) -> Floats:
    """Spell out β₀ as (n_kinds, n_classes, n_classes)."""
    given = counts if isinstance(counts, str) else _array("confusion_counts", counts)
    if np.shape(given) in ((), (2,)):
        try:
            given = confusion_prior(given, Ids([]), n_classes)[0]
        except OptionError as error:
            raise OptionError(f"confusion_counts: {error}") from None
    shape = (n_kinds, n_classes, n_classes)
    if np.shape(given) not in {shape, shape[1:]}:
        raise OptionError(
            "confusion_counts must be 'diagonal', 'uniform', (right, wrong) or an array of shape "
            f"{shape[1:]} or {shape}; got shape {np.shape(given)}."
        )
    return _enough("confusion_counts", np.broadcast_to(given, shape).copy())


def _enough(name: str, counts: Floats) -> Floats:
    if not (counts >= SMALLEST_PRIOR).all():
        raise OptionError(
            f"{name} must be {SMALLEST_PRIOR} or more, else the bounds do not hold; "
            f"got {counts.min():g}."
        )
    return counts


def _for_each(name: str, value: npt.ArrayLike, n: int, what: str) -> Floats:
    given = _array(name, value)
    if given.shape not in {(), (n,)}:
        raise OptionError(
            f"{name} must be one number, or one for each of the {n} {what}; "
            f"got shape {given.shape}."
        )
    return np.broadcast_to(given, n).copy()


def _array(name: str, value: npt.ArrayLike) -> Floats:
    try:
        given = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"{name} must be numbers in equal rows; got {value!r}.") from None
    if not np.isfinite(given).all():
        raise OptionError(f"{name} must be finite; got {value!r}.")
    return given


def _whole(name: str, value: float) -> int:
    words = "a whole number, 1 or more"
    require_number(name, value, words, least=1, below=2**63)
    if value != int(value):
        raise OptionError(f"{name} must be {words}; got {value!r}.")
    return int(value)


def _open_unit(name: str, value: float) -> float:
    require_number(name, value, "between 0 and 1, both excluded", above=0.0, below=1.0)
    return float(value)


def _check_sums(name: str, rows: Floats) -> None:
    sums = rows.sum(axis=-1)
    if np.abs(sums - 1).max() > 1e-6:
        worst = sums.flat[np.abs(sums - 1).argmax()]
        raise OptionError(f"{name} must sum to 1; got {worst:.6g}.")
