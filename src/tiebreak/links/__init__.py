"""Links: two tasks that must, or cannot, be the same class.

`Links` is the table of what was given, `closed.py` what follows from it, `check.py` refuses links
that cannot all hold and says why.
"""

from tiebreak.links.columns import SAMPLINGS, Sampling, as_must, as_said
from tiebreak.links.table import Links, OnContradiction

__all__ = [
    "SAMPLINGS",
    "Links",
    "OnContradiction",
    "Sampling",
    "as_must",
    "as_said",
]
