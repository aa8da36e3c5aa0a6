"""SIMD: the operations on vectors that kernels are written in.

They come from `llvm.py`, or, where numba has moved what that module needs, from `scalar.py`: the
same kernels with the same results, class by class and slower.
"""

from __future__ import annotations

import numba

from tiebreak.errors import warn

try:
    from tiebreak.kernels.compiled import llvm as operations
except (ImportError, AttributeError) as error:
    from tiebreak.kernels.compiled import scalar as operations  # type: ignore[no-redef]

    warn(
        f"numba {numba.__version__} is not the one that tiebreak's vector code was written for "
        f"({error}): results are the same, fits slower; install the numba that tiebreak asks for",
        RuntimeWarning,
    )

Like = tuple[int, ...]  # as long as a vector

MAX_WIDTH = operations.MAX_WIDTH
# Rows of five subtypes of two to six classes are held whole. Other rows of more than MAX_WIDTH are
# cut: kernels are compiled for each length, and that costs a first fit more than it mostly saves.
WHOLE_ROWS = tuple(n for n in (10, 15, 20, 25, 30) if n <= operations.MAX_ROW)

zeros = operations.zeros
load = operations.load
store = operations.store
load_column = operations.load_column
store_column = operations.store_column
prefetch = operations.prefetch
prefetch_row = operations.prefetch_row
plus = operations.plus
minus = operations.minus
times = operations.times
over = operations.over
fma = operations.fma
rounded = operations.rounded
maximum = operations.maximum
abs_difference = operations.abs_difference
others = operations.others
widened = operations.widened
narrowed = operations.narrowed
where_above = operations.where_above
max_element = operations.max_element
min_element = operations.min_element
sum_elements = operations.sum_elements
times_power = operations.times_power
add_exponent = operations.add_exponent
exponent = operations.exponent
mantissa = operations.mantissa
exp_of_each = operations.exp_of_each


def vector_for(n_classes: int) -> Like:
    """Return a tuple as long as the largest vector that cuts the classes into equal pieces.

    >>> [len(vector_for(n)) for n in (2, 4, 8, 10, 11, 1000)]
    [2, 4, 8, 5, 1, 8]
    """
    return (0,) * max(n for n in range(1, MAX_WIDTH + 1) if n_classes % n == 0)
