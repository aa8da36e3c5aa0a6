"""Assumption files: a small TOML that says who answers what; example.toml is one."""

from __future__ import annotations

import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import PATH, TEXT, checks, of_type
from tiebreak.errors import FileError, InputError, TiebreakError
from tiebreak.kernels.layout import Floats
from tiebreak.theory.crowd import AssumedStart, Assumptions
from tiebreak.theory.linked import LinkedTasks
from tiebreak.theory.plan import with_responses_per_task

EXAMPLE = resources.files("tiebreak.theory").joinpath("example.toml").read_text("utf-8")
NO_NUMBERS = ("class_prior", "workers", "start", "prior", "links", "confusion", "tasks", "cannot")


class Scenario(NamedTuple):
    """What an assumption file describes."""

    assumptions: Assumptions
    links: LinkedTasks | None


@checks(path=PATH)
def read_assumptions(path: str | Path) -> Scenario:
    """Read an assumption file; "-" is standard input. `tiebreak bounds --example` prints one."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{name} cannot be read: {error.strerror}.") from None
    return parse_assumptions(data, name)


@checks(text=of_type("a text", str, bytes), name=TEXT)
def parse_assumptions(text: bytes | str, name: str = "the assumptions") -> Scenario:
    """Build assumptions and links from the text of an assumption file.

    >>> parse_assumptions(EXAMPLE).assumptions
    Assumptions(60 workers of 2 kinds, 20,000 tasks, 2 classes, 60 responses a task)
    """
    try:
        table = tomllib.loads(text if isinstance(text, str) else text.decode())
        return Scenario(_assumptions(table), _links(table))
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text, so it cannot be a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{name} is not TOML: {error}. `tiebreak bounds --example` prints a file that is."
        ) from None
    except TiebreakError as error:
        raise InputError(f"{name}: {error}") from None


def _assumptions(table: dict[str, Any]) -> Assumptions:
    optional = "failure_probability responses_per_task most_responses start prior links"
    _check("the file", table, "n_tasks class_prior workers", optional)
    start = _check("[start]", table.get("start", {}), "", " ".join(AssumedStart.__slots__))
    prior = _check("[prior]", table.get("prior", {}), "", "class_prior confusion")
    workers = _check_each(
        "[[workers]]", table["workers"], "count", "accuracy confusion response_rate"
    )
    n_classes = np.size(table["class_prior"])
    crowd = Assumptions(
        class_prior=table["class_prior"],
        confusion=[_confusion(worker, n_classes) for worker in workers],
        n_tasks=table["n_tasks"],
        n_workers=[worker["count"] for worker in workers],
        response_rate=[worker.get("response_rate", 1.0) for worker in workers],
        failure_probability=table.get("failure_probability", 0.05),
        class_prior_counts=prior.get("class_prior", 1.0),
        confusion_counts=prior.get("confusion", "diagonal"),
        start=AssumedStart(**start),
        most_responses=table.get("most_responses"),
    )
    if "responses_per_task" not in table:
        return crowd
    if any("response_rate" in worker for worker in workers):
        raise InputError("Give responses_per_task or the workers' response_rate, not both.")
    return with_responses_per_task(crowd, table["responses_per_task"])


def _links(table: dict[str, Any]) -> LinkedTasks | None:
    if not table.get("links"):
        return None
    links = _check("[links]", table["links"], "tasks", "strength")
    linked = _check_each("[[links.tasks]]", links["tasks"], "truth cannot", "count must")
    return LinkedTasks(
        must=[kind.get("must", 0) for kind in linked],
        cannot=[kind["cannot"] for kind in linked],
        truth=[kind["truth"] for kind in linked],
        n_tasks=[kind.get("count", 1) for kind in linked],
        strength=links.get("strength", 1.0),
    )


def _confusion(worker: dict[str, Any], n_classes: int) -> Any:
    """Return the matrix of a kind of worker: as given, or spread evenly from an accuracy."""
    if ("accuracy" in worker) == ("confusion" in worker):
        raise InputError("Each [[workers]] needs accuracy or confusion, one of the two.")
    if "confusion" in worker:
        return worker["confusion"]
    return even_confusion(worker["accuracy"], n_classes)


def even_confusion(accuracy: float, n_classes: int) -> Floats:
    """Return the confusion matrix of a worker whose wrong answers are spread evenly.

    >>> even_confusion(0.8, 3)[0].tolist()
    [0.8, 0.1, 0.1]
    """
    if not 0 < accuracy < 1:
        raise InputError(
            f"accuracy must be between 0 and 1, both excluded; got {accuracy!r}. "
            "The theorems exclude perfect workers: 0.999 is near enough."
        )
    wrong = round((1 - accuracy) / max(n_classes - 1, 1), 15)
    return np.where(np.eye(n_classes, dtype=bool), accuracy, wrong)


def _check_each(where: str, found: Any, needed: str, optional: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not found:
        raise InputError(f"{where} must be one table or more, with double brackets; got {found!r}.")
    return [_check(where, table, needed, optional) for table in found]


def _check(where: str, table: Any, needed: str, optional: str) -> dict[str, Any]:
    """Return a table after a look at its keys, and that numbers are numbers."""
    if not isinstance(table, dict):
        raise InputError(f"{where.strip('[]')} must be a table, {where}; got {table!r}.")
    known = [*needed.split(), *optional.split()]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InputError(
            f"{where} has no place for {', '.join(unknown)}. It takes {', '.join(known)}."
        )
    missing = [key for key in needed.split() if key not in table]
    if missing:
        raise InputError(
            f"{where} lacks {', '.join(missing)}. `tiebreak bounds --example` shows how."
        )
    for key, value in table.items():
        if key not in NO_NUMBERS and (
            isinstance(value, bool) or not isinstance(value, int | float)
        ):
            raise InputError(f"{where} {key} must be a number; got {value!r}.")
    return table
