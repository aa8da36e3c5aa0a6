"""Fit every method to the same random links, clean and partly wrong; resumable.

    python experiments/02_links/run.py [--methods a,b] [--datasets a,b] [--jobs 2]

Each fit is a line of `runs.jsonl` beside this file (not kept in the repository). With --collect,
complete cells go to `results.json`, which is kept, and which `report.py` turns into tables and
figures. A second call skips what either file holds already.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
import tomllib
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
RUNS, RESULTS = HERE / "runs.jsonl", HERE / "results.json"
CONFIG = tomllib.loads((HERE / "config.toml").read_text())
FIGURES = ("macro_f", "micro_f", "log_loss", "calibration_error", "violated", "seconds", "dropped")


class Case(NamedTuple):
    dataset: str
    size: float
    wrong: float
    seed: int
    method: str


def cases(methods: list[str] | None = None, datasets: list[str] | None = None) -> list[Case]:
    found = []
    methods, datasets = methods or list(CONFIG["methods"]), datasets or CONFIG["datasets"]
    first = CONFIG["first_seed"]
    seeds = range(first, first + CONFIG["seeds"])
    grid = product(datasets, CONFIG["sizes"], CONFIG["wrong"], seeds, methods)
    for case in map(Case._make, grid):
        method = CONFIG["methods"][case.method]
        is_first = (case.seed, case.size, case.wrong) == (first, CONFIG["sizes"][0], 0.0)
        if method.get("once") and not is_first:
            continue
        when = method.get("when", "always")
        if when == "always" or (when == "clean") == (case.wrong == 0.0):
            found.append(case)
    return found


@cache
def load(name: str) -> Any:
    import tiebreak as tb

    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    return tb.read_responses(folder / "responses.csv"), tb.read_gold(folder / "gold.csv")


def fit(case: Case) -> dict[str, Any]:
    import tiebreak as tb
    from tiebreak.simulate import links as draw_links

    responses, gold = load(case.dataset)
    n_links = round(case.size * len(gold))
    links = draw_links(gold, n_links, wrong=case.wrong, random_state=case.seed)
    method = CONFIG["methods"][case.method]
    prior = "uniform" if case.dataset in CONFIG["uniform_prior"] else "diagonal"
    options = {"confusion_prior": prior, "backend": "numba", "n_threads": 1}
    model = tb.VariationalBayes(**options, **method.get("options", {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(responses, links=links if method.get("links", True) else None)
        seconds = time.perf_counter() - start
    report = tb.evaluate.report(model.labels_, gold, links)
    return {
        **case._asdict(),
        "macro_f": round(report.macro_f, 6),
        "micro_f": round(report.micro_f, 6),
        "log_loss": round(report.log_loss, 5),
        "calibration_error": round(report.calibration_error, 5),
        "violated": report.violated_given,
        "seconds": round(seconds, 4),
        "dropped": n_dropped(responses, links) if case.method == "grid" else 0,
    }


def n_dropped(responses: Any, links: Any) -> int:
    """Count the cannot-links whose tasks must-links join: the grid's closure drops them."""
    from tiebreak import link_graph

    return len(link_graph.close(responses.n_tasks, links.on(responses.tasks)).conflicts)


def work(case: Case) -> str:
    return json.dumps(fit(case))


def run(todo: list[Case], jobs: int) -> None:
    print(f"{len(todo):,} fits to do")
    start = time.time()
    with ProcessPoolExecutor(jobs) as pool, RUNS.open("a") as out:
        for done, line in enumerate(pool.map(work, todo, chunksize=4), start=1):
            out.write(line + "\n")
            out.flush()
            if done % 200 == 0 or done == len(todo):
                print(f"{done:,} of {len(todo):,}, {time.time() - start:,.0f} s", flush=True)


def finished() -> set[Case]:
    """Return the cases that `runs.jsonl` or the complete cells of `results.json` hold."""
    done = {Case(*(row[name] for name in Case._fields)) for row in lines()}
    kept = kept_cells()
    return done | {case for case in cases() if cell_of(case) in kept}


def lines() -> list[dict[str, Any]]:
    if not RUNS.exists():
        return []
    return [json.loads(line) for line in RUNS.read_text().splitlines()]


def kept_cells() -> dict[str, Any]:
    if not RESULTS.exists():
        return {}
    kept: dict[str, Any] = json.loads(RESULTS.read_text())["cells"]
    return kept


def cell_of(case: Case) -> str:
    return f"{case.dataset}/{case.size:.2f}/{case.wrong:.2f}/{case.method}"


def collect() -> None:
    """Gather runs by dataset, size, wrong and method, seeds in order; keep complete cells."""
    runs = {Case(*(row[name] for name in Case._fields)): row for row in lines()}
    wanted: dict[str, list[Case]] = {}
    for case in cases():
        wanted.setdefault(cell_of(case), []).append(case)
    kept = kept_cells()
    cells = {key: kept[key] for key in wanted if key in kept}
    for key, members in wanted.items():
        if all(case in runs for case in members):
            rows = [runs[case] for case in members]
            cells[key] = {name: [row[name] for row in rows] for name in FIGURES}
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "seeds": CONFIG["seeds"],
        "first_seed": CONFIG["first_seed"],
    }
    compact = {"separators": (",", ":")}
    rows = (f"{json.dumps(key)}:{json.dumps(cells[key], **compact)}" for key in sorted(cells))
    text = f'{{"about":{json.dumps(about)},\n"cells":{{\n' + ",\n".join(rows) + "\n}}\n"
    RESULTS.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(CONFIG["methods"]))
    parser.add_argument("--datasets", default=",".join(CONFIG["datasets"]))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=CONFIG["seeds"])
    parser.add_argument("--collect", action="store_true")
    chosen = parser.parse_args()
    if chosen.collect:
        collect()
        return
    CONFIG["seeds"] = chosen.seeds
    done = finished()
    wanted = cases(chosen.methods.split(","), chosen.datasets.split(","))
    run([case for case in wanted if case not in done], chosen.jobs)


if __name__ == "__main__":
    main()
