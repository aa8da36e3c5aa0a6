"""Options of estimators: those that several have in common, and those of links.

What an option may be is said once by its name, in COMMON. Each class of options of links holds what
its way of inferring links can be told, and refuses what contradicts itself; `--set link_<field>`
of the command line follows from its fields.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from tiebreak.arguments import FLAG, Rule, number, one_of, optional, that, whole, word_or
from tiebreak.arguments import as_floats as as_floats
from tiebreak.arguments import require_count as require_count
from tiebreak.arguments import require_number as require_number
from tiebreak.arguments import require_word as require_word

SCHEDULES = ("in-turn", "parallel", "damped")
DECODINGS = ("joint", "marginal")
LEARN = "learn"  # error rates that are found, not stated

AUTO = "auto"  # worker model, weight of gold: as the data say
CONTRADICTIONS = ("error", "drop")

PROCESSOR = "processor"  # where a fit ran, if not on a device


COMMON: dict[str, Rule] = {
    **dict.fromkeys(("max_iter", "n_chains", "n_draws"), whole(1)),
    "n_warmup": whole(0),
    "n_threads": optional(whole(1)),
    "random_state": optional(whole(0)),
    **dict.fromkeys(("tol", "smoothing"), number("0 or more", least=0.0)),
    "dependence": number("between 0 and 1: the share of errors in common", least=0.0, most=1.0),
    "gold_weight": word_or(AUTO, number("'auto' or a number above 0", above=0.0)),
    **dict.fromkeys(("accelerate", "progress"), FLAG),
    "on_contradiction": one_of(CONTRADICTIONS),
    "trust": that(
        "a mapping of workers to numbers of right answers, such as {'ann': 50}",
        lambda value: isinstance(value, Mapping | None),
    ),
}


def check_common(options: Mapping[str, Any]) -> None:
    """Refuse values of the options that estimators have in common; others are passed over."""
    for name, value in options.items():
        if name in COMMON:
            COMMON[name](name, value)


def _check_fields(options: object, **rules: Rule) -> None:
    for name, rule in rules.items():
        rule(f"{type(options).__name__}.{name}", getattr(options, name))


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

    error: float | str | None = None
    error_prior: tuple[float, float] = (2.0, 8.0)
    decode: str | None = None

    name = "exact"
    may_break = False  # no labelling breaks a hard link

    def __post_init__(self) -> None:
        words = "a number between 0 and 0.5, both excluded, 'learn' or None"
        _check_fields(
            self,
            decode=optional(one_of(DECODINGS)),
            error=optional(word_or(LEARN, number(words, above=0.0, below=0.5))),
            error_prior=that("(wrong, right) with 0 < wrong < right", _is_error_prior),
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

    strength: float | str | None = None
    schedule: str = "in-turn"
    closure: bool = True

    name = "mean-field"
    may_break = True
    is_soft = False

    def __post_init__(self) -> None:
        strength = number("0 or more and finite, 'grid' or None", least=0.0)
        _check_fields(
            self,
            schedule=one_of(SCHEDULES),
            closure=FLAG,
            strength=optional(word_or("grid", strength)),
        )


@dataclass(frozen=True)
class SequenceOptions:
    """Tasks in sequences: how a task depends on the one before it.

    Parameters
    ----------
    model
        "none": labels are a possible sequence, and nothing more. "chain": what follows what is
        learnt. "back": also how a worker's answer depends on the one before it. "auto": the
        richest of these that is not clearly worse where workers' answers are left out.
    words
        Whether the text of a task counts as one more worker. "auto": with model="auto" it may be
        chosen, on top of "back".
    tags
        "bio": `I-X` only after `B-X` or `I-X`. "none": all classes may follow each other. "auto":
        "bio" where all classes but one at most are `B-…` or `I-…`.
    """

    model: str = AUTO
    words: str | bool = AUTO
    tags: str = AUTO

    def __post_init__(self) -> None:
        _check_fields(
            self,
            model=one_of((AUTO, "none", "chain", "back")),
            words=word_or(AUTO, FLAG),
            tags=one_of((AUTO, "bio", "none")),
        )


LinkOptions = ExactLinkOptions | MeanFieldOptions


def _is_error_prior(given: Any) -> bool:
    """Return whether this is a pair of numbers with 0 < wrong < right."""
    is_pair = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_pair or len(given) != 2 or not all(isinstance(each, Real) for each in given):
        return False
    return bool(0.0 < given[0] < given[1] < math.inf)
