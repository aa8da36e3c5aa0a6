"""Kernels on a CUDA device: sweeps over tasks run there, and so do small trees of hard links.

Large trees and components with loops, links that may be wrong and mean-field links are inferred by
the compiled kernels here.
"""

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
    pass_in_parts,
    pass_messages,
    scaled_probabilities,
    score_tasks,
    sweep_tasks,
    tally,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.cuda import device
from tiebreak.kernels.cuda.nodes import CudaNodes, fits
from tiebreak.kernels.cuda.sweeper import CudaSweeper
from tiebreak.kernels.layout import LINKED, ByTask, Codes, Floats
from tiebreak.kernels.network import Forest
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
    "open_nodes",
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


def open_nodes(
    nodes: ByTask, q: Floats, forest: Forest, forbidden: tuple[Codes, Codes]
) -> CudaNodes | None:
    """Open a sweeper of nodes, tied ones last; None: they do not fit on the device."""
    with device.says_what_did_not_fit():
        return CudaNodes(nodes, q, forest, forbidden) if fits(nodes, q) else None
