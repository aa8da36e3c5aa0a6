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

if TYPE_CHECKING:  # what type checkers see; "as" says that a name is public
    from tiebreak import ask as ask
    from tiebreak import bench as bench
    from tiebreak import datasets as datasets
    from tiebreak import decide as decide
    from tiebreak import errors as errors
    from tiebreak import evaluate as evaluate
    from tiebreak import judges as judges
    from tiebreak import research as research
    from tiebreak import selection as selection
    from tiebreak import shards as shards
    from tiebreak import simulate as simulate
    from tiebreak.data import Responses as Responses
    from tiebreak.data.gold import Gold as Gold
    from tiebreak.data.labels import Labels as Labels
    from tiebreak.data.sequences import Sequences as Sequences
    from tiebreak.errors import InputError as InputError
    from tiebreak.errors import InputNote as InputNote
    from tiebreak.errors import TiebreakError as TiebreakError
    from tiebreak.estimators.auto import Auto as Auto
    from tiebreak.estimators.dawid_skene import DawidSkene as DawidSkene
    from tiebreak.estimators.majority_vote import MajorityVote as MajorityVote
    from tiebreak.estimators.variational_bayes import VariationalBayes as VariationalBayes
    from tiebreak.inference.tasks.classifier import ClassifierPrior as ClassifierPrior
    from tiebreak.life.model_file import load as load
    from tiebreak.links import Constraints as Constraints
    from tiebreak.links import Links as Links
    from tiebreak.options import ExactLinkOptions as ExactLinkOptions
    from tiebreak.options import MeanFieldOptions as MeanFieldOptions
    from tiebreak.options import SequenceOptions as SequenceOptions
    from tiebreak.ranking import BradleyTerry as BradleyTerry
    from tiebreak.research.gibbs import GibbsSampler as GibbsSampler
    from tiebreak.tables import read_constraints as read_constraints
    from tiebreak.tables import read_gold as read_gold
    from tiebreak.tables import read_labels as read_labels
    from tiebreak.tables import read_links as read_links
    from tiebreak.tables import read_responses as read_responses

_HOMES = {  # the module of each name; it is loaded when the name is used
    "Auto": "estimators.auto",
    "ClassifierPrior": "inference.tasks.classifier",
    "BradleyTerry": "ranking",
    "Constraints": "links",
    "DawidSkene": "estimators.dawid_skene",
    "ExactLinkOptions": "options",
    "GibbsSampler": "research.gibbs",
    "Gold": "data.gold",
    "InputError": "errors",
    "InputNote": "errors",
    "Labels": "data.labels",
    "Links": "links",
    "MajorityVote": "estimators.majority_vote",
    "MeanFieldOptions": "options",
    "Responses": "data",
    "SequenceOptions": "options",
    "Sequences": "data.sequences",
    "TiebreakError": "errors",
    "VariationalBayes": "estimators.variational_bayes",
    "load": "life.model_file",
    "read_constraints": "tables",
    "read_gold": "tables",
    "read_labels": "tables",
    "read_links": "tables",
    "read_responses": "tables",
}
_ROOMS = (
    *("ask", "bench", "datasets", "decide", "errors", "evaluate", "judges"),
    *("research", "selection", "shards", "simulate"),
)
__all__ = ["__version__", *_HOMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"tiebreak.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"tiebreak.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tiebreak' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
