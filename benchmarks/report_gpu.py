"""Turn the kept results of a device into `docs/gpu.md`: `python -m benchmarks.report_gpu`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
SHAPES = {"even": "10 a task", "skew": "1 to 50 a task, five workers 5 % each", "zipf": "Zipf"}

TEXT = """# On a GPU

`VariationalBayes(backend="cuda")`, `DawidSkene(backend="cuda")`, `MajorityVote(backend="cuda")` and
`tiebreak fuse --set backend=cuda` sweep on a CUDA device. It needs CuPy:

```
pip install 'tiebreak[cuda13]'   # driver 580 or newer
pip install 'tiebreak[cuda12]'   # compiled here, never run by us
```

`backend="auto"` takes the device by itself where there is one and a fit has at least
{auto:,} responses; without a device, or without CuPy, it goes on with the processor. `cuda` itself
says what is missing. `model.ran_on_` says where a fit ran.

## What a sweep takes

{device}, {date}; events on the device, median of nine sweeps, counts cleared in each. An iteration
is what a fit waits for: the sweep, digamma and log-gamma of all parameters (in float64), the bound
and the largest change, fetched.

{sweeps}

Beside it: the compiled kernels on that machine's processor ({threads} threads) took
{cpu_ms:,.0f} ms a sweep at {cpu_n:.0e} responses and {cpu_k} classes, in the same run.

## What a whole fit takes

1e9 responses, two classes, 30 sweeps: {open_s:.2f} s to bring responses and q to the device and lay
them out, {sweeps_s:.3f} s for the sweeps, {fetch_s:.2f} s to fetch q: {device_s:.2f} s.
From a packed folder to a Parquet file of labels it took {all_s:.0f} s: {read_s:.0f} s to check and
map the folder, {fit_s:.0f} s for the fit, {write_s:.0f} s to write labels of 1e8 tasks (kernels
were compiled before). What is left beside the device is votes for the start, honest probabilities
(a pass over all responses on the processor), notes, and writing.

**When it helps.** With ids that are still text, or not packed, reading dominates: 158 of 268 s at
1e9 responses on two cores. Pack once (`tiebreak convert responses.parquet -o crowd.tb`), then fits
read codes alone. A process that starts must load what drives the device, and the first fit ever
with a number of classes compiles its kernels for one to three seconds. Seconds, four classes, on
the processor of that machine ({fit_threads} threads) and on the device, read from a packed folder:

{crossover}

So "auto" takes the device from {auto:,} responses on. In a process that fits often, `cuda` pays
at all of these sizes.

## What runs where

- Free and known tasks are swept on the device, with any worker model: parameters of confusion
  matrices stay there; other models make their tables on the processor, and only tables and sums
  cross.
- Linked tasks, and tasks that links make one, are inferred on the processor, beside the device.
- `predict` and `update` with few new tasks are one pass or less over them: on the processor.
- Mean-field links update tasks in turn: these fits run on the processor.
- Weights, tasks that count several times, tasks with more than {long:,} responses and more than
  {states} states are swept by a general kernel, slower but with the same meaning.

Counts are whole numbers (2^22 is 1), so that a fit has the same bits on any grid and in every run.
q is float32 there: after 30 sweeps of 1e6 responses it differs from float64 by less than 2e-5, and
the bound by less than 1e-7 of itself. It may fall by 1e-9 of itself from one sweep to the next.
A log of zero counts as −3,000.

## Memory

A fit needs 4 (K − 1) + 4 + 8 K bytes a task, and 2 bytes a response (4 where workers × classes is
above 65,504), planned before anything is allocated. Where responses do not fit they stay in pinned
memory here and travel in pieces while others are swept, with the same bits; where the rest does not
fit, the fit is refused with these numbers. `TIEBREAK_CUDA_MEMORY` (bytes) sets a limit by hand.

Made by `make bench-gpu` on a machine with a device, and by `python -m benchmarks.report_gpu` from
`benchmarks/results/gpu.json` and `gpu_fit.json`.
"""


def write() -> None:
    from tiebreak.kernels.contract import CUDA_ROWS
    from tiebreak.kernels.cuda.plan import LONG, MOST_IN_SLICES

    found = json.loads((RESULTS / "gpu.json").read_text("utf-8"))
    fit = json.loads((RESULTS / "gpu_fit.json").read_text("utf-8"))
    first = found["sweeps"][0]
    PAGE.write_text(
        TEXT.format(
            auto=CUDA_ROWS,
            long=LONG,
            states=MOST_IN_SLICES,
            device=found["about"]["device"],
            date=found["about"]["date"],
            sweeps=_table(found["sweeps"]),
            threads=found["processor"]["threads"],
            cpu_ms=found["processor"]["sweep_ms"],
            cpu_n=found["processor"]["n_responses"],
            cpu_k=found["processor"]["n_classes"],
            open_s=first["open_s"],
            sweeps_s=first["sweeps30_s"],
            fetch_s=first["fetch_s"],
            device_s=first["open_s"] + first["sweeps30_s"] + first["fetch_s"],
            **{name: fit["whole"][name] for name in ("all_s", "read_s", "fit_s", "write_s")},
            fit_threads=fit["threads"],
            crossover=_crossover(fit["crossover"]),
        ),
        "utf-8",
    )


def _crossover(rows: list[dict[str, Any]]) -> str:
    lines = ["| responses | first fit | on the device | a later fit | on the device |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        times = (row["numba"][0], row["cuda"][0], row["numba"][1], row["cuda"][1])
        n = f"{row['responses']:,}"
        lines.append(f"| {n} | {' | '.join(f'{each:.2f}' for each in times)} |")
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> str:
    lines = ["| responses | workers | classes | asked, ms | sweep, ms | iteration, ms |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        n = f"{row['n_responses']:.0e}".replace("e+0", "e")
        cells = (n + f", {SHAPES[row['name']]}", f"{row['n_workers']:,}", str(row["n_classes"]))
        times = (row["at_most"], row["sweep_ms"], row["iteration_ms"])
        lines.append(f"| {' | '.join(cells)} | {' | '.join(f'{each:.2f}' for each in times)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write()
