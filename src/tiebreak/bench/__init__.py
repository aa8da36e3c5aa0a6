"""Compare methods of label aggregation on tasks whose class is known.

Methods of tiebreak, and any others, run on the same responses and are scored on the same known
labels, which they do not see.

>>> import tiebreak as tb
>>> crowd = tb.simulate.crowd(200, 9, 3, random_state=0)
>>> found = tb.bench.run({"mine": (crowd.responses, crowd.gold)}, ["mv", "vb"])
>>> {method: round(row["mine"], 3) for method, row in found.table("accuracy").items()}
{'vb': 0.945, 'mv': 0.917}
"""

from __future__ import annotations

from tiebreak.bench.results import BenchResults, Gain, read_record
from tiebreak.bench.running import OWN, run

__all__ = ["OWN", "BenchResults", "Gain", "read_record", "run"]
