"""Selection: which question to ask next.

>>> import tiebreak as tb
>>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
>>> votes += [("c", "ann", "x"), ("c", "bob", "y")]
>>> model = tb.VariationalBayes().fit(votes)
>>> [sorted(pair[:2]) for pair in tb.selection.pairs(model, 1, strategy="bvsb", random_state=0)]
[['a', 'c']]
>>> [(row.kind, row.task) for row in tb.selection.questions(model, 1)]
[('label', 'c')]
"""

from tiebreak.selection import messages as messages
from tiebreak.selection.draws import STRATEGIES, Pairs, Strategy, margins, pairs
from tiebreak.selection.questions import KINDS, Offer, Offers, questions

__all__ = [
    "KINDS",
    "STRATEGIES",
    "Offer",
    "Offers",
    "Pairs",
    "Strategy",
    "margins",
    "pairs",
    "questions",
]
