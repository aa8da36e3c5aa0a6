"""Rows of four to 32 states held whole in vector registers: the one module inside numba.

`numba_sweep` writes out what happens to each class of a row. Written so, a row of twenty states is
twenty loads and additions a response, and the compiler may not join them: it cannot know that
arrays do not overlap. Here a row of 20 is five vectors of four from its scores to its counts, each
of them one load, one addition, one store:

    20 numbers: 4 + 4 + 4 + 4 + 4      22 numbers: 4 + 4 + 4 + 4 + 4 + 2

Of wider vectors, counts take six times as long; of one vector of twenty, what LLVM makes of it
takes twice as long. While exponentials need no memory, what comes next is asked for: rows of q and
of counts, and rows of the table for the next block (1.15 times as fast).

The operations are made of LLVM instructions, which numba does not offer in public. Where it has
moved what this module needs, `numba_sweep` writes pieces of four instead, at twice the time. How
long a row is must be known when a kernel is compiled: it is the length of a tuple,
`like=(0, 0, 0, 0)`. Arrays are C-contiguous, of 64-bit floats.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

from tiebreak.kernels import numba_sweep as scalar
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets

WIDE = 8  # numbers in a vector, and in a line of the cache
NARROW = 4
DOUBLE = ir.DoubleType()
INDEX = ir.IntType(32)
BITS = ir.IntType(64)
FUSE = ("contract",)  # a product and a sum may become one instruction, rounded once
ONE = np.uint64(1)
TWO = np.uint64(2)


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


def _check(array: Any) -> None:
    if array.layout != "C" or array.dtype != types.float64:
        raise TypingError(f"rows need a C-contiguous array of 64-bit floats, not {array}")


@_operation
def load(_: Any, array: Any, row: Any, like: Any) -> Any:
    """Return the row of the array; of an array with one axis, row 0 is all of it."""
    _check(array)
    kind = Row(len(like))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _vectors_at(builder, _address(context, builder, signature.args, args), kind.sizes)
        return _joined(context, builder, [builder.load(at, align=8) for at in places], kind)

    return kind(array, row, like), generate


@_operation
def store(_: Any, array: Any, row: Any, value: Any) -> Any:
    """Set the row of the array."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args, args)
        places = _vectors_at(builder, address, value.sizes)
        for vector, at in zip(_taken_apart(builder, args[2], value), places, strict=True):
            builder.store(vector, at, align=8)
        return context.get_dummy_value()

    return types.void(array, row, value), generate


def _prefetching(use: int, level: int) -> Callable[..., Any]:
    """Make what asks for a row: to read (0) or to write (1), into the third cache … nearest (3)."""

    def prefetch(_: Any, array: Any, row: Any, like: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args, args)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, INDEX, INDEX, INDEX])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            for start in range(0, len(like), WIDE):
                at = builder.bitcast(builder.gep(address, [INDEX(start)]), cgutils.voidptr_t)
                builder.call(ask, [at, INDEX(use), INDEX(level), INDEX(1)])  # 1: data
            return context.get_dummy_value()

        return types.void(array, row, like), generate

    return _operation(prefetch)


prefetch_to_read = _prefetching(0, 2)
prefetch_to_write = _prefetching(1, 3)


# -- operations on rows ----------------------------------------------------------------------------


def _on_rows(build: Callable[..., Any], *, is_number: bool = False) -> Callable[..., Any]:
    """Make an operation of what does it to one vector, or to all of a row where a number is made.

    A number among its operands stands for a row of the same number.
    """

    def of(*kinds: Any) -> Any:
        row = next(kind for kind in kinds if isinstance(kind, Row))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = [
                _taken_apart(builder, value, row)
                if isinstance(kind, Row)
                else [
                    _all(builder, context.cast(builder, value, kind, types.float64), size)
                    for size in row.sizes
                ]
                for value, kind in zip(args, signature.args, strict=True)
            ]
            if is_number:
                return build(builder, *given)
            made = [build(builder, *each) for each in zip(*given, strict=True)]
            return _joined(context, builder, made, row)

        return (types.float64 if is_number else row)(*kinds), generate

    if len(inspect.signature(build).parameters) == 2:
        return _operation(lambda _, a: of(a))
    return _operation(lambda _, a, b: of(a, b))


def _all(builder: Any, number: Any, n: int) -> Any:
    none = ir.Constant(ir.VectorType(DOUBLE, n), ir.Undefined)
    one = builder.insert_element(none, number, INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INDEX, n), [0] * n))


def _add(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b, flags=FUSE)


