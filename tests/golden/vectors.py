"""Golden numbers, and the crowds they belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.data import Ids, Responses
from tiebreak.inference import (
    ClassPrior,
    ConfusionMatrices,
    Independent,
    Problem,
    dirichlet,
    lay_out,
)
from tiebreak.kernels import Backend, Floats, reference
from tiebreak.links.graph import LinkCodes

GOLDEN = json.loads(Path(__file__).with_name("inference.json").read_text())


def vector(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = GOLDEN["vectors"][name]
    return found["inputs"], found["expected"]


def crowd(name: str) -> Responses:
    data = GOLDEN["datasets"][name]
    rows = np.array(data["responses"], dtype=np.int32)
    task, worker, label = (np.ascontiguousarray(column) for column in rows.T)
    tasks, workers, classes = (Ids(range(data[size])) for size in ("N", "M", "K"))
    return Responses.from_codes(task, worker, label, tasks, workers, classes)


def problem(name: str, prior: str = "diag", backend: Backend = reference) -> Problem:
    responses = crowd(name)
    word = "diagonal" if prior == "diag" else prior
    return Problem(
        lay_out(responses),
        Independent(ClassPrior(np.ones(responses.n_classes))),
        ConfusionMatrices(
            dirichlet.confusion_prior(word, responses.workers, responses.n_classes),
            responses.n_workers,
        ),
        backend,
    )


def link_codes(must: list[list[int]], cannot: list[list[int]]) -> LinkCodes:
    pairs = np.array([*must, *cannot], dtype=np.int32).reshape(-1, 2)
    kind = np.array([True] * len(must) + [False] * len(cannot))
    return LinkCodes(pairs.min(axis=1), pairs.max(axis=1), kind, None, None, np.arange(len(pairs)))


def close(found: Floats | float, expected: object, tol: float = 1e-9) -> None:
    """Compare as the vectors ask: |x − y| / max(1, |y|) ≤ tol."""
    want = np.asarray(expected, dtype=np.float64)
    gap = np.abs(np.asarray(found) - want) / np.maximum(1.0, np.abs(want))
    assert gap.max(initial=0.0) <= tol, f"off by {gap.max():.3g}"
