"""Lanes: a few neighbouring numbers of an array in one vector register.

A response reads and adds a row of K numbers. Written as K additions, the compiler may not join
them: it cannot know that arrays do not overlap. Here they are one load, one sum, one store.

How many lanes there are must be known when a kernel is compiled, so it is the length of a tuple:
`like=(0, 0, 0, 0)` stands for four. Arrays are C-contiguous, of 64-bit floats; `k` is the column
of the first lane, or its row where lanes lie down a column. Where an operation takes lanes it
takes a number as well, the same for every lane.
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

Like = tuple[int, ...]

MOST_LANES = 8
DOUBLE, INDEX = ir.DoubleType(), ir.IntType(32)
FUSE = ("contract",)  # a product and a sum may become one instruction, rounded once


def lanes_for(n_classes: int) -> Like:
    """Return a tuple of as many lanes as divide the classes into equal groups.

    >>> [len(lanes_for(n)) for n in (2, 4, 8, 10, 11, 1000)]
    [2, 4, 8, 5, 1, 8]
    """
    return (0,) * max(n for n in range(1, MOST_LANES + 1) if n_classes % n == 0)


class Lanes(types.Type):
    """The type of n lanes."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Lanes({n})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        vector = ir.VectorType(DOUBLE, lanes.n)
        super().__init__(manager, lanes, vector)  # type: ignore[no-untyped-call]


def _places(context: Any, builder: Any, kinds: Any, args: Any, n: int = 1) -> list[Any]:
    """Return where element [args[1], args[2]] of array args[0] lies, and those below it."""
    array = make_array(kinds[0])(context, builder, args[0])
    row, column = (context.cast(builder, args[i], kinds[i], types.intp) for i in (1, 2))
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    data = builder.bitcast(array.data, cgutils.voidptr_t)
    below = [builder.mul(builder.add(row, row.type(i)), stride) for i in range(n)]
    starts = [builder.bitcast(builder.gep(data, [at]), DOUBLE.as_pointer()) for at in below]
    return [builder.gep(start, [column]) for start in starts]


def _as_lanes(builder: Any, place: Any, n: int) -> Any:
    return builder.bitcast(place, ir.VectorType(DOUBLE, n).as_pointer())


def _zeros(_: Any, like: Any) -> Any:
    lanes = Lanes(len(like))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.VectorType(DOUBLE, lanes.n), [0.0] * lanes.n)

    return lanes(like), generate


