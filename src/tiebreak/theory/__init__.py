"""Theory: the two theorems of the paper as calculators.

They need the truth (how good the workers are), so they plan a crowd rather than certify a
result; docs/theory.md has the statements, the corrections and what they are worth on real data.
"""

from tiebreak.theory.assumption_file import Scenario, parse_assumptions, read_assumptions
from tiebreak.theory.crowd import AssumedStart, Assumptions, assumptions_from
from tiebreak.theory.linked import LinkedTasks, link_support
from tiebreak.theory.plan import (
    CrowdPlan,
    probability_all_right,
    responses_needed,
    tasks_needed,
    with_responses_per_task,
    with_workers,
    workers_needed,
)
from tiebreak.theory.recursion import Bounds, Ingredients, bounds

Start = AssumedStart  # the names until version 0.1, kept for scripts that use them
Plan = CrowdPlan

__all__ = [
    "AssumedStart",
    "Assumptions",
    "Bounds",
    "CrowdPlan",
    "Ingredients",
    "LinkedTasks",
    "Scenario",
    "assumptions_from",
    "bounds",
    "link_support",
    "parse_assumptions",
    "probability_all_right",
    "read_assumptions",
    "responses_needed",
    "tasks_needed",
    "with_responses_per_task",
    "with_workers",
    "workers_needed",
]
