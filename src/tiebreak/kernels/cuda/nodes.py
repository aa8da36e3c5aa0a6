"""Nodes of exact links on the device: scored, inferred tree by tree, and counted there."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.cuda import device, plan
from tiebreak.kernels.cuda.sweeper import EVERYONE, CudaSweeper
from tiebreak.kernels.layout import LINKED, ByTask, Codes, Floats, Swept
from tiebreak.kernels.network import Forest
from tiebreak.kernels.sweeper import Logs

TIED_SPAN = 2
MOST_CLASSES = 64  # bits that say which classes are forbidden


class CudaNodes:
    """Owns the responses of nodes and their q on the device; a `NodeSweeper`."""

    def __init__(
        self, nodes: ByTask, q: Floats, forest: Forest, forbidden: tuple[Codes, Codes]
    ) -> None:
        cp = device.cupy()
        sweeper = CudaSweeper(nodes, q)
        crowd = sweeper.crowd
        self._sweeper = sweeper
        self._n_counted = sweeper.count_ones(EVERYONE)
        place = cp.empty(nodes.n_tasks, cp.uint32)
        filled = cp.flatnonzero(crowd.order >= 0)
        place[crowd.order[filled]] = filled.astype(cp.uint32)
        tied = place[cp.asarray(np.flatnonzero(nodes.role == LINKED))]
        is_here = cp.ones(len(tied), dtype=bool)
        in_trees = cp.asarray(forest.visit)
        is_here[in_trees] = False
        self._rest = tied[is_here]
        self._first = cp.asarray(forest.first.astype(np.uint32))
        self._parent = cp.asarray(forest.parent)
        self._at = tied[in_trees]
        self._forbidden = cp.asarray(_bits(len(tied), forbidden))[in_trees]
        n_states = crowd.n_states
        self._odds = cp.zeros((n_states - 1, crowd.n_places), cp.float32)
        self._total = cp.empty((len(self._at), n_states))
        self._up = cp.empty((len(self._at), n_states))
        self._values = cp.zeros(len(forest.first) - 1)

    def score(self, logs: Logs) -> Floats:
        """Score all nodes and infer the small trees; return the scores of the other tied ones."""
        cp = device.cupy()
        sweeper = self._sweeper
        sweeper.set_logs(logs)
        sweeper.run()  # nodes without links to others
        self._score_slices()
        self._score_segments()
        self._infer_trees()
        if not len(self._rest):
            return np.empty((0, sweeper.crowd.n_states))
        odds = self._odds[:, self._rest].T.astype(cp.float64)
        return np.asarray(cp.pad(odds, ((0, 0), (1, 0))).get())

    def count(self, beliefs: Floats) -> Swept:
        """Take the beliefs of those others, and return what all nodes say together."""
        cp = device.cupy()
        sweeper = self._sweeper
        if len(self._rest):
            sweeper.q_there[:, self._rest] = cp.asarray(beliefs[:, 1:].T, dtype=cp.float32)
        sweeper.count(TIED_SPAN)
        values = float(self._values.sum())
        swept = sweeper.fetch(self._n_counted)
        return swept._replace(entropy=swept.entropy + values)

    def put(self, q: Floats) -> None:
        """Let all nodes start at q."""
        self._sweeper.put(q)

    def close(self) -> None:
        """Give the device's memory back."""
        del self._odds, self._total, self._up, self._values
        self._sweeper.close()

    def _score_slices(self) -> None:
        crowd = self._sweeper.crowd
        span = crowd.slices.spans[TIED_SPAN]
        if not span.n_tasks:
            return
        device.launch(
            device.kernel("score_slices", crowd.n_states, crowd.slices.bits),
            (span.high - span.low) * plan.LANES,
            crowd.slices.words,
            crowd.slices.starts[span.low :],
            np.uint32(span.high - span.low),
            np.uint32(span.low * plan.LANES),
            np.uint32(crowd.n_places),
            np.uint32(span.first + span.n_tasks),
            self._sweeper.scores,
            self._sweeper.log_odds,
            self._odds,
        )

    def _score_segments(self) -> None:
        crowd = self._sweeper.crowd
        span = crowd.segments.spans[TIED_SPAN]
        if not span.n_tasks:
            return
        partial = self._sweeper.score_segments(span)
        device.launch(
            device.kernel("add_segments", crowd.n_states, crowd.slices.bits),
            span.n_tasks,
            partial,
            crowd.segments.first[span.first :] - np.uint32(span.low),
            np.uint32(span.n_tasks),
            np.uint32(crowd.segment_place + span.first),
            np.uint32(crowd.n_places),
            self._sweeper.log_odds,
            self._odds,
        )

    def _infer_trees(self) -> None:
        crowd = self._sweeper.crowd
        n_trees = len(self._values)
        device.launch(
            device.kernel("infer_trees", crowd.n_states, crowd.slices.bits),
            n_trees,
            self._first,
            np.uint32(n_trees),
            self._parent,
            self._at,
            np.uint32(crowd.n_places),
            self._forbidden,
            self._odds,
            self._total,
            self._up,
            self._sweeper.q_there,
            self._values,
            self._sweeper.sums,
        )


def fits(nodes: ByTask, q: Floats) -> bool:
    """Whether the nodes lie on the device as they must: in one piece, with room to work."""
    n_tasks, n_states = q.shape
    if n_states > MOST_CLASSES:
        return False
    must, words = plan.bytes_needed(len(nodes.code), n_tasks, n_states, nodes.n_codes)
    packing = 4 * len(nodes.code) + 24 * n_tasks
    messages = n_tasks * (4 * n_states + 16 * n_states + 32)
    return bool(must + words + packing + messages <= device.memory_limit())


def _bits(n_tied: int, forbidden: tuple[Codes, Codes]) -> Any:
    """Return which classes are forbidden to each tied node, a bit each."""
    bits = np.zeros(n_tied, dtype=np.uint64)
    node, label = forbidden
    np.bitwise_or.at(bits, node, np.uint64(1) << label.astype(np.uint64))
    return bits
