"""Plots: pictures of a fitted model, as `model.plot` shows them in notebooks.

`drawings` makes each picture from plain numbers, so that the report and the page draw the same
ones; `worker_accuracy` and `calibration_curve` are the numbers that more than one of them needs.
"""

from tiebreak.plots.model_plots import Plots

__all__ = ["Plots"]
