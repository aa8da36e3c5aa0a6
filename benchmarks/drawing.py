"""Log-log figures as small SVG files, written by hand: points, lines, powers of ten."""

from __future__ import annotations

import math
from typing import NamedTuple

SIZE, MARGIN, GAP = (230, 170), (52, 34), 26  # of a panel; left and below; between panels
INK, LINES = "#444", ("#0b6e99", "#c2571a")


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    across: str
    up: str
    points: list[tuple[float, float]]  # to join


def draw(panels: list[list[Panel]]) -> str:
    """Draw rows of panels, one colour a row."""
    width = max(map(len, panels)) * (SIZE[0] + MARGIN[0] + GAP) + GAP
    height = len(panels) * (SIZE[1] + MARGIN[1] + GAP + 16) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for row, line in enumerate(panels):
        for column, panel in enumerate(line):
            left = GAP + column * (SIZE[0] + MARGIN[0] + GAP) + MARGIN[0]
            top = GAP + row * (SIZE[1] + MARGIN[1] + GAP + 16)
            parts += [
                f'<g transform="translate({left},{top})">',
                *_panel(panel, LINES[row]),
                "</g>",
            ]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, colour: str) -> list[str]:
    x, y = zip(*panel.points, strict=True)
    across, up = _decades(x), _decades(y)
    width, height = SIZE
    places = [(width * _share(a, across), height * (1 - _share(b, up))) for a, b in panel.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    return [
        f'<text x="{width / 2}" y="-8" text-anchor="middle">{panel.title}</text>',
        f'<rect width="{width}" height="{height}" fill="none" stroke="#bbb"/>',
        *_ticks(across, up),
        f'<text x="{width / 2}" y="{height + 30}" text-anchor="middle">{panel.across}</text>',
        f'<text transform="translate(-40,{height / 2}) rotate(-90)" text-anchor="middle">'
        f"{panel.up}</text>",
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
        *(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places),
    ]


def _ticks(across: tuple[int, int], up: tuple[int, int]) -> list[str]:
    width, height = SIZE
    parts = []
    for power in range(across[0], across[1] + 1):
        at = width * _share(10.0**power, across)
        parts.append(f'<path d="M{at:.1f} 0V{height}" stroke="#eee"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{height + 14}" text-anchor="middle">{_ten(power)}</text>'
        )
    for power in range(up[0], up[1] + 1):
        at = height * (1 - _share(10.0**power, up))
        parts.append(f'<path d="M0 {at:.1f}H{width}" stroke="#eee"/>')
        parts.append(f'<text x="-6" y="{at + 4:.1f}" text-anchor="end">{_ten(power)}</text>')
    return parts


def _ten(power: int) -> str:
    return f'10<tspan dy="-4" font-size="8">{power}</tspan>'


def _decades(values: tuple[float, ...]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])
