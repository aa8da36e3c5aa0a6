"""What a session hands out: questions and their keys, answers, contradictions, progress, votes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tiebreak.ask.log import QuestionName, Subject

Finished = Literal["budget", "target", "worth", "nothing"]

COMMANDS = {
    "?": "can't tell",
    "n": "skip",
    "u": "undo",
    "v": "votes",
    "t": "whole texts",
    "h": "help",
    "q": "quit",
}
NONE = "none of these"
YES_NO = {"same": {"s": "same", "d": "different"}, "is": {"y": "yes", "n": "no"}}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: whether two tasks are of the same class, or something about one task.

    `kind` is "same" (`left` and `right`), "label" (`task`, of which class?), "is" (`task`, of class
    `label`, yes or no?), "vote" (`task`, one more response of this person) or "which" (which of the
    `members` is of class `label`; None at the end of these: or none?). `choices` are what
    can be answered, beside "unsure". `gain` is how many labels the answer is expected to correct,
    nan where that is not known, and `cost` what it costs. `token` makes sure that one question is
    answered once; `subject` is what it is about, as the file of the session has it.
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
    subject: Subject = field(default=("", "", ""), repr=False, compare=False)
    members: tuple[Hashable | None, ...] = ()

    @property
    def task(self) -> Hashable | None:
        """The one task that is asked about; None where there are several."""
        return None if self.kind in ("same", "which") else self.left

    @property
    def text(self) -> str | None:
        """What the task looks like."""
        return self.left_text

    @property
    def worth(self) -> float:
        """Labels corrected for one unit of cost."""
        return self.gain / self.cost

    @property
    def keys(self) -> Choices:
        """The keys that answer it.

        >>> Question("a", kind="label", choices=("cat", "dog")).keys.by_key
        {'1': 'cat', '2': 'dog', 'c': 'cat', 'd': 'dog'}
        """
        if self.kind in YES_NO:
            keys: dict[str, Hashable] = dict(YES_NO[self.kind])
            commands = {key: word for key, word in COMMANDS.items() if key not in keys}
            if "n" in keys:  # "no" needs the key: skipping is on another
                commands = {"?": commands.pop("?"), "k": COMMANDS["n"], **commands}
            return Choices(keys, commands)
        names = self.choices
        width = len(str(len(names)))
        keys = {f"{at:0{width}d}": name for at, name in enumerate(names, start=1)}
        numbers = tuple(keys)
        letters = [str(name)[:1].lower() for name in names]
        for letter, name in zip(letters, names, strict=True):
            if letters.count(letter) == 1 and letter.isalpha() and letter not in COMMANDS:
                keys[letter] = name
        return Choices(keys, COMMANDS, numbers)

    @property
    def tasks(self) -> tuple[Hashable, ...]:
        """The tasks to look at."""
        if self.members:
            return tuple(each for each in self.members if each is not None)
        return (self.left,) if self.right is None else (self.left, self.right)


def choices_for(
    kind: str, classes: Iterable[Hashable], members: Iterable[Hashable | None] = ()
) -> tuple[Hashable, ...]:
    """Return what can be answered to a question of a kind, beside "unsure"."""
    if kind == "which":
        return tuple(NONE if each is None else each for each in members)
    return tuple(YES_NO[kind].values()) if kind in YES_NO else tuple(classes)


@dataclass(frozen=True)
class Choices:
    """Keys that answer a question, and the words beside them.

    With nine classes or fewer one number key names a class; with more, all numbers have two keys or
    three. First letters serve too, where they tell the classes apart and mean nothing else.
    """

    by_key: dict[str, Hashable]  # one key, or the keys of a number one after the other
    commands: dict[str, str]
    numbers: tuple[str, ...] = ()  # of classes, which are listed above the prompt

    @property
    def width(self) -> int:
        return len(self.numbers[0]) if self.numbers else 1

    def keys_of(self, answer: Hashable) -> list[str]:
        return [key for key, says in self.by_key.items() if says == answer]

    def prompt(self) -> str:
        answers = {} if self.numbers else self.by_key
        return "  ".join(f"{key} {word}" for key, word in {**answers, **self.commands}.items())


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
        """The one task that was asked about; None where there were several."""
        return None if self.kind in ("same", "which") else self.left

    def __str__(self) -> str:
        if self.kind == "which":
            return f"{self.says} = {self.label}"
        sign = {"same": "=", "yes": "=", "different": "≠", "no": "≠"}.get(str(self.says), "?")
        if self.kind == "same":
            return f"{self.left} {sign} {self.right}"
        if self.kind == "is":
            return f"{self.left} {sign} {self.label}"
        return f"{self.left} = {'?' if self.label is None else self.label}"


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
