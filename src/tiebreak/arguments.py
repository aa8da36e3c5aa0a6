"""Arguments: what public functions and estimators take, said once for each name.

    @checks(gold=Gold, n=WHOLE, wrong=PROBABILITY, random_state=SEED)
    def links(gold, n, *, wrong=0.0, random_state=None): ...

A rule refuses a value in words that name the argument; most are made by `that`, of words and a
test. A rule looks at the type, and at bounds where the function says nothing better of them; a
class stands for "one of these". Defaults are right, so that only what is given is looked at.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from tiebreak.errors import NotFittedError, OptionError, register

Rule = Callable[[str, Any], None]
Given = ParamSpec("Given")
Result = TypeVar("Result")

MOST_WHOLE = 2**63 - 1  # what arrays can count
MADE_BY = {  # where an argument of a class comes from
    "Gold": "as tb.read_gold returns it",
    "Labels": "as tb.read_labels returns it",
    "Links": "as tb.read_links returns it",
    "Responses": "as tb.read_responses returns it",
}

register(
    {
        "keeps-counts-alone": "{name} keeps counts in the place of responses, and this needs "
        "responses. Fit it again, or save it with keep='responses'.",
        "keeps-no-task": "{name} keeps no task: a fit over shards writes labels to files. Label "
        "the tasks in question with model.predict, or fit them on one machine.",
    }
)


def checks(
    **rules: Rule | type,
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Check arguments by name before a function runs.

    >>> @checks(n=whole(1))
    ... def draw(n=5):
    ...     return n
    >>> draw(2)
    2
    >>> draw("two")
    Traceback (most recent call last):
    tiebreak.errors.OptionError: n must be 1 or more, a whole number; got 'two'.
    """
    by_name = {name: _rule(rule) for name, rule in rules.items()}

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        places = list(inspect.signature(function).parameters)
        at = [(name, places.index(name), rule) for name, rule in by_name.items()]

        @functools.wraps(function)
        def checked(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            for name, place, rule in at:
                if name in kwargs:
                    rule(name, kwargs[name])
                elif place < len(args):
                    rule(name, args[place])
            return function(*args, **kwargs)

        return checked

    return decorate


# Rules


def that(words: str, is_right: Callable[[Any], object]) -> Rule:
    """Take values that pass a test; `words` say which."""

    def check(name: str, value: Any) -> None:
        if not is_right(value):
            raise OptionError.must_be(name, words, value)

    return check


def of_type(words: str, *kinds: type) -> Rule:
    return that(words, lambda value: isinstance(value, kinds))


def number(
    words: str = "a finite number",
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> Rule:
    """Take finite numbers in these bounds."""

    def is_right(value: Any) -> bool:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and bool(least <= value <= most and above < value < below)

    return that(words, is_right)


def whole(least: int | None = None, most: int = MOST_WHOLE) -> Rule:
    """Take whole numbers from `least` on; without it, the function says which."""
    words = "a whole number" if least is None else f"{least} or more, a whole number"
    lowest = -MOST_WHOLE if least is None else least

    def check(name: str, value: Any) -> None:
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_whole or int(value) < lowest:
            raise OptionError.must_be(name, words, value)
        if int(value) > most:
            raise OptionError.must_be(name, f"at most {most:,}", value)

    return check


def one_of(words: Sequence[str], *more: str) -> Rule:
    """Take some words; `more` says what else the option takes."""
    allowed = ", ".join(map(repr, (*words, *more)))
    return that(f"one of {allowed}", lambda value: isinstance(value, str) and value in words)


def optional(rule: Rule | type) -> Rule:
    """Take None, and what a rule takes."""
    inner = _rule(rule)
    return lambda name, value: None if value is None else inner(name, value)


def word_or(word: str, rule: Rule) -> Rule:
    """Take one word, and what a rule takes."""

    def check(name: str, value: Any) -> None:
        if not (isinstance(value, str) and value == word):
            rule(name, value)

    return check


def having(*attributes: str, words: str = "a fitted model") -> Rule:
    """Take what has these attributes, of models those that they learn; `words` say what it is."""

    def check(name: str, value: Any) -> None:
        for attribute in attributes:
            try:
                getattr(value, attribute)
            except NotFittedError:
                raise
            except AttributeError:
                raise OptionError.must_be(name, words, value) from None

    return check


def _rule(rule: Rule | type) -> Rule:
    if not isinstance(rule, type):
        return rule
    origin = MADE_BY.get(rule.__name__)
    return of_type(f"{rule.__name__}, {origin}" if origin else rule.__name__, rule)


def _is_seed(value: Any) -> bool:
    import numpy as np

    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    """Return whether a value is True or False, also NumPy's, which is not loaded for that."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _with_responses(name: str, value: Any) -> None:
    """Take fitted models; not those whose responses were dropped, so that counts stay."""
    FITTED(name, value)
    if getattr(value, "_carried", None) is not None:
        raise OptionError("keeps-counts-alone", name=name)


def _with_tasks(name: str, value: Any) -> None:
    """Take fitted models; not those of a fit over shards, which writes labels to files."""
    FITTED(name, value)
    if getattr(value, "_carried", None) is not None and not len(getattr(value, "tasks_", ())):
        raise OptionError("keeps-no-task", name=name)


WHOLE = whole()
NUMBER = number()
PROBABILITY = number("a probability, from 0 to 1", least=0.0, most=1.0)
FLAG = that("True or False", _is_flag)
TEXT = of_type("a text", str)
NAME = of_type("a name, such as 'a' or 1", Hashable)
PATH = of_type("a path", str, os.PathLike)
MAPPING = of_type("a mapping, such as {'a': …}", Mapping)
SEED = that("None, a whole number from 0 on or a generator", _is_seed)
SEVERAL = that(
    "a list", lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes)
)
COLUMN = that(  # whose length is known; "ab" is two ids
    "a column, such as a list",
    lambda value: isinstance(value, Sized) and not isinstance(value, bytes | Mapping),
)
FUNCTION = that("a function", callable)
FITTED = having("classes_")
WITH_RESPONSES: Rule = _with_responses
WITH_TASKS: Rule = _with_tasks


# The same, for one value


def require_number(name: str, value: Any, words: str, **bounds: float) -> None:
    """Refuse what is no finite number in the bounds of `number`; `words` say so.

    >>> require_number("tol", None, "0 or more", least=0.0)
    Traceback (most recent call last):
    tiebreak.errors.OptionError: tol must be 0 or more; got None.
    """
    number(words, **bounds)(name, value)


def require_count(name: str, value: Any, least: int) -> None:
    whole(least)(name, value)


def require_word(name: str, value: Any, words: Sequence[str], *more: str) -> None:
    """Refuse what is none of some words; `more` says what else the option takes."""
    one_of(words, *more)(name, value)


def as_floats(
    name: str,
    given: Any,
    words: str = "made of numbers",
    *,
    shapes: Iterable[tuple[int, ...]] | None = None,
    are_right: Callable[[Any], Any] | None = None,
) -> Any:
    """Return numbers as an array; refuse what is none, or none of some shapes, or fails a test.

    >>> as_floats("q", [0.5, 2], "probabilities", are_right=lambda q: (q >= 0) & (q <= 1))
    Traceback (most recent call last):
    tiebreak.errors.OptionError: q must be probabilities; got [0.5, 2].
    """
    import numpy as np

    try:
        found = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise OptionError.must_be(name, words, given) from None
    has_shape = shapes is None or found.shape in shapes
    if not has_shape or not (are_right is None or np.all(are_right(found))):
        raise OptionError.must_be(name, words, given)
    return found


def has_parts(row: Any, n: int) -> bool:
    return hasattr(row, "__len__") and not isinstance(row, str | bytes) and len(row) == n
