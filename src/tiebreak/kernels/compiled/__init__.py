"""Compiled kernels: same names and signatures as the reference."""

from tiebreak.kernels.compiled.elimination import decode_cliques, eliminate
from tiebreak.kernels.compiled.mean_field import (
    group_sums,
    link_field,
    link_term,
    update_in_turn,
    update_together,
)
from tiebreak.kernels.compiled.messages import pass_messages
from tiebreak.kernels.compiled.sum_product import (
    agreement,
    decode_forest,
    decode_greedily,
    expected_score,
    node_scores,
    spread_beliefs,
)
from tiebreak.kernels.compiled.tasks import score_tasks, sweep_tasks, tally
from tiebreak.kernels.compiled.together import pass_together

__all__ = [
    "agreement",
    "decode_cliques",
    "decode_forest",
    "decode_greedily",
    "eliminate",
    "expected_score",
    "group_sums",
    "link_field",
    "link_term",
    "node_scores",
    "pass_messages",
    "pass_together",
    "score_tasks",
    "spread_beliefs",
    "sweep_tasks",
    "tally",
    "update_in_turn",
    "update_together",
]
