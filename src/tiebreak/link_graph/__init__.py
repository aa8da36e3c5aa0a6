"""The graph of links, on arrays alone: what follows from links, and whether they can hold.

Each pair of tasks once: `codes`. Must-links join tasks to groups, cannot-links set groups apart:
`closure`; two classes tie more: `parity`; known labels settle classes: `known`. `implications` is
all of that in one object, made once per fit, and `chains` are its proofs. Whether all links can
hold: `colouring`, `search`. Nothing grows faster than tasks and
links; nothing knows a name.
"""

from tiebreak.link_graph.chains import Chains, ChainStep
from tiebreak.link_graph.closure import (
    Closure,
    close,
    components,
    count_violated_closed,
    first_members,
)
from tiebreak.link_graph.codes import LinkCodes, distinct, each_once, pair_keys, places_in, violated
from tiebreak.link_graph.colouring import Feasibility, feasibility
from tiebreak.link_graph.implications import DIFFERENT, OPEN, SAME, Implications, imply
from tiebreak.link_graph.known import Conflict, Known, propagate
from tiebreak.link_graph.parity import Parity, parity

__all__ = [
    "DIFFERENT",
    "OPEN",
    "SAME",
    "ChainStep",
    "Chains",
    "Closure",
    "Conflict",
    "Feasibility",
    "Implications",
    "Known",
    "LinkCodes",
    "Parity",
    "close",
    "components",
    "count_violated_closed",
    "distinct",
    "each_once",
    "feasibility",
    "first_members",
    "imply",
    "pair_keys",
    "parity",
    "places_in",
    "propagate",
    "violated",
]
