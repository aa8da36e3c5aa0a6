"""Vector instructions, written in LLVM: the one module that uses the inside of numba.

A vector is a few neighbouring numbers of an array in one register. A response reads and adds a row
of K numbers. Written as K additions, the compiler may not join them: it cannot know that arrays do
not overlap. Here they are one load, one sum, one store.

How long a vector is must be known when a kernel is compiled, so it is the length of a tuple:
`like=(0, 0, 0, 0)` stands for four. Arrays are C-contiguous, of 64-bit floats; `k` is the column
of the first number, or its row where a vector lies down a column. Where an operation takes vectors
it takes a number as well, the same for all elements.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

from tiebreak.kernels.compiled import pieces, scalar
from tiebreak.kernels.compiled.float_bits import (
    add_exponent_bits,
    exponent_bits,
    mantissa_bits,
    times_power_bits,
)
from tiebreak.kernels.compiled.pieces import (
    DOUBLE,
    INDEX,
    PIECE,
    joined,
    sizes_of,
    taken_apart,
    vector_of,
)
from tiebreak.kernels.compiled.scalar import LEAST_NORMAL, LN2_HIGH, LN2_LOW, LOG2_E, ROUND

MAX_WIDTH = pieces.MAX_WIDTH  # numbers in a vector
MAX_ROW = 32  # numbers in a row that is held at once, as several vectors
# Of prefetches: what for, and to which cache.
TO_READ = 0
TO_WRITE = 1
SECOND = 2
NEAREST = 3
FUSE = ("contract",)  # a product and a sum may become one instruction, rounded once


class Vector(types.Type):
    """The type of a vector of n numbers; a wide one has pieces of `MAX_WIDTH` where it can."""

    def __init__(self, n: int, *, is_wide: bool = False) -> None:
        self.n = n
        self.sizes = sizes_of(n, is_wide=is_wide)
        super().__init__(name=f"Vector({n}{', wide' if is_wide else ''})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, vector_of(kind.sizes))  # type: ignore[no-untyped-call]


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


# Operations on arrays.


def _on_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation on an array, which must be one whose neighbours can be a vector."""

    @functools.wraps(function)
    def checked(_: Any, array: Any, *kinds: Any) -> Any:
        if array.layout != "C" or array.dtype != types.float64:
            raise TypingError(f"vectors need a C-contiguous array of 64-bit floats, not {array}")
        return function(_, array, *kinds)

    return _operation(checked)


def _addresses(context: Any, builder: Any, kinds: Any, args: Any, n: int = 1) -> list[Any]:
    """Return where element [args[1], args[2]] of array args[0] lies, and those below it."""
    array = make_array(kinds[0])(context, builder, args[0])
    row, column = (context.cast(builder, args[i], kinds[i], types.intp) for i in (1, 2))
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    data = builder.bitcast(array.data, cgutils.voidptr_t)
    below = [builder.mul(builder.add(row, row.type(i)), stride) for i in range(n)]
    starts = [builder.bitcast(builder.gep(data, [at]), DOUBLE.as_pointer()) for at in below]
    return [builder.gep(start, [column]) for start in starts]


def _places(builder: Any, address: Any, n: int) -> list[Any]:
    """Return where the vectors of n numbers lie, from an address on."""
    places = []
    below = 0
    for size in sizes_of(n):
        at = builder.gep(address, [INDEX(below)]) if below else address
        places.append(builder.bitcast(at, ir.VectorType(DOUBLE, size).as_pointer()))
        below += size
    return places


