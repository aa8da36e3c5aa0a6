"""From responses, links and gold to probabilities."""

from tiebreak.inference.dawid_skene import DawidSkene
from tiebreak.inference.majority_vote import MajorityVote
from tiebreak.inference.options import ExactLinkOptions, MeanFieldOptions
from tiebreak.inference.variational_bayes import VariationalBayes

__all__ = [
    "DawidSkene",
    "ExactLinkOptions",
    "MajorityVote",
    "MeanFieldOptions",
    "VariationalBayes",
]
