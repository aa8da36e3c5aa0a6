"""Run every benchmark, or those named: `python -m benchmarks crowd_kit linked_sweep`."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import asked, report

# Each runs in a process of its own, so that peak memory is its own.
EVERY = {
    "crowd_kit": "benchmarks.rivals.crowd_kit",
    "one_coin": "benchmarks.rivals.one_coin",
    "frame": "benchmarks.rivals.frame",
    "growth": "benchmarks.scale.growth",
    "sweep": "benchmarks.rivals.sweep",
    "must_component": "benchmarks.scale.must_component",
    "worker_model_sweeps": "benchmarks.scale.worker_models",
    "linked_sweep": "benchmarks.scale.linked_sweep",
    "fewer_sweeps": "benchmarks.scale.fewer_sweeps",
    "jury": "benchmarks.scale.jury",
    "judges": "benchmarks.scale.judges",
    "asking": "benchmarks.scale.asking",
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in EVERY]
    if unknown:
        print(f"No benchmark named {', '.join(unknown)}; there are {', '.join(EVERY)}.")
        return 2
    for name in names or EVERY:
        done = subprocess.run([sys.executable, "-m", EVERY[name]], check=False)
        if done.returncode:
            return done.returncode
    report.write()
    short = asked.missed(names or list(EVERY))
    print("\n".join(short), file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
