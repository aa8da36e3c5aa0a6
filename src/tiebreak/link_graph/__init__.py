"""The graph of links, on arrays alone: what follows from links, and whether they can hold.

Each pair of tasks once: `codes`. Must-links join tasks to groups, cannot-links set groups apart:
`closure`. What links say about probabilities and labels: `sums`. Whether all links can hold, for
two classes in one pass (`parity`), for more by peeling and search (`colouring`, `search`), and
beside known labels (`known`). Nothing grows faster than tasks and links; nothing knows a name.
"""

from tiebreak.link_graph.closure import (
    Closure,
    close,
    closed_pairs,
    components,
    first_members,
    shortest_chain,
    why_equal,
)
from tiebreak.link_graph.codes import LinkCodes, distinct, each_once, pair_keys, places_in
from tiebreak.link_graph.colouring import Feasibility, feasibility
from tiebreak.link_graph.known import Known, propagate
from tiebreak.link_graph.parity import Parity, odd_cycle, parity
from tiebreak.link_graph.sums import count_violated_closed, field, link_term, violated

__all__ = [
    "Closure",
    "Feasibility",
    "Known",
    "LinkCodes",
    "Parity",
    "close",
    "closed_pairs",
    "components",
    "count_violated_closed",
    "distinct",
    "each_once",
    "feasibility",
    "field",
    "first_members",
    "link_term",
    "odd_cycle",
    "pair_keys",
    "parity",
    "places_in",
    "propagate",
    "shortest_chain",
    "violated",
    "why_equal",
]
