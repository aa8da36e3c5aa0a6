"""Records as plain data: what a model holds, as JSON beside arrays and ids; and back.

Only the classes in RECORDS and HOMES are ever made from a file, by their fields: nothing in a file
is code.

    Calibration(0.35, 1.0)   {"is": "Calibration", "fields": {"dependence": 0.35, …}}
    an array                 {"array": "q"}, and the array by that name
    Ids                      {"ids": "tasks"}, and the ids by that name
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.data.runs import Runs, WorkerRuns
from tiebreak.errors import InputError
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import FitState
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.tasks.coupling.link_errors import DoubtfulLinks, ErrorRate
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.workers import CrowdModel, Workers
from tiebreak.inference.workers.kinds import Kinds
from tiebreak.life.update import Carried
from tiebreak.links import Links
from tiebreak.options import ExactLinkOptions, MeanFieldOptions
from tiebreak.tables.array_folder import fits
from tiebreak.wording import Source

RECORDS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *(Responses, Runs, WorkerRuns, Links, Gold, Labels),
        *(ExactLinkOptions, MeanFieldOptions),
        *(Calibration, LinkReport, DoubtfulLinks, ErrorRate),
        *(FitState, CrowdModel, Carried, ClassPrior),
    )
}
HOMES = {  # of records that few models hold: loaded when one is met
    "FromVote": "tiebreak.estimators.committee",
    "GridPoint": "tiebreak.inference.tasks.mean_field",
    "GoldStage": "tiebreak.estimators.gold_stage",
    "LikelyBest": "tiebreak.estimators.likely_best",
    "Member": "tiebreak.estimators.committee",
    "Opinion": "tiebreak.estimators.committee",
    "PosteriorMoments": "tiebreak.research.gibbs",
}


def record_named(name: str) -> type[Any]:
    """Return the class of a record by its name; KeyError: there is none."""
    if name in HOMES:
        found: type[Any] = getattr(importlib.import_module(HOMES[name]), name)
        return found
    if name in Workers.registry:
        return Workers.registry[name]
    return RECORDS[name]


def _is_record(value: object) -> bool:
    name = type(value).__name__
    is_known = name in RECORDS or name in HOMES or name in Workers.registry
    return is_known and type(value) is record_named(name)


class Recorder:
    """Takes values apart; what is met twice is kept once."""

    def __init__(self) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.ids: dict[str, Ids] = {}
        self._names: dict[int, tuple[str, Any]] = {}  # by identity; the value stays alive

    def encode(self, value: Any, name: str) -> Any:
        """Return a value as JSON; `name` is what its arrays are called."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return {"array": self._keep(self.arrays, value, name)}
        if isinstance(value, Ids):
            return {"ids": self._keep(self.ids, value, name)}
        if _is_record(value):
            return self._encode_record(value, name)
        if isinstance(value, Source):
            return {"source": value.name}  # lines of a file that may be gone are not kept
        if isinstance(value, Mapping):
            pairs = [
                [self.encode(key, name), self.encode(each, name)] for key, each in value.items()
            ]
            return {"pairs": pairs}
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.encode(each, name) for each in value]}
        raise InputError("cannot-keep", name=name, type=type(value).__name__)

    def _encode_record(self, value: Any, name: str) -> dict[str, Any]:
        fields = {each: getattr(value, each) for each in _fields(type(value))}
        encoded = {each: self.encode(part, f"{name}.{each}") for each, part in fields.items()}
        return {"is": type(value).__name__, "fields": encoded}

    def _keep(self, kept: dict[str, Any], value: Any, name: str) -> str:
        if id(value) in self._names:
            return self._names[id(value)][0]
        own = name.strip("_")
        while own in self.arrays or own in self.ids:
            own += "+"
        kept[own] = value
        self._names[id(value)] = own, value
        return own


