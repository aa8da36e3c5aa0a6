"""Compiled kernels: same names and signatures as the reference.

`tasks`, `scores`, `classify`, `mean_field`, `belief_propagation`, `elimination` and `calibration`
are the twins of the reference's. The rest is what they are made of: `rows`, `blocks` and
`whole_rows` (tasks), `messages` and `split_messages` (belief propagation), `one_row`,
`exponential`, and `simd`, which is `llvm` or else `scalar`.
"""

from tiebreak.kernels.compiled import tasks as task_kernels
from tiebreak.kernels.compiled.belief_propagation import (
    agreement,
    decode_forest,
    decode_greedily,
    expected_score,
    pass_in_parts,
    pass_messages,
)
from tiebreak.kernels.compiled.calibration import calibration_log_likelihood
from tiebreak.kernels.compiled.classify import classify
from tiebreak.kernels.compiled.elimination import decode_cliques, eliminate
from tiebreak.kernels.compiled.mean_field import (
    group_sums,
    link_field,
    link_term,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.compiled.scores import likeliest, scaled_probabilities, score_tasks
from tiebreak.kernels.compiled.tasks import sweep_tasks, tally
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.sweeper import HostSweeper, Sweeper

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


def open(tasks: ByTask, q: Floats, n_threads: int = 1, copies: Floats | None = None) -> Sweeper:
    """Open a sweeper on responses and a start of q, which it then owns."""
    return HostSweeper(task_kernels, tasks, q, n_threads, copies)
