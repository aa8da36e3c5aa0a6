"""Turn the kept results into `docs/performance.md`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
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
        ("growth", report_intake.growth),
        ("sweep", _sweep),
        ("worker_model_sweeps", _worker_model_sweeps),
        ("linked_sweep", _linked_sweep),
        ("must_component", _must_component),
        ("fewer_sweeps", _fewer_sweeps),
        ("jury", _jury),
        ("judges", _judges),
        ("asking", _asking),
        ("against", _against),
        ("against_one_thread", _against),
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


def _sweep(result: dict[str, Any]) -> str:
    rows = "\n".join(_sweep_row(result, row) for row in result["rows"])
    limits = "\n".join(_limits_row(row) for row in result["rows"])
    return f"""## One sweep

{result["responses"]:,} simulated responses, {result["workers"]:,} workers, {result["threads"]}
threads. A sweep is all that a fit by variational Bayes does in one: digammas, tasks, counts, the
bound. Beside it stand an iteration of crowd-kit's Dawid-Skene (at {result["crowd_kit_responses"]:,}
responses, so compared as time a response; labels checked against ours) and the same update by
sparse matrices of scipy (probabilities checked against ours). Medians of {result["rounds"]}
interleaved rounds.

| classes | tiebreak | crowd-kit | ratio | sparse matrices | ratio |
|---|---|---|---|---|---|
{rows}

What memory allows: a sweep must read each response (4 bytes), and of each task where its responses
start (8), its role (1) and its probabilities (8 a class), which it writes back. The floor is the
time that takes at the rate at which this machine's memory was read in the same run, with as many
threads. The last column is against the sum of the response codes alone.

| classes | bytes a sweep | memory read | floor | sweep / floor | sweep / sum of codes |
|---|---|---|---|---|---|
{limits}

What limits the rest is work as well as memory. With two classes a task is one number, its
log-odds: a response reads 8 bytes of the table and adds to 16 bytes of counts, which together take
48 bytes a worker and stay in the nearest cache here. Each part timed alone, on one thread: adding
to the counts takes about half of a sweep, looking up a third, one exponential a task the rest.
With more classes there are K exponentials a task, to the last bit, which take a third of a sweep
with four; table and counts take 16 K² bytes a worker, here more than the nearest cache holds.
"""


def _sweep_row(result: dict[str, Any], row: dict[str, Any]) -> str:
    took, n = row["seconds"], result["responses"]
    return (
        f"| {row['classes']} | {took['tiebreak'] * 1e3:.1f} ms, "
        f"{took['tiebreak'] / n * 1e9:.1f} ns a response | {took['crowd_kit'] / n * 1e9:.0f} ns | "
        f"{row['times_crowd_kit']:.0f} × | {took['sparse'] * 1e3:.0f} ms | "
        f"{row['times_sparse']:.1f} × |"
    )


def _limits_row(row: dict[str, Any]) -> str:
    floor = row["bytes_moved"] / row["bytes_a_second"]
    return (
        f"| {row['classes']} | {row['bytes_moved'] / 1e6:.0f} MB | "
        f"{row['bytes_a_second'] / 1e9:.1f} GB/s | {floor * 1e3:.1f} ms | "
        f"{row['times_the_floor']:.1f} × | {row['sums_of_codes']:.1f} × |"
    )


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

Each part timed alone, about half of the time with links goes to messages, a fifth to scoring, a
sixth to counting, the rest to small components. Nodes have the responses of all their tasks side by
side, in the order of a depth-first search: two thirds of all neighbours are near each other then.
Messages are probabilities here: one costs two divisions and hardly a logarithm.
"""


def _worker_model_sweeps(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {seconds * 1e9 / result['responses']:.1f} ns | "
        f"{result['times_plain'][name]:.2f} × |"
        for name, seconds in result["cpu_seconds"].items()
    )
    return f"""## Sweeps by worker model

{result["responses"]:,} simulated responses, {result["workers"]:,} workers, {result["classes"]}
classes, one thread, processor time, in turn: the median of the ratios to the plain sweep beside
each.

| worker model | a response | beside a plain sweep |
|---|---|---|
{rows}

Subtypes have five states a class. A row of 20 states is held whole, as five vectors of four, from
its scores to its counts.
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


def _fewer_sweeps(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['method']} | {row['dataset']} | {row['plain_sweeps']:,} | {row['sweeps']:,} | "
        f"{row['plain_sweeps'] / row['sweeps']:.1f} × | {row['bound_gain']:+.1e} | "
        f"{row['same_labels']:.2%} |"
        for row in result["rows"]
    )
    totals = "\n".join(
        f"| {row['method']} | **all** | {row['plain_sweeps']:,} | {row['sweeps']:,} | "
        f"**{row['ratio']:.1f} ×** | | |"
        for row in result["totals"]
    )
    return f"""## Fewer sweeps

