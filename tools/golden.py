"""Write the frozen results that tests/golden/test_frozen.py compares with.

    python tools/golden.py                          say what differs, write nothing
    python tools/golden.py --only 'auto*' --write   write these again (a pattern, or several)

Results change on purpose or not at all: the message of the commit says which, why and by how much,
and what this prints goes into it. Real data are read from the folder that TIEBREAK_DATA names.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "golden"))
import frozen


def main() -> None:
    """Compare, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"], help="names of fits, as patterns")
    parser.add_argument("--write", action="store_true", help="keep what was found")
    options = parser.parse_args()
    results = frozen.read() if frozen.RESULTS.exists() else {}
    for name in [*frozen.FITS, "gibbs"]:
        if not any(fnmatch(name, pattern) for pattern in options.only):
            continue
        if name in frozen.DATA_FITS and not os.environ.get("TIEBREAK_DATA"):
            print(f"{name:30} left out: TIEBREAK_DATA names no folder")
            continue
        begun = time.perf_counter()
        if name == "gibbs":
            old = results.get(name)
            told = (
                [] if old is None else [f"misfit {frozen.gibbs_misfit(frozen.gibbs(0), old):.2f}"]
            )
            found = frozen.frozen_gibbs() if options.write else old
        else:
            found = frozen.run(name)
            told = frozen.differences(found, results[name]) if name in results else ["new"]
        print(f"{name:30} {time.perf_counter() - begun:6.2f} s  {'; '.join(told) or 'the same'}")
        if found is not None:
            results[name] = found
    if options.write:
        gone = results.keys() - {*frozen.FITS, "gibbs"}
        arrays = {
            f"{name}/{part}": array
            for name, parts in sorted(results.items())
            if name not in gone
            for part, array in sorted(parts.items())
        }
        np.savez_compressed(frozen.RESULTS, **arrays)
        print(f"{frozen.RESULTS}: {len(results)} fits, {frozen.RESULTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
