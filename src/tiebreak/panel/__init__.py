"""Panels of judges: how good they are, what they share, and what would make a panel better."""

from tiebreak.panel.groups import share_discount
from tiebreak.panel.report import Judge, PanelReport, Versus, preferences_of, report
from tiebreak.panel.sampling import Sample, sample

__all__ = [
    "Judge",
    "PanelReport",
    "Sample",
    "Versus",
    "preferences_of",
    "report",
    "sample",
    "share_discount",
]
