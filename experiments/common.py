"""What the experiments share: running cases and parts, keeping results, tables, figures.

A script finds this module after `sys.path.append(str(Path(__file__).parents[1]))`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.research.paper.claims import table as table_rows
from tiebreak.research.paper.runner import RUNS, Row, finished, made_on, run_cases

ROOT = Path(__file__).parents[1]
RESULTS = "results.json"
NAMES = {
    "bluebird": "Bluebird",
    "dog": "Dog",
    "web": "Web",
    "music_genre": "Music",
    "zencrowd_india": "ZenCrowd India",
    "zencrowd_us": "ZenCrowd US",
    "rte": "RTE",
    "sentence_polarity": "Sentence Polarity",
    "trec": "TREC",
    "product": "Product",
}
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "tiebreak",  # the same numbers give the same file
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


# Running


def read_config(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "config.toml").read_text("utf-8"))


def by_bound(responses: Any, **options: Any) -> Any:
    """Fit four worker models; return the one with the largest bound, the plain one within 3."""
    import tiebreak as tb

    names = ("confusion", "kinds", "subtypes", "kinds+subtypes")
    fits = [tb.VariationalBayes(worker_model=name, **options).fit(responses) for name in names]
    best = max(fits, key=lambda model: float(model.bounds_[-1]))
    return best if best.bounds_[-1] > fits[0].bounds_[-1] + 3.0 else fits[0]


def estimator_options(options: dict[str, Any]) -> dict[str, Any]:
    """Turn the options of a method in config.toml into those of VariationalBayes."""
    import tiebreak as tb

    classes = {"mean_field": tb.MeanFieldOptions, "exact": tb.ExactLinkOptions}
    chosen = {name: value for name, value in options.items() if name not in classes}
    for name in classes.keys() & options:
        chosen["link_options"] = classes[name](**options[name])
    return chosen


@dataclass(frozen=True)
class Experiment:
    """How an experiment is run: its cases, what a case does, what is kept of it.

    A case is a named tuple with dataset, method and seed among its fields. Cases that differ in
    the seed only make up a cell of `results.json`, in the order of the seeds. With `unfold` a cell
    may have fewer seeds than are wanted, as it says itself (`seeds`): the first, without a gap.
    """

    folder: Path
    config: dict[str, Any]
    cases: Callable[[], list[Any]]  # all that config.toml asks for
    work: Callable[[Any], Row]  # runs a case
    cell_of: Callable[[Any], str]  # the name of its cell
    summary: Callable[[list[Row]], dict[str, Any]]  # what is kept of the rows of a cell
    about: Callable[[], dict[str, Any]] = dict  # what else is kept once
    unfold: Callable[[dict[str, Any]], list[Row]] | None = None  # the rows of a kept cell, by seed

    def main(self) -> None:
        """Run what is missing, or collect what was run: the command line of run.py."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--methods", default=",".join(self.config["methods"]))
        parser.add_argument("--datasets", default=",".join(self.config["datasets"]))
        parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
        parser.add_argument("--seeds", type=int, default=self.config["seeds"])
        parser.add_argument("--collect", action="store_true")
        parser.add_argument("--again", action="store_true", help="Run what results.json holds too.")
        chosen = parser.parse_args()
        if chosen.collect:
            self.collect()
            return
        kept = {} if chosen.again else self.kept_cells()
        methods = chosen.methods.split(",")
        datasets = chosen.datasets.split(",")
        last_seed = self.config["first_seed"] + chosen.seeds
        wanted = [
            case
            for case in self.cases()
            if case.method in methods
            and case.dataset in datasets
            and case.seed < last_seed
            and not self.is_kept(case, kept)
        ]
        run_cases(wanted, self.work, self.folder / RUNS, jobs=chosen.jobs, progress=progress())

    def is_kept(self, case: Any, kept: dict[str, Any]) -> bool:
        cell = kept.get(self.cell_of(case))
        if cell is None or self.unfold is None:
            return cell is not None
        return bool(case.seed < self.config["first_seed"] + cell["seeds"])

    def rows_of(self, cases: list[Any], rows: dict[Any, Row], cell: Any) -> list[Row]:
        """Return the rows of a cell, seed by seed, as far as they were run without a gap."""
        kept = self.unfold(cell) if self.unfold is not None and cell is not None else []
        found = []
        for at, case in enumerate(cases):
            if case not in rows and at >= len(kept):
                break
            found.append(rows[case] if case in rows else kept[at])
        return found

    def kept_cells(self) -> dict[str, Any]:
        path = self.folder / RESULTS
        return json.loads(path.read_text("utf-8"))["cells"] if path.exists() else {}

    def collect(self) -> None:
        """Put the cells that were run in full into `results.json`; the others stay as they were.

        With `unfold` those that were run in part are put there, too.
        """
        members: dict[str, list[Any]] = {}
        for case in self.cases():
            members.setdefault(self.cell_of(case), []).append(case)
        kept = self.kept_cells()
        cells = {key: kept[key] for key in members if key in kept}
        rows = finished(self.folder / RUNS, type(self.cases()[0]))
        for key, of_cell in members.items():
            found = self.rows_of(of_cell, rows, kept.get(key))
            if len(found) == len(of_cell) or (found and self.unfold is not None):
                cells[key] = self.summary(found)
        seeds = {name: self.config[name] for name in ("seeds", "first_seed")}
        about = json.dumps({**made_on(), **seeds, **self.about()})
        lines = ",\n".join(
            f"{json.dumps(key)}:{json.dumps(cells[key], separators=(',', ':'))}"
            for key in sorted(cells)
        )
        (self.folder / RESULTS).write_text(f'{{"about":{about},\n"cells":{{\n{lines}\n}}}}\n')
        print(f"{len(cells)} of {len(members)} cells kept")


