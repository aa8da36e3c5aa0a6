"""What a session hands out: questions, answers, contradictions, progress, votes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tiebreak.ask.log import Says

Said = Says | Literal["skip"]
Finished = Literal["budget", "target", "nothing"]


@dataclass(frozen=True, slots=True)
class Question:
    """Are these two tasks of the same class?

    `gain` is how many labels the answer is expected to put right, nan where that is not known.
    `token` makes sure that one question is answered once.
    """

    left: Hashable
    right: Hashable
    gain: float = float("nan")
    left_text: str | None = None
    right_text: str | None = None
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody said of two tasks, and when (UTC).

    `says` is "same", "different" or "unsure"; "skip" where a skipped question is taken back.
    `contradiction` is set where this cannot be true together with earlier answers.
    """

    id: int
    left: Hashable
    right: Hashable
    says: Said
    who: str
    at: str
    contradiction: Contradiction | None = None

    def __str__(self) -> str:
        sign = {"same": "=", "different": "≠"}.get(self.says, "?")
        return f"{self.left} {sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why an answer cannot be true together with what was said before.

    `chain` says it: a = b = c, yet a ≠ c. `earlier` are the answers in it; links and known
    labels that were given from the start may be part of the chain too.
    """

    answer: int
    chain: str
    earlier: tuple[Answer, ...]

    def __str__(self) -> str:
        return self.chain


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a session stands.

    `asked` counts answers in force, "unsure" among them; `wrong` is how many labels are expected
    to be wrong, `confidence` the share expected to be right, both after the last fit. `is_soft`
    says that links count as fallible. `finished` says why there is no next question.
    """

    asked: int
    unsure: int
    budget: int | None
    n_tasks: int
    wrong: float
    confidence: float
    is_soft: bool
    finished: Finished | None


class Vote(NamedTuple):
    """One response to a task."""

    worker: Hashable
    label: Hashable
