"""Text ids into codes, beside pandas, pyarrow, polars and DuckDB, in turn, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.measure import about, keep, seconds
from tiebreak.data import Builder, ids

N_ROWS, N_TASKS, N_WORKERS, N_CLASSES = 10_000_000, 2_000_000, 1_000, 4
ROUNDS = 3
Columns = dict[str, pa.Array]


def made_ids(prefix: str, codes: np.ndarray, n: int) -> pa.Array:
    width = len(str(n - 1))
    made = pa.array([f"{prefix}{i:0{width}d}" for i in range(n)], pa.large_string())
    return made.take(pa.array(codes))


def crowd(*, shuffled: bool) -> Columns:
    """Make a table whose rows come by task, or in any order."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(N_TASKS), N_ROWS // N_TASKS)
    if shuffled:
        task = rng.permutation(task)
    return {
        "task": made_ids("task-", task, N_TASKS),
        "worker": made_ids("worker-", rng.integers(0, N_WORKERS, N_ROWS), N_WORKERS),
        "label": made_ids("class-", rng.integers(0, N_CLASSES, N_ROWS), N_CLASSES),
    }


def ours(columns: Columns) -> list[np.ndarray]:
    builder = Builder()
    builder._coders = tuple(map(ids.coder_for, columns.values()))
    return builder._encode(list(columns.values()))


def by_pyarrow(columns: Columns) -> list[Any]:
    return [column.dictionary_encode() for column in columns.values()]


def by_pandas(columns: Columns) -> Callable[[], list[Any]]:
    frame = pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})
    return lambda: [pd.factorize(frame[name]) for name in columns]


def by_polars(columns: Columns) -> Callable[[], Any]:
    frame = pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})
    coded = [pl.col(name).cast(pl.Categorical).to_physical() for name in columns]
    return lambda: frame.select(coded)


def by_duckdb(columns: Columns) -> Callable[[], list[Any]]:
    """Number ids by first appearance and join the numbers back; DuckDB has no shorter way."""
    connection = duckdb.connect()
    connection.register("given", pa.table(columns))
    connection.execute("create table crowd as select * from given")

    def code(name: str) -> Any:
        first = f"select {name} as id, min(rowid) as row from crowd group by id"
        numbered = f"select id, row_number() over (order by row) - 1 as code from ({first})"
        joined = f"select code from crowd join ({numbered}) on crowd.{name} = id"
        return connection.execute(joined).fetchnumpy()

    return lambda: [code(name) for name in columns]


def measure(columns: Columns) -> dict[str, Any]:
    runs = {
        "tiebreak": lambda: ours(columns),
        "pyarrow": lambda: by_pyarrow(columns),
        "pandas": by_pandas(columns),
        "polars": by_polars(columns),
        "duckdb": by_duckdb(columns),
    }
    agree = all(
        np.array_equal(code, theirs.indices.to_numpy())
        for code, theirs in zip(ours(columns), by_pyarrow(columns), strict=True)
    )
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(seconds(run))
    medians = {name: round(statistics.median(found), 3) for name, found in times.items()}
    rivals = {name: took for name, took in medians.items() if name != "tiebreak"}
    fastest = min(rivals, key=rivals.__getitem__)
    ratios = [a / b for a, b in zip(times["tiebreak"], times[fastest], strict=True)]
    return {
        "seconds": medians,
        "fastest_rival": fastest,
        "ours_to_fastest": round(statistics.median(ratios), 2),
        "same_codes_as_pyarrow": agree,
    }


def main() -> None:
    measured = {
        order: measure(crowd(shuffled=order == "shuffled")) for order in ("by task", "shuffled")
    }
    keep(
        "ids",
        {
            "what": "three columns of text ids into codes, tiebreak / the fastest rival",
            "rows": N_ROWS,
            "tasks": N_TASKS,
            "workers": N_WORKERS,
            "classes": N_CLASSES,
            "orders": measured,
            **about("pandas", "pyarrow", "polars", "duckdb"),
        },
    )


if __name__ == "__main__":
    main()
