"""Text as bytes in one buffer: hashed and compared eight bytes at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.compile import kernel

Bytes = npt.NDArray[np.uint8]

WORD = 8
MIX = np.uint64(0x9FB21C651E98DF25)  # odd, with bits all over
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio
HALF = np.uint64(32)
LAST = np.uint64(29)
BYTE = np.uint64(8)


@kernel
def word(data: Bytes, at: int) -> np.uint64:
    """Return data[at:at + 8] as one number, wherever it starts.

    Written out and with unsigned places, the compiler makes it one load; a loop over the eight
    bytes takes three times as long.
    """
    i = np.uint64(at)
    low = _byte(data, i, 0) | _byte(data, i, 1) | _byte(data, i, 2) | _byte(data, i, 3)
    high = _byte(data, i, 4) | _byte(data, i, 5) | _byte(data, i, 6) | _byte(data, i, 7)
    return low | high


@kernel
def _byte(data: Bytes, i: np.uint64, n: int) -> np.uint64:
    return np.uint64(data[i + np.uint64(n)]) << np.uint64(8 * n)


@kernel
def hash_text(data: Bytes, low: int, high: int) -> np.uint64:
    """Return 64 mixed bits of data[low:high]; the last word may overlap the one before."""
    mixed = np.uint64(high - low) * SPREAD
    if high - low >= WORD:
        while low < high - WORD:
            mixed = (mixed ^ word(data, low)) * MIX
            mixed ^= mixed >> HALF
            low += WORD
        rest = word(data, high - WORD)
    else:
        rest = np.uint64(0)
        for at in range(low, high):
            rest = (rest << BYTE) | np.uint64(data[at])
    mixed = (mixed ^ rest) * MIX
    mixed = (mixed ^ (mixed >> HALF)) * MIX
    return mixed ^ (mixed >> LAST)


@kernel
def same_text(data: Bytes, low: int, high: int, other: Bytes, at: int) -> bool:
    """Tell whether data[low:high] stands in `other` at `at`."""
    if high - low < WORD:
        for i in range(high - low):  # noqa: SIM110 - `all` cannot be compiled
            if data[low + i] != other[at + i]:
                return False
        return True
    last = high - WORD
    while low < last:
        if word(data, low) != word(other, at):
            return False
        low += WORD
        at += WORD
    return bool(word(data, last) == word(other, at - (low - last)))
