"""Where a fit ended: what a later one, with more links or labels, goes on from."""

from __future__ import annotations

from typing import NamedTuple

from tiebreak.errors import OptionError
from tiebreak.inference import vb
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.responses import Responses


class Ended(NamedTuple):
    """The end of a fit, and what need not be found again for the very same responses."""

    responses: Responses
    tasks: ByTask  # how they lie
    plain: Beliefs  # of plain VB, which has seen neither links nor labels
    q: Floats
    counted: tuple[Floats, Floats]  # what q adds to the priors of confusions and classes
    collapses: bool  # whether equal rows were worth collapsing

    def require_names(self, responses: Responses) -> None:
        """Refuse responses whose tasks, workers or classes are others."""
        mine = self.responses
        same = mine.tasks == responses.tasks and mine.classes == responses.classes
        if not same or mine.workers != responses.workers:
            raise OptionError(
                "init is a model of other responses: tasks, workers or classes differ."
            )

    def saw(self, responses: Responses) -> bool:
        """Say whether these are the very responses, not others with the same names."""
        return self.responses is responses

    def implied(self, problem: Problem) -> Beliefs:
        """Return the beliefs that q implies, under priors that may be others now."""
        return vb.update_beliefs(problem, *self.counted)
