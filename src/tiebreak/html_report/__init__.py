"""The report: what a fit found, as one page to look at and to send to a colleague.

>>> import tempfile
>>> import tiebreak as tb
>>> crowd = tb.simulate.crowd(60, 8, 3, random_state=0)
>>> model = tb.VariationalBayes().fit(crowd.responses)
>>> with tempfile.TemporaryDirectory() as folder:
...     page, numbers = tb.html_report.write(model, f"{folder}/report.html", truth=crowd.gold)
>>> page.name, numbers.name
('report.html', 'report.json')
"""

from tiebreak.html_report.figures import FORMAT, VERSION, gather
from tiebreak.html_report.page import render
from tiebreak.html_report.writing import MOST_BYTES, write

__all__ = ["FORMAT", "MOST_BYTES", "VERSION", "gather", "render", "write"]
