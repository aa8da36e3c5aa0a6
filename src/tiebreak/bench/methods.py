"""Methods that are compared: tiebreak's own by name, estimators, functions, and files."""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak._version import __version__
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.errors import InputError, OptionError, register
from tiebreak.estimators.auto import Auto
from tiebreak.estimators.dawid_skene import DawidSkene
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Floats

register(
    {
        "method-without-aggregate": "{file} has no function aggregate(crowd) or aggregate(crowd, "
        "seed) that returns one row of scores per task.",
        "method-not-loaded": "{file} cannot be loaded: {reason}.",
    }
)

OWN: dict[str, Any] = {
    "mv": MajorityVote(),
    "ds": DawidSkene(),
    "ds-coin": DawidSkene(worker_model="coin"),
    "vb": VariationalBayes(),
    "vb-coin": VariationalBayes(worker_model="coin"),
    "vb-kinds": VariationalBayes(worker_model="kinds"),
    "vb-subtypes": VariationalBayes(worker_model="subtypes"),
    "auto": Auto(),
}


class Aggregator(NamedTuple):
    """A method: responses, known labels and a seed in; scores, (n_tasks, n_classes), out.

    `source` tells its versions apart. Only rows that are probabilities are scored as such.
    """

    name: str
    source: str
    scores: Callable[[Responses, Gold | None, int], Floats]
    is_probability: bool = True
    draws: bool = False
    is_foreign: bool = False
    only_classes: int | None = None  # how many classes it takes, where that is one number


def find(given: Any) -> Aggregator:
    """Return the method that a name, an estimator, a function or a file stands for."""
    if isinstance(given, str) and given in OWN:
        return _of_estimator(given, OWN[given])
    if isinstance(given, str | Path) and str(given).endswith(".py"):
        return _of_file(Path(given))
    if hasattr(given, "fit"):
        return _of_estimator(repr(given), given)
    if callable(given):
        code = getattr(given, "__code__", None)
        return _of_function(given, given.__name__, str(getattr(code, "co_code", b"")))
    raise OptionError.unknown("method", given, (*OWN, "FILE.py"))


def _of_estimator(name: str, estimator: Any) -> Aggregator:
    draws = hasattr(estimator, "random_state")

    def scores(crowd: Responses, gold: Gold | None, seed: int) -> Floats:
        model = copy.copy(estimator)
        if draws:
            model.random_state = seed
        found: Floats = model.fit(crowd, gold=gold).probabilities_
        return found

    return Aggregator(name, f"tiebreak {__version__}", scores, draws=draws)


def _of_function(function: Callable[..., Any], name: str, source: str) -> Aggregator:
    """Return the method of a function, which draws where it takes a seed beside the crowd.

    `PROBABILITIES` and `CLASSES` of its module say what its scores are, and for how many classes.
    """
    draws = len(inspect.signature(function).parameters) > 1
    module = getattr(function, "__globals__", {})

    def scores(crowd: Responses, gold: Gold | None, seed: int) -> Floats:
        found = function(crowd, seed) if draws else function(crowd)
        return np.asarray(found, dtype=np.float64)

    is_probability = bool(module.get("PROBABILITIES", False))
    source = hashlib.sha256(source.encode()).hexdigest()[:12]
    return Aggregator(name, source, scores, is_probability, draws, True, module.get("CLASSES"))


def _of_file(path: Path) -> Aggregator:
    """Load a file as a script is: what it imports may lie beside it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        function = _load(path, source := "".join(_texts(path)))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError("method-not-loaded", file=str(path), reason=reason) from error
    finally:
        sys.path.remove(folder)
    if not callable(function):
        raise InputError("method-without-aggregate", file=str(path))
    return _of_function(function, path.stem, source)


@functools.cache
def _load(path: Path, source: str) -> Any:
    """Return the function of a file; once for each state of its source."""
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module).get("aggregate")


def _texts(path: Path) -> list[str]:
    """Return the text of a file, and of what it imports from its folder."""
    files, texts = [path], []
    for file in files:  # which grows
        texts.append(file.read_text("utf-8"))
        for name in re.findall(r"^(?:from|import) (\w+)", texts[-1], re.MULTILINE):
            other = path.parent / f"{name}.py"
            if other.is_file() and other not in files:
                files.append(other)
    return texts
