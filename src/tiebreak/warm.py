"""Compile everything ahead: `python -m tiebreak.warm`, for images and first fits that must be fast.

Compiled code is kept beside the package, or where NUMBA_CACHE_DIR says, and used from then on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["compile_all"]

TASKS = 70_000  # with four responses each: enough for every compiled way in
CLASSES = (2, 3, 4, 5, 6, 7, 8, 11)  # kernels are compiled for each number up to 8, and for more
LINKS = 4_000


def compile_all(numbers: Sequence[int] = CLASSES) -> Iterator[str]:
    """Read and fit crowds that between them need every compiled function; yield each step."""
    import tiebreak as tb

    with tempfile.TemporaryDirectory() as folder:
        for n_classes in numbers:
            drawn = tb.simulate.crowd(
                TASKS, 50, n_classes, responses_per_task=4, random_state=n_classes
            )
            yield f"reading, {n_classes} classes"
            responses = _read_all_ways(Path(folder), drawn.responses)
            links = tb.simulate.links(drawn.gold, LINKS, random_state=1)
            soft = tb.ExactLinkOptions(error="learn")
            learnt = tb.ExactLinkOptions(error="learn")
            mean_field = tb.MeanFieldOptions(strength=1.0)
            few = dict(list(drawn.gold.to_dict().items())[:100])
            yield f"fitting, {n_classes} classes"
            tb.MajorityVote().fit(responses)
            tb.DawidSkene(max_iter=3).fit(responses)
            tb.VariationalBayes(max_iter=5).fit(responses, gold=few)
            yield f"fitting with links, {n_classes} classes"
            for options in (None, soft, learnt, mean_field):
                tb.VariationalBayes(max_iter=5, link_options=options).fit(responses, links=links)


def _read_all_ways(folder: Path, responses: object) -> object:
    """Write responses as text, as numbers and packed, and read each."""
    import tiebreak as tb

    crowd = tb.read_responses(responses)
    as_text = folder / "responses.csv"
    crowd.write(as_text)
    read = tb.read_responses(as_text)
    numbers = {
        "task": crowd.task_of_each(),
        "worker": crowd.worker_of_each(),
        "label": crowd.label_of_each(),
    }
    tb.read_responses(numbers)
    tb.read_responses({name: column.astype("int64") for name, column in numbers.items()})
    return read


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tiebreak.warm", description=__doc__)
    words = "numbers of classes to compile for (default: every number that has code of its own)"
    parser.add_argument("classes", nargs="*", type=int, default=CLASSES, help=words)
    numbers = parser.parse_args().classes
    if min(numbers) < 2:
        parser.error("a crowd has 2 classes or more")
    began = time.monotonic()
    warnings.simplefilter("ignore")
    for stage in compile_all(numbers):
        sys.stdout.write(f"{stage} …\n")
    sys.stdout.write(f"compiled everything in {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    _main()
