"""Fits of responses that lie in shards: out of core on one machine, or on a Dask cluster.

sources   what the shards are, what is in each, and tasks that are spread over several
join      whose ids mean whom, and the tasks that links or gold name
units     a shard in the process that sweeps it
sweeper   all shards together, as the engine sees them: tables go out, sums come back
executor  where the work is done: in this process, or (`dask`) on a cluster
write     the folder of labels, and the checkpoint in it
fitting   fit and predict
"""

from __future__ import annotations

from tiebreak.shards import messages as messages
from tiebreak.shards.executor import Executor as Executor
from tiebreak.shards.executor import Serial as Serial
from tiebreak.shards.executor import executor_of as executor_of
from tiebreak.shards.fitting import DistributedFit as DistributedFit
from tiebreak.shards.fitting import fit as fit
from tiebreak.shards.fitting import predict as predict
from tiebreak.shards.sweeper import FitProgress as FitProgress
from tiebreak.shards.write import LabelFiles as LabelFiles

__all__ = [
    "DistributedFit",
    "Executor",
    "FitProgress",
    "LabelFiles",
    "Serial",
    "executor_of",
    "fit",
    "predict",
]
