"""The model file: a fitted model as a folder of plain arrays and JSON.

Version 1.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak._version import __version__
from tiebreak.arguments import PATH, checks
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.labels import Labels
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.inference.tasks import Parameters
from tiebreak.inference.workers import CrowdModel
from tiebreak.life import messages  # noqa: F401  # registered
from tiebreak.life.records import Decoder, Recorder, require_numbers
from tiebreak.life.update import drop_responses, require_keep
from tiebreak.links import Links
from tiebreak.options import check_common
from tiebreak.tables import array_folder
from tiebreak.tables.array_folder import FolderContent, Kind
from tiebreak.tables.locks import Lock
from tiebreak.tables.write import Target

SUFFIX = ".tbm"
MODEL = Kind("tiebreak model", 2, "Fit it again: tiebreak fuse RESPONSES --save MODEL.tbm")
ESTIMATORS = {  # that a file may hold, and the module of each, loaded when one is met
    "VariationalBayes": "estimators.variational_bayes",
    "DawidSkene": "estimators.dawid_skene",
    "MajorityVote": "estimators.majority_vote",
    "GibbsSampler": "research.gibbs",
    "Auto": "estimators.auto",
}
INNER = (
    "_communities",
    "_crowd_model",
    "_state",
    "_plain",
    "_opinions",
    "_gold_stage",
    "_carried",
)  # beside what ends in _


@checks(target=PATH)
def save(
    model: Estimator,
    target: Target,
    keep: str = "responses",
    more: dict[str, Any] | None = None,
    lock: Lock | None = None,
) -> None:
    """Write a fitted model.

    `more` is what a stream says of itself, where it differs from what the model came with. `lock`
    is that of the target, where the caller holds it already.
    """
    array_folder.write(target, MODEL, content_of(model, keep, more), lock)


def content_of(
    model: Estimator, keep: str = "responses", more: dict[str, Any] | None = None
) -> FolderContent:
    """Return what `save` writes."""
    require_keep(keep)
    model = _own(model)
    if keep == "counts":
        model = drop_responses(model)
    encoder = Recorder()
    kept = {name: getattr(model, name) for name in _kept_names(model)}
    responses = kept.pop("responses_")
    about: dict[str, Any] = {
        "tiebreak": __version__,
        "estimator": type(model).__name__,
        "keep": "counts" if getattr(model, "_carried", None) is not None else keep,
        "summary": summary(model),
        "options": {
            name: encoder.encode(value, name) for name, value in model.get_params().items()
        },
        "responses": encoder.encode(responses, "responses"),
        "results": {name: encoder.encode(value, name) for name, value in kept.items()},
        "stream": dict(model._stream_notes if more is None else more),
        "batches": list(model._batches),
    }
    return FolderContent(about, encoder.arrays, encoder.ids)


def to_bytes(model: Estimator) -> bytes:
    """Return a fitted model as `save` writes it, in one piece: for a database."""
    content = content_of(model)
    about = json.dumps(content.about).encode()
    pieces = {f"array {name}": array for name, array in content.arrays.items()}
    for name, names in content.ids.items():
        pieces[f"ids {name}"] = np.frombuffer(array_folder.ids_as_bytes(name, names), np.uint8)
    sink = io.BytesIO()
    np.savez(sink, about=np.frombuffer(about, np.uint8), **pieces)  # type: ignore[arg-type]
    return sink.getvalue()


def from_bytes(data: bytes) -> Any:
    """Return the model of `to_bytes`; ValueError where it is not one that this version reads."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as pieces:
            about = json.loads(pieces["about"].tobytes())
            kept = {name.partition(" ")[::2]: pieces[name] for name in pieces.files}
        arrays = {name: array for (what, name), array in kept.items() if what == "array"}
        ids = {
            name: array_folder.ids_of_bytes(array.tobytes())
            for (what, name), array in kept.items()
            if what == "ids"
        }
        return _decode(FolderContent(about, arrays, ids))
    except (KeyError, TypeError, AttributeError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(str(error)) from None


def refuse_unwritable(target: Target) -> None:
    """Refuse, before any work is done, a place where no model file can be written."""
    array_folder.refuse_foreign(Path(os.path.realpath(target)), MODEL)


@checks(target=PATH)
def load(target: Target) -> Any:
    """Read a model that `save` wrote: a folder, by its path.

    What is damaged, half, or of something else is refused. Nothing in it is executed.

    Examples
    --------
    >>> import tempfile, tiebreak as tb
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tb.VariationalBayes().fit(votes).save(f"{folder}/crowd.tbm")
    ...     model = tb.load(f"{folder}/crowd.tbm")
    >>> model.predict([("c", "ann", "x"), ("c", "bob", "x")]).best()
    {'c': 'x'}
    """
    content = array_folder.read(target, MODEL)
    folder = Path(target)
    try:
        return _decode(content)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OptionError) as error:
        raise array_folder.damaged(folder, str(error), MODEL) from None


