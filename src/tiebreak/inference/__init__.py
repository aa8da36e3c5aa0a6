"""From responses, links and gold to probabilities."""

from tiebreak.inference.auto import Auto
from tiebreak.inference.dawid_skene import DawidSkene
from tiebreak.inference.log_opinion_pool import LogOpinionPool
from tiebreak.inference.majority_vote import MajorityVote
from tiebreak.inference.variational_bayes import VariationalBayes

__all__ = [
    "Auto",
    "DawidSkene",
    "LogOpinionPool",
    "MajorityVote",
    "VariationalBayes",
]
