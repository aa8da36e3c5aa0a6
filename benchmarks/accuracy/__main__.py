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

HERE = Path(__file__).parent
RECORD = HERE / "results.jsonl"
METHODS = HERE / "methods"
SETS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "sets.toml").read_text("utf-8"))
PUBLISHED = tomllib.loads((HERE / "published.toml").read_text("utf-8"))["source"]
SPECIAL = ("ebcc40", "gibbs")  # for published figures alone; too slow for all but ten sets


def names(group: str) -> list[str]:
    return [name for name, about in SETS.items() if about["group"] == group]


def rows_of(path: Path) -> list[dict[str, str]]:
    text = path.read_bytes()
    text = gzip.decompress(text) if path.suffix == ".gz" else text
    return list(csv.DictReader(io.StringIO(text.decode())))


def read(name: str) -> tuple[tb.Responses, dict[str, str]] | None:
    """Return responses and gold of a set; None where its folder is not here."""
    about = SETS[name]
    folder = Path(os.path.expandvars(about["folder"]))
    found = sorted(folder.glob(about.get("responses", "responses.csv*")))
    if not found:
        return None
    columns = about.get("columns", {})
    task, worker, label = (columns.get(each, each) for each in ("task", "worker", "label"))
    edges = about.get("cut")

    def class_of(text: str) -> str:
        return text if edges is None else str(np.digitize(float(text), edges))

    rows = [(row[task], row[worker], class_of(row[label])) for row in rows_of(found[0])]
    gold = {row[task]: class_of(row[label]) for row in rows_of(next(folder.glob("gold.csv*")))}
    if "responses" in about:  # exact duplicates are dropped, other repeats count
        return tb.Responses.from_rows(dict.fromkeys(rows), repeats="count"), gold
    return tb.Responses.from_rows(rows), gold


def measure(sets: list[str], methods: list[str], **options: Any) -> None:
    """Measure these methods on the sets that are here, into the record."""
    with warnings.catch_warnings(action="ignore"):
        crowds = {name: crowd for name in sets if (crowd := read(name)) is not None}
        given = [name if name in tb.bench.OWN else str(METHODS / f"{name}.py") for name in methods]
        tb.bench.run(crowds, given, record=RECORD, resume=True, progress=print, **options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--group", choices=("datasets", "juries", "others", "published"))
    parser.add_argument("--page", action="store_true", help="Only make the pages of the record.")
    chosen = parser.parse_args()
    files = sorted(path.stem for path in METHODS.glob("[a-z]*.py") if path.stem not in SPECIAL)
    options = {"jobs": chosen.jobs, "limit": chosen.limit}
    if not chosen.page:
        for group in ("datasets", "juries", "others"):
            if chosen.group in (None, group):
                measure(names(group), [*tb.bench.OWN, *files], **options)
        if chosen.group in (None, "published"):
            measure(names("published"), ["ibcc", "bwa", "ebcc"], **options)
            for_40 = next(source["ebcc40"] for source in PUBLISHED if "ebcc40" in source)
            measure(list(for_40), ["ebcc40"], **(options | {"limit": 3600.0}))
            measure(names("datasets"), ["gibbs"], **options)
    from benchmarks.accuracy import page

    page.write()


if __name__ == "__main__":
    main()
