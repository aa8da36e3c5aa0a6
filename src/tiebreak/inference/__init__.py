"""From responses, links and gold to probabilities: one estimator a file over pure functions."""

from tiebreak.inference import messages as messages  # registers what the package says