def _zeros(_: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [ir.Constant(ir.VectorType(DOUBLE, size), [0.0] * size) for size in sizes_of(n)]
        return joined(builder, parts, sizes_of(n))

    return Vector(n)(like), generate


def _load(_: Any, array: Any, row: Any, k: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [address] = _addresses(context, builder, signature.args, args)
        places = _places(builder, address, n)
        return joined(builder, [builder.load(place, align=8) for place in places], sizes_of(n))

    return Vector(n)(array, row, k, like), generate


def _store(_: Any, array: Any, row: Any, k: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [address] = _addresses(context, builder, signature.args, args)
        places = _places(builder, address, vector.n)
        for piece, place in zip(taken_apart(builder, args[3], vector.sizes), places, strict=True):
            builder.store(piece, place, align=8)
        return context.get_dummy_value()

    return types.void(array, row, k, vector), generate


def _load_column(_: Any, array: Any, k: Any, column: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.Constant(vector_of(sizes_of(n)), ir.Undefined)
        for i, address in enumerate(_addresses(context, builder, signature.args, args, n)):
            vector = builder.insert_element(vector, builder.load(address), INDEX(i))
        return vector

    return Vector(n)(array, k, column, like), generate


def _store_column(_: Any, array: Any, k: Any, column: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for i, address in enumerate(_addresses(context, builder, signature.args, args, vector.n)):
            builder.store(builder.extract_element(args[3], INDEX(i)), address)
        return context.get_dummy_value()

    return types.void(array, k, column, vector), generate


def _prefetch(_: Any, array: Any, row: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [address] = _addresses(context, builder, signature.args, args)
        _ask_for(builder, address, TO_WRITE, NEAREST)
        return context.get_dummy_value()

    return types.void(array, row, k), generate


def _prefetch_row(_: Any, array: Any, row: Any, k: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [address] = _addresses(context, builder, signature.args, args)
        for below in range(0, n, MAX_WIDTH):  # a line of the cache holds as many
            _ask_for(builder, builder.gep(address, [INDEX(below)]), TO_READ, SECOND)
        return context.get_dummy_value()

    return types.void(array, row, k, like), generate


def _ask_for(builder: Any, at: Any, use: int, cache: int) -> None:
    address = builder.bitcast(at, cgutils.voidptr_t)
    kind = ir.FunctionType(ir.VoidType(), [address.type, INDEX, INDEX, INDEX])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [address, INDEX(use), INDEX(cache), INDEX(1)])  # 1: data


# Operations on vectors.


def _elementwise(build: Callable[..., Any], *, is_number: bool = False) -> Callable[..., Any]:
    """Make an operation on vectors of what builds it; `is_number`: one number comes out."""

    def of(*kinds: Any) -> Any:
        vector = next(kind for kind in kinds if isinstance(kind, Vector))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pairs = zip(args, signature.args, strict=True)
            spread = [_spread(context, builder, vector.sizes, *pair) for pair in pairs]
            if is_number:
                return build(builder, *spread)
            done = [build(builder, *each) for each in zip(*spread, strict=True)]
            return joined(builder, done, vector.sizes)

        return (types.float64 if is_number else vector)(*kinds), generate

    n_operands = len(inspect.signature(build).parameters) - 1
    takes: dict[int, Callable[..., Any]]
    takes = {1: lambda _, a: of(a), 2: lambda _, a, b: of(a, b), 3: lambda _, a, b, c: of(a, b, c)}
    return _operation(takes[n_operands])


def _spread(context: Any, builder: Any, sizes: list[int], value: Any, kind: Any) -> list[Any]:
    """Return the pieces of a vector, or those of one whose elements are all the same number."""
    if isinstance(kind, Vector):
        return taken_apart(builder, value, sizes)
    number = context.cast(builder, value, kind, types.float64)
    return [_all(builder, number, size) for size in sizes]


def _all(builder: Any, number: Any, n: int) -> Any:
    """Return a vector of n times the same number."""
    none = ir.Constant(ir.VectorType(DOUBLE, n), ir.Undefined)
    one = builder.insert_element(none, number, INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INDEX, n), [0] * n))


def _maximum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _abs_difference(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    kind = ir.FunctionType(difference.type, [difference.type])
    name = f"llvm.fabs.v{difference.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [difference])


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _sum(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b, flags=FUSE)


def _reduced_by(join: Callable[..., Any]) -> Callable[..., Any]:
    """Join all elements to one number, in pairs: first pieces of equal size, then elements."""

    def build(builder: Any, pieces: list[Any]) -> Any:
        whole = [piece for piece in pieces if piece.type.count == pieces[0].type.count]
        vector = _in_pairs(builder, join, whole)
        rest = pieces[len(whole) :]
        parts = [
            builder.extract_element(piece, INDEX(i))
            for piece in (vector, *rest)
            for i in range(piece.type.count)
        ]
        return _in_pairs(builder, join, parts)

    return build


def _in_pairs(builder: Any, join: Callable[..., Any], parts: list[Any]) -> Any:
    """Join parts, first with second, third with fourth, and so on, until one is left."""
    while len(parts) > 1:
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
        odd = parts[len(pairs) * 2 :]
        parts = [join(builder, *pair) for pair in pairs] + odd
    return parts[0]


def _others(builder: Any, vector: Any) -> Any:
    """Add up the vector rotated by one, by two, and so on: nothing is taken away again."""
    n = vector.type.count
    total = ir.Constant(vector.type, [0.0] * n)
    for shift in range(1, n):
        order = ir.Constant(ir.VectorType(INDEX, n), [(i + shift) % n for i in range(n)])
        total = builder.fadd(total, builder.shuffle_vector(vector, vector, order))
    return total


def _where_above(builder: Any, test: Any, limit: Any, vector: Any) -> Any:
    zero = ir.Constant(vector.type, [0.0] * vector.type.count)
    return builder.select(builder.fcmp_ordered(">", test, limit), vector, zero)


def _widened(_: Any, vector: Any) -> Any:
    wide = Vector(vector.n, is_wide=True)
    n_pairs = len(vector.sizes) - len(wide.sizes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = taken_apart(builder, args[0], vector.sizes)
        order = ir.Constant(ir.VectorType(INDEX, MAX_WIDTH), list(range(MAX_WIDTH)))
        pairs = [builder.shuffle_vector(*parts[2 * i : 2 * i + 2], order) for i in range(n_pairs)]
        return joined(builder, pairs + parts[2 * n_pairs :], wide.sizes)

    return wide(vector), generate


def _narrowed(_: Any, wide: Any) -> Any:
    vector = Vector(wide.n)
    n_pairs = len(vector.sizes) - len(wide.sizes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = taken_apart(builder, args[0], wide.sizes)
        halves = [
            builder.shuffle_vector(pair, pair, ir.Constant(ir.VectorType(INDEX, PIECE), list(half)))
            for pair in parts[:n_pairs]
            for half in (range(PIECE), range(PIECE, MAX_WIDTH))
        ]
        return joined(builder, halves + parts[n_pairs:], vector.sizes)

    return vector(wide), generate


def _exp_of_each(builder: Any, x: Any) -> Any:
    """Build all of one vector's exponential before the next one's: see `scalar.exp_of_each`.

    Step by step for all vectors of a row, the numbers between do not fit into registers.
    """

    def number(value: float) -> Any:
        return ir.Constant(x.type, [value] * x.type.count)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return _sum(builder, builder.fmul(a, b, flags=FUSE), c)

    def line(first: float, second: float) -> Any:
        return fused(r, number(second), number(first))

    rounded = fused(x, number(LOG2_E), number(ROUND))
    n = builder.fsub(rounded, number(ROUND), flags=FUSE)
    r = fused(n, number(-LN2_LOW), fused(n, number(-LN2_HIGH), x))
    square = builder.fmul(r, r, flags=FUSE)
    low = fused(square, line(scalar.C2, scalar.C3), _sum(builder, r, number(1.0)))
    middle = fused(square, line(scalar.C6, scalar.C7), line(scalar.C4, scalar.C5))
    high = fused(square, line(scalar.C10, scalar.C11), line(scalar.C8, scalar.C9))
    fourth = builder.fmul(square, square, flags=FUSE)
    p = fused(fourth, fused(fourth, high, middle), low)
    return _where_above(builder, x, number(LEAST_NORMAL), add_exponent_bits(builder, p, rounded))


# What each does is said at its twin in `scalar.py`.
zeros = _operation(_zeros)
load = _on_array(_load)
store = _on_array(_store)
load_column = _on_array(_load_column)
store_column = _on_array(_store_column)
prefetch = _on_array(_prefetch)
prefetch_row = _on_array(_prefetch_row)
plus = _elementwise(_sum)
minus = _elementwise(lambda builder, a, b: builder.fsub(a, b, flags=FUSE))
times = _elementwise(lambda builder, a, b: builder.fmul(a, b, flags=FUSE))
over = _elementwise(lambda builder, a, b: builder.fdiv(a, b))
# Not fused with the product before it: what is counted is q as it is stored, rounded.
rounded = _elementwise(lambda builder, a, by: builder.fsub(builder.fadd(a, by), by))
fma = _elementwise(lambda builder, a, b, c: _sum(builder, builder.fmul(a, b, flags=FUSE), c))
maximum = _elementwise(_maximum)
abs_difference = _elementwise(_abs_difference)
others = _elementwise(_others)
widened = _operation(_widened)
narrowed = _operation(_narrowed)
where_above = _elementwise(_where_above)
max_element = _elementwise(_reduced_by(_maximum), is_number=True)
min_element = _elementwise(_reduced_by(_minimum), is_number=True)
sum_elements = _elementwise(_reduced_by(_sum), is_number=True)
times_power = _elementwise(times_power_bits)
add_exponent = _elementwise(add_exponent_bits)
exponent = _elementwise(exponent_bits)
mantissa = _elementwise(mantissa_bits)
exp_of_each = _elementwise(_exp_of_each)