def about(target: Target) -> dict[str, Any]:
    """Return what is inside a model file, without reading its arrays."""
    found = array_folder.read_about(Path(target), MODEL)
    n_bytes = sum(each["bytes"] for each in found["files"].values())
    shown = ("version", "tiebreak", "estimator", "keep", "stream")
    return {**{name: found[name] for name in shown}, **found["summary"], "bytes": n_bytes}


def summary(model: Estimator) -> dict[str, Any]:
    """Say what is inside a model, in numbers."""
    crowd = model.responses_
    carried = getattr(model, "_carried", None)
    n_dropped = 0.0 if carried is None else float(carried.counts.sum())
    calibration = model.calibration_
    return {
        "responses": crowd.n_given,
        "size": crowd.size(),
        "responses_counted_only": round(n_dropped, 3),
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "classes": [str(name) for name in crowd.classes],
        "links": 0 if model.links_ is None else len(model.links_),
        "gold": 0 if model.gold_ is None else len(model.gold_),
        "worker_model": getattr(model, "worker_model_", None),
        "class_shares": [float(share) for share in model.class_prior_],
        "calibration": None if calibration is None else calibration._asdict(),
        "converged": model.converged_,
    }


def _own(model: Estimator) -> Estimator:
    """Return the model; refuse one that is not fitted, or of a kind that no file holds."""
    name = type(model).__name__
    if "labels_" not in vars(model):
        raise NotFittedError("not-fitted", name=name)
    if name in ESTIMATORS:
        return model
    raise OptionError("not-kept", name=name, kinds=", ".join(ESTIMATORS))


def _kept_names(model: Estimator) -> list[str]:
    own = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    return own + [name for name in INNER if vars(model).get(name) is not None]


def _decode(content: FolderContent) -> Estimator:
    about = content.about
    decoder = Decoder(content.arrays, content.ids)
    options = {name: decoder.decode(value) for name, value in about["options"].items()}
    name = about["estimator"]
    if name not in ESTIMATORS:
        raise ValueError(f"it holds a {name}, which is none of ours")
    home = importlib.import_module(f"tiebreak.{ESTIMATORS[name]}")
    model: Estimator = getattr(home, name)(**options)
    check_common(model.get_params())
    crowd: Responses = decoder.decode(about["responses"])
    model.responses_ = crowd
    known = _result_names(type(model))
    for name, value in about["results"].items():
        if name not in known:
            raise ValueError(f"{name} is no result of {type(model).__name__}")
        setattr(model, name, decoder.decode(value))
    _check_shapes(model)
    model._stream_notes = dict(about["stream"])
    model._batches = tuple(about.get("batches", ()))  # files of earlier versions have none
    return model


def _result_names(kind: type[Estimator]) -> set[str]:
    """Return the names of what a fit learns: what its class declares, and INNER."""
    declared = {name for each in kind.__mro__ for name in vars(each).get("__annotations__", {})}
    return {name for name in declared if name.endswith("_")} | set(INNER)


