"""What a model says of tasks whose known class it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.decisions.cross_fit import fit_again
from tiebreak.gold import Gold
from tiebreak.kernels.layout import Codes, Floats

N_FOLDS = 4


def blind(model: Any) -> Any:
    """Return the model as fitted without gold: itself, or a fit to the same responses and links."""
    return model if model.gold_ is None or not len(model.gold_) else fit_again(model)


def held_out(model: Any, task: Codes, seed: int = 0) -> Floats:
    """Return the model's probabilities of known tasks, (n, K), with the label of each left out.

    A model that saw no gold has not seen these labels either. One that did is fitted again for
    each fold, with the gold of the others.
    """
    gold = model.gold_
    if gold is None or not len(gold):
        return np.asarray(model.probabilities_[task])
    known = model.tasks_.codes(gold.tasks)
    fold = np.random.default_rng(seed).permutation(len(known)) % N_FOLDS
    out = np.asarray(model.probabilities_[task]).copy()
    for each in range(N_FOLDS):
        wanted = np.isin(task, known[fold == each])
        if not wanted.any():
            continue
        rest = _part(gold, np.flatnonzero(fold != each))
        fitted = blind(model) if rest is None else fit_again(model, rest)
        out[wanted] = fitted.probabilities_[task[wanted]]
    return out


def _part(gold: Gold, rows: npt.NDArray[Any]) -> Gold | None:
    labels = list(gold.to_dict().items())
    return Gold.from_dict(dict(labels[i] for i in rows.tolist())) if len(rows) else None
