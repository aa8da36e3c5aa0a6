"""Closed links pair by pair, and sums over groups: slow or unused in the package, exact."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels import Floats, Offsets
from tiebreak.links.graph import Closure, pair_keys


def closed_pairs(closure: Closure) -> tuple[Offsets, Offsets]:
    """Write out the closed must- and cannot-linked pairs of tasks, (n, 2) each, sorted.

    The number of pairs grows with the square of the tasks: for small inputs and tests only.
    """
    i, j = np.triu_indices(len(closure.group), k=1)
    a = closure.group[i]
    b = closure.group[j]
    pair = pair_keys(a, b, closure.n_groups)
    cannot = np.isin(pair, pair_keys(closure.left, closure.right, closure.n_groups))
    pairs = np.column_stack([i, j]).astype(np.int64)
    return pairs[a == b], pairs[cannot]


def field(q: Floats, closure: Closure) -> Floats:
    """Return what closed links say about every task, (n_tasks, n_classes).

    Implements [eq:link-field], for task i of group A, S_A the sum of q over A:

        f_i = S_A − q_i − Σ_B S_B    over the groups B apart from A
    """
    inside = _group_sums(q, closure)
    across = np.zeros_like(inside)
    np.add.at(across, closure.left, inside[closure.right])
    np.add.at(across, closure.right, inside[closure.left])
    return np.asarray((inside - across)[closure.group] - q)


def link_term(q: Floats, closure: Closure) -> float:
    """Return Σ w_ij ⟨q_i, q_j⟩ over all closed links, each pair once: [eq:link-term]."""
    inside = _group_sums(q, closure)
    must = ((inside**2).sum() - (q**2).sum()) / 2.0
    return float(must - (inside[closure.left] * inside[closure.right]).sum())


def _group_sums(q: Floats, closure: Closure) -> Floats:
    by_class = [np.bincount(closure.group, column, closure.n_groups) for column in q.T]
    return np.column_stack(by_class)
