"""What workers are: accuracy and confusions with intervals, information, and a word for each.

- `cells`: the parameters of every worker model as rows of Dirichlet counts
- `refine`: collapsed sweeps, which are less sure of tasks than variational Bayes
- `linear_response`: how far parameters may be off, with what tasks leave open
- `verdicts`: a word for each worker
- `table`: the table
"""

from tiebreak.inference.worker_summary.table import WorkersTable, workers_table

__all__ = ["WorkersTable", "workers_table"]
