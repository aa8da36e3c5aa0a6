"""Links: two tasks that must, or cannot, be the same class.

`Links` is the table of what was given, `ClosedLinks` what follows from it, `check` refuses links
that cannot all hold and says why.
"""

from tiebreak.links.check import CONTRADICTIONS, OnContradiction, check
from tiebreak.links.closed import ClosedLinks
from tiebreak.links.table import Links, links_from_gold

__all__ = [
    "CONTRADICTIONS",
    "ClosedLinks",
    "Links",
    "OnContradiction",
    "check",
    "links_from_gold",
]