def progress() -> Callable[[int, int], None]:
    """Return what prints every so often how many cases are finished."""
    start = time.time()

    def show(n_done: int, n_all: int) -> None:
        if n_done % 20 == 0 or n_done == n_all:
            print(f"{n_done:,} of {n_all:,}, {time.time() - start:,.0f} s", flush=True)

    return show


def run_parts(folder: Path, parts: Mapping[str, Callable[[], dict[str, Any]]]) -> None:
    """Run the parts that the command line names, or all; each is kept as it ends."""
    path = folder / RESULTS
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in sys.argv[1:] or parts:
        with warnings.catch_warnings(action="ignore"):
            found = parts[name]()
        kept[name] = rounded(found, lambda value: round(value, 4) if np.isfinite(value) else None)
        kept["about"] = made_on()
        write_parts(path, {key: _one_a_line(part) for key, part in kept.items()})
        print(f"{name}: done", flush=True)


def write_parts(path: Path, parts: Mapping[str, str]) -> None:
    """Write parts that are JSON already, by name."""
    lines = ",\n".join(f"{json.dumps(key)}: {parts[key]}" for key in sorted(parts))
    path.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def _one_a_line(part: dict[str, Any]) -> str:
    rows = (f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in part.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def rounded(value: Any, rule: Callable[[float], Any]) -> Any:
    """Round every float in dictionaries and lists by a rule."""
    if isinstance(value, dict):
        return {key: rounded(each, rule) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each, rule) for each in value]
    return rule(value) if isinstance(value, float) else value


# Results


class Difference(NamedTuple):
    """A paired difference over seeds: its mean and the standard error of that."""

    mean: float
    error: float

    @classmethod
    def between(cls, ours: np.ndarray, theirs: np.ndarray) -> Difference:
        """Return ours − theirs, seed by seed; nan where one of them was not run."""
        if not (len(ours) and len(theirs)):
            return cls(np.nan, np.nan)
        apart = ours - theirs
        return cls(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart))))

    def __str__(self) -> str:
        return f"{signed(self.mean)} ± {self.error:.4f}"


def signed(value: float) -> str:
    """Write a difference with its sign; what rounds to nothing has none."""
    text = f"{value:+.4f}"
    return "0.0000" if float(text) == 0.0 else text.replace("-", "−")


class Cells:
    """What `results.json` holds: `about` all of it, and what was measured by cell."""

    def __init__(self, folder: Path) -> None:
        kept = json.loads((folder / RESULTS).read_text("utf-8"))
        self.about: dict[str, Any] = kept["about"]
        self.cells: dict[str, dict[str, Any]] = kept["cells"]


def mean(values: np.ndarray) -> float:
    """Return the mean; nan of nothing."""
    return float(values.mean()) if len(values) else np.nan


# Pages


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return table_rows(head, rows) + "\n"


def percent(share: float) -> str:
    return f"{100.0 * share:g} %"


def made(about: dict[str, Any]) -> str:
    """Say when and where results were made."""
    return f"Made on {about['date']}, {about['machine']}, Python {about['python']}"


def put(page: Path, text: str, script: str, mark: str = "tables") -> None:
    """Replace what stands between the two marks of a script in a page; the words around stay."""
    begin = f"<!-- {mark}: begin ({Path(script).relative_to(ROOT)}) -->"
    end = f"<!-- {mark}: end -->"
    before, rest = page.read_text("utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", "utf-8")
    print(f"wrote {page.relative_to(ROOT)}")


# Figures


def draw_datasets(
    datasets: Sequence[str], draw: Callable[[Any, str], None], x_label: str, path: Path
) -> None:
    """Draw one panel for each of ten datasets, with one legend, into a file."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        sheet, axes = plt.subplots(2, 5, figsize=(11.0, 5.0), constrained_layout=True)
        for panel, dataset in zip(axes.flat, datasets, strict=True):
            draw(panel, dataset)
        for panel in axes[:, 0]:
            panel.set_ylabel("macro-F")
        for panel in axes[1]:
            panel.set_xlabel(x_label)
        lines, labels = axes.flat[0].get_legend_handles_labels()
        sheet.legend(lines, labels, loc="outside lower center", ncol=4, frameon=False)
        save(sheet, path)


def pyplot() -> Any:
    """Import pyplot for files only: no window, no fonts of this machine."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    return plt


def save(figure: Any, path: Path) -> None:
    """Write an SVG without its date and without blanks at the ends of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    lines = [line.rstrip() for line in path.read_text("utf-8").splitlines()]
    short = re.sub(r"(\d\.\d\d)\d+", r"\1", "\n".join(lines))  # a hundredth of a point is enough
    path.write_text(short + "\n", "utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
