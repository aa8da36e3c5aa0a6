"""Sweeps whose Dirichlet parameters stay on the device, from the first to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from tiebreak.kernels.cuda import device
from tiebreak.kernels.cuda.plan import ONE
from tiebreak.kernels.layout import Floats

if TYPE_CHECKING:
    from tiebreak.kernels.cuda.sweeper import CudaSweeper


class CudaDirichletStep:
    """Sweeps with Dirichlet parameters that stay on the device: α of classes, β of workers.

    Only the bound and the largest change come back from each. Parameters are CuPy arrays, which
    NumPy's functions take as they are, so that SQUAREM extrapolates them there.
    """

    def __init__(self, sweeper: CudaSweeper, alpha0: Floats, beta0: Floats) -> None:
        cp = device.cupy()
        self._sweeper = sweeper
        self._alpha0 = cp.asarray(alpha0)
        self._beta0 = cp.asarray(beta0)
        self._one_prior = len(beta0) == 1
        self._n_answers = beta0.shape[1]
        n_workers = sweeper.tasks.n_codes // self._n_answers
        self._shape = (n_workers, *beta0.shape[1:])
        of_prior = float(_log_beta(beta0, axis=1).sum()) * (n_workers if self._one_prior else 1)
        self._log_beta0 = of_prior + float(_log_beta(alpha0, axis=0))

    def begin(self, alpha: Floats, beta: Floats) -> tuple[Any, ...]:
        cp = device.cupy()
        return cp.asarray(alpha), cp.ascontiguousarray(cp.asarray(beta))

    def end(self, parameters: tuple[Any, ...]) -> tuple[Floats, ...]:
        return tuple(np.asarray(each.get()) for each in parameters)

    def __call__(self, parameters: tuple[Any, ...]) -> tuple[tuple[Any, ...], float, float]:
        """Sweep; return what it implies, the bound there, and the largest change of any q."""
        cp = device.cupy()
        sweeper = self._sweeper
        crowd = sweeper.crowd
        n_states = crowd.n_states
        alpha, beta = parameters
        n_codes = np.uint32(crowd.n_codes)
        n_answers = np.uint32(self._n_answers)
        expect = device.kernel("expect", n_states, crowd.slices.bits)
        given = (cp.ascontiguousarray(alpha), cp.ascontiguousarray(beta), crowd.rows)
        tables = (sweeper.scores, sweeper.log_odds)
        device.launch(expect, crowd.n_codes, *given, n_codes, n_answers, *tables, threads=64)
        sweeper.run()
        counted = sweeper.n_counted
        n_workers = self._shape[0]
        with device.says_what_did_not_fit():
            implied = (cp.empty_like(self._alpha0), cp.empty(self._shape))
            parts = cp.empty(n_workers * n_states + 1)
        collect = device.kernel("collect", n_states, crowd.slices.bits)
        device.launch(
            collect,
            n_workers * n_states,
            sweeper.counts,
            sweeper.sums,
            crowd.rows,
            counted.by_code,
            np.float64(counted.n_tasks),
            self._alpha0,
            self._beta0,
            np.int32(self._one_prior),
            np.uint32(n_workers),
            n_answers,
            *implied,
            parts,
            threads=64,
        )
        # One copy back: the bits of the bound's sum beside the sums over tasks.
        back = cp.concatenate([sweeper.sums[-2:], parts.sum(keepdims=True).view(cp.uint64)]).get()
        entropy = float(back[0]) / ONE
        change = float(back[1:2].astype(np.uint32).view(np.float32)[0])
        bound = float(back[2:].view(np.float64)[0]) - self._log_beta0 + entropy
        return implied, bound, change


def _log_beta(parameters: Floats, axis: int) -> Floats:
    return np.asarray(gammaln(parameters).sum(axis=axis) - gammaln(parameters.sum(axis=axis)))
