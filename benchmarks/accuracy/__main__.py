"""Run the benchmark of label aggregation: `python -m benchmarks.accuracy --jobs 2`, or `--page`.

Cells that the record holds of the same data and the same method are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb
from benchmarks.accuracy.told import BETWEEN, told
from tiebreak.bench.results import write_record

HERE = Path(__file__).parent
RECORD = HERE / "results.jsonl"
METHODS = HERE / "methods"
SETS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "sets.toml").read_text("utf-8"))
PUBLISHED = tomllib.loads((HERE / "published.toml").read_text("utf-8"))["source"]
GROUPS = {
    "datasets": "Ten datasets",
    "juries": "Six juries of LLM judges and rules",
    "others": "Sequences token by token, and scores in fifths",
    "pairs": "Verdicts on pairs",
}
Row = tuple[str, str, str]
SPECIAL = ("ebcc40", "ebcc_web", "gibbs")  # for published figures alone; for ten sets alone


def names(group: str) -> list[str]:
    return [name for name, about in SETS.items() if about["group"] == group]


def rows_of(path: Path) -> list[dict[str, str]]:
    text = path.read_bytes()
    text = gzip.decompress(text) if path.suffix == ".gz" else text
    return list(csv.DictReader(io.StringIO(text.decode())))


def read(name: str) -> tuple[tb.Responses, dict[str, str]] | None:
    """Return responses and gold of a set; None where its files are not here."""
    about = SETS[name]
    folder = Path(os.path.expandvars(about["folder"]))
    found = sorted(folder.glob(about.get("responses", "responses.csv*")))
    if not found:
        return None
    columns = {"task": ["task"], "worker": "worker", "label": "label"} | about.get("columns", {})

    def task_of(row: dict[str, str]) -> str:
        return BETWEEN.join(row[column] for column in columns["task"])

    def class_of(row: dict[str, str]) -> str:
        label = row[columns["label"]]
        return str(np.digitize(float(label), about["cut"])) if "cut" in about else label

    rows = [(task_of(row), row[columns["worker"]], class_of(row)) for row in rows_of(found[0])]
    if about.get("hold_out"):
        rows, gold = hold_out(rows)
    else:
        gold = {task_of(row): class_of(row) for row in rows_of(next(folder.glob("gold.csv*")))}
    if about.get("repeats") == "distinct":
        return tb.Responses.from_rows(dict.fromkeys(rows), repeats="count"), gold
    return tb.Responses.from_rows(rows), gold


def hold_out(rows: list[Row]) -> tuple[list[Row], dict[str, str]]:
    """Take one response, drawn at random, of each task that has three or more for its truth."""
    of_task: dict[str, list[int]] = {}
    for at, (task, *_) in enumerate(rows):
        of_task.setdefault(task, []).append(at)
    rng = np.random.default_rng(0)
    drawn = [rng.choice(places) for places in of_task.values() if len(places) >= 3]
    left = set(range(len(rows))) - set(drawn)
    return [rows[at] for at in sorted(left)], {rows[at][0]: rows[at][2] for at in drawn}


def measure(sets: list[str], methods: list[Any], **options: Any) -> None:
    """Measure these methods on the sets that are here, into the record."""
    with warnings.catch_warnings(action="ignore"):
        crowds = {name: crowd for name in sets if (crowd := read(name)) is not None}
        given = [
            str(path) if (path := METHODS / f"{name}.py").is_file() else name for name in methods
        ]
        tb.bench.run(crowds, given, record=RECORD, resume=True, progress=print, **options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--group", choices=(*GROUPS, "published"))
    parser.add_argument("--again", action="store_true", help="Measure tiebreak's own again, too.")
    parser.add_argument("--page", action="store_true", help="Only make the pages of the record.")
    chosen = parser.parse_args()
    files = sorted(path.stem for path in METHODS.glob("[a-z]*.py") if path.stem not in SPECIAL)
    options = {"jobs": chosen.jobs, "limit": chosen.limit}
    if chosen.again:
        kept = [cell for cell in tb.bench.read_record(RECORD) if cell["method"] not in tb.bench.OWN]
        write_record(RECORD, kept)
    if not chosen.page:
        for group in GROUPS:
            if chosen.group in (None, group):
                seeds = 5 if group in ("datasets", "juries") else 1
                measure(names(group), [*tb.bench.OWN, *files], seeds=seeds, **options)
        for name, about in SETS.items():
            if chosen.group in (None, about["group"]) and (methods := told(about)):
                measure([name], methods, **options)
        if chosen.group in (None, "published"):
            measure(names("published"), ["ibcc", "bwa", "ebcc"], **options)
            measure(["web"], ["ebcc_web"], **options)
            for_40 = next(source["ebcc40"] for source in PUBLISHED if "ebcc40" in source)
            measure(list(for_40), ["ebcc40"], **(options | {"limit": 3600.0}))
            measure(names("datasets"), ["gibbs"], **options)
    from benchmarks.accuracy import page

    page.write()


if __name__ == "__main__":
    main()
