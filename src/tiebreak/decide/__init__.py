"""Decisions: what to do with probabilities when mistakes have a price.

- `costs`: what each decision costs, by the true class
- `accuracy`: how many decisions are right, and how far that is known
- `held_out`: what a model says of known tasks where it has not seen their classes
- `decide`: the decision of least expected cost for each task, and who should look at which first
- `value`: what more answers are worth
- `votes`: how many more votes until the expected cost is below a limit, on which tasks, by whom
- `routing`: which tasks go to a human, which to one more judge, which are done
"""

from tiebreak.decide import messages as messages
from tiebreak.decide import routing
from tiebreak.decide.accuracy import AccuracyEstimate
from tiebreak.decide.costs import CostMatrix, read_cost_matrix
from tiebreak.decide.decide import Decisions, decide
from tiebreak.decide.votes import PlannedVote, VotePlan, plan_votes

__all__ = [
    "AccuracyEstimate",
    "CostMatrix",
    "Decisions",
    "PlannedVote",
    "VotePlan",
    "decide",
    "plan_votes",
    "read_cost_matrix",
    "routing",
]
