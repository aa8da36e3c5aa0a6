"""Tables are read by compiled loops where these repay the time it takes to load them."""

from __future__ import annotations

import subprocess
import sys

import pytest

TABLE = """
import sys
import pyarrow as pa
import tiebreak as tb
n = 250_000
task = pa.array([f"t{i // 5}" for i in range(n)])
worker = pa.array([f"w{i % 7}" for i in range(n)])
label = pa.array(["no" if i % 3 else "yes" for i in range(n)])
table = pa.table({"task": task, "worker": worker, "label": label})
"""
SHOW = """
print("tiebreak.kernels.ingest.sort_by_task" in sys.modules)
"""


@pytest.mark.parametrize(
    ("before", "is_compiled"),
    [("", False), ("import tiebreak.kernels.compiled", True)],
    ids=["first", "after a fit"],
)
def test_a_middling_table_is_read_by_compiled_loops_once_they_are_there(
    before: str, is_compiled: bool
) -> None:
    code = f"{TABLE}\n{before}\ntb.read_responses(table)\n{SHOW}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_compiled)
