"""Decisions: what to do with probabilities when mistakes have a price.

- `costs`: what each decision costs, by the true class
- `decide`: the decision of least expected cost for each task, who should look at which first, and
  how many decisions are right
- `held_out`: what a model says of known tasks where it has not seen their classes
- `planning`: what more answers are worth: votes until costs are below a limit, and which tasks go
  to a human, which to one more judge, which are done
"""

from tiebreak.decide import messages as messages
from tiebreak.decide.costs import CostMatrix, read_cost_matrix
from tiebreak.decide.decide import AccuracyEstimate, Decisions, decide
from tiebreak.decide.planning import (
    ROUTES,
    PlannedVote,
    Route,
    VotePlan,
    plan_routes,
    plan_votes,
)

__all__ = [
    "ROUTES",
    "AccuracyEstimate",
    "CostMatrix",
    "Decisions",
    "PlannedVote",
    "Route",
    "VotePlan",
    "decide",
    "plan_routes",
    "plan_votes",
    "read_cost_matrix",
]
