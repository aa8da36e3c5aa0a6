"""The parts of `docs/performance.md` on frames, files and growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.drawing import Panel, draw

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "growth.svg"


def frame(result: dict[str, Any]) -> str:
    fit, memory = result["fit"], result["memory"]
    return f"""## From a DataFrame to labels

A pandas frame with text ids to a frame of labels, Dawid-Skene, {result["sweeps"]} iterations,
{result["responses"]:,} responses, {result["workers"]:,} workers, {result["classes"]} classes, rows
in any order; {result["same_labels"]:.2%} of the labels are the same (compared at a quarter of the
size). crowd-kit's time grows with the power {result["crowd_kit_exponent"]} of the size, so that it
would finish about {result["crowd_kit_in_ten_minutes"]:,.0f} responses in ten minutes; the smaller
size was measured to keep the run short.
A first table of up to 3,000,000 rows is read without compiled code, which takes a second to load.
Once a fit has loaded it, as here, tables are read by it from 200,000 rows on.

| | tiebreak | crowd-kit | ratio ({len(fit["ratios"])} interleaved pairs) |
|---|---|---|---|
| frame to labels | {fit["ours_seconds"]:.2f} s | {fit["theirs_seconds"]:.1f} s | \
{fit["ratio"]:.0f} × |

Memory at {memory["responses"]:,} responses: {memory["above_frame"] / 1e9:.2f} GB above the frame
(and what else was loaded), which held {memory["frame"] / 1e9:.2f} GB.
"""


def growth(result: dict[str, Any]) -> str:
    axes = result["axes"]
    FIGURE.write_text(draw(_panels(axes)))
    fitted = "\n".join(
        f"| {axis} | {found['fitted_from']:,} | {found['exponent']} | {found['memory_exponent']} |"
        for axis, found in axes.items()
    )
    rows = "\n".join(
        f"| {row['n']:,} | {row['ids']} | {row['tasks']:,} | {row['parts']['read']:.2f} | "
        f"{row['parts']['fit']:.2f} | {row['parts']['write']:.2f} | {row['seconds']:.2f} | "
        f"{row['peak_bytes'] / 1e9:.2f} |"
        for row in axes["responses"]["rows"]
    )
    busy = "".join(
        f"{row['n']:,} responses were measured {row['busy']}: their times are too long.\n"
        for row in axes["responses"]["rows"]
        if "busy" in row
    )
    return f"""## Growth

![Time and memory against responses, classes, workers and links](figures/growth.svg)

Above: seconds; below: peak memory of the whole process in bytes (some 0.3 GB of it Python and
libraries). Fitted exponents, least squares on logarithms, from the size named on:

| against | from | time | memory |
|---|---|---|---|
{fitted}

Responses: a Parquet file with 1,000 workers and 2 classes, rows in any order within each million,
to a Parquet file of labels by 30 sweeps of variational Bayes, in seconds and GB:

| responses | ids | tasks | read | fit | write | in all | peak memory |
|---|---|---|---|---|---|---|---|
{rows}

{busy}
Exponents against responses are those of text ids. Classes, workers and links: one sweep, the mean
of the first ten, at 1,000,000 responses; with links at 3,000,000, and each has a plain sweep before
it, as the fit without links comes first.
"""


def _panels(axes: dict[str, Any]) -> list[list[Panel]]:
    return [
        [
            Panel(f"{what} against {axis}", axis, unit, _points(found, key))
            for axis, found in axes.items()
        ]
        for what, unit, key in (("time", "seconds", "seconds"), ("memory", "bytes", "peak_bytes"))
    ]


def _points(found: dict[str, Any], key: str) -> list[tuple[float, float]]:
    return [(row["n"], row[key]) for row in found["rows"] if row[key] > 0]
