"""Dirichlet priors: facts of the distribution, priors as users give them, and what tasks may be.

Classes have one Dirichlet, or one more within each class where it has subtypes (`ClassPrior`); the
confusions of a worker have one for each class (`workers/`). Counts are read in one of three ways:

- `POSTERIOR`: as a Dirichlet; its log is E[log x], its evidence log B(n) − log B(n₀)
- `POINT`: as shares, the prior being their smoothing (Dawid-Skene); evidence Σ n log share
- `FIXED`: shares are known, the mean of the prior; evidence Σ (n − n₀) log share

In each the log is the gradient of the evidence by counts, which is why no bound ever falls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi, xlogy

from tiebreak.data.ids import MISSING, Ids
from tiebreak.errors import OptionError
from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import as_floats, require_number

PIECE = 8_192  # numbers that a thread takes at a time,
PIECES = 16  # in so many pieces at most
SPARSE = 1 << 18  # numbers; below, a look at which left the prior is not repaid
SPREAD = 0.1  # a, of the Dirichlet over the subtypes of a class: few of them are used

POSTERIOR, POINT, FIXED = "posterior", "point", "fixed"

ClassPriorOption = float | Sequence[float] | Floats
ConfusionPrior = str | Sequence[float] | Floats | Mapping[Any, npt.ArrayLike]

Trust = Mapping[Any, float]  # right pseudo-answers by worker


def expected_log(
    concentration: Floats, axis: int = -1, n_threads: int = 1, *, prior: Floats | None = None
) -> Floats:
    """Return E[log x] of x ~ Dirichlet(concentration): ψ(a) − ψ(Σ a), [eq:expected-logs].

    `prior`, (1, …), is what most numbers may still equal: ψ is then found once for all of them.

    >>> expected_log(np.array([1.0, 1.0])).round(6).tolist()
    [-1.0, -1.0]
    """
    total = _sum(concentration, axis)
    found = _of_changed(psi, concentration, prior, n_threads)
    found -= np.expand_dims(psi(total), axis)
    return found


def log_beta(
    concentration: Floats, axis: int = -1, n_threads: int = 1, *, prior: Floats | None = None
) -> Floats:
    """Return log B(a) = Σ log Γ(a) − log Γ(Σ a); `prior` as in `expected_log`.

    >>> float(np.exp(log_beta(np.array([2.0, 3.0]))).round(6))
    0.083333
    """
    total = _sum(concentration, axis)
    logs = _of_changed(gammaln, concentration, prior, n_threads)
    return np.asarray(_sum(logs, axis) - gammaln(total))


def _sum(values: Floats, axis: int) -> Floats:
    """Return sums along an axis.

    NumPy's own take five times as long where the middle one of three axes is short, as in 1,000
    confusion matrices of four classes. Each adds up in order, so the bits are the same.
    """
    if values.ndim == 3 and axis == 1 and values.shape[2] > 1:
        return np.asarray(np.einsum("wlk->wk", values))
    return np.asarray(values.sum(axis=axis))


def _of_changed(
    function: Callable[..., Floats], values: Floats, prior: Floats | None, n_threads: int
) -> Floats:
    """Return the function of every value, found anew only where a value left its prior.

    Of 20 confusion matrices over 1,000 classes and 25,000 responses, one cell of a thousand has a
    count: 0.1 s, not 0.9 s. The function is of each number alone, so the bits are the same.
    """
    if prior is None or len(prior) != 1 or values.size < SPARSE:
        return _of_each(function, values, n_threads)
    has_changed = values != prior
    if np.count_nonzero(has_changed) > values.size // 2:
        return _of_each(function, values, n_threads)
    changed = np.flatnonzero(has_changed)
    of_prior = _of_each(function, prior, n_threads)
    found = np.empty(values.shape)
    found[:] = of_prior
    found.ravel()[changed] = _of_each(function, values.ravel()[changed], n_threads)
    return found


def _of_each(function: Callable[..., Floats], values: Floats, n_threads: int) -> Floats:
    """Return the function of every value; of many, in pieces that threads share."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    found = np.empty_like(values)
    n_pieces = min(PIECES, values.size // PIECE)
    if n_pieces < 2:
        return function(values, out=found)
    flat = values.ravel()
    edges = np.linspace(0, flat.size, n_pieces + 1).astype(int)

    def work(p: int) -> None:
        piece = slice(edges[p], edges[p + 1])
        function(flat[piece], out=found.ravel()[piece])

    for_each(work, len(edges) - 1, n_threads)
    return found


def mean(concentration: Floats, axis: int = -1) -> Floats:
    """Return E[x] of x ~ Dirichlet(concentration); even shares where nothing was counted.

    >>> mean(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = concentration.sum(axis=axis, keepdims=True)
    even = np.full(concentration.shape, 1.0 / concentration.shape[axis])
    return np.asarray(np.divide(concentration, total, out=even, where=total > 0.0))


def log_shares(
    read: str, counts: Floats, prior: Floats, axis: int = -1, n_threads: int = 1
) -> Floats:
    """Return the log of each share, as counts are read; −∞ for what was never counted."""
    if read == POSTERIOR:
        return expected_log(counts, axis, n_threads, prior=prior)
    with np.errstate(divide="ignore"):
        shares = np.log(mean(prior if read == FIXED else counts, axis))
    return np.broadcast_to(shares, counts.shape)


def log_evidence(
    read: str, counts: Floats, prior: Floats, axis: int = -1, n_threads: int = 1
) -> float:
    """Return what counts above their prior add to the bound, as they are read."""
    if read == FIXED:
        return float(((counts - prior) * log_shares(FIXED, counts, prior, axis)).sum())
    if read == POINT:
        return float(xlogy(counts, mean(counts, axis)).sum())
    of_prior = log_beta(prior, axis).sum()
    if counts.ndim > 1 and len(prior) == 1:  # of all workers alike
        of_prior *= len(counts)
    return float(log_beta(counts, axis, n_threads, prior=prior).sum() - of_prior)


def class_prior(given: ClassPriorOption, n_classes: int) -> Floats:
    """Return Dirichlet parameters of the class prior, (n_classes,).

    >>> class_prior(1.0, 3).tolist()
    [1.0, 1.0, 1.0]
    """
    values = as_floats("class_prior", given)
    if values.shape not in ((), (n_classes,)):
        raise OptionError("class-prior-shape", n_classes=n_classes, shape=values.shape)
    _require_positive("class_prior", values)
    return np.array(np.broadcast_to(values, (n_classes,)))


def confusion_prior(given: ConfusionPrior, workers: Ids, n_classes: int) -> Floats:
    """Return Dirichlet parameters of the confusions, (n_workers or 1, answer, truth).

    "diagonal" is the paper's: K for the right answer, 1 for each wrong one,
    [eq:prior-diagonal]. A pair is (right, wrong). An array is (truth, answer) for all workers or
    (worker, truth, answer). A mapping gives arrays for some workers (what they did in earlier
    jobs, as pseudo-counts); the others get "diagonal".

    >>> confusion_prior("diagonal", Ids(["ann"]), 2).tolist()
    [[[2.0, 1.0], [1.0, 2.0]]]
    """
    if isinstance(given, str):
        words = {"diagonal": (float(n_classes), 1.0), "uniform": (1.0, 1.0)}
        if given not in words:
            raise OptionError.unknown("confusion_prior", given, tuple(words))
        return _right_wrong(*words[given], n_classes)
    if isinstance(given, Mapping):
        return _by_worker(given, workers, n_classes)
    values = as_floats("confusion_prior", given)
    _require_positive("confusion_prior", values)
    if values.shape == (2,):
        return _right_wrong(float(values[0]), float(values[1]), n_classes)
    if values.shape == (n_classes, n_classes):
        return np.ascontiguousarray(values.T)[None]
    if values.shape == (len(workers), n_classes, n_classes):
        return np.ascontiguousarray(values.transpose(0, 2, 1))
    sizes = {"n_classes": n_classes, "n_workers": len(workers), "shape": values.shape}
    raise OptionError("confusion-prior-shape", **sizes)


def _right_wrong(right: float, wrong: float, n_classes: int) -> Floats:
    table = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(table, right)
    return table[None]


def _by_worker(given: Mapping[Any, npt.ArrayLike], workers: Ids, n_classes: int) -> Floats:
    table = np.repeat(_right_wrong(float(n_classes), 1.0, n_classes), len(workers), axis=0)
    codes = workers.codes(list(given))
    for name, w, value in zip(given, codes, given.values(), strict=True):
        if w == MISSING:
            raise OptionError("prior-of-nobody", name="confusion_prior", worker=name)
        counts = as_floats(f"confusion_prior of worker {name!r}", value)
        if counts.shape != (n_classes, n_classes):
            code = "confusion-prior-of-worker-shape"
            raise OptionError(code, worker=name, n_classes=n_classes, shape=counts.shape)
        _require_positive(f"confusion_prior of worker {name!r}", counts)
        table[w] = counts.T
    return table


def trusted_answers(trust: Trust, workers: Ids, n_classes: int) -> Floats:
    """Return right pseudo-answers to tasks of each class, (n_workers, answer, class).

    >>> trusted_answers({"bob": 9.0}, Ids(["ann", "bob"]), 2).tolist()
    [[[0.0, 0.0], [0.0, 0.0]], [[9.0, 0.0], [0.0, 9.0]]]
    """
    table = np.zeros((len(workers), n_classes, n_classes))
    diagonal = np.arange(n_classes)
    for name, w, value in zip(trust, workers.codes(list(trust)), trust.values(), strict=True):
        if w == MISSING:
            raise OptionError("prior-of-nobody", name="trust", worker=name)
        words = "a number of right answers, 0 or more"
        require_number(f"trust in worker {name!r}", value, words, least=0.0)
        table[w, diagonal, diagonal] = value
    return table


def _require_positive(name: str, values: Floats) -> None:
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise OptionError("prior-not-positive", name=name, value=values.tolist())


class ClassPrior(NamedTuple):
    """Classes have a Dirichlet, and so have the subtypes of each: tasks on which workers err alike.

    Without subtypes a class is one state, with parameters α₀ + N. With them state k · M + m is
    subtype m of class k, with parameters a/M + N_km: [eq:subtypes]. Shares of classes are `FIXED`
    where responses do not tell how common classes are: [eq:one-class].
    """

    of_class: Floats  # α₀, (n_classes,)
    read: str = POSTERIOR
    n_subtypes: int = 1

    @property
    def prior(self) -> Floats:
        """Parameters before any task: α₀, or a/M of each state."""
        if self.n_subtypes == 1:
            return self.of_class
        return np.full(self.n_classes * self.n_subtypes, SPREAD / self.n_subtypes)

    @property
    def n_classes(self) -> int:
        return len(self.of_class)

    @property
    def n_states(self) -> int:
        return len(self.of_class) * self.n_subtypes

    @property
    def class_of(self) -> Codes:
        """The class of each state, (n_states,), ascending."""
        return np.repeat(np.arange(self.n_classes, dtype=np.int32), self.n_subtypes)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return E[log π] of each class, and with subtypes within it: [eq:expected-logs]."""
        of_class = self.expected_log_of_class(parameters)
        if self.n_subtypes == 1:
            return of_class
        within = expected_log(parameters.reshape(self.n_classes, self.n_subtypes))
        return np.asarray((of_class[:, None] + within).ravel())

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return E[log π], (n_classes,)."""
        return log_shares(self.read, self._of_class(parameters), self.of_class)

    def log_evidence(self, parameters: Floats) -> float:
        """Return log B(α) − log B(α₀), a part of the bound, and that within classes."""
        found = log_evidence(self.read, self._of_class(parameters), self.of_class)
        if self.n_subtypes == 1:
            return found
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        return found + log_evidence(POSTERIOR, by_class, self.prior[None, : self.n_subtypes])

    def mean(self, parameters: Floats) -> Floats:
        """Return E[π], (n_classes,)."""
        return mean(self.of_class if self.read == FIXED else self._of_class(parameters))

    def _of_class(self, parameters: Floats) -> Floats:
        """Return α: the prior plus the tasks of each class."""
        if self.n_subtypes == 1:
            return parameters
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        return np.asarray(self.of_class + by_class.sum(axis=1) - SPREAD)
