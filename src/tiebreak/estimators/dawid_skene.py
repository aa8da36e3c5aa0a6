"""Dawid-Skene: confusion matrices by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tiebreak.estimators import publishing
from tiebreak.estimators.base import Estimator, problem_on, refuse_links, require_fitted
from tiebreak.inference import (
    POINT,
    ClassPrior,
    ConfusionMatrices,
    FitState,
    Independent,
    Inputs,
    Known,
    Problem,
    Rows,
    Stopping,
    Workers,
    calibration,
    climb,
    read_and_check_inputs,
    rows_of,
    stages,
)
from tiebreak.inference.known import GoldWeight, weight_of_gold
from tiebreak.inference.workers import require_model
from tiebreak.inference.workers.coin import Coins
from tiebreak.kernels.arrays import majority
from tiebreak.kernels.layout import Floats
from tiebreak.options import AUTO, check_common

MODELS = ("confusion", "coin")


@dataclass(kw_only=True, eq=False, repr=False)
class DawidSkene(Estimator):
    """Infer true labels and each worker's confusion matrix by maximum likelihood.

    Parameters
    ----------
    smoothing
        Added to every count, so that no answer is ever impossible; 0 is the classical estimator.
    worker_model
        "confusion": a confusion matrix per worker. "coin": one accuracy per worker.
    gold_weight
        How often a known task counts for its workers: "auto", or a number; see `VariationalBayes`.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    accelerate
        Whether SQUAREM may extrapolate, so that fewer sweeps are needed; the objective never
        falls. Sweeps of `tol=0` or `smoothing=0` are plain.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.

    Attributes
    ----------
    labels_, probabilities_, confusion_, class_prior_
        The labels; (n_tasks, n_classes); (n_workers, truth, answer); (n_classes,).
    bounds_
        A lower bound of the objective [eq:ds-likelihood], at the start and after each sweep; where
        the fit has converged, the objective itself. It never falls.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
    >>> DawidSkene().fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

    smoothing: float = 0.01
    worker_model: str = "confusion"
    gold_weight: GoldWeight = AUTO
    tol: float = 1e-6
    max_iter: int = 500
    accelerate: bool = True
    backend: str = "auto"
    n_threads: int | None = None

    def fit(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        constraints: Any = None,
    ) -> Self:
        """Fit to responses and, if given, gold, from the end of another model where one is given.

        Labels keep `constraints`, and probabilities are conditioned on them; they are scaled first
        by how much errors are shared, as those of the other estimators.

        Links cannot be used.
        """
        self._check(links, start)
        inputs = read_and_check_inputs(responses, None, gold, constraints=constraints)
        crowd = inputs.responses
        q = None
        if start is not None:
            require_fitted(start)
            q = stages.q_of_model(start, crowd)
        self._fit_inputs(inputs, q)
        labels = self.labels_.label
        has_collapsed = publishing.note_odd_labels(inputs, self.probabilities_, None, labels)
        if inputs.gold_codes is not None:  # it names the classes
            publishing.note_workers_below_chance(crowd, inputs.gold_codes)
        elif not has_collapsed:
            publishing.note_swapped_classes(crowd, labels)
        self._warn_unconverged(self.tol)
        return self

    def _check(self, links: Any, start: Any) -> None:
        """Refuse what cannot be fitted."""
        refuse_links(self, links)
        check_common(self.get_params())
        require_model(self.worker_model, MODELS)

    def _fit_inputs(self, inputs: Inputs, q: Floats | None) -> Floats:
        """Fit from q, None: from the votes; return where q ended."""
        crowd = inputs.responses
        rows = rows_of(inputs, q)
        q = majority(rows.laid, crowd.n_classes) if q is None else rows.mean(q)
        known = Known.of(rows.gold, weight_of_gold(self.gold_weight, inputs))
        problem = self._problem(rows, inputs)
        stopping = Stopping(self.tol, self.max_iter, self.accelerate)
        state = climb(known.on(problem), FitState(q=known.clamp(q)), stopping)
        publishing.publish_state(self, problem, state, inputs)
        if inputs.rules is None:
            publishing.publish_constrained(self, inputs, rows.to_tasks(state.q))
            return state.q
        # Constraints need probabilities that are not too sure: the design effect.
        alone, _ = calibration.probabilities(problem, state, calibration.Calibration())
        of_known = None if rows.gold is None else alone[rows.gold.task]
        publishing.publish_constrained(self, inputs, known.clamp(alone), of_known)
        return state.q

    def _problem(self, rows: Rows, inputs: Inputs) -> Problem:
        """Set up maximum likelihood: counts with smoothing, read as shares ([eq:ds-counts])."""
        crowd = inputs.responses
        n_classes = crowd.n_classes
        smoothing = np.full((1, n_classes, n_classes), self.smoothing)
        workers: Workers = ConfusionMatrices(smoothing, crowd.n_workers, smoothing, read=POINT)
        if self.worker_model == "coin":
            right = n_classes * self.smoothing
            both = np.array([[right, (n_classes - 1) * right]])
            workers = Coins(both, crowd.n_workers, both, n_classes, POINT)
        tasks = Independent(ClassPrior(smoothing[0, 0], POINT))
        return problem_on(self, inputs, rows, tasks, workers)
