"""One row of classes, class by class, for any number of them: its softmax, the message it makes.

The plain version of a message is K sums of K exponentials. Here there are K exponentials and K
logarithms, and the results stay exact however far apart the scores are.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Floats

SMALLEST_SUM = 1e-290  # below, sums of exponentials lose digits to underflow
LARGEST_COUPLING = 600.0  # above, exp(θ) overflows


@kernel
def softmax_into(score: Floats, out: Floats) -> tuple[float, float]:
    """Set out = softmax(score), which may be the same array; return the largest score and Σ.

    log Σ exp(score) is the first plus the logarithm of the second.
    """
    n = len(score)
    top = score[0]
    for k in range(1, n):
        top = max(top, score[k])
    norm = 0.0
    for k in range(n):
        out[k] = np.exp(score[k] - top)
        norm += out[k]
    for k in range(n):
        out[k] /= norm
    return top, norm


@kernel
def message(cavity: Floats, coupling: float, out: Floats) -> float:
    """Set out[k] = log Σ_l exp(cavity_l + θ 1(k = l)) and return the largest of them.

    Sums go over classes relative to the likeliest one, which is left out of the sum over the
    others, so that nothing cancels; where that sum underflows, exact logs take over.
    """
    n = len(cavity)
    first = 0
    for k in range(1, n):
        if cavity[k] > cavity[first]:
            first = k
    top = cavity[first]
    rest = 0.0
    for k in range(n):
        if k != first:
            out[k] = np.exp(cavity[k] - top)
            rest += out[k]
    if rest < SMALLEST_SUM or coupling > LARGEST_COUPLING:
        return exact_message(cavity, coupling, out)
    weight = np.exp(coupling) if coupling > -np.inf else 0.0
    largest = -np.inf
    for k in range(n):
        if k == first:
            out[k] = top + np.log(rest + weight)
        else:
            out[k] = top + np.log(1.0 + (rest - out[k]) + weight * out[k])
        largest = max(largest, out[k])
    return float(largest)


@kernel
def exact_message(cavity: Floats, coupling: float, out: Floats) -> float:
    """Do what `message` does, in logs throughout."""
    log_others(cavity, out)
    largest = -np.inf
    for k in range(len(cavity)):
        if coupling > -np.inf:
            same = coupling + cavity[k]
            high = max(out[k], same)
            low = min(out[k], same)
            out[k] = high + np.log1p(np.exp(low - high))
        largest = max(largest, out[k])
    return float(largest)


@kernel
def log_others(cavity: Floats, out: Floats) -> None:
    """Set out[k] = log Σ_{l≠k} exp(cavity_l), exact however far apart the scores are."""
    n = len(cavity)
    first = 0
    second = -1
    for k in range(1, n):
        if cavity[k] > cavity[first]:
            second = first
            first = k
        elif second < 0 or cavity[k] > cavity[second]:
            second = k
    top = cavity[first]
    rest = 0.0  # Σ over all but the first, relative to the second: no cancellation
    for k in range(n):
        if k != first:
            out[k] = np.exp(cavity[k] - cavity[second])
            rest += out[k]
    shift = np.exp(cavity[second] - top)
    for k in range(n):
        if k == first:
            out[k] = cavity[second] + np.log(rest)
        else:
            out[k] = top + np.log1p(max(rest - out[k], 0.0) * shift)
