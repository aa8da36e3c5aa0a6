"""Charts: inline SVG with a title, a description and a real table behind each.

A chart is made from plain numbers and knows nothing of models. Its colours come from `chart.css`,
by class, so that it follows the page into the dark; it has neither script nor inline style, so
that a strict Content-Security-Policy lets it pass. The report, the page and notebooks share it.

>>> chart = bars("Labels", "How often each was given.", ("label", "given"), ["cat"], [3.0])
>>> "<title" in chart.svg() and "<table" in chart.html()
True
"""

from tiebreak.charts.bars import bars, histogram
from tiebreak.charts.chart import Chart, stylesheet
from tiebreak.charts.heat import heat_map
from tiebreak.charts.intervals import intervals
from tiebreak.charts.lines import Whisker, against_diagonal, line
from tiebreak.charts.table import Number, number, percent, table

__all__ = [
    "Chart",
    "Number",
    "Whisker",
    "against_diagonal",
    "bars",
    "heat_map",
    "histogram",
    "intervals",
    "line",
    "number",
    "percent",
    "stylesheet",
    "table",
]
