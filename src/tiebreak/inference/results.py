"""What a fit found: the one shape that every way of inferring tasks returns."""

from __future__ import annotations

from typing import NamedTuple

from tiebreak.gold import GoldCodes
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.link_errors.learnt import Rates
from tiebreak.inference.vb import Run
from tiebreak.kernels.layout import Floats


class GridPoint(NamedTuple):
    """One strength of the grid of mean-field links, and how its labels do."""

    strength: float
    violated: int  # given links that the labels break
    converged: bool


class Fit(NamedTuple):
    """Where a fit ended, and what it found on the way."""

    run: Run  # q by state, where the ascent ended
    q: Floats  # (n_tasks, n_classes) probabilities as reported
    calibration: Calibration | None = None  # how scores became probabilities
    decoded: GoldCodes | None = None  # linked tasks and their labels, where decoded jointly
    link_report: LinkReport | None = None
    rates: Rates | None = None  # error rates of links by source, estimated or learnt
    wrong: Floats | None = None  # (n_links,) probability that each link is wrong; 0 for hard ones
    link_strength: float | None = None
    link_grid: tuple[GridPoint, ...] | None = None
