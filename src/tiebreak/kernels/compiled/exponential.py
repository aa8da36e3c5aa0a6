"""The exponential and the logarithm, written out so that several numbers are worked on at once.

The plain version is `np.exp` and `np.log`: a call of the library for each number. These are a dozen
multiplications without a branch: in a loop over an array, or on SIMD vectors, they become vector
instructions. With four classes exponentials take a third of a sweep even so (docs/performance.md).
"""

from __future__ import annotations

from typing import Any

from tiebreak.kernels.compile import fused_kernel, inlined_kernel, kernel
from tiebreak.kernels.compiled import scalar, simd
from tiebreak.kernels.compiled.scalar import (
    C2,
    C3,
    C4,
    C5,
    C6,
    C7,
    C8,
    C9,
    C10,
    C11,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ROUND,
)
from tiebreak.kernels.compiled.simd import (
    exp_of_each,
    fma,
    minus,
    narrowed,
    over,
    plus,
    times,
    where_above,
    widened,
)

EXP_IS_ZERO = -746.0  # exp rounds to 0 here and below, −∞ included

# atanh(s) / s in z = s² up to √½ ≤ (1 + s) / (1 − s) ≤ √2, likewise: off by 2e-18.
A1 = 0.3333333333333383
A2 = 0.1999999999964765
A3 = 0.14285714381086997
A4 = 0.11111098449290438
A5 = 0.0909182001402949
A6 = 0.07656155176420225
A7 = 0.07405968120567546


@fused_kernel
def exp(x: float) -> float:
    """Return e^x for x ≤ 700, to the last bit or one beside it: 2^n · e^r with x = n ln 2 + r.

    Where the result is 0, that of 0 is worked out instead: underflow is slow.
    """
    is_above = x > EXP_IS_ZERO
    x = x if is_above else 0.0
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ((((C11 * r + C10) * r + C9) * r + C8) * r + C7) * r + C6
    p = (((((p * r + C5) * r + C4) * r + C3) * r + C2) * r + 1.0) * r + 1.0
    e = scalar.times_power(p, rounded)
    return float(e if is_above else 0.0)


@fused_kernel
def log(x: float) -> float:
    """Return log x, 1e-300 < x < 1e300: n ln 2 + 2 atanh s with x = 2^n (1 + s) / (1 − s)."""
    n = scalar.exponent(x)
    m = scalar.mantissa(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = ((((A7 * z + A6) * z + A5) * z + A4) * z + A3) * z + A2
    p = (p * z + A1) * z
    return float(n * LN2_HIGH + (2.0 * s + (2.0 * s * p + n * LN2_LOW)))


@kernel
def exp_simd(x: Any) -> Any:
    """Do on vectors what `exp` does."""
    given = x
    x = where_above(x, EXP_IS_ZERO, x)
    rounded = fma(x, LOG2_E, ROUND)
    n = minus(rounded, ROUND)
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    p = fma(fma(fma(fma(fma(r, C11, C10), r, C9), r, C8), r, C7), r, C6)
    p = fma(fma(fma(fma(p, r, C5), r, C4), r, C3), r, C2)
    e = simd.times_power(fma(fma(p, r, 1.0), r, 1.0), rounded)
    return where_above(given, EXP_IS_ZERO, e)


@inlined_kernel
def exp_normal(x: Any) -> Any:
    """Return e^x on vectors as `exp_simd` does, for −∞ < x ≤ 700; 0 at −708 and below.

    Whether a row has denormal numbers is not asked. With twenty states 3 ns a response, not 7.
    """
    return narrowed(exp_of_each(widened(x)))


@kernel
def log_simd(x: Any) -> Any:
    """Do on vectors what `log` does."""
    n = simd.exponent(x)
    m = simd.mantissa(x)
    s = over(minus(m, 1.0), plus(m, 1.0))
    z = times(s, s)
    p = fma(fma(fma(fma(z, A7, A6), z, A5), z, A4), z, A3)
    p = times(fma(fma(p, z, A2), z, A1), z)
    twice = plus(s, s)
    return fma(n, LN2_HIGH, plus(twice, fma(twice, p, times(n, LN2_LOW))))