def _multiply(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b, flags=FUSE)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _distance(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    return _larger(builder, difference, builder.fsub(b, a))


def _reduced_by(join: Callable[..., Any]) -> Callable[..., Any]:
    """Join all numbers of a row, in pairs: first vectors of equal size, then numbers."""

    def in_pairs(builder: Any, parts: list[Any]) -> Any:
        while len(parts) > 1:
            pairs = [join(builder, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    def build(builder: Any, vectors: list[Any]) -> Any:
        equal = [each for each in vectors if each.type.count == vectors[0].type.count]
        left = [in_pairs(builder, equal), *vectors[len(equal) :]]
        numbers = [
            builder.extract_element(each, INDEX(i)) for each in left for i in range(each.type.count)
        ]
        return in_pairs(builder, numbers)

    return build


plus = _on_rows(_add)
minus = _on_rows(lambda builder, a, b: builder.fsub(a, b, flags=FUSE))
times = _on_rows(_multiply)
# Not fused with the product before it: what is counted is q as it is stored, rounded.
rounded = _on_rows(lambda builder, a, by: builder.fsub(builder.fadd(a, by), by))
maximum = _on_rows(_larger)
distance = _on_rows(_distance)
max_element = _on_rows(_reduced_by(_larger), is_number=True)
sum_elements = _on_rows(_reduced_by(_add), is_number=True)


@_operation
def exp(_: Any, row: Any) -> Any:
    """Return e^x of each, 0 at −708 and below: see `numba_sweep.exp`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = [_exp(builder, vector) for vector in _taken_apart(builder, args[0], row)]
        return _joined(context, builder, made, row)

    return row(row), generate


def _exp(builder: Any, x: Any) -> Any:
    n = x.type.count

    def number(value: float) -> Any:
        return ir.Constant(x.type, [value] * n)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return _add(builder, _multiply(builder, a, b), c)

    def line(first: float, second: float) -> Any:
        return fused(r, number(second), number(first))

    shifted = fused(x, number(scalar.LOG2_E), number(scalar.ROUND))
    whole = builder.fsub(shifted, number(scalar.ROUND), flags=FUSE)
    r = fused(whole, number(-scalar.LN2_LOW), fused(whole, number(-scalar.LN2_HIGH), x))
    square = _multiply(builder, r, r)
    low = fused(square, line(scalar.C2, scalar.C3), _add(builder, r, number(1.0)))
    middle = fused(square, line(scalar.C6, scalar.C7), line(scalar.C4, scalar.C5))
    high = fused(square, line(scalar.C10, scalar.C11), line(scalar.C8, scalar.C9))
    fourth = _multiply(builder, square, square)
    p = fused(fourth, fused(fourth, high, middle), low)
    bits = ir.VectorType(BITS, n)
    power = builder.shl(builder.bitcast(shifted, bits), ir.Constant(bits, [52] * n))
    scaled = builder.bitcast(builder.add(builder.bitcast(p, bits), power), x.type)
    is_above = builder.fcmp_ordered(">", x, number(scalar.EXP_IS_ZERO))
    return builder.select(is_above, scaled, number(0.0))


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
    score: Floats,
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
        store(score, t, total)


@kernel
def infer_rows(
    like: Any,
    score: Floats,
    extra: Floats,
    listed: Offsets,
    m: int,
    q: Floats,
    scale: Floats,
    start: Offsets,
    code: Codes,
    log_table: Floats,
    counts: Floats,
) -> float:
    """Turn scores of free tasks, times their scale if any, into probabilities; return entropy."""
    product = 1.0
    means = 0.0
    for t in range(m):
        i = listed[t]
        row = load(score, t, like)
        if len(scale):
            row = times(row, scale[i])
        top = max_element(row)
        if top == -np.inf:  # underflow leaves no state: the former q stays, its logs as scores
            for k in range(len(like)):
                score[t, k] = np.log(q[i, k])
            row = load(score, t, like)
            top = max_element(row)
        prefetch_to_write(q, i, like)
        if len(counts):
            for r in range(np.uint64(start[i]), np.uint64(start[i + 1])):
                prefetch_to_read(counts, np.uint32(code[r]), like)
        if i + m + 1 < len(start):
            for r in range(np.uint64(start[i + m]), np.uint64(start[i + m + 1])):
                prefetch_to_read(log_table, np.uint32(code[r]), like)
        gap = maximum(minus(row, top), scalar.EXP_IS_ZERO)  # 0 · −∞ must be 0
        e = exp(gap)
        extra[0, t] = 1.0 / sum_elements(e)
        means += sum_elements(times(e, gap)) * extra[0, t]
        product *= extra[0, t]
        store(score, t, e)
    for t in range(m):
        store(score, t, times(load(score, t, like), extra[0, t]))
    return float(-np.log(product) - means)


@kernel
def take_rows(like: Any, score: Floats, listed: Offsets, m: int, q: Floats) -> None:
    """Replace scores of known tasks by their q."""
    for t in range(m):
        store(score, t, load(q, listed[t], like))


@kernel
def put_rows(score: Floats, listed: Offsets, m: int, q: Floats) -> None:
    """Set rows of q to scores."""
    for t in range(m):
        for k in range(score.shape[1]):
            q[listed[t], k] = score[t, k]


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
    score: Floats,
    q: Floats,
    counts: Floats,
    totals: Floats,
    change: float,
) -> float:
    """Write q of the listed tasks, and count it; return the largest change so far."""
    total = load(totals, 0, like)
    far = minus(total, total)
    for t in range(m):
        i = listed[t]
        row = load(score, t, like)
        far = maximum(far, distance(row, load(q, i, like)))
        store(q, i, row)
        row = counted_row(row, rounder)
        total = plus(total, row)
        r = np.uint64(start[i])
        stop = np.uint64(start[i + 1]) if len(counts) else r
        while r < stop:
            c = np.uint32(code[r])
            store(counts, c, plus(load(counts, c, like), weighed_row(row, weight, r, rounder)))
            r += ONE
    store(totals, 0, total)
    return float(max(change, max_element(far)))
