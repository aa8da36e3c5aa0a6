"""Pairs: which of two items is better, as somebody said it, or that neither is.

first   second   verdict   worker   prompt
gpt     llama    FIRST     ann      q1        ann saw gpt first, and preferred it
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tiebreak.data.ids import Ids
from tiebreak.kernels.layout import Codes, Floats, Offsets

FIRST, SECOND, TIE = 0, 1, 2
VERDICTS = ("first", "second", "tie")
WORDS = {  # verdicts in words: what was shown first, second, neither; None: no answer
    **dict.fromkeys(
        ("a", "model_a", "model_1", "[[a]]", "assistant a", "first", "left", "1"), FIRST
    ),
    **dict.fromkeys(("a>b", "a>>b", "b<a", "b<<a"), FIRST),
    **dict.fromkeys(("b", "model_b", "model_2", "[[b]]", "assistant b", "second", "right"), SECOND),
    **dict.fromkeys(("2", "b>a", "b>>a", "a<b", "a<<b"), SECOND),
    **dict.fromkeys(("tie", "c", "[[c]]", "draw", "both", "equal", "a=b", "b=a", "neither"), TIE),
    **dict.fromkeys(("tie (bothbad)", "bothbad", "both bad", "both_bad"), TIE),
    **dict.fromkeys(("error", "", "none", "ignore", "skip")),
}


@dataclass(frozen=True, slots=True, eq=False)
class PairVerdicts:
    """Verdicts on pairs, a row each, in codes; `tables.pairs.read_pairs` makes them.

    `sides` has a column for each covariate: its number for the first item less that for the second.
    """

    first: Codes  # (n,) the item that was shown first
    second: Codes
    verdict: Codes  # (n,) FIRST, SECOND or TIE
    items: Ids
    worker: Codes | None = None
    workers: Ids = field(default_factory=Ids)
    prompt: Codes | None = None
    prompts: Ids = field(default_factory=Ids)
    weight: Floats | None = None  # (n,) None: 1 each
    sides: Floats | None = None
    covariates: tuple[str, ...] = ()
    frame: str = "pyarrow"

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} verdicts, {len(self.items):,} items"
        return f"PairVerdicts({sizes}, {len(self.workers):,} judges, {len(self.prompts):,} prompts)"

    def take(self, rows: Offsets) -> PairVerdicts:
        """Return some of the rows; ids and their codes stay."""
        parts = ("first", "second", "verdict", "worker", "prompt", "weight", "sides")
        given = {name: getattr(self, name) for name in parts}
        return replace(self, **{k: each[rows] for k, each in given.items() if each is not None})