class Decoder:
    """Puts values together again."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]], ids: dict[str, Ids]) -> None:
        self._arrays = arrays
        self._ids = ids

    def decode(self, plain: Any) -> Any:
        """Return the value of what `Recorder.encode` returned; else ValueError or KeyError."""
        if not isinstance(plain, dict):
            return plain
        if "is" in plain:
            record = record_named(plain["is"])
            known = set(_fields(record))
            parts = {name: self.decode(v) for name, v in plain["fields"].items() if name in known}
            made = record(**parts)
            if record in CHECKS:
                CHECKS[record](made)
            return made
        if "array" in plain:
            return self._arrays[plain["array"]]
        if "ids" in plain:
            return self._ids[plain["ids"]]
        if "source" in plain:
            return Source(plain["source"])
        if "pairs" in plain:
            return {self.decode(key): self.decode(value) for key, value in plain["pairs"]}
        if "list" in plain:
            return [self.decode(each) for each in plain["list"]]
        if "tuple" in plain:
            return tuple(self.decode(each) for each in plain["tuple"])
        raise ValueError(f"unknown entry {sorted(plain)}")


def _fields(record: type[Any]) -> tuple[str, ...]:
    if dataclasses.is_dataclass(record):
        return tuple(each.name for each in dataclasses.fields(record) if each.init)
    fields: tuple[str, ...] = record._fields
    return fields


# What a file says may be crafted, and compiled code trusts codes blindly: refuse with ValueError.


def require_codes(what: str, codes: Any, n: int, end: int, first: int = 0) -> None:
    """Refuse what is not n whole numbers from `first` on and below `end`."""
    if not isinstance(codes, np.ndarray) or codes.shape != (n,) or codes.dtype.kind not in "iu":
        raise ValueError(f"{what} is not {n} whole numbers")
    if n and (codes.min() < first or codes.max() >= end):
        raise ValueError(f"{what} has codes outside {first} to {end - 1}")


def require_numbers(what: str, array: Any, shape: tuple[int, ...], *, finite: bool = True) -> None:
    """Refuse what is not an array of floats of this shape, and finite."""
    is_one = isinstance(array, np.ndarray) and array.dtype == np.float64
    if not is_one or array.shape != shape or (finite and not np.isfinite(array).all()):
        raise ValueError(f"{what} is not an array of finite numbers of shape {shape}")


def _require_mask(what: str, mask: Any, n: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(f"{what} is not an array of {n} yes or no")


def _check_responses(made: Responses) -> None:
    if not fits(made.start, made.code, made.n_tasks, made.n_workers, made.n_classes):
        raise ValueError("its responses do not fit its ids")
    if made.weight is not None:
        require_numbers("the weight of responses", made.weight, made.code.shape)


def _check_links(made: Links) -> None:
    n = len(made.must)
    _require_mask("must of links", made.must, n)
    for ends in (made.left, made.right):
        require_codes("an end of links", ends, n, len(made.tasks))
    require_codes("row of links", made.row, n, np.iinfo(np.int64).max)
    if made.weight is not None:
        require_numbers("the weight of links", made.weight, (n,), finite=False)
    if made.who is not None:
        require_codes("who of links", made.who, n, len(made.sources or ()), first=-1)
    if made.duplicate is not None:
        _require_mask("duplicate of links", made.duplicate, n)


def _check_gold(made: Gold) -> None:
    n = len(made.tasks)
    require_codes("the label of gold", made.label, n, len(made.classes))
    require_codes("row of gold", made.row, n, np.iinfo(np.int64).max)


def _check_labels(made: Labels) -> None:
    n = len(made.tasks)
    require_codes("the label of tasks", made.label, n, len(made.classes))
    if made.probability is not None:
        require_numbers("the probability of labels", made.probability, (n,))
    if made.probabilities is not None:
        shape = (n, len(made.classes))
        require_numbers("probabilities", made.probabilities, shape, finite=False)


def _check_doubtful(made: DoubtfulLinks) -> None:
    require_numbers("probability of doubtful links", made.probability, (len(made.links),))


def _check_kinds(made: Kinds) -> None:
    require_numbers("the priors of kinds", made.priors, made.priors.shape)
    require_numbers("the weight of kinds", made.weight, made.priors.shape[:1])


def _check_classes(made: ClassPrior) -> None:
    require_numbers("the prior of classes", made.of_class, made.of_class.shape)


CHECKS: dict[type[Any], Callable[[Any], None]] = {
    Responses: _check_responses,
    Links: _check_links,
    Gold: _check_gold,
    Labels: _check_labels,
    DoubtfulLinks: _check_doubtful,
    Kinds: _check_kinds,
    ClassPrior: _check_classes,
}
