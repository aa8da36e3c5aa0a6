"""The exponential, written out so that the compiler can work on several numbers at once.

The library's exp is a call for each number; this one is a dozen multiplications without a branch,
and inside a loop over an array they become vector instructions.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import fused_kernel

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


@fused_kernel
def exp(x: float) -> float:
    """Return e^x for x ≤ 0, to the last bit or one beside it: 2^n · e^r with x = n ln 2 + r.

    The power of two is put in as two factors, so that results below 1e-308 are right as well.
    """
    x = x if x > LOWEST else LOWEST
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ((((C11 * r + C10) * r + C9) * r + C8) * r + C7) * r + C6
    p = (((((p * r + C5) * r + C4) * r + C3) * r + C2) * r + 1.0) * r + 1.0
    bits = np.float64(rounded).view(np.uint64)
    half = bits >> np.uint64(1)
    return float(p * _power(half) * _power(bits - half))


@fused_kernel
def _power(n: np.uint64) -> float:
    """Return 2^n, n the low 12 bits as a signed number."""
    return float(np.uint64((n << np.uint64(52)) + np.uint64(ONE_BITS)).view(np.float64))
