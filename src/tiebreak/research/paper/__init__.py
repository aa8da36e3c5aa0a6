"""The paper's experiments, and its claims with verdicts computed from what was run.

`python -m tiebreak.research.paper` runs them; experiments/00_paper shows what came out.
"""

from tiebreak.research.paper.claims import as_markdown, judge
from tiebreak.research.paper.runs import Reproduction, Results, gather, run

__all__ = ["Reproduction", "Results", "as_markdown", "gather", "judge", "run"]
