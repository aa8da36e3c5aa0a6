"""The numbers a task gets in this package, one array type per kind: mypy tells them apart.

At run time all are int32 arrays. A function that makes numbers of a kind converts to its type;
one that takes them says which kind it needs. The table is in the package's docstring.
"""

from __future__ import annotations

from typing import NewType

from tiebreak.kernels.layout import Codes

TaskCodes = NewType("TaskCodes", Codes)  # rows of q, and of the responses by task
NodeCodes = NewType("NodeCodes", Codes)  # of `Merged`: tasks that hard links make one
TiedCodes = NewType("TiedCodes", Codes)  # open nodes that links tie to others, in the order of node
VisitCodes = NewType("VisitCodes", Codes)  # the same nodes in the order of visits, or NO_VISIT
PoolCodes = NewType("PoolCodes", Codes)  # rows of `Pool.nodes` and of `ExactLinks.q`

NO_VISIT = -1  # of a node that is known, or that no link ties to others
