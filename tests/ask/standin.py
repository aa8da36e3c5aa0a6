"""A stand-in for `tiebreak.selection.pairs`, until the real one is there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak import selection


class Pairs(NamedTuple):
    rows: list[tuple[Any, Any, float]]

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def pairs(
    model: Any, n: int, strategy: str = "adaptive", among: Any = None, random_state: Any = None
) -> Any:
    """Return BVSB pairs that are not known or implied, with a made-up gain."""
    from tiebreak.ask.walks import Walks

    rng = np.random.default_rng(random_state)
    tasks = list(model.tasks_)
    walks = Walks(len(model.classes_))
    if model.links_ is not None:
        for left, right, link in model.links_.pairs():
            walks.add(tasks.index(left), tasks.index(right), must=link == "must")
    drawn = selection.bvsb_pairs(model.probabilities_, 4 * n + 100, random_state=rng)
    allowed = set(tasks if among is None else among)
    sure = model.probabilities_.max(axis=1)
    rows = []
    for i, j in zip(drawn.left.tolist(), drawn.right.tolist(), strict=True):
        if walks.implied(i, j) is None and {tasks[i], tasks[j]} <= allowed:
            gain = float("nan") if strategy == "random" else 2.0 - sure[i] - sure[j]
            rows.append((tasks[i], tasks[j], gain))
    return Pairs(rows[:n])


def install() -> None:
    """Put the stand-in where the real one will be."""
    if not hasattr(selection, "pairs"):
        selection.pairs = pairs  # type: ignore[attr-defined]