def _check_shapes(model: Estimator) -> None:
    """Refuse arrays that do not fit each other: compiled code would trust them blindly."""
    crowd = model.responses_
    n_tasks, n_workers, n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
    for name in ("tasks", "workers", "classes"):
        own, theirs = getattr(model, f"{name}_"), getattr(crowd, name)
        if own is not theirs and list(own) != list(theirs):
            raise ValueError(f"{name}_ are not those of its responses")
    for name, kind in (("gold_", Gold), ("links_", Links), ("labels_", Labels)):
        if not isinstance(getattr(model, name), kind | None):
            raise ValueError(f"{name} is no {kind.__name__}")
    require_numbers("probabilities_", model.probabilities_, (n_tasks, n_classes))
    require_numbers("confusion_", model.confusion_, (n_workers, n_classes, n_classes))
    require_numbers("class_prior_", model.class_prior_, (n_classes,))
    if len(model.labels_) != n_tasks or len(model.labels_.classes) != n_classes:
        raise ValueError("its labels do not fit its responses")
    n_states = n_classes
    state = vars(model).get("_state")
    if state is not None:
        n_states = state.q.shape[1]
        require_numbers("q", state.q, (n_tasks, n_states))
        fitted: Any = model
        for parameters in (state.parameters, fitted._plain):
            given = parameters, n_workers, n_classes, n_states
            _check_crowd_model(fitted._crowd_model, *given)
    for opinion in vars(model).get("_opinions", ()):
        if opinion.model is not None:
            _check_crowd_model(opinion.model, opinion.parameters, n_workers, n_classes, n_classes)
    carried = getattr(model, "_carried", None)
    if carried is not None:
        require_numbers("counts", carried.counts, (n_workers * n_classes, n_states))
        require_numbers("counts of tasks", carried.totals, (n_states,))
        require_numbers("dropped responses", carried.n_dropped, (n_tasks,))
    by_worker = (n_workers,)
    stage = vars(model).get("_gold_stage")
    n_ridges = 0 if stage is None else len(stage.share)
    heard = [each for each in vars(model).get("_opinions", ()) if each.model is not None]
    of_stage = {
        "share": (n_ridges,),
        "of_opinions": (n_ridges, 1 + len(heard)),
        "of_best": (n_ridges,),
        "of_workers": (n_ridges, n_workers),
        "of_classes": (n_ridges, n_classes),
        "variance": (n_ridges, n_workers),
    }
    moments = {
        **dict.fromkeys(("accuracy", "accuracy_square"), by_worker),
        **dict.fromkeys(("confusion", "confusion_square"), model.confusion_.shape),
        "class_prior": (n_classes,),
    }
    own = model if stage is not None else None
    of_own = {"weights_": by_worker, "weight_intervals_": (n_workers, 2)}
    best = None if stage is None else stage.best
    for holder, expected in (
        (own, of_own),
        (stage, of_stage),
        (best, {"right": by_worker, "wrong": by_worker}),
        (vars(model).get("moments_"), moments),
    ):
        for name, shape in expected.items():
            if holder is not None:
                require_numbers(name, getattr(holder, name), shape)


def _check_crowd_model(
    model: CrowdModel, parameters: Parameters, n_workers: int, n_classes: int, n_states: int
) -> None:
    """Refuse workers and parameters that do not fit each other."""
    workers = model.workers
    if (workers.n_workers, workers.n_classes, workers.n_states) != (n_workers, n_classes, n_states):
        raise ValueError("its worker model does not fit its workers")
    alpha, beta = parameters
    if np.broadcast_shapes(workers.prior.shape, beta.shape) != beta.shape:
        raise ValueError("the prior of its workers does not fit what is believed of them")
    require_numbers("what is believed of workers", beta, (n_workers, *beta.shape[1:]))
    require_numbers("what is believed of classes", alpha, (n_states,))
    require_numbers("the prior of workers", workers.prior, workers.prior.shape)
    of_new = (1, *workers.prior.shape[1:])
    require_numbers("the prior of new workers", workers.prior_of_new, of_new)
    require_numbers("the prior of classes", model.states.prior, (n_states,))
