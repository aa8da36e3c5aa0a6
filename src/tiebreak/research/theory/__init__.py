"""Theory: the two theorems of the paper as calculators.

They need the truth (how good the workers are), so they plan a crowd rather than certify a result.
experiments/01_theory_bounds/theory.md has the statements, the corrections and what they are worth
on real data. `python -m tiebreak.research.theory crowd.toml` prints the bounds of a crowd.
The steps of the theorems are the methods of `plain`, `sharp` and `printed`.
"""

from tiebreak.research.theory.bounds import Bounds, bounds, with_responses_per_task
from tiebreak.research.theory.crowd import (
    AssumedStart,
    Assumptions,
    LinkedTasks,
    SupportVersion,
    assumptions_from,
    link_support,
)
from tiebreak.research.theory.rules import (
    Deviations,
    LabelErrors,
    ParameterErrors,
    Plain,
    plain,
    printed,
    sharp,
)

__all__ = ["AssumedStart", "Assumptions", "Bounds", "LinkedTasks", "assumptions_from", "bounds"]
__all__ += ["SupportVersion", "link_support", "with_responses_per_task"]
__all__ += ["Deviations", "LabelErrors", "ParameterErrors", "Plain", "plain", "printed", "sharp"]
