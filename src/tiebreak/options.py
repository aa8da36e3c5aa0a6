"""Options of links: what belongs to exact links, and what to mean-field ones.

Each class holds what its way of inferring links can be told, refuses what contradicts itself, and
says in its metadata how the command line spells each option: an option is added here, and nowhere
else. The command line builds its help from this module, so that it imports nothing heavy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from tiebreak.errors import OptionError

SCHEDULES = ("in-turn", "parallel", "damped")
DECODINGS = ("joint", "marginal")
LEARN = "learn"  # error rates that are found, not stated

PROCESSOR = "processor"  # where a fit ran, if not on a device


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
        _require_word(self, "decode")
        if isinstance(self.error, str):
            if self.error != LEARN:
                gone = " 'auto' and 'asked' are gone: 'learn' does their work."
                raise OptionError(
                    f"ExactLinkOptions.error must be a number, 'learn' or None; got {self.error!r}."
                    f"{gone if self.error in ('auto', 'asked') else ''}"
                )
        elif self.error is not None and not 0.0 < self.error < 0.5:
            raise OptionError(
                "ExactLinkOptions.error must lie between 0 and 0.5, both excluded; "
                f"got {self.error!r}."
            )
        wrong, right = self.error_prior
        if not (0.0 < wrong < right < math.inf):
            raise OptionError(
                "ExactLinkOptions.error_prior must be (wrong, right) with 0 < wrong < right; "
                f"got {(wrong, right)}."
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
        if self.schedule not in SCHEDULES:
            raise OptionError.unknown("MeanFieldOptions.schedule", self.schedule, SCHEDULES)
        strength = self.strength
        if isinstance(strength, str):
            if strength != "grid":
                raise OptionError(
                    f"MeanFieldOptions.strength must be a number or 'grid'; got {strength!r}."
                )
        elif strength is not None and not (math.isfinite(strength) and strength >= 0.0):
            raise OptionError(
                f"MeanFieldOptions.strength must be 0 or more and finite; got {strength!r}."
            )


LinkOptions = ExactLinkOptions | MeanFieldOptions
LINK_OPTIONS: dict[str, type[LinkOptions]] = {
    "exact": ExactLinkOptions,
    "mean-field": MeanFieldOptions,
}

RENAMED = {  # arguments of earlier versions, and what to write now
    "link_inference": "link_options=tb.ExactLinkOptions() or tb.MeanFieldOptions()",
    "link_error": "link_options=tb.ExactLinkOptions(error=…)",
    "link_error_prior": "link_options=tb.ExactLinkOptions(error_prior=…)",
    "decode": "link_options=tb.ExactLinkOptions(decode=…)",
    "link_strength": "link_options=tb.MeanFieldOptions(strength=…)",
    "schedule": "link_options=tb.MeanFieldOptions(schedule=…)",
    "closure": "link_options=tb.MeanFieldOptions(closure=…)",
}


def refuse_renamed(options: dict[str, Any]) -> None:
    """Refuse arguments of earlier versions with what to write now."""
    for name in options:
        if name in RENAMED:
            raise OptionError(f"{name} is now part of the options of links: {RENAMED[name]}.")


def _require_word(options: ExactLinkOptions, name: str) -> None:
    """Refuse a word that the option does not take."""
    metadata = next(each.metadata for each in fields(options) if each.name == name)
    value = getattr(options, name)
    if value is not None and value not in metadata["words"]:
        raise OptionError.unknown(f"ExactLinkOptions.{name}", value, metadata["words"])
