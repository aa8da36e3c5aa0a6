"""Rows of two to 32 states held whole in vector registers: the one module inside numba.

`numba_sweep` writes out what happens to each class of a row. Written so, a row of twenty states is
twenty loads and additions a response, and the compiler may not join them: it cannot know that
arrays do not overlap. Here a row of 20 is five vectors of four from its scores to its counts, each
of them one load, one addition, one store:

    20 numbers: 4 + 4 + 4 + 4 + 4      22 numbers: 4 + 4 + 4 + 4 + 4 + 2

Of wider vectors, counts take six times as long; of one vector of twenty, what LLVM makes of it
takes twice as long. What is needed next is asked for in time (1.2 times as fast): codes, q, counts
of long rows. In a block of scores the numbers of a row lie apart: columns are whole, as the softmax
wants them.

The operations are made of LLVM instructions, which numba does not offer in public. Where it has
moved what this module needs, `numba_sweep` writes pieces of four instead, at twice the time. How
long a row is must be known when a kernel is compiled: it is the length of a tuple,
`like=(0, 0, 0, 0)`. Arrays are C-contiguous, of 64-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets

__all__ = ["count_whole", "score_whole"]

WIDE = 8  # numbers in a vector, and in a line of the cache
NARROW = 4
DOUBLE = ir.DoubleType()
INDEX = ir.IntType(32)
BITS = ir.IntType(64)
FUSE = ("contract",)  # a product and a sum may become one instruction, rounded once
ONE = np.uint64(1)
TWO = np.uint64(2)
AHEAD = np.uint64(16)  # responses between asking for counts and adding to them
CODES_AHEAD = np.uint64(256)  # responses: asking beyond the last one does no harm
ONE_NUMBER = (0,)
DOUBLE_BYTES = 8
TO_READ, NEAREST, DATA = 0, 3, 1  # of what is asked for: how, where, and that it is no code


def sizes_of(n: int) -> list[int]:
    """Return how many numbers each vector of a row has.

    >>> sizes_of(22), sizes_of(7)
    ([4, 4, 4, 4, 4, 2], [7])
    """
    if n <= WIDE:
        return [n]
    whole, rest = divmod(n, NARROW)
    return [NARROW] * whole + ([rest] if rest else [])


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


class Row(types.Type):
    """The type of a row of n numbers, as one vector or several."""

    def __init__(self, n: int) -> None:
        self.sizes = sizes_of(n)
        super().__init__(name=f"Row({n})")


@register_model(Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Row) -> None:
        vectors = [ir.VectorType(DOUBLE, size) for size in kind.sizes]
        of_llvm = ir.LiteralStructType(vectors)
        super().__init__(manager, kind, of_llvm)  # type: ignore[no-untyped-call]


def _taken_apart(builder: Any, row: Any, kind: Row) -> list[Any]:
    return [builder.extract_value(row, i) for i in range(len(kind.sizes))]


def _joined(context: Any, builder: Any, vectors: list[Any], kind: Row) -> Any:
    row = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i, vector in enumerate(vectors):
        row = builder.insert_value(row, vector, i)
    return row


def _vector_of(builder: Any, numbers: Iterable[Any]) -> Any:
    given = list(numbers)
    vector = ir.Constant(ir.VectorType(DOUBLE, len(given)), ir.Undefined)
    for i, number in enumerate(given):
        vector = builder.insert_element(vector, number, INDEX(i))
    return vector


def _numbers(builder: Any, vectors: list[Any]) -> list[Any]:
    each = [(vector, INDEX(i)) for vector in vectors for i in range(vector.type.count)]
    return [builder.extract_element(*one) for one in each]


# -- operations on arrays --------------------------------------------------------------------------


def _address(context: Any, builder: Any, kinds: Any, args: Any) -> Any:
    """Return where row args[1] of array args[0] begins."""
    array = make_array(kinds[0])(context, builder, args[0])
    row = context.cast(builder, args[1], kinds[1], types.intp)
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    data = builder.bitcast(array.data, cgutils.voidptr_t)
    return builder.bitcast(builder.gep(data, [builder.mul(row, stride)]), DOUBLE.as_pointer())


def _vectors_at(builder: Any, address: Any, sizes: list[int]) -> list[Any]:
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    at = [builder.gep(address, [INDEX(start)]) for start in starts]
    kinds = [ir.VectorType(DOUBLE, size).as_pointer() for size in sizes]
    return [builder.bitcast(one, kind) for one, kind in zip(at, kinds, strict=True)]


def _places(context: Any, builder: Any, kinds: Any, args: Any, sizes: list[int]) -> list[Any]:
    """Return where each vector of a row lies; where columns are whole, each number."""
    of = kinds[0]
    address = _address(context, builder, kinds, args)
    if of.layout != "F":
        return _vectors_at(builder, address, sizes)
    array = make_array(of)(context, builder, args[0])
    step = builder.sdiv(cgutils.unpack_tuple(builder, array.strides)[1], BITS(DOUBLE_BYTES))
    return [builder.gep(address, [builder.mul(step, BITS(k))]) for k in range(sum(sizes))]


def _check(array: Any) -> None:
    if array.layout not in "CF" or array.dtype != types.float64:
        raise TypingError(f"rows need a contiguous array of 64-bit floats, not {array}")


@_operation
def load(_: Any, array: Any, row: Any, like: Any) -> Any:
    """Return the row of the array; of an array with one axis, row 0 is all of it."""
    _check(array)
    kind = Row(len(like))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, signature.args, args, kind.sizes)
        found = [builder.load(at, align=8) for at in places]
        if array.layout == "F":
            numbers = iter(found)
            found = [_vector_of(builder, islice(numbers, size)) for size in kind.sizes]
        return _joined(context, builder, found, kind)

    return kind(array, row, like), generate


@_operation
def store(_: Any, array: Any, row: Any, value: Any) -> Any:
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = _taken_apart(builder, args[2], value)
        if array.layout == "F":
            parts = _numbers(builder, parts)
        places = _places(context, builder, signature.args, args, value.sizes)
        for part, at in zip(parts, places, strict=True):
            builder.store(part, at, align=8)
        return context.get_dummy_value()

    return types.void(array, row, value), generate


@_operation
def prefetch(_: Any, array: Any, row: Any, like: Any) -> Any:
    """Ask for a row that is needed soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args, args)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, INDEX, INDEX, INDEX])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for start in range(0, len(like), WIDE):
            at = builder.bitcast(builder.gep(address, [INDEX(start)]), cgutils.voidptr_t)
            builder.call(ask, [at, *map(INDEX, (TO_READ, NEAREST, DATA))])
        return context.get_dummy_value()

    return types.void(array, row, like), generate


