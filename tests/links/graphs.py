"""Small graphs of links, and slow exact answers about them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tiebreak.links.graph import LinkCodes, distinct

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "links.json").read_text(encoding="utf-8")
)

Pair = tuple[int, int]
Rows = list[tuple[int, int, bool]]
Labellings = npt.NDArray[np.int64]


def codes(rows: Rows) -> LinkCodes:
    """Return links from (left, right, must) rows."""
    table = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    must = np.array([row[2] for row in rows], dtype=bool)
    return distinct(table[:, 0], table[:, 1], must, None, None)


def golden_codes(case: dict[str, Any]) -> LinkCodes:
    rows = [(a, b, True) for a, b in case["must"]] + [(a, b, False) for a, b in case["cannot"]]
    return codes(rows)


@st.composite
def graphs(draw: st.DrawFn, max_tasks: int = 7, max_links: int = 14) -> tuple[int, Rows]:
    """Draw a number of tasks and links between them."""
    n_tasks = draw(st.integers(2, max_tasks))
    task = st.integers(0, n_tasks - 1)
    pair = st.tuples(task, task, st.booleans()).filter(lambda row: row[0] != row[1])
    return n_tasks, draw(st.lists(pair, max_size=max_links))


@st.composite
def cannot_graphs(draw: st.DrawFn, max_tasks: int = 7) -> tuple[int, Rows]:
    """Draw cannot-links alone, dense enough that few classes often do not suffice."""
    n_tasks = draw(st.integers(2, max_tasks))
    pairs = list(itertools.combinations(range(n_tasks), 2))
    left_out = draw(st.lists(st.sampled_from(pairs), max_size=len(pairs)))
    return n_tasks, [(a, b, False) for a, b in pairs if (a, b) not in left_out]


def fix_point(n_tasks: int, rows: Rows) -> tuple[set[Pair], set[Pair]]:
    """Apply must∘must = must and must∘cannot = cannot until nothing changes."""
    must = {pair for a, b, is_must in rows if is_must for pair in ((a, b), (b, a))}
    cannot = {pair for a, b, is_must in rows if not is_must for pair in ((a, b), (b, a))}
    while True:
        new_must = {(a, d) for a, b in must for c, d in must if b == c and a != d} - must
        new = {(a, d) for a, b in must for c, d in cannot if b == c and a != d}
        new |= {(d, a) for a, d in new}
        if not new_must and new <= cannot:
            break
        must |= new_must
        cannot |= new
    return {p for p in must if p[0] < p[1]}, {p for p in cannot if p[0] < p[1]}


def labellings(n: int, n_classes: int) -> Labellings:
    """Return all labellings of n things, one per row."""
    return np.array(list(itertools.product(range(n_classes), repeat=n)), dtype=np.int64)


def that_keep(labels: Labellings, links: LinkCodes) -> Labellings:
    """Return the labellings that break no link."""
    equal = labels[:, links.left] == labels[:, links.right]
    return np.asarray(labels[(equal == links.must).all(axis=1)])
