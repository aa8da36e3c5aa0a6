"""Crowds on disk: Parquet of any size, made some rows at a time, with text or whole-number ids."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

PER_TASK = 10
N_WORKERS = 1_000
GROUP = 1_000_000  # rows, in any order within a group: as they come in time
ACCURACY = 0.8


def make(path: Path, n_responses: int, *, n_classes: int = 2, text: bool = True) -> None:
    """Write responses to n_responses / 10 tasks by 1,000 workers, the same for the same size."""
    rng = np.random.default_rng(0)
    schema = pa.schema({name: pa.string() if text else pa.int64() for name in ("task", "worker")})
    schema = schema.append(pa.field("label", pa.string() if text else pa.int8()))
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, n_responses, GROUP):
            n = min(GROUP, n_responses - first)
            columns = _columns(rng, first, n, n_classes, text)
            writer.write_table(pa.table(columns, schema=schema))


def _columns(
    rng: np.random.Generator, first: int, n: int, n_classes: int, text: bool
) -> list[pa.Array]:
    task, turn = np.divmod(first + rng.permutation(n), PER_TASK)
    # Different workers on a task: each from a tenth of them.
    worker = rng.integers(0, N_WORKERS // PER_TASK, n) * PER_TASK + turn
    truth = (task * 2654435761 >> 7) % n_classes
    wrong = (truth + rng.integers(1, n_classes, n)) % n_classes
    label = np.where(rng.random(n) < ACCURACY, truth, wrong)
    if not text:
        return [pa.array(task), pa.array(worker), pa.array(label.astype(np.int8))]
    return [_named("task-", task, 10), _named("worker-", worker, 4), _named("class-", label, 2)]


def _named(prefix: str, numbers: np.ndarray, width: int) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(pa.scalar(prefix), digits, pa.scalar(""))


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), text=sys.argv[3] == "text")
