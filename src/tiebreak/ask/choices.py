"""Choices: which keys answer a question, and how they are shown."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from tiebreak.ask.results import Question

COMMANDS = {
    "?": "can't tell",
    "n": "skip",
    "u": "undo",
    "v": "votes",
    "t": "whole texts",
    "h": "help",
    "q": "quit",
}
YES_NO = {"same": {"s": "same", "d": "different"}, "is": {"y": "yes", "n": "no"}}


class Choices(NamedTuple):
    """Keys that answer a question, and the words beside them.

    With nine classes or fewer one number key names a class; with more, all numbers have two keys or
    three. First letters serve too, where they tell the classes apart and mean nothing else.
    """

    by_key: dict[str, Hashable]  # one key, or the keys of a number one after the other
    commands: dict[str, str]
    is_listed: bool = False  # above the prompt, a line each

    @property
    def width(self) -> int:
        """How many keys a number has."""
        return max((len(key) for key in self.by_key if key.isdigit()), default=1)

    @property
    def last_number(self) -> int:
        """The largest number that names a class."""
        return max((int(key) for key in self.by_key if key.isdigit()), default=0)

    def prompt(self) -> str:
        """Return keys and words, such as "s same  d different  ? can't tell"."""
        answers = {} if self.is_listed else self.by_key
        return "  ".join(f"{key} {word}" for key, word in {**answers, **self.commands}.items())


def choices_of(question: Question) -> Choices:
    """Return the keys that answer a question.

    >>> choices_of(Question("a", kind="label", choices=("cat", "dog"))).by_key
    {'1': 'cat', '2': 'dog', 'c': 'cat', 'd': 'dog'}
    """
    if question.kind in YES_NO:
        keys: dict[str, Hashable] = dict(YES_NO[question.kind])
        commands = {key: word for key, word in COMMANDS.items() if key not in keys}
        if "n" in keys:  # "no" needs the key: skipping is on another
            commands = {"?": commands.pop("?"), "k": COMMANDS["n"], **commands}
        return Choices(keys, commands)
    width = len(str(len(question.choices)))
    keys = {f"{at:0{width}d}": name for at, name in enumerate(question.choices, start=1)}
    keys.update(_first_letters(question.choices))
    return Choices(keys, dict(COMMANDS), is_listed=True)


def _first_letters(names: tuple[Hashable, ...]) -> dict[str, Hashable]:
    """Return the first letters of the classes that no other class or command has."""
    letters = [str(name)[:1].lower() for name in names]
    return {
        letter: name
        for letter, name in zip(letters, names, strict=True)
        if letters.count(letter) == 1 and letter.isalpha() and letter not in COMMANDS
    }
