"""Rates as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    methods = [m for m in ORDER if m in METHODS and any(m == rate.method for rate in rates.rates)]
    rows = [["system", "class", "tasks", "known", *methods]]
    for system in systems:
        for label in labels[:MAX_CLASSES]:
            first = found[system, label, "judges"]
            cells = [_cell(found.get((system, label, method))) for method in methods]
            rows.append([system, str(label), f"{first.n_tasks:,}", f"{first.n_known:,}", *cells])
    lines = aligned(rows)
    hidden = len(labels) - MAX_CLASSES
    if hidden > 0:
        lines.append(f"… and {hidden:,} more classes")
    shown = set(labels[:MAX_CLASSES])
    steps = [d for d in rates.differences if d.method == "ppi" and d.label in shown]
    if steps:
        lines.append("")
        table = [["difference", "class", "ppi"]]
        table += [[f"{d.left} − {d.right}", str(d.label), _signed(d)] for d in steps]
        lines += aligned(table)
    if "ppi" in methods:
        lines.append(f"Intervals of {rates.level:.0%}; quote ppi.")
    return "\n".join(lines)


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    if rate.low != rate.low:
        return f"{rate.rate:.3f}"
    return f"{rate.rate:.3f} ({rate.low:.3f} to {rate.high:.3f})"


def _signed(each: Difference) -> str:
    return f"{each.difference:+.3f} ({each.low:+.3f} to {each.high:+.3f})"
