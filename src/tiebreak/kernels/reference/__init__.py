"""Plain NumPy kernels: short, complete, the oracle of every other backend.

Below about 2e5 responses they are also the fastest choice, since nothing has to be compiled.
"""

from functools import partial

from tiebreak.kernels.reference import tasks as task_kernels
from tiebreak.kernels.reference.belief_propagation import (
    agreement,
    decode_forest,
    decode_greedily,
    expected_score,
    pass_in_parts,
    pass_messages,
)
from tiebreak.kernels.reference.classify import classify
from tiebreak.kernels.reference.elimination import decode_cliques, eliminate
from tiebreak.kernels.reference.mean_field import (
    group_sums,
    link_field,
    link_term,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.reference.tasks import (
    calibration_log_likelihood,
    likeliest,
    scaled_probabilities,
    score_tasks,
    sweep_tasks,
    tally,
)
from tiebreak.kernels.sweeper import HostSweeper

__all__ = [
    "agreement",
    "calibration_log_likelihood",
    "classify",
    "decode_cliques",
    "decode_forest",
    "decode_greedily",
    "eliminate",
    "expected_score",
    "group_sums",
    "likeliest",
    "link_field",
    "link_term",
    "open",
    "pass_in_parts",
    "pass_messages",
    "scaled_probabilities",
    "score_tasks",
    "sweep_tasks",
    "sweeps_here",
    "tally",
    "update_in_turn",
    "update_together",
]

sweeps_here = True
open = partial(HostSweeper, task_kernels)  # on responses and a start of q, which it then owns
