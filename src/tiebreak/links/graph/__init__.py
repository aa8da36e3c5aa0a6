"""The graph of links, on arrays alone: what follows from links, and whether they can hold.

Each pair of tasks once; must-links join tasks to groups, cannot-links set groups apart, and two
classes tie more: `closure`. `implications` is what follows for a fit, from known labels too: one
object, made once. For those who need them: `chains` are its proofs; `colouring`
says whether all links can hold. Nothing grows faster than tasks and links; nothing knows a name.
"""

from tiebreak.links.graph.closure import (
    Closure,
    LinkCodes,
    Parity,
    close,
    components,
    count_violated_closed,
    distinct,
    each_once,
    first_members,
    pair_keys,
    parity,
    places_in,
    violated,
)
from tiebreak.links.graph.implications import (
    DIFFERENT,
    OPEN,
    SAME,
    Conflict,
    Implications,
    Known,
    imply,
    propagate,
)

__all__ = [
    "DIFFERENT",
    "OPEN",
    "SAME",
    "Closure",
    "Conflict",
    "Implications",
    "Known",
    "LinkCodes",
    "Parity",
    "close",
    "components",
    "count_violated_closed",
    "distinct",
    "each_once",
    "first_members",
    "imply",
    "pair_keys",
    "parity",
    "places_in",
    "propagate",
    "violated",
]
