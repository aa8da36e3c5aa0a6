"""How fast: against rivals in the same run, and against size. Results are kept as JSON."""
