"""Noisy labels into answers one can trust.

Responses from people, LLM judges or classifiers, links between tasks (must, cannot) and known
labels go in; one label per task with an honest probability comes out.

>>> import tiebreak as tb
>>> votes = [("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "dog"), ("b", "bob", "cat")]
>>> apart = tb.Links.from_pairs(cannot=[("a", "b")])
>>> tb.VariationalBayes().fit(votes, links=apart).labels_.best()
{'a': 'cat', 'b': 'dog'}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tiebreak._version import __version__

if TYPE_CHECKING:
    from tiebreak import (
        ask,
        datasets,
        decisions,
        distributed,
        errors,
        evaluate,
        judges,
        research,
        routing,
        selection,
        simulate,
    )
    from tiebreak.errors import (
        ClusterError,
        ConvergenceWarning,
        FileError,
        GoldError,
        InputError,
        InputNote,
        LinkError,
        MissingExtraError,
        NotFittedError,
        OptionError,
        ResponseError,
        SessionError,
        TiebreakError,
    )
    from tiebreak.gold import Gold
    from tiebreak.inference.auto import Auto
    from tiebreak.inference.dawid_skene import DawidSkene
    from tiebreak.inference.kept.model_file import load
    from tiebreak.inference.majority_vote import MajorityVote
    from tiebreak.inference.variational_bayes import VariationalBayes
    from tiebreak.labels import Labels
    from tiebreak.links import Links, links_from_gold
    from tiebreak.options import ExactLinkOptions, MeanFieldOptions
    from tiebreak.research.gibbs import GibbsSampler
    from tiebreak.responses import Responses
    from tiebreak.tables import (
        read_gold,
        read_labels,
        read_links,
        read_responses,
        write_gold,
        write_labels,
        write_links,
        write_responses,
        write_workers,
    )

__all__ = [
    "Auto",
    "ClusterError",
    "ConvergenceWarning",
    "DawidSkene",
    "ExactLinkOptions",
    "FileError",
    "GibbsSampler",
    "Gold",
    "GoldError",
    "InputError",
    "InputNote",
    "Labels",
    "LinkError",
    "Links",
    "MajorityVote",
    "MeanFieldOptions",
    "MissingExtraError",
    "NotFittedError",
    "OptionError",
    "ResponseError",
    "Responses",
    "SessionError",
    "TiebreakError",
    "VariationalBayes",
    "__version__",
    "ask",
    "datasets",
    "decisions",
    "distributed",
    "errors",
    "evaluate",
    "judges",
    "links_from_gold",
    "load",
    "read_gold",
    "read_labels",
    "read_links",
    "read_responses",
    "research",
    "routing",
    "selection",
    "simulate",
    "write_gold",
    "write_labels",
    "write_links",
    "write_responses",
    "write_workers",
]

_MODULES = (
    "ask",
    "datasets",
    "decisions",
    "distributed",
    "errors",
    "evaluate",
    "judges",
    "research",
    "routing",
    "selection",
    "simulate",
)
_HOMES = {
    "errors": (
        "ClusterError",
        "ConvergenceWarning",
        "FileError",
        "GoldError",
        "InputError",
        "InputNote",
        "LinkError",
        "MissingExtraError",
        "NotFittedError",
        "OptionError",
        "ResponseError",
        "SessionError",
        "TiebreakError",
    ),
    "options": ("ExactLinkOptions", "MeanFieldOptions"),
    "responses": ("Responses",),
    "gold": ("Gold",),
    "labels": ("Labels",),
    "links": ("Links", "links_from_gold"),
    "tables": (
        "read_gold",
        "read_labels",
        "read_links",
        "read_responses",
        "write_gold",
        "write_labels",
        "write_links",
        "write_responses",
        "write_workers",
    ),
    "inference.auto": ("Auto",),
    "inference.dawid_skene": ("DawidSkene",),
    "research.gibbs": ("GibbsSampler",),
    "inference.majority_vote": ("MajorityVote",),
    "inference.variational_bayes": ("VariationalBayes",),
    "inference.kept.model_file": ("load",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load the home of a name when it is used, so that importing tiebreak stays light."""
    if name in _MODULES:
        return importlib.import_module(f"tiebreak.{name}")
    if name in _HOME_OF:
        return getattr(importlib.import_module(f"tiebreak.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'tiebreak' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