Sweeps until no probability moves by {result["tolerance"]:.0e} in a plain sweep, without leaps and
with them (`accelerate=True`, the default); sweeps made in vain count.

| method | dataset | plain sweeps | with leaps | ratio | bound higher by | same labels |
|---|---|---|---|---|---|---|
{rows}
{totals}
"""


def _jury(result: dict[str, Any]) -> str:
    fit, in_all = result["fit"], result["in_all"]
    return f"""## Equal rows

A jury of {result["judges"]} judges on {result["tasks"]:,} tasks, {result["classes"]} classes: only
{result["rows"]:,} rows differ. Votes and {result["sweeps"][0]} sweeps on all tasks, and on one row
for all equal ones. Labels agree on {result["same_labels"]:.2%} of the tasks, probabilities to
{result["largest_difference"]:.0e}.

| | rows | all tasks | ratio (median of {len(fit["ratios"])} interleaved pairs) |
|---|---|---|---|
| the fit | {fit["ours_seconds"] * 1e3:.1f} ms | {fit["theirs_seconds"]:.1f} s | \
{fit["ratio"]:,.0f} × |
| and finding equal rows ({result["collapsing_seconds"]:.2f} s) and giving each task the \
probabilities of its row ({result["spreading_seconds"]:.2f} s) | {in_all["ours_seconds"]:.2f} s | \
{in_all["theirs_seconds"]:.1f} s | {in_all["ratio"]:.1f} × |
"""


def _judges(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['tasks']:,} | {row['plain_fit_seconds']:.2f} s | "
        f"{row['learning_runs_seconds']:.2f} s | {row['fit_seconds']:.2f} s | "
        f"{row['report_seconds']:.2f} s | {row['times_a_plain_fit']:.1f} × | "
        f"{row['peak_bytes_a_response']['reading and learning runs']:.0f} bytes |"
        for row in result["rows"]
    )
    first = result["rows"][0]
    return f"""## Judges with runs

{first["judges"]} judges, {first["runs"]} runs of each on every task. Beside a plain fit of the same
rows: learning how much runs err together (as rows are read), the fit with their weights, and the
report of `tiebreak judges panel` with 200 known labels.

| tasks | plain fit | learning runs | fit | report | all three / plain fit | peak a response |
|---|---|---|---|---|---|---|
{rows}
"""


def _asking(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['classes']} | {median(row['first_fit_seconds']) * 1e3:.0f} ms | "
        f"{max(row['choosing_seconds']):.2f} s | {median(row['refit_seconds'][1:]) * 1e3:.0f} ms | "
        f"{row['refit_share']:.2f} | {median(row['mixed_choosing_seconds']):.2f} s | "
        f"{row['mixed_refit_share']:.2f} |"
        for row in result["rows"]
    )
    return f"""## Asking

{result["tasks"]:,} tasks, {result["responses"]:,} responses: the first fit, choosing the next 20
pairs (the slowest round), and fitting again with their answers from where the model ended, as a
session does between batches: until no probability moves by {result["tolerance"]:g}. Times are
medians over {len(result["rows"][0]["first_fit_seconds"]) - 1} rounds of a first fit and a refit
side by side. Mixed: 20 questions, labels and links together, chosen (the median) and answered.

| classes | first fit | choosing | refit | refit / first | mixed: choosing | mixed: refit / first |
|---|---|---|---|---|---|---|
{rows}
"""


def _against(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['what']} | {_amount(row['what'], row['earlier'])} | "
        f"{_amount(row['what'], row['now'])} | {row['ratio']:.2f} | {_listed(row['ratios'])} |"
        for row in result["rows"]
    )
    threads = "one thread" if result["threads"] == 1 else f"{result['threads']} threads"
    return f"""## Beside earlier code, {threads}

Our own times by the code of commit `{result["earlier_commit"]}` and by today's, in turn, each
round in processes of its own, {result["rounds"]} rounds; ratios below 1 are faster. `python -m
benchmarks.against {result["earlier_commit"]} --threads {result["threads"]}` makes this.

| work | earlier | now | ratio, median | every round |
|---|---|---|---|---|
{rows}
"""


def _amount(what: str, value: float) -> str:
    """Return bytes or a time in a unit that suits it."""
    if "bytes" in what:
        return f"{value / 2**30:.2f} GiB"
    return f"{value:.2f} s" if value >= 1.0 else f"{value * 1e3:.1f} ms"


def _listed(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.4g}" for ratio in ratios)


if __name__ == "__main__":
    write()
