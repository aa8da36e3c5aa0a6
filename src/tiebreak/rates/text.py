"""Rates as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiebreak.rates.estimate import RateTable

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
    lines = _aligned(rows)
    hidden = len(labels) - MAX_CLASSES
    if hidden > 0:
        lines.append(f"… and {hidden:,} more classes")
    shown = set(labels[:MAX_CLASSES])
    steps = [d for d in rates.differences if d.method == "ppi" and d.label in shown]
    if steps:
        lines.append("")
        table = [["difference", "class", "ppi"]]
        table += [[f"{d.left} − {d.right}", str(d.label), _signed(d)] for d in steps]
        lines += _aligned(table)
    if "ppi" in methods:
        lines.append(f"Intervals of {rates.level:.0%}; quote ppi.")
    return "\n".join(lines)


def _cell(rate: object) -> str:
    value = getattr(rate, "rate", None)
    low = getattr(rate, "low", float("nan"))
    if rate is None or value is None:
        return "–"
    if low != low:
        return f"{value:.3f}"
    return f"{value:.3f} ({low:.3f} to {getattr(rate, 'high', low):.3f})"


def _signed(each: object) -> str:
    value = getattr(each, "difference", 0.0)
    return f"{value:+.3f} ({getattr(each, 'low', 0.0):+.3f} to {getattr(each, 'high', 0.0):+.3f})"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
