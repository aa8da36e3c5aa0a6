"""The operations of `llvm.py` on vectors of one number: plain code, public numba alone.

They say what each operation means, and kernels run on them where the inside of numba has moved: a
row of K numbers is then K steps of a loop. A sweep takes about twice as long (one core, 500,000
responses: 2.3 instead of 1.1 ms with two classes, 4.7 instead of 2.1 with four).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from tiebreak.kernels.compile import fused_kernel, kernel
from tiebreak.kernels.layout import Floats

MAX_WIDTH = 1  # numbers in a vector
MAX_ROW = 1  # numbers in a row that is held at once
ONE_BITS = 0x3FF0000000000000  # of 1.0
EXPONENTS = 1024  # added to exponents, so that they are above 0
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of √½
TWO_52 = 4503599627370496.0  # from here to its double the low bits of a float count units
TWO_52_BITS = 0x4330000000000000
LEAST_NORMAL = -708.0  # above, exp is a normal number
LOG2_E = 1.4426950408889634
ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the low bits
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10

# exp on |r| ≤ ln 2 / 2 by its Chebyshev series up to degree 11: off by less than 1e-17.
C2 = 0.5000000000000019
C3 = 0.16666666666666702
C4 = 0.04166666666648736
C5 = 0.00833333333330943
C6 = 0.0013888888952508691
C7 = 0.00019841269909424066
C8 = 2.4801485275248647e-05
C9 = 2.7557224767288023e-06
C10 = 2.7632716110097873e-07
C11 = 2.5114933069618484e-08


@kernel
def zeros(like: tuple[int]) -> float:
    """Return a vector of zeros."""
    return 0.0


def load(array: Floats, row: int, k: int, like: tuple[int]) -> Any:
    """Return array[row, k:k + n]; of an array with one axis, row 0 is all of it."""
    return array[k] if array.ndim == 1 else array[row, k]


def store(array: Floats, row: int, k: int, vector: float) -> None:
    """Set array[row, k:k + n]."""
    array[k if array.ndim == 1 else (row, k)] = vector


# How many axes there are is known when a kernel is compiled. Unsigned places: see `rows.py`.


@overload(load)
def _load(array: Any, row: Any, k: Any, like: Any) -> Any:
    def of_one_axis(array: Any, row: Any, k: Any, like: Any) -> Any:
        return array[np.uint64(k)]

    def of_two_axes(array: Any, row: Any, k: Any, like: Any) -> Any:
        return array[np.uint64(row), np.uint64(k)]

    return of_one_axis if array.ndim == 1 else of_two_axes


@overload(store)
def _store(array: Any, row: Any, k: Any, vector: Any) -> Any:
    def of_one_axis(array: Any, row: Any, k: Any, vector: Any) -> Any:
        array[np.uint64(k)] = vector

    def of_two_axes(array: Any, row: Any, k: Any, vector: Any) -> Any:
        array[np.uint64(row), np.uint64(k)] = vector

    return of_one_axis if array.ndim == 1 else of_two_axes


@kernel
def load_column(array: Floats, k: int, column: int, like: tuple[int]) -> Any:
    """Return array[k:k + n, column]."""
    return array[np.uint64(k), np.uint64(column)]


@kernel
def store_column(array: Floats, k: int, column: int, vector: float) -> None:
    """Set array[k:k + n, column]."""
    array[np.uint64(k), np.uint64(column)] = vector


@kernel
def prefetch(array: Floats, row: int, k: int) -> None:
    """Say that array[row, k:] will be needed soon; without vectors, nothing is done."""


@kernel
def prefetch_row(array: Floats, row: int, k: int, like: tuple[int]) -> None:
    """Say that array[row, k:k + n] will be needed, not at once: into the second cache."""


@fused_kernel
def plus(a: float, b: float) -> float:
    """Return a + b."""
    return a + b


@fused_kernel
def minus(a: float, b: float) -> float:
    """Return a − b."""
    return a - b


@fused_kernel
def times(a: float, b: float) -> float:
    """Return a · b."""
    return a * b


@kernel
def over(a: float, b: float) -> float:
    """Return a / b."""
    return a / b


@kernel
def rounded(a: float, rounder: float) -> float:
    """Return a as a multiple of what the last bit of the rounder stands for."""
    return (a + rounder) - rounder


@fused_kernel
def fma(a: float, b: float, c: float) -> float:
    """Return a · b + c, rounded once where the machine can."""
    return a * b + c


@kernel
def maximum(a: float, b: float) -> float:
    """Return the larger one."""
    return a if a > b else b


@kernel
def abs_difference(a: float, b: float) -> float:
    """Return |a − b|."""
    return abs(a - b)


@kernel
def others(vector: float) -> float:
    """Return for each element the sum of all others."""
    return 0.0


@kernel
def itself(vector: float) -> float:
    """Return the number: one number is its own vector, largest and smallest element, and sum."""
    return vector


widened = itself
narrowed = itself
max_element = itself
min_element = itself
sum_elements = itself


@kernel
def where_above(test: float, limit: float, vector: float) -> float:
    """Return the vector, 0 where test ≤ limit."""
    return vector if test > limit else 0.0


@fused_kernel
def times_power(x: float, rounded: float) -> float:
    """Return x · 2^n, n the low 12 bits of `rounded` as a signed number.

    The power of two is put in as two factors, so that results below 1e-308 are right as well.
    """
    bits = np.float64(rounded).view(np.uint64)
    half = bits >> np.uint64(1)
    return x * _power(half) * _power(bits - half)


@fused_kernel
def add_exponent(x: float, rounded: float) -> float:
    """Return x · 2^n as `times_power` does, where x and the result are above 1e-307."""
    power = np.float64(rounded).view(np.uint64) << np.uint64(52)
    return float(np.uint64(np.float64(x).view(np.uint64) + power).view(np.float64))


@fused_kernel
def exp_of_each(x: float) -> float:
    """Return e^x, −∞ < x ≤ 700, and 0 at −708 and below: 2^n · e^r with x = n ln 2 + r.

    The terms of the polynomial are joined in pairs, so that few wait for each other.
    """
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    square = r * r
    low = square * (r * C3 + C2) + (r + 1.0)
    middle = square * (r * C7 + C6) + (r * C5 + C4)
    high = square * (r * C11 + C10) + (r * C9 + C8)
    fourth = square * square
    p = fourth * (fourth * high + middle) + low
    return add_exponent(p, rounded) if x > LEAST_NORMAL else 0.0


@fused_kernel
def _power(n: np.uint64) -> float:
    """Return 2^n, n the low 12 bits as a signed number."""
    return float(np.uint64((n << np.uint64(52)) + np.uint64(ONE_BITS)).view(np.float64))


@fused_kernel
def _raised_exponent(bits: np.uint64) -> np.uint64:
    """Return n + EXPONENTS, for 2^n m with √½ ≤ m < √2."""
    return (bits + np.uint64((EXPONENTS << 52) - ROOT_HALF_BITS)) >> np.uint64(52)


@fused_kernel
def exponent(x: float) -> float:
    """Return n of x = 2^n m with √½ ≤ m < √2."""
    raised = _raised_exponent(np.float64(x).view(np.uint64))
    return float(np.uint64(raised | np.uint64(TWO_52_BITS)).view(np.float64) - (TWO_52 + EXPONENTS))


@fused_kernel
def mantissa(x: float) -> float:
    """Return m of x = 2^n m with √½ ≤ m < √2."""
    bits = np.float64(x).view(np.uint64)
    shift = (_raised_exponent(bits) - np.uint64(EXPONENTS)) << np.uint64(52)
    return float(np.uint64(bits - shift).view(np.float64))
