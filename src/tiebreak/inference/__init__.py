"""From responses, links and gold to probabilities: one estimator a file over pure functions."""
