"""What a `VariationalBayes` may be told: its words and numbers, checked before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import mean_field
from tiebreak.inference.estimator import require_tolerance
from tiebreak.inference.exact_links import fit as joint

if TYPE_CHECKING:
    from tiebreak.inference.variational_bayes import VariationalBayes

LINK_INFERENCES = ("exact", "mean-field")
DECODINGS = ("joint", "marginal")
INITS = ("majority", "spectral")


def check_options(model: VariationalBayes) -> None:
    """Check the words and numbers that a model was made with."""
    require_tolerance(model.tol, model.max_iter)
    words = (
        ("link_inference", LINK_INFERENCES),
        ("schedule", mean_field.SCHEDULES),
        ("decode", (None, *DECODINGS)),
    )
    for name, allowed in words:
        if getattr(model, name) not in allowed:
            raise OptionError.unknown(name, getattr(model, name), [str(word) for word in allowed])
    if isinstance(model.init, str) and model.init not in INITS:
        others = "an array of probabilities", "a fitted model"
        raise OptionError.unknown("init", model.init, (*INITS, *others))
    strength = model.link_strength
    if isinstance(strength, str):
        if strength != "grid":
            raise OptionError(f"link_strength must be a number or 'grid'; got {strength!r}.")
    elif strength is not None and not (np.isfinite(strength) and strength >= 0.0):
        raise OptionError(f"link_strength must be 0 or more and finite; got {strength!r}.")
    _check_link_error(model)


def _check_link_error(model: VariationalBayes) -> None:
    error = model.link_error
    if isinstance(error, str):
        if error not in joint.FOUND:
            raise OptionError(
                f"link_error must be a number, 'auto', 'asked', 'learn' or None; got {error!r}."
            )
    elif error is not None and not 0.0 < error < 0.5:
        raise OptionError(f"link_error must lie between 0 and 0.5, both excluded; got {error!r}.")
    if error is not None and model.link_inference != "exact":
        raise OptionError("link_error needs link_inference='exact'; mean-field has link_strength.")
    if model.calibrate and model.link_inference != "exact":
        raise OptionError("calibrate needs link_inference='exact'.")
    if model.link_strength is not None and model.link_inference == "exact":
        raise OptionError(
            "link_strength is for link_inference='mean-field'. Exact links are hard, or soft with "
            "link_error or a weight column."
        )
    wrong, right = model.link_error_prior
    if not (0.0 < wrong < right < np.inf):
        raise OptionError(
            f"link_error_prior must be (wrong, right) with 0 < wrong < right; got {(wrong, right)}."
        )
