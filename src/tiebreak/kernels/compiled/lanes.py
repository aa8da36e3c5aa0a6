"""Lanes: a few neighbouring numbers of an array in one vector register.

A response reads and adds a row of K numbers. Written as K additions, the compiler may not join
them: it cannot know that arrays do not overlap. Here they are one load, one sum, one store.

How many lanes there are must be known when a kernel is compiled, so it is the length of a tuple:
`like=(0, 0, 0, 0)` stands for four. Arrays are C-contiguous, of 64-bit floats; `k` is the column
of the first lane, or its row where lanes lie down a column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

Like = tuple[int, ...]

MOST_LANES = 8
DOUBLE = ir.DoubleType()


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
            lanes = builder.insert_element(lanes, builder.load(place), ir.IntType(32)(i))
        return lanes

    return Lanes(n)(array, k, column, like), generate


def _store_column(_: Any, array: Any, k: Any, column: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for i, place in enumerate(_places(context, builder, signature.args, args, lanes.n)):
            builder.store(builder.extract_element(args[3], ir.IntType(32)(i)), place)
        return context.get_dummy_value()

    return types.void(array, k, column, lanes), generate


def _plus(_: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(*args)

    return a(a, b), generate


def _farther(_: Any, far: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        gap, back = builder.fsub(args[1], args[2]), builder.fsub(args[2], args[1])
        gap = builder.select(builder.fcmp_ordered(">", gap, back), gap, back)
        return builder.select(builder.fcmp_ordered(">", gap, args[0]), gap, args[0])

    return far(far, a, b), generate


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


load = _operation(_load)  # load(array, row, k, like)
store = _operation(_store)  # store(array, row, k, lanes)
load_column = _operation(_load_column)  # load_column(array, k, column, like)
store_column = _operation(_store_column)  # store_column(array, k, column, lanes)
plus = _operation(_plus)  # plus(a, b)
farther = _operation(_farther)  # farther(far, a, b): the larger of far and |a − b|, lane by lane
