"""What was asked of the ratios, and which results fall short of it: the guard of `make bench`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.measure import RESULTS


class Asked(NamedTuple):
    """One ratio and its limit."""

    result: str
    what: str
    ratio: Callable[[dict[str, Any]], float]
    at_least: float = 0.0
    at_most: float = float("inf")


def _sweep(n_classes: int, name: str) -> Callable[[dict[str, Any]], float]:
    return lambda result: next(r[name] for r in result["rows"] if r["classes"] == n_classes)


EVERY = (
    Asked("crowd_kit", "crowd-kit's iteration, K = 4, 1e6", lambda r: r["iteration"]["ratio"], 30),
    Asked("sweep", "crowd-kit's iteration, K = 2, 1e7", _sweep(2, "times_crowd_kit"), 90),
    Asked("sweep", "crowd-kit's iteration, K = 4, 1e7", _sweep(4, "times_crowd_kit"), 50),
    Asked("sweep", "sparse matrices, K = 2", _sweep(2, "times_sparse"), 8),
    Asked("sweep", "sparse matrices, K = 4", _sweep(4, "times_sparse"), 8),
    Asked("sweep", "sums of the codes, K = 2", _sweep(2, "sums_of_codes"), at_most=12),
    Asked(
        "linked_sweep",
        "a sweep with links beside one without",
        lambda r: max(row["sweep"]["ratio"] for row in r["rows"]),
        at_most=2.5,
    ),
    Asked(
        "judges",
        "runs, fit and report of judges beside a plain fit",
        lambda r: max(row["times_a_plain_fit"] for row in r["rows"]),
        at_most=10,
    ),
    Asked(
        "asking",
        "a refit after 20 answers beside the first fit",
        lambda r: max(row["refit_share"] for row in r["rows"]),
        at_most=0.333,
    ),
    Asked(
        "asking",
        "a refit after 20 answers of two kinds beside the first fit",
        lambda r: max(row["mixed_refit_share"] for row in r["rows"]),
        at_most=0.333,
    ),
    Asked(
        "asking",
        "seconds to choose 20 questions among 100,000 tasks, K = 10",
        lambda r: statistics.median(r["rows"][-1]["mixed_choosing_seconds"]),
        at_most=0.5,
    ),
)


def missed(names: list[str]) -> list[str]:
    """Say which of the named results fall short."""
    words = []
    for asked in EVERY:
        path = RESULTS / f"{asked.result}.json"
        if asked.result not in names or not path.exists():
            continue
        found = asked.ratio(json.loads(path.read_text()))
        if not asked.at_least <= found <= asked.at_most:
            limit = f"at least {asked.at_least}" if asked.at_least else f"at most {asked.at_most}"
            words.append(f"{asked.what}: {found} ×, asked for {limit} ×")
    return words
