"""Plans over tiny crowds, and results that nobody measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from refusals import noted

from tiebreak.research.paper import Reproduction
from tiebreak.research.paper.runner import Row
from tiebreak.research.paper.runs import METHODS, Measured, Results

NUMBERS = (0, 10, 20, 30, 40)  # 30 and 40 are the upper half
N_RUNS = 4


def tiny_plan(*names: str, n_runs: int = 2, n_steps: int = 2) -> Reproduction:
    """Plan tiny crowds, which are not what the catalogue says."""
    with noted("dataset-counts"):
        return Reproduction.of(names, n_runs, n_steps)


def without_time(rows: Iterable[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def measured(
    n_classes: int = 2,
    broken: Mapping[str, float] | None = None,
    n_runs: int = N_RUNS,
    **macro_f: Any,
) -> Measured:
    """Make up a dataset: macro-F by method, over runs and numbers; 0.8 where nothing is said."""
    shape = n_runs, len(NUMBERS)
    figures: dict[str, dict[str, Any]] = {}
    for method, about in METHODS.items():
        score = np.array(np.broadcast_to(macro_f.get(method, 0.8), shape), dtype=np.float64)
        figures[method] = dict.fromkeys(
            ("macro_f", "micro_f", "macro_f_free", "micro_f_free"), score
        )
        if about.given not in ("nothing", "labels"):
            links = np.broadcast_to(np.array(NUMBERS, dtype=np.float64), shape)
            share = (broken or {}).get(method, 0.0)
            figures[method] |= {"n_links": links, "n_broken": links * share}
        if about.options is not None and "link_options" in about.options:
            figures[method]["unsettled"] = np.zeros(shape)
    return Measured("made up", n_classes, 80, NUMBERS, figures)


def results(**datasets: Measured) -> Results:
    n_runs = len(next(iter(datasets.values())).of("vb"))
    return Results({"version": "0", "runs": n_runs, "steps": len(NUMBERS) - 1}, datasets)
