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
from tiebreak.data.gold import Gold
from tiebreak.data.labels import Labels
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.inference.tasks import Parameters
from tiebreak.inference.workers import Channels, CrowdModel
from tiebreak.inference.workers.kinds import Kinds
from tiebreak.inference.workers.turned import Turned
from tiebreak.life import messages  # noqa: F401  # registered
from tiebreak.life.records import Recorder, decoded
from tiebreak.life.update import drop_responses, refuse_unfitted, require_keep
from tiebreak.links import Constraints, Links
from tiebreak.links.constraints import require_rule
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
    options = model.get_params()
    task_model = options.get("task_model")
    if task_model is not None:  # a trained or untrained estimator is code: its name is kept
        options["task_model"] = task_model.without_code()
    kept = {name: getattr(model, name) for name in _kept_names(model)}
    responses = kept.pop("responses_")
    about: dict[str, Any] = {
        "tiebreak": __version__,
        "estimator": type(model).__name__,
        "keep": "counts" if getattr(model, "_carried", None) is not None else keep,
        "summary": summary(model),
        "options": {name: encoder.encode(value, name) for name, value in options.items()},
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
        "constraints": 0 if model.constraints_ is None else len(model.constraints_),
        "gold": 0 if model.gold_ is None else len(model.gold_),
        "worker_model": getattr(model, "worker_model_", None),
        "scale": None if model.scale_ is None else list(model.scale_.levels),
        "class_shares": [float(share) for share in model.class_prior_],
        "calibration": None if calibration is None else calibration._asdict(),
        "converged": model.converged_,
    }


def _own(model: Estimator) -> Estimator:
    """Return the model; refuse one that is not fitted, or of a kind that no file holds."""
    refuse_unfitted(model)
    name = type(model).__name__
    if name not in ESTIMATORS:
        raise OptionError("not-kept", name=name, kinds=", ".join(ESTIMATORS))
    return model


def _kept_names(model: Estimator) -> list[str]:
    own = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    return own + [name for name in INNER if vars(model).get(name) is not None]


def _decode(content: FolderContent) -> Estimator:
    about = content.about
    given = content.arrays, content.ids
    options = {name: decoded(value, *given) for name, value in about["options"].items()}
    name = about["estimator"]
    if name not in ESTIMATORS:
        raise ValueError(f"it holds a {name}, which is none of ours")
    home = importlib.import_module(f"tiebreak.{ESTIMATORS[name]}")
    model: Estimator = getattr(home, name)(**options)
    check_common(model.get_params())
    model.responses_ = decoded(about["responses"], *given)
    known = _result_names(type(model))
    for name, value in about["results"].items():
        if name not in known:
            raise ValueError(f"{name} is no result of {type(model).__name__}")
        setattr(model, name, decoded(value, *given))
    _check(model)
    model._stream_notes = dict(about["stream"])
    model._batches = tuple(about["batches"])
    return model


def _result_names(kind: type[Estimator]) -> set[str]:
    """Return the names of what a fit learns: what its class declares, and INNER."""
    declared = {name for each in kind.__mro__ for name in vars(each).get("__annotations__", {})}
    return {name for name in declared if name.endswith("_")} | set(INNER)


# What a file says may be crafted, and compiled code trusts codes blindly: refuse with ValueError.


def _floats(what: str, array: Any, *shape: int, finite: bool = True) -> None:
    is_one = isinstance(array, np.ndarray) and array.dtype == np.float64
    if not is_one or array.shape != shape or (finite and not np.isfinite(array).all()):
        raise ValueError(f"{what} is not an array of finite numbers of shape {shape}")


def _codes(what: str, codes: Any, n: int, end: int = 2**63 - 1, first: int = 0) -> None:
    """Refuse what is not n whole numbers from `first` on and below `end`."""
    if not isinstance(codes, np.ndarray) or codes.shape != (n,) or codes.dtype.kind not in "iu":
        raise ValueError(f"{what} is not {n} whole numbers")
    if n and (codes.min() < first or codes.max() >= end):
        raise ValueError(f"{what} has codes outside {first} to {end - 1}")


