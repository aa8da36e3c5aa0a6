"""Reproduce: the paper's experiments, its claims with computed verdicts, and its figures.

`experiments` runs and can be stopped at any time, `results` gathers what was run, `claims` judges
it, `report` and `figures` show it. `tiebreak reproduce` is the command.
"""

from tiebreak.reproduce.claims import judge
from tiebreak.reproduce.experiments import Reproduction, run
from tiebreak.reproduce.report import as_markdown
from tiebreak.reproduce.results import Results, gather

__all__ = ["Reproduction", "Results", "as_markdown", "gather", "judge", "run"]
