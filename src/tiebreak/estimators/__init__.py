"""Estimators: what users fit."""

from tiebreak.estimators import messages as messages  # registers what the package says
from tiebreak.estimators.base import Estimator

__all__ = ["Estimator"]
