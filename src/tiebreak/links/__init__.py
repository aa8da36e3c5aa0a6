"""Links: two tasks that must, or cannot, be the same class.

`Links` is the table of what was given, `closed.py` what follows from it, `check` refuses links
that cannot all hold and says why.
"""

from tiebreak.links.check import CONTRADICTIONS, SIGNS, Checked, OnContradiction, check, write_chain
from tiebreak.links.columns import as_must, as_said
from tiebreak.links.sampling import SAMPLINGS, Sampling
from tiebreak.links.table import Links, links_from_gold

__all__ = [
    "CONTRADICTIONS",
    "SAMPLINGS",
    "SIGNS",
    "Checked",
    "Links",
    "OnContradiction",
    "Sampling",
    "as_must",
    "as_said",
    "check",
    "links_from_gold",
    "write_chain",
]
