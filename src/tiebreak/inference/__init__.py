"""From responses, links and gold to probabilities: one loop, `climb`, over four seams.

`Workers` say how answers come about, `Tasks` what tasks may be and what ties them, `Known` what is
known already; a `Problem` has them with its rows, and a `FitState` is where a fit of it stands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiebreak.inference import messages as messages  # registers what the package says
from tiebreak.inference.climb import FitState, Problem, Stopping, Sums, Sweeps, best_of, climb
from tiebreak.inference.dirichlet import FIXED, POINT, POSTERIOR, ClassPrior
from tiebreak.inference.known import Known, with_fixed
from tiebreak.inference.tasks import (
    Independent,
    Inferred,
    OwnRows,
    Parameters,
    Tasks,
    with_log_prior,
)
from tiebreak.inference.workers import MODELS, CrowdFacts, CrowdModel, Workers, crowd_model
from tiebreak.inference.workers.base import FixedRows, WorkerCells
from tiebreak.inference.workers.confusion import ConfusionMatrices
from tiebreak.inference.workers.kinds import Kinds

if TYPE_CHECKING:
    from tiebreak.inference.door import Inputs, Rows, lay_out, read_and_check_inputs, rows_of

OF_DOOR = ("Inputs", "Rows", "lay_out", "read_and_check_inputs", "rows_of")

__all__ = ["FIXED", "MODELS", "POINT", "POSTERIOR", "ClassPrior", "ConfusionMatrices"]
__all__ += ["CrowdFacts", "CrowdModel", "FitState", "FixedRows", "Independent", "Inferred"]
__all__ += ["Inputs", "Kinds", "Known", "OwnRows", "Parameters", "Problem", "Rows", "Stopping"]
__all__ += ["Sums", "Sweeps", "Tasks", "WorkerCells", "Workers", "best_of", "climb"]
__all__ += ["crowd_model", "lay_out", "read_and_check_inputs", "rows_of", "with_fixed"]
__all__ += ["with_log_prior"]


def __getattr__(name: str) -> Any:
    """Load the door when it is asked for: with it come tables."""
    if name in OF_DOOR:
        return getattr(import_module("tiebreak.inference.door"), name)
    raise AttributeError(name)
