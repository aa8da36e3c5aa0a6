"""Links: two tasks that must, or cannot, be the same class.

`Constraints` is the table of rules about more than pairs, of which links are a case.
`Links` is the table of what was given, `graph` what follows from it (`chains` are its proofs),
`check` refuses links that cannot all hold and says why (`feasible`: whether they can). `factors`
infers what links and constraints tie, and finds what of them cannot hold; `elimination` plans how
small components are summed out, also inside fits.
"""

from tiebreak.links import messages as messages
from tiebreak.links.constraints import Constraints
from tiebreak.links.table import SAMPLINGS, Links, OnContradiction, Sampling

__all__ = ["SAMPLINGS", "Constraints", "Links", "OnContradiction", "Sampling"]
