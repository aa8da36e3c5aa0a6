"""Compiled kernels: same names and signatures as the reference.

`tasks` and `scores` (`tasks` of the reference), `classify`, `mean_field`, `belief_propagation` and
`elimination` are its twins. The rest is what they are made of: `rows`, `blocks` and
`whole_rows` (tasks), `messages` and `split_messages` (belief propagation), `one_row`,
`exponential`, and `simd`, which is `llvm` or else `scalar`.
"""

from functools import partial

from tiebreak.kernels.compiled import tasks as task_kernels
from tiebreak.kernels.compiled.belief_propagation import (
    agreement,
    decode_forest,
    decode_greedily,
    expected_score,
    pass_in_parts,
    pass_messages,
)
from tiebreak.kernels.compiled.classify import classify
from tiebreak.kernels.compiled.elimination import decode_cliques, eliminate
from tiebreak.kernels.compiled.mean_field import (
    group_sums,
    link_field,
    link_term,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.compiled.scores import (
    calibration_log_likelihood,
    likeliest,
    scaled_probabilities,
    score_tasks,
)
from tiebreak.kernels.compiled.tasks import sweep_tasks, tally
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
