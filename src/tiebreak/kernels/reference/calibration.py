"""How well probabilities of a calibration fit links and gold, in plain NumPy."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import CalibrationData


def calibration_log_likelihood(
    data: CalibrationData, dependence: float, multiplier: float
) -> float:
    """Return the log-likelihood of [eq:calibration], its priors left out.

    With p_i ∝ exp(t u_i / (1 + ρ (n_i − 1))) it is the sum of log p_i(y_i) over known tasks, and of
    log((1 − ε) s + ε (1 − s)) over links, with s = ⟨p_i, p_j⟩ or, of a cannot-link, 1 − ⟨p_i, p_j⟩.
    """
    scale = multiplier / (1.0 + dependence * data.others)
    share = np.exp(scale[:, None] * data.gaps)
    share /= share.sum(axis=1, keepdims=True)
    same = np.clip((share[data.left] * share[data.right]).sum(axis=1), 0.0, 1.0)
    says = np.where(data.must, same, 1.0 - same)
    of_links = np.log(data.error + (1.0 - 2.0 * data.error) * says).sum()
    of_gold = np.log(np.maximum(share[data.known, data.label], data.floor)).sum()
    return float(of_links + of_gold)
