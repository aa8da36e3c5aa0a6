"""Turn the kept results into `docs/performance.md`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import report_intake
from benchmarks.measure import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def write() -> None:
    parts = [
        "# Performance\n",
        "Made by `make bench` from `benchmarks/results/`. Times on one machine mean little "
        "elsewhere; ratios were measured in turn, in one run.\n",
    ]
    for name, section in (
        ("crowd_kit", _crowd_kit),
        ("frame", report_intake.frame),
        ("ids", report_intake.ids),
        ("growth", report_intake.growth),
        ("linked_sweep", _linked_sweep),
        ("must_component", _must_component),
    ):
        path = RESULTS / f"{name}.json"
        if path.exists():
            result = json.loads(path.read_text())
            parts += [section(result), _where(result)]
    PAGE.write_text("\n".join(parts))


def _where(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"*{result['date']}, {result['machine']}, Python {result['python']}, {versions}, "
        f"commit {result['commit']}.*\n"
    )


def _crowd_kit(result: dict[str, Any]) -> str:
    step, whole = result["iteration"], result["whole_fit"]
    return f"""## Beside crowd-kit

Dawid-Skene on {result["responses"]:,} simulated responses, {result["workers"]:,} workers,
{result["classes"]} classes, {result["iterations"]} iterations, both on the same responses; labels
agree on {result["same_labels"]:.2%} of the tasks.

| | tiebreak | crowd-kit | ratio (median of {len(step["ratios"])} interleaved pairs) |
|---|---|---|---|
| one iteration | {step["ours_seconds"] * 1e3:.1f} ms | {step["theirs_seconds"] * 1e3:,.0f} ms | \
{step["ratio"]:.0f} × |
| whole fit, ids already codes | {whole["ours_seconds"]:.2f} s | {whole["theirs_seconds"]:.2f} s | \
{whole["ratio"]:.0f} × |
"""


def _linked_sweep(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['responses']:,} | {row['links']:,} | "
        f"{row['sweep']['ours_seconds'] * 1e3:.0f} ms | "
        f"{row['sweep']['theirs_seconds'] * 1e3:.0f} ms | {row['sweep']['ratio']:.2f} × |"
        for row in result["rows"]
    )
    return f"""## Links in a sweep

{result["tasks"]:,} tasks, {result["classes"]} classes, as many random hard links as tasks, so that
most tasks hang together in one component too loopy to be exact.

| responses | links | without links | with links | ratio |
|---|---|---|---|---|
{rows}
"""


def _must_component(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['tasks']:,} | {row['inference']} | {row['seconds']:.1f} | {row['sweeps']} | "
        f"{row['peak_bytes_a_task']:,} |"
        for row in result["rows"]
    )
    return f"""## One huge must-component

All but 1,000 tasks joined by must-links, those 1,000 cannot-linked to them: up to
{result["closed_must_pairs"]:,} pairs follow, and none is written out. Peak memory is that of the
whole process so far, simulation included, above its start.

| tasks | links by | seconds | sweeps | peak bytes a task |
|---|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    write()
