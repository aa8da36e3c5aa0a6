"""A sweeper on a CUDA device: codes, q, tables and counts stay there between sweeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.kernels.cuda import device, plan
from tiebreak.kernels.cuda.dirichlet import CudaDirichletStep
from tiebreak.kernels.cuda.plan import COUNT, ONE, PADS, SCORE, Span
from tiebreak.kernels.layout import ByTask, Floats, Mask, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper

IMPOSSIBLE = -3e3  # for a log of zero: float32 still tells other states apart beside it
FREE_SPAN = 0
KNOWN_SPAN = 1
EVERYONE = (0, 1, 2)


class CudaSweeper(Sweeper):
    """Owns responses and q on the device.

    `copies` says for how many tasks each row of `tasks` counts; None: one each. What lies on the
    device is open to the other modules of this package: tables `scores` and `log_odds`, `q_there`,
    `counts` and `sums`.
    """

    def __init__(self, tasks: ByTask, q: Floats, copies: Floats | None = None) -> None:
        cp = device.cupy()
        attributes = cp.cuda.Device().attributes
        self.tasks = tasks
        self._copies = copies
        self._blocks = int(attributes["MultiProcessorCount"])
        n_states = q.shape[1]
        room = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.crowd = plan.lay_out(tasks, n_states, copies, room)
        columns = n_states - 1
        n_rows = tasks.n_codes + PADS
        self.q_there = cp.zeros((columns, self.crowd.n_places), cp.float32)
        self.scores = cp.zeros((n_rows, columns), cp.float32)
        self.log_odds = cp.zeros(columns, cp.float32)
        # Sums over tasks and counts lie in one array, so that one call clears them.
        self._both = cp.zeros(n_states + 1 + n_rows * columns, cp.uint64)
        self.sums = self._both[: n_states + 1]
        self.counts = self._both[n_states + 1 :].reshape(n_rows, columns)
        n_segments = len(self.crowd.segments.task)
        self._partial = cp.zeros(max(n_segments, 1) * columns, cp.float64)
        self._here = np.require(q, np.float64, ["C", "W"])  # and where q is fetched to
        self.put(self._here)
        self.n_counted = self.count_ones((FREE_SPAN, KNOWN_SPAN))

    def sweep(self, logs: Logs) -> Swept:
        self.set_logs(logs)
        self.run()
        return self.fetch(self.n_counted)

    def fetch(self, counted: Counted | None) -> Swept:
        """Fetch counts, where tasks were counted, and sums."""
        sums = self.sums.get()
        change = float(sums[-1:].astype(np.uint32).view(np.float32)[0])
        entropy = float(sums[-2]) / ONE
        if counted is None:
            shape = (self.tasks.n_codes, self.crowd.n_states)
            return Swept(np.zeros(shape), np.zeros(shape[1]), change, entropy)
        totals = self._totals(sums, counted.n_tasks)
        return Swept(self._all_columns(counted.by_code), totals, change, entropy)

    def run(self) -> None:
        """Sweep with the tables that lie on the device; counts and sums stay there."""
        self._clear()
        if self.crowd.shared.passes == 2:
            self._pass_slices(FREE_SPAN, SCORE)
            self._pass_slices(FREE_SPAN, COUNT)
        else:
            self._pass_slices(FREE_SPAN, SCORE | COUNT)
        self._pass_segments(FREE_SPAN, SCORE | COUNT)
        self.count(KNOWN_SPAN)

    def count(self, span: int) -> None:
        """Add the tasks of a span to counts and sums, as q is."""
        self._pass_slices(span, COUNT)
        self._pass_segments(span, COUNT)

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        with device.says_what_did_not_fit():
            return self._tally(chosen)

    def _tally(self, chosen: Mask | None) -> tuple[Floats, Floats]:
        cp = device.cupy()
        n_of_code = self.count_ones(EVERYONE, chosen)
        kept = self.q_there
        if chosen is not None:
            self.q_there = kept * self._by_place(chosen).astype(cp.float32)
        self._clear()
        for span in EVERYONE:
            self.count(span)
        self.q_there = kept
        counts = self._all_columns(n_of_code.by_code)
        cp.cuda.Device().synchronize()
        return counts, self._totals(self.sums.get(), n_of_code.n_tasks)

    def entropy(self) -> float:
        """Return Σ H(q) over the free tasks, which lie side by side."""
        cp = device.cupy()
        total = 0.0
        slices = self.crowd.slices.spans[FREE_SPAN]
        segments = self.crowd.segments.spans[FREE_SPAN]
        copies = self.crowd.segments.copies
        for span, begin in ((slices, 0), (segments, self.crowd.segment_place)):
            first = begin + span.first
            q = self.q_there[:, first : first + span.n_tasks]
            of_task = _plogp(cp.maximum(1.0 - q.sum(axis=0, dtype=cp.float64), 0.0))
            for column in q:
                of_task += _plogp(column.astype(cp.float64))
            if copies is not None and span is segments:
                of_task *= copies[span.first : span.first + span.n_tasks]
            total -= float(of_task.sum())
        return total

    def q(self) -> Floats:
        """Return q, (n_tasks, n_states), fetched from the device into the array given at first."""
        crowd = self.crowd
        with device.says_what_did_not_fit():
            out = device.cupy().empty((self.tasks.n_tasks, crowd.n_states))
        unpack = device.kernel("unpack", crowd.n_states, crowd.slices.bits)
        n_places = np.uint32(crowd.n_places)
        device.launch(unpack, crowd.n_places, self.q_there, crowd.order, n_places, out)
        device.download(out, self._here)
        return self._here

    def close(self) -> None:
        pool = device.cupy().get_default_memory_pool()
        del self.crowd, self.q_there, self.scores, self._both, self.sums, self.counts, self._partial
        pool.free_all_blocks()

    def dirichlet_step(self, alpha0: Floats, beta0: Floats) -> CudaDirichletStep:
        """Return sweeps whose parameters, Dirichlet counts, stay on the device as well."""
        return CudaDirichletStep(self, alpha0, beta0)

    # -- what lies on the device -----------------------------------------------------------------

    def put(self, q: Floats) -> None:
        crowd = self.crowd
        given = device.upload(q)
        put = device.kernel("put", crowd.n_states, crowd.slices.bits)
        n_places = np.uint32(crowd.n_places)
        device.launch(put, crowd.n_places, given, crowd.order, n_places, self.q_there)

    def _by_place(self, values: Any) -> Any:
        """Return values of tasks by place, zero where no task lies, as float64."""
        cp = device.cupy()
        order = self.crowd.order
        given = cp.asarray(values)  # as small as it is: it grows on the device
        return cp.where(order < 0, 0.0, given[cp.maximum(order, 0)].astype(cp.float64))

    def set_logs(self, logs: Logs) -> None:
        """Put tables given here onto the device, as log odds against state 0."""
        log_prior, log_table = (_finite(each) for each in logs)
        cp = device.cupy()
        odds = (log_table[:, 1:] - log_table[:, :1]).astype(np.float32)
        self.scores[self.crowd.rows] = cp.asarray(odds)
        self.log_odds[:] = cp.asarray((log_prior[1:] - log_prior[0]).astype(np.float32))

    def _clear(self) -> None:
        self._both.data.memset_async(0, self._both.nbytes)

    def count_ones(self, spans: tuple[int, ...], chosen: Mask | None = None) -> Counted:
        """Count responses by code, and tasks: q is 1 in the first column."""
        cp = device.cupy()
        kept = self.q_there
        self.q_there = cp.zeros_like(kept)
        self.q_there[0] = 1.0 if chosen is None else self._by_place(chosen)
        self._clear()
        for span in spans:
            self.count(span)
        self.q_there = kept
        by_code = self.counts[self.crowd.rows, 0].astype(cp.float64) / ONE
        return Counted(by_code, float(self.sums[0]) / ONE)

    def _all_columns(self, n_of_code: Any) -> Floats:
        """Return counts by code with the column of state 0: what the others leave."""
        cp = device.cupy()
        others = self.counts[self.crowd.rows].astype(cp.float64) / ONE
        first = cp.maximum(n_of_code - others.sum(axis=1), 0.0)
        return np.asarray(cp.concatenate([first[:, None], others], axis=1).get())

    def _totals(self, sums: Any, n_tasks: float) -> Floats:
        others = sums[: self.crowd.n_states - 1].astype(np.float64) / ONE
        return np.concatenate([[max(n_tasks - others.sum(), 0.0)], others])

    # -- passes ----------------------------------------------------------------------------------

    def _pass_slices(self, span: int, what: int) -> None:
        slices = self.crowd.slices
        mine = slices.spans[span]
        if not mine.n_tasks:
            return
        if slices.words is not None:
            self._launch_slices(mine, slices.words, 0, mine.low, mine.high, what)
            return
        self._stream_slices(mine, what)

    def _stream_slices(self, span: Span, what: int) -> None:
        """Sweep pieces while the next one travels: two buffers, two streams."""
        cp = device.cupy()
        copying = cp.cuda.Stream(non_blocking=True)
        working = cp.cuda.Stream(non_blocking=True)
        working.wait_event(cp.cuda.get_current_stream().record())
        pieces = [
            piece
            for piece in self.crowd.slices.pieces
            if piece[0] < span.high and piece[1] > span.low
        ]
        largest = max(len(words) for _, _, words in pieces)
        buffers = [cp.empty(largest, cp.uint32) for _ in range(2)]
        done: list[Any] = [None, None]
        for i, (low, high, words) in enumerate(pieces):
            buffer = buffers[i % 2]
            if done[i % 2] is not None:
                copying.wait_event(done[i % 2])
            buffer.data.copy_from_host_async(words.ctypes.data, words.nbytes, copying)
            working.wait_event(copying.record())
            with working:
                first = max(low, span.low)
                self._launch_slices(span, buffer, low, first, min(high, span.high), what)
            done[i % 2] = working.record()
        cp.cuda.get_current_stream().wait_event(working.record())
        working.synchronize()

    def _launch_slices(
        self, span: Span, words: Any, words_from: int, low: int, high: int, what: int
    ) -> None:
        """Sweep slices low … high of a span; `words` begin at slice `words_from`."""
        crowd = self.crowd
        shared = crowd.shared
        bits = crowd.slices.bits
        sweep = device.kernel("sweep_slices", crowd.n_states, bits, shared.cold, shared.copies)
        threads, _ = device.block_shape(crowd.n_states)
        n_hot = shared.n_hot
        size = bool(what & SCORE) + bool(what & COUNT) * shared.copies
        shared_bytes = 4 * (crowd.n_states - 1) * n_hot * size
        sweep.max_dynamic_shared_size_bytes = shared_bytes
        n_slices = high - low
        batch = max(1, min(plan.BATCH, n_slices * plan.LANES // (self._blocks * threads)))
        starts = crowd.slices.starts_here
        skipped = int(starts[low] - starts[words_from])
        arguments = (
            words[skipped * plan.LANES :] if skipped else words,
            crowd.slices.starts[low:],
            np.uint32(n_slices),
            np.uint32(low * plan.LANES),
            np.uint32(crowd.n_places),
            np.uint32(span.first + span.n_tasks),
            np.uint32(batch),
            self.scores,
            self.log_odds,
            np.uint32(n_hot),
            np.int32(what),
            self.q_there,
            self.counts,
            self.sums,
        )
        sweep((self._blocks,), (threads,), arguments, shared_mem=shared_bytes)

    def _pass_segments(self, span: int, what: int) -> None:
        crowd = self.crowd
        segments = crowd.segments
        mine = segments.spans[span]
        if not mine.n_tasks:
            return
        n_states = crowd.n_states
        bits = crowd.slices.bits
        nothing = np.uint64(0)
        weight = nothing if segments.weight is None else segments.weight
        copies = nothing if segments.copies is None else segments.copies[mine.first :]
        n_segments = np.uint32(mine.high - mine.low)
        start = segments.start[mine.low :]
        partial = self.score_segments(mine) if what & SCORE else self._partial
        place = np.uint32(crowd.segment_place + mine.first)
        n_places = np.uint32(crowd.n_places)
        n_lanes = (mine.high - mine.low) * plan.LANES
        join = device.kernel("join_segments", n_states, bits)
        first = segments.first[mine.first :] - np.uint32(mine.low)
        device.launch(
            join,
            mine.n_tasks * plan.LANES,
            partial,
            first,
            np.uint32(mine.n_tasks),
            place,
            n_places,
            self.log_odds,
            copies,
            np.int32(what),
            self.q_there,
            self.sums,
        )
        if what & COUNT:
            count = device.kernel("count_segments", n_states, bits)
            task = segments.task[mine.low :] - np.uint32(mine.first)
            mine_of = (segments.row, weight, start, task, n_segments, place, n_places, copies)
            device.launch(count, n_lanes, *mine_of, self.q_there, self.counts)

    def score_segments(self, span: Span) -> Any:
        """Return the sums of the scores of each segment of a span."""
        crowd = self.crowd
        segments = crowd.segments
        weight = np.uint64(0) if segments.weight is None else segments.weight
        partial = self._partial[span.low * (crowd.n_states - 1) :]
        n_segments = span.high - span.low
        device.launch(
            device.kernel("score_segments", crowd.n_states, crowd.slices.bits),
            n_segments * plan.LANES,
            segments.row,
            weight,
            segments.start[span.low :],
            np.uint32(n_segments),
            self.scores,
            partial,
        )
        return partial


class Counted(NamedTuple):
    """How many responses each code has, on the device, and how many tasks were counted."""

    by_code: Any
    n_tasks: float


def _finite(logs: Floats) -> Floats:
    return np.maximum(logs, IMPOSSIBLE)


def _plogp(p: Any) -> Any:
    cp = device.cupy()
    return p * cp.log(cp.where(p > 0.0, p, 1.0))
