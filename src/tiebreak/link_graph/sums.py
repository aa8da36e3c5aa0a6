"""Sums over groups: what closed links say about probabilities and labels, pair by pair unseen."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Mask, Offsets
from tiebreak.link_graph.closure import Closure
from tiebreak.link_graph.codes import AnyCodes, LinkCodes


def violated(label: AnyCodes, links: LinkCodes) -> Mask:
    """Say of each given link whether the labels break it.

    >>> links = LinkCodes(
    ...     *np.array([[0, 0], [1, 2]], np.int32), np.array([True, False]), None, None, np.arange(2)
    ... )
    >>> violated(np.array([0, 1, 1]), links).tolist()
    [True, False]
    """
    return np.asarray((label[links.left] == label[links.right]) != links.must)


def count_violated_closed(label: AnyCodes, closure: Closure, n_classes: int) -> int:
    """Count the closed pairs that the labels break.

    Implements [eq:violations], h_A(k) the tasks of group A with label k:

        N = Σ_A [ C(|A|, 2) − Σ_k C(h_A(k), 2) ] + Σ_(A,B) Σ_k h_A(k) h_B(k)
    """
    from scipy.sparse import csr_array

    cell, count = np.unique(closure.group * np.int64(n_classes) + label, return_counts=True)
    count = count.astype(np.int64)
    inside = closure.n_must - int(_pairs(count).sum())
    cells = np.divmod(cell, n_classes)
    histogram = csr_array((count, cells), shape=(closure.n_groups, n_classes))
    across = histogram[closure.left].multiply(histogram[closure.right])
    return inside + int(across.sum())


def _pairs(n: Offsets) -> Offsets:
    return np.asarray(n * (n - 1) // 2)
