"""Tasks that nothing ties: each draws its class from the class prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.tasks import Inferred, OwnRows, Parameters
from tiebreak.kernels.arrays import entropy, softmax
from tiebreak.kernels.layout import Floats


@dataclass(frozen=True, eq=False)
class Independent:
    """Rows alone; `own` ones have log scores of their own beside responses and class prior.

    Those are known tasks where classes have subtypes (all states of other classes are impossible),
    and tasks some of whose responses are gone. A classifier's prior will be more of them.
    """

    shares: ClassPrior
    own: OwnRows | None = None

    @property
    def prior(self) -> Parameters:
        return (self.shares.prior,)

    @property
    def exact(self) -> bool:
        return True

    def log_prior(self, parameters: Parameters) -> Floats:
        return self.shares.expected_log(parameters[0])

    def log_evidence(self, parameters: Parameters) -> float:
        return self.shares.log_evidence(parameters[0])

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        found = softmax(score)
        return Inferred(found, value=entropy(found))

    def tally(self, q: Floats) -> Parameters:
        return ()

    def value(self, q: Floats) -> float | None:
        return entropy(q)

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        return Inferred(q if score is None else softmax(score), memory=memory)
