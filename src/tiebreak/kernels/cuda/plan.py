"""How responses lie on the device, and what one pass over them launches.

Places: tasks are sorted by role, then by falling number of responses, so that the 32 tasks of a
slice need next to no padding; each role begins at a multiple of 32. Short tasks come first, then
those that lie in segments. Example: tasks a (free, 3 responses), b (known, 1), c (free, 5):

    place    0  1  2 … 31 | 32 33 … 63        order = [c, a, -1, …, b, -1, …]
    task     c  a  –      | b  –
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.kernels import layout
from tiebreak.kernels.cuda import device
from tiebreak.kernels.cuda.device import DeviceError
from tiebreak.kernels.layout import FREE, KNOWN, ByTask, Floats, Offsets

PADS = 32  # rows of padding, one per lane
LANES = 32
MOST_IN_SLICES = 16  # states: beyond, registers do not hold a task's scores
LONG = 2048  # responses: a task with more is cut into segments, so that no warp works for long
SEGMENT = 512  # responses
BATCH = 16  # slices that a warp takes at a time
SCORE = 1
COUNT = 2
ONE = 1 << 22  # what 1.0 is in counts
GROUPS = (FREE, KNOWN, None)  # roles that are laid out one after the other; None: all others
SAMPLE = 1 << 24  # responses that say which rows are frequent


class Span(NamedTuple):
    """The tasks of one role: places first … first + n_tasks, and slices or segments of them."""

    first: int  # place
    n_tasks: int
    low: int  # first slice, or first segment
    high: int


class Shared(NamedTuple):
    """What lies in shared memory: rows, with how many copies of counts, in how many passes."""

    n_hot: int
    copies: int = 1
    passes: int = 1
    cold: bool = False  # whether other rows are left


def share(n_rows: int, n_states: int, room: int) -> Shared:
    """Put into shared memory scores and counts; or one after the other; or of frequent rows.

    `room` is in bytes. With a copy of counts for each lane no two lanes wait for each other.
    """
    rows = room // (4 * (n_states - 1))
    for copies in (32, 1):
        if n_rows * (1 + copies) <= rows:
            return Shared(n_rows, copies)
    if n_rows <= rows:
        return Shared(n_rows, passes=2)
    return Shared(rows // 2, cold=True)


class Slices(NamedTuple):
    """Short tasks. Where words do not fit on the device they lie here, and travel in pieces."""

    bits: int
    starts: Any  # (n_slices + 1,) on the device, in words of 32 lanes
    starts_here: Offsets  # the same, on this machine
    words: Any  # on the device, or None
    pieces: list[tuple[int, int, Any]]  # (first slice, last slice, pinned words), else empty
    spans: list[Span]  # free, known, others


class Segments(NamedTuple):
    """All other tasks: responses one after the other."""

    row: Any
    weight: Any | None
    start: Any  # (n_segments + 1,)
    task: Any  # (n_segments,) which of these tasks
    first: Any  # (n_tasks + 1,) first segment of each
    copies: Any | None  # (n_tasks,)
    spans: list[Span]
    n_tasks: int


class DeviceCrowd(NamedTuple):
    """Responses on the device."""

    n_states: int
    n_codes: int
    n_places: int
    order: Any  # (n_places,) int32: which task lies at each place, -1: none
    rows: Any  # (n_codes,) uint32
    slices: Slices
    segments: Segments
    shared: Shared
    segment_place: int


def bytes_needed(n_responses: int, n_tasks: int, n_states: int, n_codes: int) -> tuple[int, int]:
    """Return the bytes that must lie on the device, and those of words, which may travel."""
    bits = 16 if n_codes + PADS <= 1 << 16 else 32
    words = n_responses * bits // 8 + 4 * n_tasks
    tables = 5 * 8 * n_codes * n_states
    places = n_tasks * (4 * (n_states - 1) + 4 + 8 * n_states)  # q, order, q as it is fetched
    return places + tables + 8 * n_tasks // LANES, words


def lay_out(tasks: ByTask, n_states: int, copies: Floats | None, n_blocks_room: int) -> DeviceCrowd:
    """Lay responses out on the device; `n_blocks_room` is a block's shared memory in bytes."""
    cp = device.cupy()
    n_codes = tasks.n_codes
    shared = share(n_codes + PADS, n_states, n_blocks_room)
    limit = device.memory_limit()
    must, words = bytes_needed(len(tasks.code), tasks.n_tasks, n_states, n_codes)
    if must > limit:
        raise DeviceError(
            f"The device has {limit / 1e9:.1f} GB to use, and {tasks.n_tasks:,} tasks with "
            f"{n_states} states need {must / 1e9:.1f} GB there besides their responses. "
            'backend="numba" runs on the processor.'
        )
    streams = must + words + 4 * len(tasks.code) + 24 * tasks.n_tasks > limit
    bits = 16 if n_codes + PADS <= 1 << 16 else 32
    rows = _rank(tasks, shared)
    in_slices = n_states <= MOST_IN_SLICES and tasks.weight is None and copies is None
    sorted_ = _Sorted(tasks, in_slices)
    slices = _slices(tasks, sorted_, rows, bits, n_states, streams, limit - must)
    segments = _segments(tasks, sorted_, rows, copies)
    order = cp.concatenate([sorted_.order, _padded(sorted_.long_order)])
    return DeviceCrowd(
        n_states,
        n_codes,
        len(order),
        order,
        rows,
        slices,
        segments,
        shared,
        len(sorted_.order),
    )


