"""Hashes of ids: the same on every machine, in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.data.ids.table import Ids, is_arrow

Hashes = npt.NDArray[np.uint64]

AT_ONCE = 1 << 18  # ids hashed together: their bytes take eight times as much memory
MULTIPLIER = 0x9E3779B97F4A7C15  # odd, so that it has an inverse: see `_hash_text`
INVERSE = pow(MULTIPLIER, -1, 2**64)


def hash_ids(names: Ids) -> Hashes:
    """Return a 64-bit hash of each id: the same on every machine, in every run.

    >>> hash_ids(Ids(["a", "b", "a"])).tolist()[0] == hash_ids(Ids(["a"])).tolist()[0]
    True
    """
    import pyarrow as pa

    values: Any = names.values
    if not is_arrow(values):
        values = pa.array([str(name) for name in names], pa.large_string())
    if pa.types.is_integer(values.type):
        whole = values.cast(pa.int64(), safe=False).to_numpy()
        return _mixed(np.asarray(whole.astype(np.uint64)))
    text = values.cast(pa.large_string())
    pieces = [_hash_text(text[at : at + AT_ONCE]) for at in range(0, len(text), AT_ONCE)]
    return np.concatenate([*pieces, np.empty(0, np.uint64)])


def _hash_text(text: Any) -> Hashes:
    """Return Σ byte · m^place of each text, wrapped at 64 bits, without a loop over texts.

    With powers of one multiplier m over all bytes side by side, the sum of a text that starts at s
    is too large by m^s, which the inverse of m takes off again.
    """
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    low = int(offsets[0])
    high = int(offsets[-1])
    data = text.buffers()[2]
    raw = np.frombuffer(data, np.uint8)[low:high] if high > low else np.empty(0, np.uint8)
    powers = np.cumprod(np.full(len(raw) + 1, MULTIPLIER, np.uint64))
    back = np.cumprod(np.full(len(raw) + 1, INVERSE, np.uint64))
    sums = np.zeros(len(raw) + 1, np.uint64)
    np.cumsum((raw.astype(np.uint64) + np.uint64(1)) * powers[:-1], out=sums[1:])
    start = offsets[:-1] - low
    end = offsets[1:] - low
    moved = (sums[end] - sums[start]) * back[start]
    return _mixed(np.asarray(moved + (end - start).astype(np.uint64), dtype=np.uint64))


def _mixed(x: Hashes) -> Hashes:
    """Spread bits evenly: the finaliser of splitmix64."""
    x = x + np.uint64(MULTIPLIER)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
