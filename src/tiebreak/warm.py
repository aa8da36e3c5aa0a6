"""Compile everything ahead: `python -m tiebreak.warm`, for images and first fits that must be fast.

Compiled code is kept beside the package, or where NUMBA_CACHE_DIR says, and used from then on.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence

__all__ = ["compile_all"]

TASKS = 70_000  # with four responses each: enough for every compiled way in
CLASSES = (2, 3, 4, 5, 6, 7, 8, 11)  # kernels are compiled for each number up to 8, and for more
LINKS = 4_000


def compile_all(numbers: Sequence[int] = CLASSES) -> Iterator[str]:
    """Draw and fit crowds that between them need every compiled function; yield each step."""
    import tiebreak as tb

    link_options = (
        None,
        tb.ExactLinkOptions(error="learn"),
        tb.MeanFieldOptions(strength=1.0),
    )
    for n_classes in numbers:
        drawn = tb.simulate.crowd(TASKS, 50, n_classes, responses_per_task=4, random_state=0)
        links = tb.simulate.links(drawn.gold, LINKS, random_state=1)
        few = dict(list(drawn.gold.to_dict().items())[:100])
        yield f"fitting, {n_classes} classes"
        tb.MajorityVote().fit(drawn.responses)
        tb.DawidSkene(max_iter=3).fit(drawn.responses)
        tb.VariationalBayes(max_iter=5).fit(drawn.responses, gold=few)
        yield f"fitting with links, {n_classes} classes"
        for options in link_options:
            model = tb.VariationalBayes(max_iter=5, link_options=options)
            model.fit(drawn.responses, links=links)


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
