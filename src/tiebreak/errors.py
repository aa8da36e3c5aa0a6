"""What users are told: errors, as one tree, and notes.

    TiebreakError
    ├── InputError            a file or table is not what it should be
    │   ├── ResponseError     responses
    │   ├── LinkError         links: unknown tasks, contradictions, wrong weights
    │   ├── ConstraintError   constraints: contradictions, unknown labels, wrong counts
    │   └── GoldError         known labels
    ├── OptionError           an argument is out of range or unknown
    ├── FileError             a file is missing, unreadable or not writable
    │   └── SessionError      answers cannot be kept: a full disk, another job's session
    ├── ClusterError          a cluster cannot do the work: lost, or not set up
    ├── NotFittedError        a result was asked for before `fit`
    └── MissingExtraError     an optional dependency is not installed

    InputNote                 reported: something in the input was dropped, merged or guessed
    ConvergenceWarning        the sweeps ended before the answer settled

Each error also derives from the built-in it refines. A message says what is wrong, where, and
the way out. It has a code and named fields, so that programs and tests need not read sentences:

    raise InputError("ragged-row", file="labels.csv", line=3, n=4, expected=3)

Each package keeps its sentences in one table, `messages.py`, which it registers here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = [
    "ClusterError",
    "Coded",
    "ConstraintError",
    "ConvergenceWarning",
    "FileError",
    "GoldError",
    "InputError",
    "InputNote",
    "LinkError",
    "MissingExtraError",
    "NotFittedError",
    "OptionError",
    "ResponseError",
    "SessionError",
    "TiebreakError",
]

# Where the caller is not: in this package, or in what Python puts between its functions.
NOT_THE_CALLER = (
    os.path.dirname(__file__) + os.sep,  # noqa: PTH120
    contextlib.__file__,
    functools.__file__,
    "<frozen importlib",
)


# A sentence with {fields}, or a function of the fields that returns one.
Message = str | Callable[..., str]
MESSAGES: dict[str, Message] = {  # those of all packages; each adds its own
    "wrong-value": "{name} must be {words}; got {value}.",
    "not-fitted": "{name} was not fitted yet. Call fit first.",
    "no-result-yet": "{name} has no {result} yet. Call fit first.",
    "extra-missing": "{what} needs {package}. Install it with: pip install 'tiebreak[{extra}]'",
}
MOST_SHOWN = 100  # characters of a value in a message


def register(messages: Mapping[str, Message]) -> None:
    """Add a package's sentences, by code. A code belongs to one package."""
    if taken := MESSAGES.keys() & messages.keys():
        raise ValueError(f"these codes are registered already: {sorted(taken)}")
    MESSAGES.update(messages)


def sentence(code: str, fields: Mapping[str, object]) -> str:
    """Return the message of a code. A sentence given in place of a code is its own message."""
    message = MESSAGES.get(code)
    if message is None:
        return code
    return message(**fields) if callable(message) else message.format(**fields)


class Coded(Exception):
    """What errors and notes share: a code, named fields, and the message made of both."""

    code: str
    fields: dict[str, object]

    def __init__(self, code: str = "", /, **fields: object) -> None:
        super().__init__(sentence(code, fields))
        self.code = code if code in MESSAGES else ""
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the message, which needs no table where it is opened."""
        return _restore, (type(self), str(self), self.code, self.fields)


def _restore(kind: type[Any], message: str, code: str, fields: dict[str, object]) -> Any:
    error = kind(message)
    error.code, error.fields = code, fields
    return error


class TiebreakError(Coded):
    """Base of every error that a user's input or request can cause."""


class InputError(TiebreakError, ValueError):
    """A file or table is not what it should be."""


class ResponseError(InputError):
    """The responses cannot be used as they are."""


class LinkError(InputError):
    """The links contradict each other, name unknown tasks or carry wrong weights."""


class ConstraintError(InputError):
    """The constraints cannot all hold, or do not fit the responses."""


class GoldError(InputError):
    """The known labels cannot be used as they are."""


class OptionError(TiebreakError, ValueError):
    """An argument is out of range or unknown."""

    @classmethod
    def must_be(cls, name: str, words: str, value: object) -> OptionError:
        """Say what an argument must be, and what was given."""
        text = repr(value)
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
        return cls("wrong-value", name=name, words=words, value=shown)

    @classmethod
    def unknown(cls, name: str, value: object, allowed: Sequence[str]) -> OptionError:
        """Describe a word that is not one of those allowed."""
        return cls.must_be(name, f"one of {', '.join(map(repr, allowed))}", value)


class FileError(TiebreakError, OSError):
    """A file is missing, unreadable or not writable."""


class SessionError(FileError):
    """Answers cannot be read from, or kept in, the file of a session."""


class ClusterError(TiebreakError, RuntimeError):
    """A cluster cannot do the work: it is lost, or not set up for it."""


class NotFittedError(TiebreakError, AttributeError):
    """A result was asked for before `fit`."""


class MissingExtraError(TiebreakError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def needed(cls, package: str, extra: str, what: str) -> MissingExtraError:
        """Say which extra brings the package that `what` needs."""
        return cls("extra-missing", what=what, package=package, extra=extra)


class InputNote(Coded, UserWarning):
    """Something in the input was dropped, merged or guessed."""


class ConvergenceWarning(UserWarning):
    """The sweeps ended before the answer settled."""


def note(code: str, /, **fields: object) -> None:
    """Report what was done with the input: the command prints it, Python warns."""
    warn(InputNote(code, **fields), InputNote)


def warn(message: str | Warning, category: type[Warning]) -> None:
    """Warn at the line that called this package, however deep in it the reason was found."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_THE_CALLER):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


# Kernels are compiled once a machine, which takes seconds: whoever wants to be told asks here.
_listeners: list[Callable[[], None]] = []


@contextmanager
def on_first_compile(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` once, as soon as a kernel is compiled that no cache holds."""
    _listeners.append(say)
    try:
        yield
    finally:
        if say in _listeners:
            _listeners.remove(say)


def tell_listeners() -> None:
    """Tell everybody who asked, once."""
    waiting = list(_listeners)
    _listeners.clear()
    for say in waiting:
        say()
