"""A gigabyte streams through: responses are kept, texts are not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SIZE = 1 << 30
MOST_MEMORY = 1.5 * (1 << 30)
READ = """
import resource, sys, time, warnings
warnings.simplefilter("ignore")
import tiebreak as tb
start = time.perf_counter()
crowd = tb.read_responses(sys.argv[1])
took = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(crowd.n_responses, crowd.n_tasks, peak, took)
"""
TEXT = "A long text about a film, of which nothing is needed. " * 15
LABELS = ("pos", "neg", "mixed")


def _task(i: int) -> dict[str, Any]:
    """Return a task as Label Studio writes it, with three annotations."""
    return {
        "id": i,
        "data": {"text": f"{i} {TEXT}"},
        "annotations": [
            {
                "id": 3 * i + w,
                "completed_by": (i + w) % 50,
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2025-10-09T07:30:20Z",
                "result": [
                    {
                        "from_name": "mood",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [LABELS[(i * 7 + w) % 3]]},
                    }
                ],
            }
            for w in range(3)
        ],
    }


def _verdict(i: int) -> dict[str, Any]:
    judge = f"judge-{i % 5}"
    return {"item": f"q{i // 5}", "judge": judge, "verdict": LABELS[i % 3], "reason": TEXT}


def _write(path: Path, make: Callable[[int], dict[str, Any]], *, is_list: bool) -> int:
    """Write records until the file is large; return how many."""
    n = 0
    size = 0
    with path.open("w") as file:
        while size < SIZE:
            before = "" if not is_list else "[\n" if n == 0 else ",\n"
            text = before + json.dumps(make(n)) + ("" if is_list else "\n")
            size += file.write(text)
            n += 1
        if is_list:
            file.write("]")
    return n


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "make", "is_list", "per_record"),
    [("label-studio.json", _task, True, 3), ("judges.jsonl", _verdict, False, 1)],
)
def test_a_gigabyte_needs_little_memory(
    tmp_path: Path,
    name: str,
    make: Callable[[int], dict[str, Any]],
    is_list: bool,
    per_record: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    n_records = _write(path, make, is_list=is_list)
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    path.unlink()
    n_responses, n_tasks, peak, took = (float(word) for word in done.stdout.split())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{name}: {n_records:,} records, {peak / 2**20:,.0f} MiB, {took:.1f} s\n"
        )
    assert n_responses == per_record * n_records
    assert n_tasks == (n_records if is_list else -(-n_records // 5))
    assert peak < MOST_MEMORY
