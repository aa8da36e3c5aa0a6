"""Majority vote: the label most workers gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators import publishing
from tiebreak.estimators.base import Estimator, refuse_links
from tiebreak.inference import Inputs, Known, lay_out, read_and_check_inputs
from tiebreak.inference.dirichlet import mean
from tiebreak.kernels.arrays import default_threads, majority
from tiebreak.kernels.contract import choose_backend, where
from tiebreak.kernels.layout import Floats
from tiebreak.options import check_common


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityVote(Estimator):
    """Take the label most workers gave; a tie goes to the first class.

    Probabilities are shares of votes, uniform for a task without votes, [eq:majority]. Known
    tasks keep their class. Confusions are counted against the shares. With constraints shares are
    those of one more vote, spread evenly, conditioned on the constraints.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("a", "cy", "y"), ("b", "ann", "y")]
    >>> MajorityVote().fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

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
        """Count votes, and keep constraints; links and a start cannot be used."""
        self._check(links, start)
        self._fit_inputs(read_and_check_inputs(responses, None, gold, constraints=constraints))
        return self

    def _check(self, links: Any, start: Any) -> None:
        """Refuse what cannot be fitted."""
        refuse_links(self, links)
        check_common(self.get_params())
        if start is not None:
            raise OptionError("no-start")

    def _fit_inputs(self, inputs: Inputs, q: None = None) -> Floats:
        """Count the votes; return where q is. There is nothing to start from."""
        crowd = inputs.responses
        remote = inputs.remote
        tasks = lay_out(crowd)
        votes = majority(tasks, crowd.n_classes)
        shares = Known.of(inputs.gold_codes).clamp(votes)
        choose = choose_backend if remote is None else remote.backend
        backend = choose(self.backend, crowd.n_responses, 0)
        sweeper = backend.open(tasks, shares, self.n_threads or default_threads())
        counts, totals = sweeper.tally()
        sweeper.close()
        self.class_prior_ = totals / totals.sum()
        by_worker = counts.reshape(crowd.n_workers, crowd.n_classes, crowd.n_classes)
        self.confusion_ = mean(np.ascontiguousarray(by_worker.transpose(0, 2, 1)))
        self.bounds_ = []
        self.n_iter_ = 0
        self.converged_ = True
        if remote is None:
            self.ran_on_ = where(backend)
        said, of_known = shares, None
        if inputs.rules is not None:  # where all voted alike, the other classes are not impossible
            n_votes = np.diff(crowd.start)[:, None]
            smoothed = (votes * n_votes + 1.0 / crowd.n_classes) / (n_votes + 1.0)
            said = Known.of(inputs.gold_codes).clamp(smoothed)
            of_known = None if inputs.gold_codes is None else smoothed[inputs.gold_codes.task]
        publishing.publish_constrained(self, inputs, said, of_known)
        return shares
