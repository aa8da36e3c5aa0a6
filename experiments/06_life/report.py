"""Turn `results.json` into the tables of docs/life.md.

python experiments/06_life/report.py

Tables stand between two marks in the page; the words around them are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import NAMES, RESULTS, ROOT, made, put, read_config, signed, table

HERE = Path(__file__).parent
ORDERS = ("random", "worker by worker")
STEPS = ("on the way", "caught up")


def main() -> None:
    kept = json.loads((HERE / RESULTS).read_text("utf-8"))
    put(ROOT / "docs" / "life.md", tables(kept), __file__)


def tables(kept: dict[str, Any]) -> str:
    found = {name: part["found"] for name, part in kept.items()}
    parts = [
        "### One pass of a stream\n",
        f"{made(kept['one_pass']['made'])}.\n",
        "Macro-F of labels after one pass less that of a fit of all responses: on the way, as\n"
        "they stand after the last batch → caught up, as they are saved. Means over orders; the\n"
        "last column is of single orders, on the way.\n",
        one_pass(found["one_pass"]),
        "How many labels are those of the fit, in the mean over the ten datasets: "
        f"{same_labels(found['one_pass'])}.\n",
        fit_of_most(found["fit_of_most"]),
        "Simulated crowds of 4,000 responses, on which nothing was chosen, in batches of 100,\n"
        "with restarts at a growth of half a percent (as it is) and 10 % at the least, on the\n"
        "way; three crowds of each kind, both orders. *Shared*: how often a task has one wrong\n"
        "class that all who err give.\n",
        simulated(found["simulated"]),
        beyond(found["beyond"]),
        "### What counts give up\n",
        f"{made(kept['counts']['made'])}.\n",
        'Each dataset in two halves: fit the first, save with `keep="counts"`, update with the\n'
        "second; macro-F less that of a fit of everything.\n",
        counts(found["counts"]),
        "### Updates\n",
        f"{made(kept['update']['made'])}.\n",
        "A thousand new responses into a model of a million (200,000 tasks, 1,000 workers, 4\n"
        "classes): milliseconds of processor time and, in brackets, sweeps over all tasks. Fits\n"
        "are given the responses as one table; an update puts it together, which is the column\n"
        "*joining*, and is among its time. *Apart*: how far probabilities are from those of\n"
        "`fit(start=)`, both with `tol=1e-6`.\n",
        update(found["update"]),
        "### Predictions and streams\n",
        f"{made(kept['stream']['made'])}.\n",
        speed(found["predict"], found["stream"], found["lines"]),
    ]
    return "\n".join(parts)


def one_pass(rows: dict[str, Any]) -> str:
    keys = [key for key in next(iter(rows.values())) if key != "fit"]
    body = []
    for name, row in rows.items():
        cells = [
            " → ".join(signed(float(np.mean(row[key][step]))) for step in STEPS) for key in keys
        ]
        body.append([NAMES[name], f"{row['fit']:.4f}", *cells, _range(row, keys)])
    means = [
        " → ".join(
            f"**{signed(float(np.mean([np.mean(row[key][step]) for row in rows.values()])))}**"
            for step in STEPS
        )
        for key in keys
    ]
    body.append(["**mean**", "", *means, _range_of_means(rows, keys)])
    head = (
        "",
        "fit",
        *(f"{key.rsplit(', ', 1)[0]}, {key.rsplit(', ', 1)[1]} a batch" for key in keys),
    )
    return table((*head, "single orders"), body)


def _range(row: dict[str, Any], keys: list[str]) -> str:
    single = [value for key in keys for value in row[key]["on the way"]]
    return _from_to(single)


def _range_of_means(rows: dict[str, Any], keys: list[str]) -> str:
    """Return the mean over datasets of single orders, from the lowest to the highest."""
    single = []
    for key in keys:
        by_dataset = np.array([row[key]["on the way"] for row in rows.values()])
        single += by_dataset.mean(axis=0).tolist()
    return _from_to(single)


def _from_to(values: list[float]) -> str:
    low, high = (signed(float(each)) for each in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def same_labels(rows: dict[str, Any]) -> str:
    keys = [key for key in next(iter(rows.values())) if key != "fit"]
    words = []
    for step in STEPS:
        share = np.mean(
            [np.mean(row[key][f"{step}, same"]) for row in rows.values() for key in keys]
        )
        words.append(f"{100.0 * share:.2f} % {step}")
    return ", ".join(words)


def fit_of_most(rows: dict[str, Any]) -> str:
    part = read_config(HERE)["fit_of_most"]
    mean = {name: float(np.mean(lost)) for name, lost in rows.items()}
    most = min(mean, key=lambda name: mean[name])
    others = max(abs(mean[name]) for name in rows if name != most)
    return (
        f"For comparison, a *fit* of {100.0 * part['share']:g} % of the responses, {part['draws']} "
        f"draws: {NAMES[most]} {signed(mean[most])} in the mean\n({_from_to(rows[most])}), all "
        f"others within {others:.4f}, the ten {signed(float(np.mean(list(mean.values()))))}.\n"
    )


def simulated(rows: dict[str, Any]) -> str:
    growths = [key for key in next(iter(rows.values())) if key != "fit"]
    body = []
    every: dict[str, list[float]] = {growth: [] for growth in growths}
    caught = []
    for name, row in rows.items():
        cells = []
        for growth in growths:
            lost = [each["on the way"] for order in ORDERS for each in row[growth][order]]
            every[growth] += lost
            cells.append(signed(float(np.mean(lost))))
        of_row = [each["caught up"] for order in ORDERS for each in row[growths[0]][order]]
        caught += of_row
        body.append([name, f"{row['fit']:.4f}", *cells, signed(float(np.mean(of_row)))])
    means = [f"**{signed(float(np.mean(every[growth])))}**" for growth in growths]
    body.append(["**mean**", "", *means, f"**{signed(float(np.mean(caught)))}**"])
    head = ("", "fit", *(f"{100.0 * float(growth):g} %" for growth in growths), "caught up")
    return table(head, body)


def beyond(found: dict[str, Any]) -> str:
    words = " and ".join(f"{signed(found[order]['on the way'])} ({order})" for order in ORDERS)
    return (
        f"A simulated crowd of {found['responses']:,} responses, more than are fitted anew, in\n"
        f"batches of 10,000: {words}, of a macro-F of {found['fit']:.4f}.\n"
    )


def counts(rows: dict[str, Any]) -> str:
    keys = ("tasks done", "tasks open")
    body = [[NAMES[name], *(signed(row[key]) for key in keys)] for name, row in rows.items()]
    means = (float(np.mean([row[key] for row in rows.values()])) for key in keys)
    body.append(["**mean**", *(f"**{signed(mean)}**" for mean in means)])
    head = ("", "tasks are done when dropped", "half of every task's responses dropped")
    return table(head, body)


def update(rows: dict[str, Any]) -> str:
    body = []
    for name, row in rows.items():
        cells = [f"{row[key][0]:.0f} ({row[key][1]})" for key in ("cold", "start", "update")]
        body.append([name, *cells, f"{row['join']:.0f}", f"{row['apart']:.0e}"])
    head = ("workers: what came", "`fit`", "`fit(start=)`", "`update`", "joining", "apart")
    return table(head, body)


def speed(predict: dict[str, Any], stream: dict[str, Any], lines: dict[str, Any]) -> str:
    n = predict["responses"]
    long = stream["long"]
    batch = read_config(HERE)["beyond"]["batch"]
    body = [
        ["predict one task with five responses", f"{predict['one_ms']:.2f} ms"],
        *(
            [f"predict {n:,} responses, {key}", _beside_a_sweep(predict[key])]
            for key in predict
            if key.startswith("K")
        ),
        [
            f"stream through Python, batches of {batch:,}, K = 4",
            f"{_thousands(stream['python'])} responses a second",
        ],
        [
            f"the same with counts and {long['open']:,} open tasks, {long['events']:,} events",
            f"{_thousands(long['speed'])} responses a second",
        ],
        [
            "its peak memory after half of them → at the end",
            f"{long['half_mib']:.0f} → {long['mib']:.0f} MiB",
        ],
    ]
    for keep in ("responses", "counts"):
        found = lines[keep]
        body.append(
            [
                f"JSON lines through the command, {lines['events']:,} events, `--keep {keep}`",
                f"{_thousands(found['speed'])} events a second, {found['mib']:.0f} MiB at most",
            ]
        )
    return table(("what", "found"), body)


def _beside_a_sweep(found: dict[str, float]) -> str:
    """Say how long it takes, and what part of a sweep over the same responses that is."""
    taken, turned, sweep = (1e3 * found[key] for key in ("predict", "turned", "sweep"))
    return (
        f"{taken:.0f} ms, {taken / sweep:.2f} of one sweep ({sweep:.0f} ms); "
        f"{turned / sweep:.2f} where workers and classes stand in another order"
    )


def _thousands(value: float) -> str:
    return f"{round(value, -3):,.0f}"


if __name__ == "__main__":
    main()
