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
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels, Scores
from tiebreak.data.runs import Runs, WorkerRuns
from tiebreak.data.scale import Scale
from tiebreak.data.sequences import Sequences, Spans
from tiebreak.errors import InputError
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import FitState
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.tasks.coupling.link_errors import DoubtfulLinks, ErrorRate
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.workers import CrowdModel, Workers
from tiebreak.life.update import Carried
from tiebreak.links import Constraints, Links
from tiebreak.options import ExactLinkOptions, MeanFieldOptions, SequenceOptions
from tiebreak.wording import Source

RECORDS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *(Responses, Runs, WorkerRuns, Links, Constraints, Gold, Labels, Scores, Scale),
        *(Sequences, Spans),
        *(ExactLinkOptions, MeanFieldOptions, SequenceOptions),
        *(Calibration, LinkReport, DoubtfulLinks, ErrorRate),
        *(FitState, CrowdModel, Carried, ClassPrior),
    )
}
HOMES = {  # of records that few models hold: loaded when one is met
    "Candidate": "tiebreak.inference.sequencing",
    "ClassifierGain": "tiebreak.inference.tasks.classifier",
    "ClassifierPrior": "tiebreak.inference.tasks.classifier",
    "ConstraintReport": "tiebreak.inference.tasks.coupling.constrain",
    "DoubtfulConstraints": "tiebreak.inference.tasks.coupling.constrain",
    "FromVote": "tiebreak.estimators.committee",
    "GridPoint": "tiebreak.inference.tasks.mean_field",
    "GoldStage": "tiebreak.estimators.gold_stage",
    "LikelyBest": "tiebreak.estimators.gold_stage",
    "LinearClassifier": "tiebreak.inference.tasks.classifier",
    "Member": "tiebreak.estimators.committee",
    "Opinion": "tiebreak.estimators.committee",
    "PairTasks": "tiebreak.data.pairs",
    "PosteriorMoments": "tiebreak.research.gibbs",
    "TaskClassifier": "tiebreak.inference.tasks.classifier",
}


def record_named(name: str) -> type[Any]:
    if name in HOMES:
        found: type[Any] = getattr(importlib.import_module(HOMES[name]), name)
        return found
    if name in Workers.registry:
        return Workers.registry[name]
    if name not in RECORDS:
        raise InputError("unknown-record", name=name)
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


def decoded(plain: Any, arrays: Mapping[str, Any], ids: Mapping[str, Ids]) -> Any:
    """Return the value of what `Recorder.encode` returned; else ValueError or KeyError."""

    def decode(plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        if "is" in plain:
            record = record_named(plain["is"])
            known = set(_fields(record))
            return record(**{k: decode(v) for k, v in plain["fields"].items() if k in known})
        ((kind, content),) = plain.items()
        if kind == "array":
            return arrays[content]
        if kind == "ids":
            return ids[content]
        if kind == "source":
            return Source(content)
        if kind == "pairs":
            return {decode(key): decode(value) for key, value in content}
        if kind in ("list", "tuple"):
            values = [decode(each) for each in content]
            return values if kind == "list" else tuple(values)
        raise ValueError(f"unknown entry {kind}")

    return decode(plain)


def _fields(record: type[Any]) -> tuple[str, ...]:
    if dataclasses.is_dataclass(record):
        return tuple(each.name for each in dataclasses.fields(record) if each.init)
    fields: tuple[str, ...] = record._fields
    return fields
