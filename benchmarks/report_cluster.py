"""Write what was measured of fits over partitions into docs/cluster.md, from the stored results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "cluster.json"
PAGE = Path(__file__).parent.parent / "docs" / "cluster.md"
MARK = "<!-- measured -->\n"


def write() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    head, _, _ = PAGE.read_text("utf-8").partition(MARK)
    dates = " to ".join(sorted({row["date"] for row in found.values()}))
    parts = ["## What was measured\n", ABOUT.format(dates=dates)]
    parts.append(_efficiency(sorted(_of("efficiency", found), key=lambda row: row["responses"])))
    parts.append(_memory(sorted(_of("memory", found), key=lambda row: row["responses"])))
    parts += [_wide(row) for row in _of("wide", found)]
    PAGE.write_text(head + MARK + "\n" + "\n".join(parts), "utf-8")


ABOUT = (
    "Two shared cores, all processes on one machine, loopback; written by `python -m "
    "benchmarks.report_cluster`\nfrom `benchmarks/results/cluster.json`, {dates}. Others share "
    "the machine: the load (processes that want a core) is given,\nand absolute times mean "
    "little. Ratios are of sweeps by turns. Nothing was run on two machines: nothing here\nsays "
    "how fits scale.\n"
)
PAIRS = (
    "Two processes of one thread on Dask against one process of two threads, 25 pairs, 1,000 "
    "workers, two classes, 8 shards:\n"
)
PAIRS_HEAD = (
    "| responses | units | efficiency, median (quartiles) | overhead a sweep, median (least) | "
    "wire / (units · table) | loading, in sweeps | load |"
)
FITS = (
    "Fifteen sweeps from packed shards to files of labels. Memory is the most that was held: "
    "anonymous, that is without mapped files,\nand for the driver all that was resident. From 2e9 "
    "on shards and q are larger than the memory for files (24 GB in all), and every sweep reads "
    "the disk:\n"
)
FITS_HEAD = (
    "| responses | out of core | its memory | in memory | its memory | two processes on Dask | "
    "driver | load |"
)
WAYS = {
    "out_of_core": "anonymous_bytes",
    "in_memory": "anonymous_bytes",
    "driver": "resident_bytes",
}


def _of(what: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for name, row in found.items() if name.startswith(what)]


def _efficiency(rows: list[dict[str, Any]]) -> str:
    lines = [PAIRS, PAIRS_HEAD, "|---|---|---|---|---|---|---|"]
    for row in rows:
        low, middle, high = row["efficiency_quartiles"]
        lines.append(
            f"| {row['responses']:.0e} | {row['units']} | {middle:.2f} ({low:.2f}–{high:.2f}) | "
            f"{row['overhead_median_s'] * 1e3:.0f} ms ({row['overhead_least_s'] * 1e3:.0f}) | "
            f"{row['wire_over_units_and_table']:.1f} | {row['loads_in_sweeps']:.1f} | "
            f"{max(row['load']):.0f} |"
        )
    return "\n".join(lines).replace("e+0", "e") + "\n"


def _memory(rows: list[dict[str, Any]]) -> str:
    lines = [FITS, FITS_HEAD, "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{row['responses']:.0e}"]
        for way, key in WAYS.items():
            one = row.get(way)
            cells.append("–" if one is None else f"{one['seconds']:.0f} s")
            cells.append("–" if one is None else f"{one[key] / 1e9:.2f} GB")
        lines.append(f"| {' | '.join(cells)} | {max(row['load']):.0f} |")
    return "\n".join(lines).replace("e+0", "e") + "\n"


def _wide(row: dict[str, Any]) -> str:
    sent = row["wire_median_bytes"]
    return (
        f"100,000 workers and ten classes, {row['responses']:.1e} responses, 4 units, a scheduler "
        f"of its own: {sent / 1e6:.2f} MB in messages a sweep;\n"
        f"tables go by files, one out and one back for each unit; the driver held "
        f"{row['driver_anonymous_bytes'] / 1e9:.2f} GB; load {max(row['load']):.0f}.\n"
    ).replace("e+0", "e")


if __name__ == "__main__":
    write()
