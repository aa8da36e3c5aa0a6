"""Majority vote: the label most workers gave."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import vb
from tiebreak.inference.estimator import Estimator
from tiebreak.inference.inputs import read_and_check_inputs
from tiebreak.kernels import reference
from tiebreak.kernels.layout import Floats


class MajorityVote(Estimator):
    """Take the label most workers gave; a tie goes to the first class.

    Probabilities are shares of votes, uniform for a task without votes, [eq:majority]. Known
    tasks keep their class. Confusions are counted against the shares.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("a", "cy", "y"), ("b", "ann", "y")]
    >>> MajorityVote().fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

    def __init__(self) -> None:
        pass

    def fit(self, responses: Any, *, links: Any = None, gold: Any = None) -> Self:
        """Count votes; links cannot be used."""
        refuse_links(self, links)
        inputs = read_and_check_inputs(responses, None, gold)
        role = vb.roles(inputs.responses.n_tasks, inputs.gold_codes, None)
        tasks = vb.lay_out(inputs.responses, role)
        q = vb.clamp(vb.majority(tasks, inputs.responses.n_classes), inputs.gold_codes)
        counts, totals = reference.tally(q, tasks, np.ones(len(q), dtype=bool))
        self.class_prior_ = totals / totals.sum()
        self.confusion_ = normalise(counts, inputs.responses.n_workers)
        self.bounds_, self.n_iter_, self.converged_ = [], 0, True
        self._publish(inputs, q)
        return self


def refuse_links(estimator: Estimator, links: Any) -> None:
    """Say which estimator can use links."""
    if links is not None:
        name = type(estimator).__name__
        raise OptionError(f"{name} cannot use links. VariationalBayes can: use it, or drop links.")


def normalise(counts: Floats, n_workers: int) -> Floats:
    """Turn counts by code into (worker, truth, answer) with rows that sum to 1.

    A row that nothing was counted for becomes uniform.
    """
    n_classes = counts.shape[1]
    table = counts.reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
    total = table.sum(axis=2, keepdims=True)
    return np.ascontiguousarray(
        np.divide(table, total, out=np.full(table.shape, 1.0 / n_classes), where=total > 0.0)
    )
