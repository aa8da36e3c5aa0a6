"""Assumption files: a small TOML that says who answers what."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.errors import FileError, InputError, TiebreakError
from tiebreak.theory.crowd import Assumptions, Floats, Start
from tiebreak.theory.linked import LinkedTasks
from tiebreak.theory.plan import with_responses_per_task

EXAMPLE = """\
# What `tiebreak bounds` is to assume. Change the numbers to your own crowd.

n_tasks = 20_000
class_prior = [0.5, 0.5]       # how often each class is the truth
failure_probability = 0.1      # the bounds may fail with this probability
# responses_per_task = 30      # that many workers, drawn at random; else response_rate below

[[workers]]                    # one table for each kind of worker
count = 40
accuracy = 0.9                 # right this often, wrong answers spread evenly

[[workers]]
count = 20
confusion = [[0.90, 0.10],     # truth by answer, rows sum to 1, no zeros
             [0.12, 0.88]]
response_rate = 1.0            # the share of tasks that each of them answers

[start]                        # how far the first estimates may be from the truth
class_prior_error = 0.02
confusion_error = 0.015
label_error = 0.05             # matters with links only

[prior]                        # pseudo-counts of the method
class_prior = 1.0
confusion = "diagonal"         # or "uniform", or [right, wrong]

[links]                        # leave this out if there are none
strength = 2.0                 # of one link, in mean-field inference

[[links.tasks]]                # one table for each kind of linked task
count = 1000
truth = 0                      # its class, counted from 0
must = 1                       # must-links of each such task
cannot = [0, 1]                # its cannot-links, by the class of the other end
"""

TOP = (
    "n_tasks",
    "class_prior",
    "failure_probability",
    "responses_per_task",
    "most_responses",
    "workers",
    "start",
    "prior",
    "links",
)
WORKERS = ("count", "accuracy", "confusion", "response_rate")
START = tuple(Start.__slots__)
PRIOR = ("class_prior", "confusion")
LINKS = ("strength", "tasks")
LINKED = ("count", "truth", "must", "cannot")


class Scenario(NamedTuple):
    """What an assumption file describes."""

    assumptions: Assumptions
    links: LinkedTasks | None


def read_assumptions(path: str | Path) -> Scenario:
    """Read an assumption file; "-" is standard input. `tiebreak bounds --example` prints one."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{name} cannot be read: {error.strerror}.") from None
    return parse_assumptions(data, name)


def parse_assumptions(text: bytes | str, name: str = "the assumptions") -> Scenario:
    """Build assumptions and links from the text of an assumption file.

    >>> parse_assumptions(EXAMPLE).assumptions
    Assumptions(60 workers of 2 kinds, 20,000 tasks, 2 classes, 60 responses a task)
    """
    try:
        table = tomllib.loads(text if isinstance(text, str) else text.decode())
        return _scenario(table)
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text, so it cannot be a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{name} is not TOML: {error}. `tiebreak bounds --example` prints a file that is."
        ) from None
    except TiebreakError as error:
        raise InputError(f"{name}: {error}") from None


def _scenario(table: Mapping[str, Any]) -> Scenario:
    _check_names("the file", table, TOP, needed=("n_tasks", "class_prior", "workers"))
    start = _table(table, "start")
    prior = _table(table, "prior")
    _check_names("[start]", start, START)
    _check_names("[prior]", prior, PRIOR)
    workers = _tables(table["workers"], "[[workers]]")
    for worker in workers:
        _check_names("[[workers]]", worker, WORKERS, needed=("count",))
    crowd = Assumptions(
        class_prior=table["class_prior"],
        confusion=_confusions(workers, np.size(table["class_prior"])),
        n_tasks=_number(table["n_tasks"], "n_tasks"),
        n_workers=[_number(worker["count"], "[[workers]] count") for worker in workers],
        response_rate=[worker.get("response_rate", 1.0) for worker in workers],
        failure_probability=_number(table.get("failure_probability", 0.05), "failure_probability"),
        class_prior_counts=prior.get("class_prior", 1.0),
        confusion_counts=prior.get("confusion", "diagonal"),
        start=Start(**{key: _number(start[key], f"[start] {key}") for key in start}),
        most_responses=table.get("most_responses"),
    )
    if "responses_per_task" in table:
        if any("response_rate" in worker for worker in workers):
            raise InputError("Give responses_per_task or the workers' response_rate, not both.")
        number = _number(table["responses_per_task"], "responses_per_task")
        crowd = with_responses_per_task(crowd, number)
    return Scenario(crowd, _links(_table(table, "links")))


def _links(table: Mapping[str, Any]) -> LinkedTasks | None:
    if not table:
        return None
    _check_names("[links]", table, LINKS, needed=("tasks",))
    linked = _tables(table["tasks"], "[[links.tasks]]")
    for kind in linked:
        _check_names("[[links.tasks]]", kind, LINKED, needed=("truth", "cannot"))
    return LinkedTasks(
        must=[kind.get("must", 0) for kind in linked],
        cannot=[kind["cannot"] for kind in linked],
        truth=[kind["truth"] for kind in linked],
        n_tasks=[kind.get("count", 1) for kind in linked],
        strength=_number(table.get("strength", 1.0), "[links] strength"),
    )


def _confusions(workers: Iterable[Mapping[str, Any]], n_classes: int) -> list[Any]:
    """Return one matrix for each kind: as given, or spread evenly from an accuracy."""
    matrices: list[Any] = []
    for worker in workers:
        if ("accuracy" in worker) == ("confusion" in worker):
            raise InputError("Each [[workers]] needs accuracy or confusion, one of the two.")
        if "confusion" in worker:
            matrices.append(worker["confusion"])
        else:
            matrices.append(even_confusion(worker["accuracy"], n_classes))
    return matrices


def even_confusion(accuracy: float, n_classes: int) -> Floats:
    """Return the confusion matrix of a worker whose wrong answers are spread evenly.

    >>> even_confusion(0.8, 3)[0].tolist()
    [0.8, 0.1, 0.1]
    """
    if not 0 < _number(accuracy, "[[workers]] accuracy") < 1:
        raise InputError(
            f"accuracy must be between 0 and 1, both excluded; got {accuracy!r}. "
            "The theorems exclude perfect workers: 0.999 is near enough."
        )
    wrong = round((1 - accuracy) / max(n_classes - 1, 1), 15)
    return np.where(np.eye(n_classes, dtype=bool), accuracy, wrong)


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name} must be a table, [{name}]; got {found!r}.")
    return found


def _tables(found: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(found, list) or not found or not all(isinstance(x, dict) for x in found):
        raise InputError(f"{name} must be one table or more, with double brackets; got {found!r}.")
    return found


def _number(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} must be a number; got {value!r}.")
    return value


def _check_names(
    where: str, table: Mapping[str, Any], known: Iterable[str], needed: Iterable[str] = ()
) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InputError(
            f"{where} has no place for {', '.join(unknown)}. It takes {', '.join(known)}."
        )
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(
            f"{where} lacks {', '.join(missing)}. `tiebreak bounds --example` shows how."
        )