def _load(_: Any, array: Any, row: Any, k: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [place] = _places(context, builder, signature.args, args)
        return builder.load(_as_lanes(builder, place, n), align=8)

    return Lanes(n)(array, row, k, like), generate


def _store(_: Any, array: Any, row: Any, k: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [place] = _places(context, builder, signature.args, args)
        builder.store(args[3], _as_lanes(builder, place, lanes.n), align=8)
        return context.get_dummy_value()

    return types.void(array, row, k, lanes), generate


def _load_column(_: Any, array: Any, k: Any, column: Any, like: Any) -> Any:
    n = len(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.Constant(ir.VectorType(DOUBLE, n), ir.Undefined)
        for i, place in enumerate(_places(context, builder, signature.args, args, n)):
            lanes = builder.insert_element(lanes, builder.load(place), INDEX(i))
        return lanes

    return Lanes(n)(array, k, column, like), generate


def _store_column(_: Any, array: Any, k: Any, column: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for i, place in enumerate(_places(context, builder, signature.args, args, lanes.n)):
            builder.store(builder.extract_element(args[3], INDEX(i)), place)
        return context.get_dummy_value()

    return types.void(array, k, column, lanes), generate


def _prefetch(_: Any, array: Any, row: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [place] = _places(context, builder, signature.args, args)
        address = builder.bitcast(place, cgutils.voidptr_t)
        kind = ir.FunctionType(ir.VoidType(), [address.type, INDEX, INDEX, INDEX])
        name = "llvm.prefetch.p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [address, INDEX(1), INDEX(3), INDEX(1)])  # to write, near, data
        return context.get_dummy_value()

    return types.void(array, row, k), generate


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


def _on_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation on an array, which must be one whose neighbours can be lanes."""

    @functools.wraps(function)
    def checked(_: Any, array: Any, *kinds: Any) -> Any:
        if array.layout != "C" or array.dtype != types.float64:
            raise TypingError(f"lanes need a C-contiguous array of 64-bit floats, not {array}")
        return function(_, array, *kinds)

    return _operation(checked)


def lane_by_lane(build: Callable[..., Any], *, is_number: bool = False) -> Callable[..., Any]:
    """Make an operation on lanes of what builds it; `is_number`: one number comes out."""

    def of(*kinds: Any) -> Any:
        lanes = next(kind for kind in kinds if isinstance(kind, Lanes))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pairs = zip(args, signature.args, strict=True)
            return build(builder, *(_spread(context, builder, lanes, *pair) for pair in pairs))

        return (types.float64 if is_number else lanes)(*kinds), generate

    n_operands = len(inspect.signature(build).parameters) - 1
    takes: dict[int, Callable[..., Any]]
    takes = {1: lambda _, a: of(a), 2: lambda _, a, b: of(a, b), 3: lambda _, a, b, c: of(a, b, c)}
    return _operation(takes[n_operands])


def _spread(context: Any, builder: Any, lanes: Lanes, value: Any, kind: Any) -> Any:
    """Return lanes as they are, a number in every lane."""
    if isinstance(kind, Lanes):
        return value
    vector = ir.VectorType(DOUBLE, lanes.n)
    number = context.cast(builder, value, kind, types.float64)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, INDEX(0))
    zeros = ir.Constant(ir.VectorType(INDEX, lanes.n), [0] * lanes.n)
    return builder.shuffle_vector(one, one, zeros)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _sum(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b, flags=FUSE)


def _over_lanes(join: Callable[..., Any]) -> Callable[..., Any]:
    """Join all lanes to one number, in pairs."""

    def build(builder: Any, lanes: Any) -> Any:
        parts = [builder.extract_element(lanes, INDEX(i)) for i in range(lanes.type.count)]
        while len(parts) > 1:
            pairs = list(zip(parts[::2], parts[1::2], strict=False))
            odd = parts[len(pairs) * 2 :]
            parts = [join(builder, *pair) for pair in pairs] + odd
        return parts[0]

    return build


def _turned(builder: Any, lanes: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(
        lanes, lanes, ir.Constant(ir.VectorType(INDEX, len(order)), order)
    )


def _others(builder: Any, lanes: Any) -> Any:
    """Add up the lanes turned by one, by two, and so on: nothing is taken away again."""
    n = lanes.type.count
    total = ir.Constant(lanes.type, [0.0] * n)
    for shift in range(1, n):
        turned = _turned(builder, lanes, [(i + shift) % n for i in range(n)])
        total = builder.fadd(total, turned)
    return total


def _reverse(builder: Any, lanes: Any) -> Any:
    return _turned(builder, lanes, list(range(lanes.type.count))[::-1])


def _where_above(builder: Any, test: Any, limit: Any, lanes: Any) -> Any:
    zero = ir.Constant(lanes.type, [0.0] * lanes.type.count)
    return builder.select(builder.fcmp_ordered(">", test, limit), lanes, zero)


zeros = _operation(_zeros)  # zeros(like)
load = _on_array(_load)  # load(array, row, k, like)
store = _on_array(_store)  # store(array, row, k, lanes)
prefetch = _on_array(_prefetch)  # prefetch(array, row, k): it will be needed soon
load_column = _on_array(_load_column)  # load_column(array, k, column, like)
store_column = _on_array(_store_column)  # store_column(array, k, column, lanes)

plus = lane_by_lane(_sum)
minus = lane_by_lane(lambda builder, a, b: builder.fsub(a, b, flags=FUSE))
times = lane_by_lane(lambda builder, a, b: builder.fmul(a, b, flags=FUSE))
over = lane_by_lane(lambda builder, a, b: builder.fdiv(a, b))
fused = lane_by_lane(lambda builder, a, b, c: _sum(builder, builder.fmul(a, b, flags=FUSE), c))
larger = lane_by_lane(_larger)
apart = lane_by_lane(lambda b, x, y: _larger(b, b.fsub(x, y), b.fsub(y, x)))  # |x − y|
others = lane_by_lane(_others)  # of each lane, the sum of all others
reverse = lane_by_lane(_reverse)  # the last lane first
where_above = lane_by_lane(_where_above)  # (test, limit, lanes): 0 where test ≤ limit
largest_lane = lane_by_lane(_over_lanes(_larger), is_number=True)
smallest_lane = lane_by_lane(_over_lanes(_smaller), is_number=True)
sum_lanes = lane_by_lane(_over_lanes(_sum), is_number=True)
