"""The softmax of one row, class by class, for any number of classes."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Floats


@kernel
def softmax_into(score: Floats, out: Floats) -> tuple[float, float]:
    """Set out = softmax(score), which may be the same array; return the largest score and Σ.

    log Σ exp(score) is the first plus the logarithm of the second.
    """
    n, top = len(score), score[0]
    for k in range(1, n):
        top = max(top, score[k])
    norm = 0.0
    for k in range(n):
        out[k] = np.exp(score[k] - top)
        norm += out[k]
    for k in range(n):
        out[k] /= norm
    return top, norm
