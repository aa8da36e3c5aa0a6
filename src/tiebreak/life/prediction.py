"""Prediction: labels of new tasks by workers as they are known. The model stays as it is."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.ids import MISSING
from tiebreak.data.labels import Labels
from tiebreak.errors import NotFittedError, note
from tiebreak.estimators import committee
from tiebreak.inference import calibration, dirichlet, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.dirichlet import StatePrior
from tiebreak.inference.inputs import require_memory
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.inference.workers import CrowdModel
from tiebreak.inference.workers.base import NEW
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import default_threads, likeliest
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask
from tiebreak.kernels.sweeper import Logs
from tiebreak.life.known_workers import NOTHING, KnownStates, KnownWorkers
from tiebreak.wording import counted, first_few

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

AS_IT_IS = Calibration(0.0)  # scores become probabilities unscaled
IMPOSSIBLE = -1e6  # the log of an answer that was never given: two of these are worse than one
SHOWN = 3  # workers or labels in a note


class Knowledge(NamedTuple):
    """What a model knows of workers and classes, ready for tasks to come.

    The last worker of the table is one whom the model has never seen.
    """

    states: StatePrior
    alpha: Floats
    workers: KnownWorkers

    def problem(self, tasks: ByTask, backend: str, n_threads: int | None) -> Problem:
        """Return the inference of tasks whose responses lie in the codes of the table."""
        kernels = choose_backend(backend, len(tasks.code))
        threads = n_threads or default_threads()
        return Problem(tasks, self.states, self.workers, kernels, threads)

    def tables_for(self, worker: Codes, label: Codes) -> Logs:
        """Return the logs of class prior and table for other workers and classes, by their codes.

        Workers of code −1, whom the model has not seen, count as its prior says; such classes as
        the least likely of those it knows. States are classes.
        """
        n_known = self.workers.n_states
        table = self.workers.table.reshape(-1, n_known, n_known)
        log_prior = self.states.expected_log(self.alpha)
        seen = np.flatnonzero(label != MISSING)
        prior = np.full(len(label), log_prior.min())
        prior[seen] = log_prior[label[seen]]
        mine = np.full((len(worker), len(label), len(label)), table.min())
        known = table[worker][:, label[seen]][:, :, label[seen]]
        mine[np.ix_(np.arange(len(worker)), seen, seen)] = known
        return prior, mine.reshape(-1, len(label))

    @property
    def beliefs(self) -> Beliefs:
        """The parameters: those of workers are in the table."""
        return Beliefs(self.alpha, NOTHING)


def predict(model: Estimator, responses: Any, links: Any = None) -> Labels:
    """Label the tasks of these responses, by workers as they are known."""
    _require_fitted(model)
    crowd = tables.read_responses(responses)
    require_memory(crowd)
    knowledge = knowledge_of(model)
    if links is not None:
        from tiebreak.life.linked_prediction import predict_linked

        return predict_linked(model, crowd, in_codes_of(model, crowd, knowledge), links)
    q, label, top = _label_alone(model, crowd, knowledge)
    return Labels.from_probabilities(
        crowd.tasks, model.classes_, q, label=label, top=top, frame=crowd.frame
    )


def _require_fitted(model: Estimator) -> None:
    if "labels_" not in vars(model):
        raise NotFittedError(f"{type(model).__name__} knows no workers yet. Call fit first.")


def _label_alone(
    model: Estimator, crowd: Responses, knowledge: Knowledge | None
) -> tuple[Floats, Codes, Floats]:
    """Return probabilities, labels and the probability of each, where no task is linked."""
    backend_name, n_threads = where_it_runs(model)
    backend = choose_backend(backend_name, len(crowd.code))
    if knowledge is None:
        q = vb.majority(in_codes_of(model, crowd, None), len(model.classes_))
        return q, *likeliest(q)
    if "_opinions" in vars(model):
        q = committee_says(model, in_codes_of(model, crowd, knowledge))
        return q, *likeliest(q)
    found = model.calibration_ or AS_IT_IS
    tasks, table = _with_table(model, crowd, knowledge)
    log_prior = knowledge.states.expected_log(knowledge.alpha)
    threads = n_threads or default_threads()
    scale = found.scale(calibration.n_responses(tasks))
    q = calibration.probabilities_by(
        (log_prior, table), tasks, scale, len(model.classes_), backend, threads
    )
    return q, *likeliest(q)


def committee_says(model: Any, tasks: ByTask) -> Floats:
    """Return what a committee says of new tasks: every member, pooled, and moved by gold."""
    n_classes = len(model.classes_)
    backend_name, n_threads = where_it_runs(model)
    said = {}
    for opinion in model._opinions:
        if opinion.name in said:
            continue
        if opinion.model is None:
            said[opinion.name] = committee.by_votes(tasks, n_classes)
            continue
        known = _of_model(model, opinion.model, opinion.beliefs)
        problem = known.problem(tasks, backend_name, n_threads)
        if opinion.name in (committee.FIRST_STEP, committee.EVEN):
            said |= committee.by_step(problem, known.beliefs)
        else:
            honest = model.dependence if opinion.name == committee.VB else 0.0
            said[opinion.name] = committee.by_model(problem, known.beliefs, honest)
    weight = {each.name: each.weight for each in model._opinions if each.weight}
    q = committee.pool(said, weight)
    stage = model._gold_stage
    if stage is None:
        return q
    heard = [said[each.name] for each in model._opinions if each.name != committee.VOTES]
    backend = choose_backend(backend_name, len(tasks.code))
    return np.asarray(stage.with_a_stranger().probabilities([q, *heard], tasks, backend))


def ready_to_send(model: Estimator) -> Estimator:
    """Return the model as prediction needs it, small: other processes get a copy each."""
    _require_fitted(model)
    small = copy.copy(model)
    knowledge_of(small)  # made once, and sent along
    for name in ("_warm_start", "responses_", "probabilities_", "tasks_"):
        vars(small).pop(name, None)
    small.labels_ = small.labels_ if len(small.labels_) == 0 else None  # type: ignore[assignment]
    return small


def knowledge_of(model: Estimator) -> Knowledge | None:
    """Return what a model knows of workers, made once for each fit; None: votes are all alike."""
    kept = vars(model).get("_knowledge")
    if kept is None or kept[0] is not model.confusion_:
        kept = model.confusion_, _make_knowledge(model)
        vars(model)["_knowledge"] = kept
    found: Knowledge | None = kept[1]
    return found


def _make_knowledge(model: Estimator) -> Knowledge | None:
    from tiebreak.estimators.dawid_skene import DawidSkene
    from tiebreak.estimators.majority_vote import MajorityVote
    from tiebreak.estimators.variational_bayes import VariationalBayes

    if isinstance(model, VariationalBayes):
        return _of_model(model, model._crowd_model, model._beliefs)
    if isinstance(model, MajorityVote):
        return None
    n_workers, n_classes = model.confusion_.shape[:2]
    by_answer = np.ascontiguousarray(model.confusion_.transpose(0, 2, 1))
    unseen = np.full((1, n_classes, n_classes), 1.0 / n_classes)  # who was never seen says nothing
    if not isinstance(model, DawidSkene):  # … but what the prior says, where there is one
        prior = base_prior(vars(model)["confusion_prior"], n_classes)
        unseen = prior / prior.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([by_answer, unseen]))
        shares = np.log(model.class_prior_)
    table = np.maximum(logs, IMPOSSIBLE).reshape(-1, n_classes)
    workers = KnownWorkers(table, n_workers + 1, n_classes)
    return Knowledge(KnownStates(np.maximum(shares, IMPOSSIBLE)), NOTHING, workers)


def _of_model(model: Any, crowd_model: CrowdModel, beliefs: Beliefs) -> Knowledge:
    """Return what a fitted crowd model knows, with a worker whom it has never seen."""
    states, workers = crowd_model
    at = np.arange(workers.n_workers + 1, dtype=np.int32)
    at[-1] = NEW
    parameters = workers.select_parameters(beliefs.beta, at)
    table = np.ascontiguousarray(
        workers.select(at).log_table(parameters, model.n_threads or default_threads())
    )
    known = KnownWorkers(table, workers.n_workers + 1, workers.n_classes)
    return Knowledge(states, beliefs.alpha, known)


def base_prior(given: dirichlet.ConfusionPrior, n_classes: int) -> Floats:
    """Return the prior of a worker of whom nothing is known, (1, answer, class)."""
    from tiebreak.data.ids import Ids

    is_for_all = isinstance(given, str) or np.ndim(given) in (1, 2)  # type: ignore[arg-type]
    return dirichlet.confusion_prior(given if is_for_all else "diagonal", Ids(()), n_classes)


def in_codes_of(model: Estimator, crowd: Responses, knowledge: Knowledge | None) -> ByTask:
    """Return responses in the codes of a model; labels that it does not know are left out."""
    n_states = len(model.classes_) if knowledge is None else knowledge.workers.n_states
    return _recode(model, crowd, _own_codes(model, crowd, knowledge), n_states)


class OwnCodes(NamedTuple):
    """What the codes and labels of a crowd are in a model."""

    code: Codes  # (n_workers · n_classes,) of the crowd: the model's; a new worker is the last one
    unknown: Mask  # (n_classes,) which labels are no classes of the model


def _own_codes(model: Estimator, crowd: Responses, knowledge: Knowledge | None) -> OwnCodes:
    """Look up workers and labels in a model, and say who was never seen."""
    worker = model.workers_.codes(crowd.workers)
    label = model.classes_.codes(crowd.classes)
    if knowledge is not None and (worker == MISSING).any():
        _note_unknown(crowd, np.flatnonzero(worker == MISSING))
    worker = np.where(worker == MISSING, len(model.workers_), worker)
    code = worker[:, None] * len(model.classes_) + label
    return OwnCodes(code.astype(np.int32).ravel(), label == MISSING)


def _recode(model: Estimator, crowd: Responses, own: OwnCodes, n_states: int) -> ByTask:
    """Lay out responses in the codes of a model, without labels that it does not know."""
    code = own.code[crowd.code]
    start = crowd.start
    weight = crowd.weight
    if own.unknown.any():
        kept = ~own.unknown[crowd.code % crowd.n_classes]
        _note_labels(crowd, np.flatnonzero(own.unknown), len(kept) - int(kept.sum()))
        code = code[kept]
        weight = None if weight is None else weight[kept]
        start = np.concatenate([[0], np.cumsum(kept)])[start]
    role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
    n_codes = (len(model.workers_) + 1) * len(model.classes_)
    return layout.lay_out(start, code, role, n_codes, n_states, weight)


def _with_table(model: Estimator, crowd: Responses, knowledge: Knowledge) -> tuple[ByTask, Floats]:
    """Return responses, and the table that their codes look up.

    Where a worker has many responses, rows of the table are put in the order of the crowd's codes
    and the responses stay as they are: to recode 1e7 of them takes as long as a sweep or two.
    """
    table = knowledge.workers.table
    own = _own_codes(model, crowd, knowledge)
    n_codes = len(own.code)
    if own.unknown.any() or n_codes * table.shape[1] > len(crowd.code):
        return _recode(model, crowd, own, table.shape[1]), table
    role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
    edges = layout.chunk_edges(crowd.start, 0)  # nothing is counted
    tasks = ByTask(crowd.start, crowd.code, role, edges, n_codes, weight=crowd.weight)
    is_same = np.array_equal(own.code, np.arange(n_codes))
    return tasks, table if is_same else table[own.code]


def _note_unknown(crowd: Responses, unknown: Any) -> None:
    names = first_few([repr(crowd.workers[int(w)]) for w in unknown[: SHOWN + 1]], SHOWN)
    note(
        f"{counted(len(unknown), 'worker')} of {crowd.n_workers:,} not seen by the model: {names}. "
        "What they say counts as the prior has it."
    )


def _note_labels(crowd: Responses, unknown: Any, n_left_out: int) -> None:
    names = first_few([repr(crowd.classes[int(k)]) for k in unknown[: SHOWN + 1]], SHOWN)
    note(
        f"{counted(n_left_out, 'response')} with labels that the model does not know left out: "
        f"{names}. Update the model to make them classes."
    )


def where_it_runs(model: Estimator) -> tuple[str, int | None]:
    """Return the backend and the number of threads that the model's options name."""
    return getattr(model, "backend", "auto"), getattr(model, "n_threads", None)
