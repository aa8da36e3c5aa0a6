"""The CUDA backend: sweeps over tasks run on a device, linked tasks are inferred by numba here."""

from tiebreak.kernels import compiled
from tiebreak.kernels.compiled import (
    agreement,
    calibration_log_likelihood,
    classify,
    decode_cliques,
    decode_forest,
    decode_greedily,
    eliminate,
    expected_score,
    group_sums,
    likeliest,
    link_field,
    link_term,
    pass_messages,
    scaled_probabilities,
    score_tasks,
    sweep_tasks,
    tally,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.cuda import device
from tiebreak.kernels.cuda.sweeper import CudaSweeper
from tiebreak.kernels.layout import LINKED, ByTask, Floats
from tiebreak.kernels.sweeper import Sweeper

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
    "pass_messages",
    "scaled_probabilities",
    "score_tasks",
    "sweep_tasks",
    "sweeps_here",
    "tally",
    "update_in_turn",
    "update_together",
]

sweeps_here = False


def open(tasks: ByTask, q: Floats, n_threads: int = 1, copies: Floats | None = None) -> Sweeper:
    """Open a sweeper on responses and a start of q, which it then owns.

    Mean field updates linked tasks in place, one after the other: then all is swept here.
    """
    device.cupy()
    if q.shape[1] < 2 or (tasks.role == LINKED).any():
        return compiled.open(tasks, q, n_threads, copies)
    with device.says_what_did_not_fit():
        return CudaSweeper(tasks, q, copies)
