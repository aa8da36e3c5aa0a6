"""Options: what they may be, and those of links, exact or mean-field.

Options that several estimators have are checked by their names, in `check_common`. Each class of
options of links holds what its way of inferring links can be told, refuses what contradicts itself,
and says in its metadata how the command line spells each option: an option is added here, and
nowhere else. The command line builds its help from this module, so that it imports nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from tiebreak.errors import OptionError

SCHEDULES = ("in-turn", "parallel", "damped")
DECODINGS = ("joint", "marginal")
LEARN = "learn"  # error rates that are found, not stated

AUTO = "auto"  # worker model, weight of gold: as the data say
CONTRADICTIONS = ("error", "drop")
LEAST_COUNTS = {"max_iter": 1, "n_chains": 1, "n_draws": 1, "n_warmup": 0}
LEAST_COUNTS_OR_NONE = {"n_threads": 1, "random_state": 0}

PROCESSOR = "processor"  # where a fit ran, if not on a device


def require_number(
    name: str,
    value: Any,
    words: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is no finite number in these bounds; `words` say so.

    >>> require_number("tol", None, "0 or more", least=0.0)
    Traceback (most recent call last):
    tiebreak.errors.OptionError: tol must be 0 or more; got None.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (least <= value <= most and above < value < below):
        raise OptionError.must_be(name, words, value)


def require_count(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from `least` on."""
    if not _is_count(value, least):
        raise OptionError.must_be(name, f"{least} or more, a whole number", value)


def _is_count(value: Any, least: int) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and int(value) >= least


def require_word(name: str, value: Any, words: Sequence[str], *more: str) -> None:
    """Refuse what is none of some words; `more` says what else the option takes."""
    if not (isinstance(value, str) and value in words):
        raise OptionError.unknown(name, value, (*words, *more))


def check_common(options: Mapping[str, Any]) -> None:
    """Refuse values of the options that estimators have in common; others are passed over."""
    for name, value in options.items():
        if name in LEAST_COUNTS:
            require_count(name, value, LEAST_COUNTS[name])
        elif name in LEAST_COUNTS_OR_NONE and value is not None:
            least = LEAST_COUNTS_OR_NONE[name]
            if not _is_count(value, least):
                words = f"None or a whole number from {least} on"
                raise OptionError.must_be(name, words, value)
        elif name in ("tol", "smoothing"):
            require_number(name, value, "0 or more", least=0.0)
        elif name == "dependence":
            share = "between 0 and 1: the share of errors in common"
            require_number(name, value, share, least=0.0, most=1.0)
        elif name == "gold_weight" and not (isinstance(value, str) and value == AUTO):
            require_number(name, value, "'auto' or a number above 0", above=0.0)
        elif name in ("accelerate", "progress") and not isinstance(value, bool):
            raise OptionError.must_be(name, "True or False", value)
        elif name == "on_contradiction":
            require_word(name, value, CONTRADICTIONS)
        elif name == "trust" and not isinstance(value, Mapping | None):
            words = "a mapping of workers to numbers of right answers, such as {'ann': 50}"
            raise OptionError.must_be(name, words, value)


def as_floats(name: str, given: Any) -> Any:
    """Return numbers as an array; refuse what is none."""
    import numpy as np

    try:
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise OptionError.must_be(name, "made of numbers", given) from None


def option(
    default: Any, flag: str, help: str, *, words: tuple[str, ...] = (), number: str = ""
) -> Any:
    """Declare an option: its spelling on the command line, its help, and what it takes.

    `words` are the words it takes, `number` the name of a number that it takes too.
    """
    return field(
        default=default, metadata={"flag": flag, "help": help, "words": words, "number": number}
    )


@dataclass(frozen=True)
class ExactLinkOptions:
    """Linked tasks are inferred jointly, and links without weight always hold unless they may err.

    Parameters
    ----------
    error
        How often links without weight are wrong. None: never, they are hard. A number such as
        0.02: soft, all with that rate. "learn": rates for each source (`who` in links), for same
        tasks and for different ones, learnt in the fit.
    error_prior
        Pseudo-answers (wrong, right) that learnt error rates start from.
    decode
        "joint": labels break no hard link. "marginal": the likeliest class of each task. None:
        joint where links are hard.
    """

    error: float | str | None = option(
        None,
        "--link-error",
        "How often links are wrong: a rate, or learn.",
        words=(LEARN,),
        number="RATE",
    )
    error_prior: tuple[float, float] = (2.0, 8.0)
    decode: str | None = option(
        None,
        "--decode",
        "Labels that keep hard links, or each task's likeliest class.",
        words=DECODINGS,
    )

    name = "exact"
    may_break = False  # no labelling breaks a hard link

    def __post_init__(self) -> None:
        if self.decode is not None:
            require_word("ExactLinkOptions.decode", self.decode, DECODINGS)
        if self.error is not None and not (isinstance(self.error, str) and self.error == LEARN):
            name = "ExactLinkOptions.error"
            words = "a number between 0 and 0.5, both excluded, 'learn' or None"
            require_number(name, self.error, words, above=0.0, below=0.5)
        if not _is_error_prior(self.error_prior):
            name = "ExactLinkOptions.error_prior"
            raise OptionError.must_be(
                name, "(wrong, right) with 0 < wrong < right", self.error_prior
            )

    @property
    def is_soft(self) -> bool:
        """Whether links without weight may be wrong."""
        return self.error is not None


@dataclass(frozen=True)
class MeanFieldOptions:
    """Links pull and push with one strength, and linked labels are independent: the paper's way.

    Parameters
    ----------
    strength
        A number, or "grid" (also None): the strength of twelve whose labels break fewest links.
    schedule
        "in-turn" (the bound never falls), "parallel" (the paper's), "damped".
    closure
        Whether links imply others: a = b, b = c give a = c; a = b, b ≠ c give a ≠ c. Links with
        weights are used as given.
    """

    strength: float | str | None = option(
        None,
        "--link-strength",
        "Of mean-field links: a number, or grid.",
        words=("grid",),
        number="NUMBER",
    )
    schedule: str = "in-turn"
    closure: bool = True

    name = "mean-field"
    may_break = True
    is_soft = False

    def __post_init__(self) -> None:
        require_word("MeanFieldOptions.schedule", self.schedule, SCHEDULES)
        if not isinstance(self.closure, bool):
            raise OptionError.must_be("MeanFieldOptions.closure", "True or False", self.closure)
        strength = self.strength
        if isinstance(strength, str):
            if strength != "grid":
                name = "MeanFieldOptions.strength"
                raise OptionError.must_be(name, "a number or 'grid'", strength)
        elif strength is not None:
            words = "0 or more and finite, 'grid' or None"
            require_number("MeanFieldOptions.strength", strength, words, least=0.0)


LinkOptions = ExactLinkOptions | MeanFieldOptions
LINK_OPTIONS: dict[str, type[LinkOptions]] = {
    "exact": ExactLinkOptions,
    "mean-field": MeanFieldOptions,
}


def _is_error_prior(given: Any) -> bool:
    """Say whether this is a pair of numbers with 0 < wrong < right."""
    is_pair = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_pair or len(given) != 2 or not all(isinstance(each, Real) for each in given):
        return False
    return bool(0.0 < given[0] < given[1] < math.inf)
