"""Scales: from numbers to places in a drawing, and round numbers to mark on an axis."""

from __future__ import annotations

import math
from typing import NamedTuple

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
CHARACTER = 6.7  # pixels, at the size of labels: a little more than most need


class Scale(NamedTuple):
    """Maps low to start and high to end, evenly.

    >>> Scale(0.0, 10.0, 100.0, 200.0).at(5.0)
    150.0
    """

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a number."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from low to high, about so many.

    >>> round_ticks(0.0, 97.0)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((s * power for s in STEPS if s * power >= raw * 0.999), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Write a number on an axis.

    >>> tick_text(2500.0), tick_text(0.25), tick_text(-1.2e7)
    ('2,500', '0.25', '−12,000,000')
    """
    text = f"{value:,.0f}" if value == round(value) else f"{value:,.12g}"
    return text.replace("-", "−")


def width_of(texts: list[str]) -> float:
    """Return how wide a column of labels is, about."""
    return CHARACTER * max((_cells(text) for text in texts), default=0)


def _cells(text: str) -> int:
    """Count characters; those of East Asian scripts and pictures take the place of two."""
    return sum(2 if ord(each) > 0x2E7F else 1 for each in text)
