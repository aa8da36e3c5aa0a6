"""The exponential and the logarithm, written out so that several numbers are worked on at once.

The library's are a call for each number. These are a dozen multiplications without a branch: in a
loop over an array, or on lanes, they become vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from tiebreak.kernels.compile import fused_kernel, kernel
from tiebreak.kernels.compiled.simd import (
    fused,
    lane_by_lane,
    minus,
    over,
    plus,
    times,
    where_above,
)

LOWEST = -746.0  # exp rounds to 0 here and below, −∞ included
LOG2_E = 1.4426950408889634
ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the low bits
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ONE_BITS = 0x3FF0000000000000

# exp on |r| ≤ ln 2 / 2 by its Chebyshev series up to degree 11: off by less than 1e-17.
C2, C3, C4 = 0.5000000000000019, 0.16666666666666702, 0.04166666666648736
C5, C6, C7 = 0.00833333333330943, 0.0013888888952508691, 0.00019841269909424066
C8, C9, C10 = 2.4801485275248647e-05, 2.7557224767288023e-06, 2.7632716110097873e-07
C11 = 2.5114933069618484e-08

# atanh(s) / s in z = s² up to √½ ≤ (1 + s) / (1 − s) ≤ √2, likewise: off by 2e-18.
A1, A2, A3, A4 = 0.3333333333333383, 0.1999999999964765, 0.14285714381086997, 0.11111098449290438
A5, A6, A7 = 0.0909182001402949, 0.07656155176420225, 0.07405968120567546
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
EXPONENTS = 1024  # added to exponents, so that they are above 0
WHOLE_BITS, WHOLE = 0x4330000000000000, 4503599627370496.0  # 2^52: low bits count units


@fused_kernel
def exp(x: float) -> float:
    """Return e^x for x ≤ 700, to the last bit or one beside it: 2^n · e^r with x = n ln 2 + r.

    The power of two is put in as two factors, so that results below 1e-308 are right as well.
    Where the result is 0, that of 0 is worked out instead: underflow is slow.
    """
    is_above = x > LOWEST
    x = x if is_above else 0.0
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ((((C11 * r + C10) * r + C9) * r + C8) * r + C7) * r + C6
    p = (((((p * r + C5) * r + C4) * r + C3) * r + C2) * r + 1.0) * r + 1.0
    bits = np.float64(rounded).view(np.uint64)
    half = bits >> np.uint64(1)
    e = p * _power(half) * _power(bits - half)
    return float(e if is_above else 0.0)


@fused_kernel
def _power(n: np.uint64) -> float:
    """Return 2^n, n the low 12 bits as a signed number."""
    return float(np.uint64((n << np.uint64(52)) + np.uint64(ONE_BITS)).view(np.float64))


@fused_kernel
def log(x: float) -> float:
    """Return log x, 1e-300 < x < 1e300: n ln 2 + 2 atanh s with x = 2^n (1 + s) / (1 − s)."""
    bits = np.float64(x).view(np.uint64)
    raised = (bits + np.uint64((EXPONENTS << 52) - ROOT_HALF_BITS)) >> np.uint64(52)
    n = np.uint64(raised | np.uint64(WHOLE_BITS)).view(np.float64) - (WHOLE + EXPONENTS)
    m = np.uint64(bits - ((raised - np.uint64(EXPONENTS)) << np.uint64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = ((((A7 * z + A6) * z + A5) * z + A4) * z + A3) * z + A2
    p = (p * z + A1) * z
    return float(n * LN2_HIGH + (2.0 * s + (2.0 * s * p + n * LN2_LOW)))


@kernel
def exp_lanes(x: Any) -> Any:
    """Do on lanes what `exp` does."""
    lowered = x
    x = where_above(x, LOWEST, x)
    rounded = fused(x, LOG2_E, ROUND)
    n = minus(rounded, ROUND)
    r = fused(n, -LN2_LOW, fused(n, -LN2_HIGH, x))
    p = fused(fused(fused(fused(fused(r, C11, C10), r, C9), r, C8), r, C7), r, C6)
    p = fused(fused(fused(fused(p, r, C5), r, C4), r, C3), r, C2)
    e = _times_power(fused(fused(p, r, 1.0), r, 1.0), rounded)
    return where_above(lowered, LOWEST, e)


@kernel
def log_lanes(x: Any) -> Any:
    """Do on lanes what `log` does."""
    n = _exponent(x)
    m = _mantissa(x)
    s = over(minus(m, 1.0), plus(m, 1.0))
    z = times(s, s)
    p = fused(fused(fused(fused(z, A7, A6), z, A5), z, A4), z, A3)
    p = times(fused(fused(p, z, A2), z, A1), z)
    twice = plus(s, s)
    return fused(n, LN2_HIGH, plus(twice, fused(twice, p, times(n, LN2_LOW))))


def _whole(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _bits(builder: Any, lanes: Any) -> tuple[Any, Any]:
    kind = ir.VectorType(ir.IntType(64), lanes.type.count)
    return builder.bitcast(lanes, kind), kind


def _put_in_power(builder: Any, lanes: Any, rounded: Any) -> Any:
    bits, kind = _bits(builder, rounded)
    half = builder.lshr(bits, _whole(kind, 1))
    for part in (half, builder.sub(bits, half)):
        power = builder.add(builder.shl(part, _whole(kind, 52)), _whole(kind, ONE_BITS))
        lanes = builder.fmul(lanes, builder.bitcast(power, lanes.type))
    return lanes


def _raised_exponent(builder: Any, bits: Any, kind: Any) -> Any:
    """Return n + EXPONENTS, for 2^n m with √½ ≤ m < √2."""
    above = builder.add(bits, _whole(kind, (EXPONENTS << 52) - ROOT_HALF_BITS))
    return builder.lshr(above, _whole(kind, 52))


def _get_exponent(builder: Any, lanes: Any) -> Any:
    bits, kind = _bits(builder, lanes)
    raised = builder.or_(_raised_exponent(builder, bits, kind), _whole(kind, WHOLE_BITS))
    shift = ir.Constant(lanes.type, [WHOLE + EXPONENTS] * kind.count)
    return builder.fsub(builder.bitcast(raised, lanes.type), shift)


def _get_mantissa(builder: Any, lanes: Any) -> Any:
    bits, kind = _bits(builder, lanes)
    raised = builder.shl(_raised_exponent(builder, bits, kind), _whole(kind, 52))
    mantissa = builder.add(builder.sub(bits, raised), _whole(kind, EXPONENTS << 52))
    return builder.bitcast(mantissa, lanes.type)


_times_power = lane_by_lane(_put_in_power)
_exponent = lane_by_lane(_get_exponent)
_mantissa = lane_by_lane(_get_mantissa)
