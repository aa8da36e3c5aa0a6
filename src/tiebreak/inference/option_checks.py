"""Checks of the options of `VariationalBayes`: what is refused, with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiebreak.errors import OptionError, note
from tiebreak.inference.estimator import Estimator, require_tolerance
from tiebreak.inference.gold_weights import AUTO, require_weight
from tiebreak.inference.silence import require_workers
from tiebreak.inference.worker_models import require_model
from tiebreak.options import ExactLinkOptions, LinkOptions, MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.inference.variational_bayes import VariationalBayes

INITS = ("majority", "spectral")
CALIBRATIONS = ("auto", "votes", "none")

RENAMED = {  # arguments of earlier versions, and what to write now
    "link_inference": "link_options=tb.ExactLinkOptions() or tb.MeanFieldOptions()",
    "link_error": "link_options=tb.ExactLinkOptions(error=…)",
    "link_error_prior": "link_options=tb.ExactLinkOptions(error_prior=…)",
    "decode": "link_options=tb.ExactLinkOptions(decode=…)",
    "link_strength": "link_options=tb.MeanFieldOptions(strength=…)",
    "schedule": "link_options=tb.MeanFieldOptions(schedule=…)",
    "closure": "link_options=tb.MeanFieldOptions(closure=…)",
}


def refuse_renamed(options: dict[str, Any]) -> None:
    """Refuse arguments of earlier versions with what to write now."""
    for name in options:
        if name in RENAMED:
            raise OptionError(f"{name} is now part of the options of links: {RENAMED[name]}.")


def check(model: VariationalBayes) -> None:
    """Refuse options of `VariationalBayes` that mean nothing or contradict each other."""
    require_tolerance(model.tol, model.max_iter)
    require_model(model.worker_model)
    if model.gold_weight != AUTO:
        require_weight(model.gold_weight)
    if model.saw_all is not None:
        require_workers(model.saw_all)
    if isinstance(model.init, str) and model.init not in INITS:
        raise OptionError.unknown("init", model.init, (*INITS, "an array of probabilities"))
    if isinstance(model.init, Estimator):
        raise OptionError("To go on from a fitted model, write fit(…, start=model), not init=.")
    if not isinstance(model.link_options, LinkOptions | None):
        raise OptionError(
            "link_options must be tb.ExactLinkOptions(…), tb.MeanFieldOptions(…) or None; "
            f"got {model.link_options!r}."
        )
    if isinstance(model.calibrate, bool):
        note(f"calibrate={model.calibrate} is now calibrate={model._honesty.mode!r}.")
    elif model.calibrate not in CALIBRATIONS:
        raise OptionError.unknown("calibrate", model.calibrate, CALIBRATIONS)
    require_dependence(model.dependence)
    if isinstance(model.link_options, MeanFieldOptions) and "subtypes" in model.worker_model:
        raise OptionError(
            f"worker_model={model.worker_model!r} needs exact links: tb.ExactLinkOptions()."
        )


def require_dependence(dependence: float) -> None:
    """Refuse a share of errors in common that is no share."""
    if not 0.0 <= dependence <= 1.0:
        raise OptionError(
            f"dependence, the share of errors in common, lies between 0 and 1; got {dependence!r}."
        )


def require_exact_links(options: LinkOptions | None, name: str) -> ExactLinkOptions:
    """Return the options of links, which this estimator infers exactly."""
    if options is not None and not isinstance(options, ExactLinkOptions):
        raise OptionError(
            f"{name} infers links exactly: link_options must be tb.ExactLinkOptions(…) or None; "
            f"got {options!r}."
        )
    return options or ExactLinkOptions()
