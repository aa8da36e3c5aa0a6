"""Rates as lines of text."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from typing import TYPE_CHECKING

from tiebreak.rates.arrays import LEAST_KNOWN
from tiebreak.wording import aligned

if TYPE_CHECKING:
    from tiebreak.rates.estimate import Difference, Rate, RateTable

MAX_CLASSES = 10  # shown, the most frequent first; to_dict has all
ORDER = ("ppi", "posterior", "rogan-gladen", "gold", "judges")


def as_text(rates: RateTable) -> str:
    """Lay rates out: a line per system and class, a column per method."""
    from tiebreak.rates.estimate import METHODS

    systems = list(dict.fromkeys(rate.system for rate in rates.rates))
    labels = list(dict.fromkeys(rate.label for rate in rates.rates))
    found = {(rate.system, rate.label, rate.method): rate for rate in rates.rates}
    labels.sort(key=lambda label: -found[systems[0], label, "judges"].rate)
    used = {rate.method for rate in rates.rates}
    methods = [method for method in ORDER if method in METHODS and method in used]
    shown = labels[:MAX_CLASSES]
    rows = [["system", "class", "tasks", "known", *methods]]
    for system, label in product(systems, shown):
        first = found[system, label, "judges"]
        cells = [_cell(found.get((system, label, method))) for method in methods]
        rows.append([system, str(label), f"{first.n_tasks:,}", f"{first.n_known:,}", *cells])
    lines = aligned(rows)
    if len(labels) > len(shown):
        lines.append(f"… and {len(labels) - len(shown):,} more classes")
    lines += _differences(rates, shown)
    if "ppi" in methods:
        alone = [rate.is_gold_alone for rate in rates.rates if rate.method == "ppi"]
        lines.append(f"Intervals of {rates.level:.0%}; {_what_to_quote(alone)}.")
    return "\n".join(lines)


def _what_to_quote(alone: list[bool]) -> str:
    """Say which column to quote, by where ppi is gold alone."""
    if not any(alone):
        return "quote ppi"
    few = f"fewer than {LEAST_KNOWN:g} known tasks of the class or of the others"
    if all(alone):
        return f"quote gold: there are {few}, so that ppi makes no use of the judges"
    return f"quote ppi; where it is gold alone there are {few}, and judges play no part"


def _differences(rates: RateTable, labels: list[Hashable]) -> list[str]:
    """Lay out how systems differ, after an empty line; nothing where there is one."""
    alone = {(rate.system, rate.label) for rate in rates.rates if rate.is_gold_alone}
    rows = [
        [
            f"{each.left} − {each.right}",
            str(each.label),
            ", ".join(
                [
                    _signed(each),
                    *(f"{name}: gold alone" for name in each[:2] if (name, each.label) in alone),
                ]
            ),
        ]
        for each in rates.differences
        if each.method == "ppi" and each.label in labels
    ]
    return ["", *aligned([["difference", "class", "ppi"], *rows])] if rows else []


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    if rate.is_gold_alone:
        return "gold alone"
    if rate.low != rate.low:
        return f"{rate.rate:.3f}"
    return f"{rate.rate:.3f} ({rate.low:.3f} to {rate.high:.3f})"


def _signed(each: Difference) -> str:
    return f"{each.difference:+.3f} ({each.low:+.3f} to {each.high:+.3f})"