# -- operations on rows ----------------------------------------------------------------------------


def _on_rows(build: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation on rows of what does it to one vector.

    A number as the second operand stands for a row of the same number.
    """

    def of(_: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            ones = _taken_apart(builder, args[0], a)
            if isinstance(b, Row):
                others = _taken_apart(builder, args[1], b)
            else:
                number = context.cast(builder, args[1], b, types.float64)
                others = [_vector_of(builder, [number] * size) for size in a.sizes]
            made = [build(builder, *each) for each in zip(ones, others, strict=True)]
            return _joined(context, builder, made, a)

        return a(a, b), generate

    return _operation(of)


def _distance(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    return _larger(builder, difference, builder.fsub(b, a))


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


plus = _on_rows(lambda builder, a, b: builder.fadd(a, b, flags=FUSE))
times = _on_rows(lambda builder, a, b: builder.fmul(a, b, flags=FUSE))
# Not fused with the product before it: what is counted is q as it is stored, rounded.
rounded = _on_rows(lambda builder, a, by: builder.fsub(builder.fadd(a, by), by))
maximum = _on_rows(_larger)
distance = _on_rows(_distance)


# -- what a sweep does to a block ------------------------------------------------------------------


@kernel
def row_of(r: Any, code: Codes, weight: Floats | None, table: Floats, like: Any) -> Any:
    """Return the row of the table that response r looks up, times its weight."""
    row = load(table, np.uint32(code[r]), like)
    if weight is None:
        return row
    return times(row, weight[r])


@kernel
def score_whole(
    like: Any,
    listed: Offsets,
    m: int,
    start: Offsets,
    code: Codes,
    weight: Floats | None,
    log_prior: Floats,
    log_table: Floats,
    q: Floats,
    scores: Floats,
) -> None:
    """Set the scores of the listed tasks. A loop that counts to five takes longer than its work."""
    for t in range(m):
        total = load(log_prior, 0, like)
        r = np.uint64(start[listed[t]])
        stop = np.uint64(start[listed[t] + 1])
        while r + TWO <= stop:
            two = row_of(r, code, weight, log_table, like)
            total = plus(total, plus(two, row_of(r + ONE, code, weight, log_table, like)))
            r += TWO
        if r < stop:
            total = plus(total, row_of(r, code, weight, log_table, like))
        store(scores, t, total)
        prefetch(q, listed[t], like)
        prefetch(code, stop + CODES_AHEAD, ONE_NUMBER)


@kernel
def counted_row(row: Any, rounder: float | None) -> Any:
    """Return a row as it is counted."""
    if rounder is None:
        return row
    return rounded(row, rounder)


@kernel
def weighed_row(row: Any, weight: Floats | None, r: Any, rounder: float | None) -> Any:
    """Return a counted row times the weight of response r, rounded once more."""
    if weight is None:
        return row
    return counted_row(times(row, weight[r]), rounder)


@kernel
def count_whole(
    like: Any,
    listed: Offsets,
    m: int,
    start: Offsets,
    code: Codes,
    weight: Floats | None,
    rounder: float | None,
    is_new: bool,
    shares: Floats,
    q: Floats,
    counts: Floats,
    totals: Floats,
    moved: Floats,
) -> None:
    """Count q of the listed tasks, set to new shares first; `moved` has the largest changes."""
    total = load(totals, 0, like)
    far = load(moved, 0, like)
    last = np.uint64(len(code) - 1)
    for t in range(m):
        i = listed[t]
        row = load(q, i, like)
        if is_new:
            former = row
            row = load(shares, t, like)
            far = maximum(far, distance(row, former))
            store(q, i, row)
        row = counted_row(row, rounder)
        total = plus(total, row)
        r = np.uint64(start[i])
        stop = np.uint64(start[i + 1]) if len(counts) else r
        while r < stop:
            c = np.uint32(code[r])
            if len(like) > WIDE and r + AHEAD <= last:
                prefetch(counts, np.uint32(code[r + AHEAD]), like)
            store(counts, c, plus(load(counts, c, like), weighed_row(row, weight, r, rounder)))
            r += ONE
    store(totals, 0, total)
    store(moved, 0, far)
