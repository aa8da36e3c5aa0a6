"""From responses, links and gold to probabilities."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiebreak.inference.auto import Auto
    from tiebreak.inference.dawid_skene import DawidSkene
    from tiebreak.inference.gibbs import GibbsSampler
    from tiebreak.inference.log_opinion_pool import LogOpinionPool
    from tiebreak.inference.majority_vote import MajorityVote
    from tiebreak.inference.variational_bayes import VariationalBayes

__all__ = [
    "Auto",
    "DawidSkene",
    "GibbsSampler",
    "LogOpinionPool",
    "MajorityVote",
    "VariationalBayes",
]

_HOMES = {
    "Auto": "auto",
    "DawidSkene": "dawid_skene",
    "GibbsSampler": "gibbs",
    "LogOpinionPool": "log_opinion_pool",
    "MajorityVote": "majority_vote",
    "VariationalBayes": "variational_bayes",
}


def __getattr__(name: str) -> Any:
    """Load an estimator when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tiebreak.inference' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tiebreak.inference.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
