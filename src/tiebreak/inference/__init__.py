"""From responses, links and gold to probabilities."""

from tiebreak.inference.dawid_skene import DawidSkene
from tiebreak.inference.gibbs import GibbsSampler
from tiebreak.inference.majority_vote import MajorityVote
from tiebreak.inference.variational_bayes import VariationalBayes

__all__ = [
    "DawidSkene",
    "GibbsSampler",
    "MajorityVote",
    "VariationalBayes",
]