def _rank(tasks: ByTask, shared: Shared) -> Any:
    """Return the row of each code; frequent ones first where not all fit in shared memory."""
    cp = device.cupy()
    rows = cp.arange(PADS, PADS + tasks.n_codes, dtype=cp.uint32)
    if shared.cold:
        sample = tasks.code[:: max(1, len(tasks.code) // SAMPLE)]
        frequent = np.argsort(-np.bincount(sample, minlength=tasks.n_codes), kind="stable")
        rows[cp.asarray(frequent)] = cp.arange(PADS, PADS + tasks.n_codes, dtype=cp.uint32)
    return rows


class _Sorted:
    """Tasks by place: short ones in slices, and the others."""

    def __init__(self, tasks: ByTask, in_slices: bool) -> None:
        cp = device.cupy()
        start = device.upload(tasks.start)
        degree = cp.diff(start)
        role = cp.asarray(tasks.role)
        group = cp.where(role == FREE, 0, cp.where(role == KNOWN, 1, 2))
        is_short = (degree <= LONG) if in_slices else cp.zeros(len(degree), dtype=bool)
        self.start = start
        self.degree = degree
        self.orders = []
        self.long_orders = []
        for each in range(len(GROUPS)):
            mine = cp.flatnonzero((group == each) & is_short)
            # One key, so that the order is the same in every run.
            key = cp.sort(((LONG - degree[mine]) << 32) | mine)
            self.orders.append((key & 0xFFFFFFFF).astype(cp.int32))
            self.long_orders.append(cp.flatnonzero((group == each) & ~is_short).astype(cp.int32))
        self.order = cp.concatenate([_padded(each) for each in self.orders])
        self.long_order = cp.concatenate(self.long_orders)


def _padded(order: Any) -> Any:
    cp = device.cupy()
    missing = -len(order) % LANES
    return cp.concatenate([order, cp.full(missing, -1, cp.int32)])


def _slices(
    tasks: ByTask, found: _Sorted, rows: Any, bits: int, n_states: int, streams: bool, room: int
) -> Slices:
    cp = device.cupy()
    spans = []
    first = 0
    for each in found.orders:
        n_slices = -(-len(each) // LANES)
        low = first // LANES
        spans.append(Span(first, len(each), low, low + n_slices))
        first += n_slices * LANES
    longest = cp.where(found.order < 0, 0, found.degree[found.order]).reshape(-1, LANES).max(axis=1)
    per_word = 32 // bits
    starts = cp.zeros(len(longest) + 1, cp.uint32)
    cp.cumsum(-(-longest // per_word), out=starts[1:], dtype=cp.uint32)
    starts_here = starts.get().astype(np.int64)
    if not len(longest):
        return Slices(bits, starts, starts_here, cp.zeros(1, cp.uint32), [], spans)
    pack = device.kernel("pack", n_states, bits)
    n_words = int(starts_here[-1])
    if not streams:
        words = cp.empty(max(n_words, 1) * LANES, cp.uint32)
        code = device.upload(tasks.code)
        arguments = (code, found.start, found.order, rows, starts)
        sizes = (np.uint32(len(longest)), np.uint32(len(found.order)))
        device.launch(pack, len(longest) * LANES, *arguments, *sizes, words)
        return Slices(bits, starts, starts_here, words, [], spans)
    pieces = _pack_pieces(tasks, found, rows, (starts, starts_here), pack, room // 8)
    return Slices(bits, starts, starts_here, None, pieces, spans)


def _pack_pieces(
    tasks: ByTask,
    found: _Sorted,
    rows: Any,
    starts: tuple[Any, Offsets],
    pack: Any,
    piece_bytes: int,
) -> list[tuple[int, int, Any]]:
    """Pack some slices after the other, and keep their words in pinned memory here."""
    cp = device.cupy()
    on_device, at_slice = starts
    order = found.order.get()
    pieces = []
    low = 0
    while low < len(at_slice) - 1:
        room = at_slice[low] + max(piece_bytes // (4 * LANES), 1)
        high = max(low + 1, int(np.searchsorted(at_slice, room, side="right")) - 1)
        mine = order[low * LANES : high * LANES]
        start, code = layout.responses_on(tasks, mine[mine >= 0])
        # A place without a task has no responses: it begins where the next one does.
        begin = np.concatenate([[0], np.cumsum(np.where(mine >= 0, 1, 0))])
        words = cp.empty(max(int(at_slice[high] - at_slice[low]), 1) * LANES, cp.uint32)
        device.launch(
            pack,
            len(mine),
            cp.asarray(code),
            cp.asarray(start[begin]),
            np.uint64(0),
            rows,
            on_device[low : high + 1],
            np.uint32(high - low),
            np.uint32(len(mine)),
            words,
        )
        pinned = cp.cuda.alloc_pinned_memory(words.nbytes)
        here = np.frombuffer(pinned, np.uint32, len(words))
        words.get(out=here)
        pieces.append((low, high, here))
        low = high
    return pieces


def _segments(tasks: ByTask, found: _Sorted, rows: Any, copies: Floats | None) -> Segments:
    cp = device.cupy()
    order = found.long_order.get()
    start, code = layout.responses_on(tasks, order)
    weight = layout.weights_on(tasks, order)
    degree = np.diff(start)
    n_segments = -(-degree // SEGMENT)
    first = np.concatenate([[0], np.cumsum(n_segments)])
    task = np.repeat(np.arange(len(order)), n_segments)
    within = np.arange(first[-1]) - first[task]
    begin = np.append(start[task] + within * SEGMENT, start[-1])
    spans = []
    done = 0
    for each in found.long_orders:
        end = done + len(each)
        spans.append(Span(done, len(each), int(first[done]), int(first[end])))
        done = end
    return Segments(
        rows[cp.asarray(code)] if len(code) else cp.zeros(1, cp.uint32),
        None if weight is None else cp.asarray(weight),
        cp.asarray(begin),
        cp.asarray(task.astype(np.uint32)),
        cp.asarray(first.astype(np.uint32)),
        None if copies is None else cp.asarray(copies[order]),
        spans,
        len(order),
    )
