"""What every estimator does alike: store, take in, publish."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak import files
from tiebreak import links as links_room
from tiebreak.errors import (
    ConvergenceWarning,
    GoldError,
    NotFittedError,
    OptionError,
    ResponseError,
    note,
)
from tiebreak.gold import Gold, GoldCodes
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.labels import Labels
from tiebreak.link_graph import LinkCodes, violated
from tiebreak.links import Links, OnContradiction
from tiebreak.names import Names
from tiebreak.responses import Responses


class Inputs(NamedTuple):
    """Responses, links and gold, read and translated into one set of codes."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    given_codes: LinkCodes | None  # every link, as given
    link_codes: LinkCodes | None  # the links to use: checked, contradictions dropped if asked
    gold_codes: GoldCodes | None


class Estimator:
    """Base of the estimators: parameters by keyword, results that end in an underscore.

    Follows scikit-learn's habits (its `clone` works) without importing it.
    """

    labels_: Labels
    probabilities_: Floats
    tasks_: Names
    workers_: Names
    classes_: Names
    class_prior_: Floats
    confusion_: Floats
    bounds_: list[float]
    n_iter_: int
    converged_: bool
    violations_: Links | None
    responses_: Responses
    links_: Links | None
    gold_: Gold | None

    def fit(self, responses: Any, *, links: Any = None, gold: Any = None) -> Self:
        """Fit to responses and, if given, links and gold."""
        raise TypeError(f"{type(self).__name__} is a base; use one of the estimators.")

    def fit_predict(self, responses: Any, *, links: Any = None, gold: Any = None) -> Labels:
        """Fit and return the labels."""
        return self.fit(responses, links=links, gold=gold).labels_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        for name, value in params.items():
            if name not in self._parameters():
                raise OptionError.unknown("parameter", name, self._parameters())
            setattr(self, name, value)
        return self

    @classmethod
    def _parameters(cls) -> tuple[str, ...]:
        return tuple(p for p in inspect.signature(cls.__init__).parameters if p != "self")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(f"{type(self).__name__} has no {name} yet. Call fit first.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _publish(
        self, inputs: Inputs, q: Floats, label: Codes | None = None, top: Floats | None = None
    ) -> None:
        """Keep the inputs and name the results by the caller's ids."""
        responses = inputs.responses
        self.responses_, self.links_, self.gold_ = responses, inputs.links, inputs.gold
        self.tasks_, self.workers_ = responses.tasks, responses.workers
        self.classes_ = responses.classes
        self.probabilities_ = q
        self.labels_ = Labels.from_probabilities(
            self.tasks_, self.classes_, q, label=label, top=top, frame=responses.frame
        )
        self.violations_ = None
        if inputs.links is not None:
            given, broken = inputs.given_codes, np.empty(0, dtype=np.int64)
            if given is not None:
                broken = given.row[violated(self.labels_.label, given)]
            self.violations_ = inputs.links.select(broken)

    def _warn_unsettled(self, tol: float) -> None:
        """Say that the sweeps ended too early, unless the caller asked for their number."""
        if not self.converged_ and tol > 0.0:
            warnings.warn(
                f"Not settled after {self.n_iter_} sweeps; labels may still change. "
                "Raise max_iter, or accept a larger tol.",
                ConvergenceWarning,
                stacklevel=3,
            )


def take_in(
    responses: Any,
    links: Any,
    gold: Any,
    *,
    on_contradiction: OnContradiction = "error",
    soft_links: bool = False,
    may_break: bool = False,
) -> Inputs:
    """Read whatever was handed over, translate it into codes, and check it.

    Soft links may contradict each other and gold; they are not checked.
    """
    crowd = files.read_responses(responses)
    known = None if gold is None else files.read_gold(gold)
    pairs = None if links is None else files.read_links(links)
    if known is not None:
        crowd = _with_gold_classes(crowd, known)
    _require_memory(crowd)
    if crowd.n_classes == 1:
        note(
            f"All labels are {crowd.classes[0]!r}, so every task gets it. Are there other classes?"
        )
    gold_codes = None if known is None else known.on(crowd.tasks, crowd.classes)
    given_codes = link_codes = None
    if pairs is not None and len(pairs):
        given_codes = link_codes = pairs.on(crowd.tasks)
    if link_codes is not None and not soft_links:
        link_codes = links_room.check(
            link_codes,
            crowd.tasks,
            crowd.n_classes,
            gold=gold_codes,
            classes=crowd.classes,
            links=pairs,
            on_contradiction=on_contradiction,
            may_break=may_break,
        )
    return Inputs(crowd, pairs, known, given_codes, link_codes, gold_codes)


def require_tolerance(tol: float, max_iter: int) -> None:
    """Check the two numbers that end an ascent."""
    if not (np.isfinite(tol) and tol >= 0.0):
        raise OptionError(f"tol must be 0 or more; got {tol!r}.")
    if max_iter < 1:
        raise OptionError(f"max_iter must be 1 or more; got {max_iter!r}.")


def start_from(given: Any, responses: Responses) -> Floats:
    """Check probabilities given as a start: (n_tasks, n_classes), rows sum to 1."""
    q = np.array(given, dtype=np.float64, order="C")
    shape = responses.n_tasks, responses.n_classes
    if q.shape != shape:
        raise OptionError(f"init must have shape {shape}, tasks by classes; got {q.shape}.")
    if not (np.isfinite(q).all() and (q >= 0).all() and np.allclose(q.sum(axis=1), 1, atol=1e-6)):
        raise OptionError("init must hold probabilities: each row non-negative with sum 1.")
    return q


def _with_gold_classes(responses: Responses, gold: Gold) -> Responses:
    wider = responses.with_classes(gold.classes)
    if wider.n_classes > responses.n_classes:
        unseen = [str(name) for name in gold.classes if responses.classes.codes([name])[0] < 0]
        note(f"No worker used {', '.join(unseen)}, which gold names: added to the classes.")
        used = wider.classes.codes(gold.classes)
        if (used < 0).any():
            raise GoldError("The classes of gold and responses cannot be told apart by type.")
    return wider


def _require_memory(responses: Responses) -> None:
    """Refuse more classes than memory can hold confusions for."""
    n_classes = responses.n_classes
    needed = 8 * n_classes * (4 * responses.n_workers * n_classes + 3 * responses.n_tasks)
    limit = _memory_bytes()
    if needed > limit or responses.n_workers * n_classes >= 2**31:
        raise ResponseError(
            f"{n_classes:,} classes and {responses.n_workers:,} workers need about "
            f"{needed / 2**30:,.0f} GiB for confusion matrices; this machine has "
            f"{limit / 2**30:,.0f} GiB.\n"
            "Is the label column the right one? Text answers must be grouped into classes first."
        )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # pragma: no cover - not on this system
        return 8 << 30


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))
