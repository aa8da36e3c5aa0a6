"""The report, explanations and charts of a fitted model: see `model.report`, `.explain`, `.plot`.

>>> import tempfile
>>> import tiebreak as tb
>>> crowd = tb.simulate.crowd(60, 8, 3, random_state=0)
>>> model = tb.VariationalBayes().fit(crowd.responses)
>>> with tempfile.TemporaryDirectory() as folder:
...     path = model.report(f"{folder}/report.html", truth=crowd.gold)
>>> path.name
'report.html'
"""

from tiebreak.report import messages as messages  # registers what the package says
from tiebreak.report.explain import Explanation, explain
from tiebreak.report.measure import Plots, measure
from tiebreak.report.write import check_target, render, write

__all__ = ["Explanation", "Plots", "check_target", "explain", "measure", "render", "write"]
