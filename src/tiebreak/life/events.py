"""Events of a stream: one JSON object a line.

{"seq": 17, "task": "a", "worker": "ann", "label": "cat"}      a response
{"seq": 18, "left": "a", "right": "b", "link": "must"}         a link: must or cannot
{"seq": 19, "task": "a", "gold": "cat"}                        the class of a task is known
{"seq": 20, "ask": "a"}                                        what is the label of a task?
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from tiebreak.errors import InputError
from tiebreak.links import Links

WORDS = {
    **dict.fromkeys(("must", "same"), "must"),
    **dict.fromkeys(("cannot", "different"), "cannot"),
    "duplicate": "duplicate",
}


class Response(NamedTuple):
    """A worker gave a label to a task."""

    seq: int
    task: Hashable
    worker: Hashable
    label: Hashable


class Link(NamedTuple):
    """Two tasks must, or cannot, be the same class."""

    seq: int
    left: Hashable
    right: Hashable
    word: str  # must, cannot or duplicate
    weight: float | None = None
    who: Hashable = None

    def as_links(self) -> Links:
        """Return a table of this link."""
        return Links.from_columns(
            [self.left],
            [self.right],
            [self.word],
            None if self.weight is None else [self.weight],
            None if self.who is None else [self.who],
            sampling="pairs",
        )


class KnownClass(NamedTuple):
    """The class of a task is known."""

    seq: int
    task: Hashable
    label: Hashable


class LabelRequest(NamedTuple):
    """Somebody wants to know the label of a task."""

    seq: int
    task: Hashable


Event = Response | Link | KnownClass | LabelRequest


def read_event(line: bytes) -> Event:
    """Read one line; what is wrong with it is said in an InputError.

    >>> read_event(b'{"seq": 1, "task": "a", "worker": "ann", "label": "cat"}')
    Response(seq=1, task='a', worker='ann', label='cat')
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError(f"This is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InputError('An event is a JSON object, such as {"seq": 1, "ask": "a"}.')
    seq = found.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise InputError(f'An event needs a whole number "seq", 0 or more; got {seq!r}.')
    if "ask" in found:
        return LabelRequest(seq, _id(found, "ask"))
    if "left" in found or "right" in found:
        return _link(seq, found)
    if "gold" in found:
        return KnownClass(seq, _id(found, "task"), _id(found, "gold"))
    return Response(seq, _id(found, "task"), _id(found, "worker"), _id(found, "label"))


def _link(seq: int, found: dict[str, Any]) -> Link:
    word = found.get("link")
    if word not in WORDS:
        raise InputError(f'"link" must be must or cannot; got {word!r}.')
    weight: Any = found.get("weight")
    if "weight" in found and not (_is_number(weight) and 0.0 < weight < math.inf):
        raise InputError(f'"weight" must be above 0 and finite; got {weight!r}.')
    left, right = _id(found, "left"), _id(found, "right")
    return Link(seq, left, right, WORDS[word], weight, found.get("who"))


def _id(found: dict[str, Any], name: str) -> Hashable:
    """Return an id: text that is not empty, or a number."""
    if name not in found:
        raise InputError(f"An event of this kind needs {name!r}; it has {', '.join(found)}.")
    value = found[name]
    is_text = isinstance(value, str) and value != ""
    if not is_text and not isinstance(value, bool) and not _is_number(value):
        raise InputError(f"{name!r} must be text or a number; got {value!r}.")
    return value  # type: ignore[no-any-return]  # text, a number, or true and false


def _is_number(value: object) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and math.isfinite(value)  # type: ignore[arg-type]
