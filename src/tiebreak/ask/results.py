"""What a session hands out: questions, answers, contradictions, progress, votes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tiebreak.ask.log import QuestionName

Finished = Literal["budget", "target", "worth", "nothing"]


def choices_for(kind: str, classes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return what can be answered to a question of a kind, beside "unsure"."""
    if kind == "same":
        return ("same", "different")
    return ("yes", "no") if kind == "is" else tuple(classes)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: of two tasks whether they are the same class, or something about one task.

    `kind` is "same" (`left` and `right`), "label" (`task`, of which class?), "is" (`task`, of class
    `label`, yes or no?) or "vote" (`task`, one more response of this person). `choices` are what
    can be answered, beside "unsure". `gain` is how many labels the answer is expected to put right,
    nan where that is not known, and `cost` what it costs. `token` makes sure that one question is
    answered once.
    """

    left: Hashable
    right: Hashable | None = None
    gain: float = field(default=float("nan"), compare=False)  # a guess about it: no part of it
    left_text: str | None = None
    right_text: str | None = None
    kind: QuestionName = "same"
    label: Hashable | None = None
    choices: tuple[Hashable, ...] = ("same", "different")
    cost: float = 1.0
    token: str = field(default="", repr=False)

    @property
    def task(self) -> Hashable | None:
        """The one task that is asked about; None where there are two."""
        return None if self.kind == "same" else self.left

    @property
    def text(self) -> str | None:
        """What the task looks like."""
        return self.left_text

    @property
    def tasks(self) -> tuple[Hashable, ...]:
        """The tasks to look at."""
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody said, and when (UTC).

    `says` is one of the choices of the question, or "unsure"; "skip" where a skipped question is
    taken back. `contradiction` is set where this cannot be true together with earlier answers.
    """

    id: int
    left: Hashable
    right: Hashable | None
    says: Hashable
    who: str
    at: str
    contradiction: Contradiction | None = None
    kind: QuestionName = "same"
    label: Hashable | None = None

    @property
    def task(self) -> Hashable | None:
        """The one task that was asked about; None where there were two."""
        return None if self.kind == "same" else self.left

    def __str__(self) -> str:
        if self.kind == "same":
            sign = {"same": "=", "different": "≠"}.get(str(self.says), "?")
            return f"{self.left} {sign} {self.right}"
        if self.kind == "is":
            sign = {"yes": "=", "no": "≠"}.get(str(self.says), "?")
            return f"{self.left} {sign} {self.label}"
        return f"{self.left} = {self.label}" if self.label is not None else f"{self.left} = ?"


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

    `asked` counts answers in force, "unsure" among them, `by_kind` those of each kind of question;
    `wrong` is how many labels are expected to be wrong, `confidence` the share expected to be
    right, both after the last fit. `is_soft` says that answers count as fallible. `finished` says
    why there is no next question.
    """

    asked: int
    unsure: int
    budget: int | None
    n_tasks: int
    wrong: float
    confidence: float
    is_soft: bool
    finished: Finished | None
    by_kind: dict[str, int] = field(default_factory=dict)


class Vote(NamedTuple):
    """One response to a task."""

    worker: Hashable
    label: Hashable
