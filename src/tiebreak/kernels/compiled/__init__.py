"""The numba backend."""

from functools import partial

from tiebreak.kernels import numba_sweep
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.numba_links import (
    agreement,
    decode_cliques,
    decode_forest,
    decode_greedily,
    eliminate,
    expected_score,
    group_sums,
    link_field,
    link_term,
    pass_messages,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.numba_sweep import (
    classify,
    scaled_probabilities,
    score_tasks,
    sweep_tasks,
    tally,
)
from tiebreak.kernels.numpy_sweep import calibration_log_likelihood
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
open = partial(HostSweeper, numba_sweep)  # on responses and a start of q, which it then owns
