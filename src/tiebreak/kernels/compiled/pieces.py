"""A row of numbers as vectors: one where it is short, several where it is long.

    20 numbers      4 + 4 + 4 + 4 + 4
    the same, wide  8 + 8 + 4

Rows are read, added and written in pieces of four: of eight, counts take six times as long. Where
much is worked out of each number, as in an exponential, half as many instructions leave room for
others to run beside them: wide.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

MAX_WIDTH = 8  # numbers in a vector
PIECE = 4  # numbers in each vector of a long row
DOUBLE = ir.DoubleType()
INDEX = ir.IntType(32)


def vector_of(sizes: list[int]) -> Any:
    """Return what holds numbers: one vector, or several.

    What LLVM makes of one vector of twenty takes 31 ns a response instead of 17.
    """
    vectors = [ir.VectorType(DOUBLE, size) for size in sizes]
    return vectors[0] if len(vectors) == 1 else ir.LiteralStructType(vectors)


def sizes_of(n: int, *, is_wide: bool = False) -> list[int]:
    """Return how many numbers each vector has.

    >>> sizes_of(20), sizes_of(20, is_wide=True), sizes_of(7)
    ([4, 4, 4, 4, 4], [8, 8, 4], [7])
    """
    if n <= MAX_WIDTH:
        return [n]
    n_wide = n // MAX_WIDTH if is_wide else 0
    n_whole, rest = divmod(n - n_wide * MAX_WIDTH, PIECE)
    return [MAX_WIDTH] * n_wide + [PIECE] * n_whole + ([rest] if rest else [])


def taken_apart(builder: Any, row: Any, sizes: list[int]) -> list[Any]:
    """Return the vectors that hold numbers."""
    if len(sizes) == 1:
        return [row]
    return [builder.extract_value(row, i) for i in range(len(sizes))]


def joined(builder: Any, pieces: list[Any], sizes: list[int]) -> Any:
    """Return what `taken_apart` took apart."""
    if len(sizes) == 1:
        return pieces[0]
    row = ir.Constant(vector_of(sizes), ir.Undefined)
    for i, piece in enumerate(pieces):
        row = builder.insert_value(row, piece, i)
    return row