def _mask(what: str, mask: Any, n: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(f"{what} is not an array of {n} yes or no")


def _check(model: Any) -> None:
    """Refuse arrays that do not fit each other."""
    has = vars(model).get
    crowd = model.responses_
    n_tasks, n_workers, n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
    if not array_folder.fits(crowd.start, crowd.code, n_tasks, n_workers, n_classes):
        raise ValueError("its responses do not fit its ids")
    if crowd.weight is not None:
        _floats("the weight of responses", crowd.weight, len(crowd.code))
    for name in ("tasks", "workers", "classes"):
        own, theirs = getattr(model, f"{name}_"), getattr(crowd, name)
        if own is not theirs and own != theirs:
            raise ValueError(f"{name}_ are not those of its responses")
    for name, kind in (
        ("gold_", Gold),
        ("links_", Links),
        ("constraints_", Constraints),
        ("labels_", Labels),
    ):
        if not isinstance(getattr(model, name), kind | None):
            raise ValueError(f"{name} is no {kind.__name__}")
    if model.gold_ is not None:
        _codes("the label of gold", model.gold_.label, len(model.gold_.tasks), n_classes)
        _codes("row of gold", model.gold_.row, len(model.gold_.tasks))
    doubtful = has("doubtful_links_")
    if doubtful is not None:
        _floats("probability of doubtful links", doubtful.probability, len(doubtful.links))
    unsure = has("doubtful_constraints_")
    if unsure is not None:
        _floats("probability of constraints", unsure.probability, len(unsure.constraints))
    tables = (None if each is None else each.links for each in (doubtful,))
    rules = (None if each is None else each.constraints for each in (unsure,))
    for links in (model.links_, model.violations_, model.constraints_, *tables, *rules):
        if isinstance(links, Constraints):
            _check_constraints(links)
        elif links is not None:
            _check_links(links)
    if model.own_probabilities_ is not None:
        _floats("own_probabilities_", model.own_probabilities_, n_tasks, n_classes)
    _floats("probabilities_", model.probabilities_, n_tasks, n_classes)
    _floats("confusion_", model.confusion_, n_workers, n_classes, n_classes)
    _floats("class_prior_", model.class_prior_, n_classes)
    labels = model.labels_
    _codes("the label of tasks", labels.label, n_tasks, n_classes)
    if (len(labels.tasks), len(labels.classes)) != (n_tasks, n_classes):
        raise ValueError("its labels do not fit its responses")
    if labels.probability is not None:
        _floats("the probability of labels", labels.probability, n_tasks)
    if labels.probabilities is not None:
        _floats("probabilities", labels.probabilities, n_tasks, n_classes, finite=False)
    if labels.scores is not None:
        for each in labels.scores:
            _floats("the scores of labels", each, n_tasks)
    if model.scale_ is not None and model.scale_.classes != model.classes_:
        raise ValueError("its classes are not the levels of its scale")
    n_states = n_classes
    state = has("_state")
    if state is not None:
        n_states = state.q.shape[1]
        _floats("q", state.q, n_tasks, n_states)
        _check_kinds(has("_communities"))
        for parameters in (state.parameters, model._plain):
            _check_crowd_model(model._crowd_model, parameters, n_workers, n_classes, n_states)
    heard = [each for each in has("_opinions", ()) if each.model is not None]
    for each in heard:
        _check_crowd_model(each.model, each.parameters, n_workers, n_classes, n_classes)
    if has("_carried") is not None:
        counts, totals, n_dropped = model._carried
        _floats("counts", counts, n_workers * n_classes, n_states)
        _floats("counts of tasks", totals, n_states)
        _floats("dropped responses", n_dropped, n_tasks)
    stage = has("_gold_stage")
    if stage is not None:
        n_ridges = len(stage.share)
        if stage.words is not None:
            _floats("words", stage.words, n_workers * n_classes, n_classes)
        for name, *shape in (
            ("share",),
            ("of_opinions", 1 + len(heard)),
            ("of_best",),
            ("of_workers", n_workers),
            ("of_classes", n_classes),
            ("variance", n_workers),
        ):
            _floats(name, getattr(stage, name), n_ridges, *shape)
        _floats("weights_", model.weights_, n_workers)
        _floats("weight_intervals_", model.weight_intervals_, n_workers, 2)
        if stage.best is not None:
            _floats("right", stage.best.right, n_workers)
            _floats("wrong", stage.best.wrong, n_workers)
    if has("classifier_probabilities_") is not None:
        _floats("classifier_probabilities_", model.classifier_probabilities_, n_tasks, n_classes)
    if has("classifier_") is not None:
        _floats("the shares of classes", model.classifier_.share, n_classes)
        linear = model.classifier_.linear
        if linear is not None:
            n_seen, n_columns = len(linear.classes_), linear.coefficient.shape[1]
            _floats("the coefficients", linear.coefficient, n_seen, n_columns)
            _floats("the intercepts", linear.intercept, n_seen)
            if linear.words is not None:
                _floats("the frequencies of words", linear.idf, len(linear.words))
    if (pairs := has("pairs_")) is not None:
        for name in ("first", "second"):
            _codes("items of tasks", getattr(pairs, name), len(pairs.tasks), len(pairs.items))
        _codes("prompts of tasks", pairs.prompt, len(pairs.tasks), max(len(pairs.prompts), 1))
        _codes("judges of workers", pairs.judge, len(pairs.workers), len(pairs.judges))
        _mask("orders of workers", pairs.is_turned, len(pairs.workers))
        _floats("strengths_", model.strengths_, len(pairs.items))
        _floats("pair_prior_", model.pair_prior_, n_tasks, n_classes)
    moments = has("moments_")
    if moments is not None:
        for name in ("accuracy", "accuracy_square"):
            _floats(name, getattr(moments, name), n_workers)
        for name in ("confusion", "confusion_square"):
            _floats(name, getattr(moments, name), n_workers, n_classes, n_classes)
        _floats("class_prior", moments.class_prior, n_classes)


def _check_constraints(table: Constraints) -> None:
    n, start = len(table.rule), table.start
    _codes("start of constraints", start, n + 1, len(table.task) + 1)
    if start[0] != 0 or start[-1] != len(table.task) or (np.diff(start) < 1).any():
        raise ValueError("the literals of constraints do not fit them")
    _codes("rule of constraints", table.rule, n, len(table.rules))
    _codes("row of constraints", table.row, n)
    _codes("task of constraints", table.task, len(table.task), len(table.tasks), first=-1)
    _codes("labels of constraints", table.labels, len(table.task), len(table.sets), first=-1)
    if table.weight is not None:
        _floats("the weight of constraints", table.weight, n, finite=False)
    if table.who is not None:
        _codes("who of constraints", table.who, n, len(table.sources or ()), first=-1)
    for rule in table.rules:
        require_rule(rule)


def _check_links(links: Links) -> None:
    n = len(links.must)
    _mask("must of links", links.must, n)
    for ends in (links.left, links.right):
        _codes("an end of links", ends, n, len(links.tasks))
    _codes("row of links", links.row, n)
    if links.weight is not None:
        _floats("the weight of links", links.weight, n, finite=False)
    if links.who is not None:
        _codes("who of links", links.who, n, len(links.sources or ()), first=-1)
    if links.duplicate is not None:
        _mask("duplicate of links", links.duplicate, n)


def _check_kinds(workers: Any) -> None:
    if isinstance(workers, Kinds):
        _floats("the priors of kinds", workers.priors, *workers.priors.shape)
        _floats("the weight of kinds", workers.weight, len(workers.priors))


def _check_crowd_model(
    model: CrowdModel, parameters: Parameters, n_workers: int, n_classes: int, n_states: int
) -> None:
    workers = model.workers
    if (workers.n_workers, workers.n_classes, workers.n_states) != (n_workers, n_classes, n_states):
        raise ValueError("its worker model does not fit its workers")
    _check_kinds(workers)
    if isinstance(workers, Channels):
        values, share = workers.values, workers.share
        _floats("the values of levels", values, n_classes)
        _floats("the shares of levels", share, n_classes)
        if np.any(np.diff(np.asarray(values)) <= 0.0) or np.any(np.asarray(share) <= 0.0):
            raise ValueError("the levels of its scale are in no order, or have no share")
    alpha, beta = parameters
    prior = workers.prior
    if np.broadcast_shapes(prior.shape, beta.shape) != beta.shape:
        raise ValueError("the prior of its workers does not fit what is believed of them")
    n_believed = n_workers
    if isinstance(workers, Turned):  # two workers may be one judge
        n_believed = workers.inner.n_workers
        _codes("the judges", workers.judge, n_workers, n_believed)
        _mask("the orders", workers.is_turned, n_workers)
    _floats("what is believed of workers", beta, n_believed, *beta.shape[1:])
    _floats("what is believed of classes", alpha, n_states)
    _floats("the prior of workers", prior, *prior.shape)
    _floats("the prior of new workers", workers.prior_of_new, 1, *prior.shape[1:])
    _floats("the prior of classes", model.states.of_class, n_classes)
    _floats("the prior of states", model.states.prior, n_states)
