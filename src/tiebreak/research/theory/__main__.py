"""Bound the errors of labels and workers: python -m tiebreak.research.theory crowd.toml.

The theorems are about a crowd whose skill is known: they plan, they do not certify. The file has
the arguments of `Assumptions`, and of `LinkedTasks` in a table [links]:

    n_tasks = 20_000
    class_prior = [0.5, 0.5]
    n_workers = [40, 20]                # of each kind
    confusion = [                       # of each kind: truth by answer
        [[0.90, 0.10], [0.10, 0.90]],
        [[0.90, 0.10], [0.12, 0.88]],
    ]
    failure_probability = 0.1

    [start]                             # how far the first estimates may be from the truth
    class_prior_error = 0.02
    confusion_error = 0.015
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

import tiebreak as tb
from tiebreak.errors import FileError, InputError
from tiebreak.research import theory


def main(arguments: list[str] | None = None) -> int:
    """Print the bounds after each iteration, and what they prove."""
    parser = argparse.ArgumentParser(
        "python -m tiebreak.research.theory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("assumptions", nargs="?", help="a TOML file")
    source.add_argument("--from", dest="responses", help="estimate the crowd from responses")
    parser.add_argument("--version", choices=("sharp", "plain", "printed"), default="sharp")
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args(arguments)
    try:
        print(_report(options))  # noqa: T201
    except tb.TiebreakError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def read(path: str | Path) -> tuple[theory.Assumptions, theory.LinkedTasks | None]:
    """Read assumptions, and links where there are any."""
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileError("unreadable-assumptions", path=path, reason=error.strerror) from None
    except ValueError as error:  # no UTF-8, or no TOML
        raise InputError("not-toml", path=path, reason=error) from None
    try:
        links = table.pop("links", None)
        if "start" in table:
            table["start"] = theory.AssumedStart(**table["start"])
        crowd = theory.Assumptions(**table)
        return crowd, None if links is None else theory.LinkedTasks(**links)
    except (TypeError, tb.TiebreakError) as error:  # TypeError: a key is unknown or missing
        raise InputError("wrong-assumptions", path=path, reason=error) from None


def _report(options: argparse.Namespace) -> str:
    links = None
    lines = []
    if options.responses is None:
        crowd, links = read(options.assumptions)
    else:
        crowd = theory.assumptions_from(tb.VariationalBayes().fit(options.responses))
        lines.append("Estimated from the responses: a plan for crowds like it, no certificate.\n")
    found = theory.bounds(crowd, links=links, n_iter=options.iterations, version=options.version)
    lines.append("iteration  labels     class prior  confusions")
    columns = (found.label_error, found.class_prior_error, found.confusion_error)
    for step, row in enumerate(zip(*columns, strict=True), start=1):
        lines.append("{:<10} {:<10.3g} {:<12.3g} {:.3g}".format(step, *row))
    lines.append(f"\n{crowd.total_workers:,} workers, {crowd.n_tasks:,} tasks: {found}.")
    if options.version == "printed":
        lines.append("The printed formulas prove nothing: see the errata.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
