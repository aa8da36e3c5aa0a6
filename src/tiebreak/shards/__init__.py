"""Many machines: the same fit over partitions, on a cluster or out of core on one machine.

sources       which folders or files are the partitions
partitions    what is in each, and how ids join them
named         tasks that links or gold name, brought to the driver
spread        tasks in several partitions: found, refused, brought together
executor      where work is done: `Serial`, or `dask`
units         in other processes: partitions that are held, swept, added up
tables        large tables go by files
sweeper       on the driver: tables go out, sums come back
checkpoint    what each sweep gave, on the disk
estimators    the fits of one machine on such a sweeper, and where they start
output        the folder of labels
fitting       the whole, in its order
prediction    labels of new tasks, by a model
"""

from __future__ import annotations

from tiebreak.shards.executor import Executor as Executor
from tiebreak.shards.executor import Serial as Serial
from tiebreak.shards.fitting import DistributedFit as DistributedFit
from tiebreak.shards.fitting import fit as fit
from tiebreak.shards.output import LabelFiles as LabelFiles
from tiebreak.shards.prediction import predict as predict
from tiebreak.shards.spread import shuffle as shuffle
from tiebreak.shards.sweeper import FitProgress as FitProgress

__all__ = [
    "DistributedFit",
    "Executor",
    "FitProgress",
    "LabelFiles",
    "Serial",
    "fit",
    "predict",
    "shuffle",
]
