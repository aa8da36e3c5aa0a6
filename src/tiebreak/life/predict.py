"""Prediction: labels of new tasks by workers as they are known. The model stays as it is.

Where links lead to tasks of the model, these are inferred jointly with the new ones: with their
responses, and the links among them as far as these lead; where responses were dropped, with what
the tasks are believed to be.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import MISSING, Ids, encode
from tiebreak.data.labels import Labels
from tiebreak.errors import OptionError, note
from tiebreak.estimators import committee
from tiebreak.inference import calibration, dirichlet
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import Problem
from tiebreak.inference.dirichlet import FIXED, ClassPrior
from tiebreak.inference.door import Inputs, require_memory, rules_of, with_constrained_tasks
from tiebreak.inference.stages import Scored, constrain, joint_labels
from tiebreak.inference.tasks import Independent, Parameters, with_log_prior
from tiebreak.inference.tasks.classifier import raised
from tiebreak.inference.tasks.coupling.link_errors import ErrorRate
from tiebreak.inference.tasks.coupling.linked import Linked, with_links
from tiebreak.inference.workers import CrowdModel, Workers
from tiebreak.inference.workers.base import NEW
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import default_threads, likeliest, majority, softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask, total_weights
from tiebreak.life.update import refuse_unfitted
from tiebreak.links import Constraints, Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.links.graph import LinkCodes
from tiebreak.options import ExactLinkOptions, MeanFieldOptions
from tiebreak.tables.table import like

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

AS_IT_IS = Calibration(0.0)  # scores become probabilities unscaled
IMPOSSIBLE = -1e6  # the log of an answer that was never given: two of these are worse than one
TINY = 1e-300
NO_TASKS = np.empty(0, dtype=np.int32)


class PointShares(ClassPrior):
    """Class shares as they are, of which some may be 0."""

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.of_class), IMPOSSIBLE)


@dataclass(frozen=True, eq=False)
class KnownWorkers(Workers):
    """Workers as one table that nothing more is learnt from."""

    table: Floats  # (n_codes, n_states) expected logs
    n_workers: int
    labels: int

    @property
    def n_classes(self) -> int:
        return self.labels

    @property
    def n_states(self) -> int:
        return int(self.table.shape[1])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        return self.table


class Knowledge(NamedTuple):
    """What a model knows of workers and classes, ready for tasks to come.

    The last worker of the table is one whom the model has never seen.
    """

    states: ClassPrior
    alpha: Floats  # counts of classes; those of workers are in the table
    workers: KnownWorkers

    def problem(self, model: Estimator, tasks: ByTask) -> Problem:
        """Return the inference of tasks whose responses lie in the codes of the table."""
        backend, n_threads = _where_it_runs(model)
        kernels = choose_backend(backend, len(tasks.code))
        return Problem(tasks, Independent(self.states), self.workers, kernels, n_threads)


def predict(
    model: Estimator,
    responses: Any = None,
    links: Any = None,
    features: Any = None,
    classifier: Any = None,
    constraints: Any = None,
) -> Labels:
    """Label the tasks of these responses or features, by workers and classifier as known."""
    if constraints is not None:
        table = tables.read_constraints(constraints)
        if links is not None:  # they act at the end, too; each task is a draw of its own
            table += Constraints.from_links(tables.read_links(links))
        return _constrained(model, predict(model, responses, None, features, classifier), table)
    refuse_unfitted(model)
    if responses is None and features is None:
        raise OptionError("nothing-to-predict")
    if responses is None:
        responses = model.responses_.on_tasks(NO_TASKS)
    crowd = tables.read_responses(responses)
    log_prior = None
    if features is not None:
        if model.classifier_ is None or not model.classifier_weight_:
            raise OptionError("features-without-classifier")
        features = tables.read_features(features)
        crowd = crowd.with_tasks(encode(like(crowd.tasks, features.tasks, "tasks"))[1])
        given = features, crowd.tasks, model.classes_, classifier
        log_f = np.log(model.classifier_.probabilities(*given))
        log_prior = raised(log_f, model.classifier_weight_)
    return label_crowd(model, crowd, links, log_prior)


def label_crowd(
    model: Estimator, crowd: Responses, links: Any = None, log_prior: Floats | None = None
) -> Labels:
    """Label the tasks of a crowd; `log_prior`, (n_tasks, n_classes), is what features say of them.

    It takes the place of class shares.
    """
    if model.scale_ is not None:
        crowd = model.scale_.on(crowd)
    require_memory(crowd)
    if vars(model).get("sequences_") is not None:
        note("predicted-one-by-one")
    knowledge = knowledge_of(model)
    if links is not None:
        return _label_linked(model, crowd, knowledge, links, log_prior)
    if knowledge is None:
        q = majority(_in_codes_of(model, crowd, None), len(model.classes_))
    elif "_opinions" in vars(model):
        q = _committee_says(model, _in_codes_of(model, crowd, knowledge), log_prior)
    elif log_prior is not None:
        tasks = _in_codes_of(model, crowd, knowledge)
        problem = with_log_prior(knowledge.problem(model, tasks), log_prior)
        q = softmax(*_scores(model, problem, knowledge.alpha, NO_TASKS))
    else:
        q = _label_alone(model, crowd, knowledge)
    label, top = likeliest(q)
    return _labels(model, crowd, q, label, top)


def _labels(
    model: Estimator, crowd: Responses, q: Floats, label: Codes, top: Floats | None = None
) -> Labels:
    values = None if model.scale_ is None else model.scale_.values
    given = crowd.tasks, model.classes_, q
    return Labels.from_probabilities(*given, label=label, top=top, frame=crowd.frame, values=values)


def _constrained(model: Estimator, labels: Labels, table: Constraints) -> Labels:
    """Condition labels on constraints, which may name tasks of the model too: these keep gold."""
    code = model.tasks_.codes(table.used_tasks())
    old = np.unique(code[(code != MISSING) & (labels.tasks.codes(table.used_tasks()) == MISSING)])
    said = model.probabilities_ if model.own_probabilities_ is None else model.own_probabilities_
    assert labels.probabilities is not None  # as predict leaves them
    q = np.concatenate([labels.probabilities, said[old]])
    n = len(labels)
    tasks = labels.tasks.merge(model.tasks_.take(old))
    gold = _gold_of(model, old, n)
    crowd = model.responses_.on_tasks(NO_TASKS).with_tasks(tasks)
    crowd = with_constrained_tasks(crowd, table)
    more = np.tile(np.asarray(model.class_prior_), (crowd.n_tasks - len(q), 1))
    q = np.concatenate([q, more])
    inputs = Inputs(crowd, None, None, None, gold, None)
    inputs = inputs._replace(rules=rules_of(inputs, table))
    scored = Scored(q=q, label=np.concatenate([labels.label, likeliest(q[n:])[0]]))
    scored = constrain(inputs, None, scored, None)
    return Labels.from_probabilities(
        labels.tasks, model.classes_, scored.q[:n], label=scored.label[:n], frame=labels.frame
    )


def _gold_of(model: Estimator, old: Codes, n_new: int) -> GoldCodes | None:
    """Return the gold of old tasks, which come after so many new ones."""
    if model.gold_ is None or not len(old):
        return None
    known = model.gold_.on(model.tasks_, model.classes_).among(old.astype(np.int32))
    return known._replace(task=(known.task + n_new).astype(np.int32))


def ready_to_send(model: Estimator) -> Estimator:
    """Return the model as prediction needs it, small: other processes get a copy each."""
    refuse_unfitted(model)
    small = copy.copy(model)
    knowledge_of(small)  # made once, and sent along
    for name in ("_state", "responses_", "probabilities_", "tasks_", "_features"):
        vars(small).pop(name, None)
    small.labels_ = small.labels_ if len(small.labels_) == 0 else None  # type: ignore[assignment]
    return small


def _where_it_runs(model: Estimator) -> tuple[str, int]:
    """Return the backend and the number of threads, as the model's options say."""
    n_threads = getattr(model, "n_threads", None) or default_threads()
    return getattr(model, "backend", "auto"), n_threads


# -- what a model knows ----------------------------------------------------------------------------


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
        return _of_crowd_model(model, model._crowd_model, model._state.parameters)
    if isinstance(model, MajorityVote):
        return None
    n_workers, n_classes = model.confusion_.shape[:2]
    by_answer = np.ascontiguousarray(model.confusion_.transpose(0, 2, 1))
    unseen = np.full((1, n_classes, n_classes), 1.0 / n_classes)  # who was never seen says nothing
    if not isinstance(model, DawidSkene):  # … but what the prior says, where there is one
        given = vars(model)["confusion_prior"]
        is_for_all = isinstance(given, str) or np.ndim(given) in (1, 2)
        prior = dirichlet.confusion_prior(given if is_for_all else "diagonal", Ids(()), n_classes)
        unseen = prior / prior.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([by_answer, unseen]))
    table = np.maximum(logs, IMPOSSIBLE).reshape(-1, n_classes)
    workers = KnownWorkers(table, n_workers + 1, n_classes)
    return Knowledge(PointShares(model.class_prior_), model.class_prior_, workers)


def _of_crowd_model(model: Estimator, crowd_model: CrowdModel, parameters: Parameters) -> Knowledge:
    """Return what a fitted crowd model knows, with a worker whom it has never seen."""
    states, workers = crowd_model
    at = np.arange(workers.n_workers + 1, dtype=np.int32)
    at[-1] = NEW
    alpha, beta = parameters
    chosen = workers.select_parameters(beta, at)
    logs = workers.select(at).log_table(chosen, _where_it_runs(model)[1])
    known = KnownWorkers(np.ascontiguousarray(logs), workers.n_workers + 1, workers.n_classes)
    return Knowledge(states, alpha, known)


# -- responses in the codes of a model -------------------------------------------------------------


def _own_codes(
    model: Estimator, crowd: Responses, knowledge: Knowledge | None
) -> tuple[Codes, Mask]:
    """Look up workers and labels in a model, and say who was never seen.

    Return the model's code for each code of the crowd, a new worker being the last one, and which
    labels are no classes of the model.
    """
    worker = model.workers_.codes(crowd.workers)
    label = model.classes_.codes(crowd.classes)
    unseen = np.flatnonzero(worker == MISSING)
    if knowledge is not None and len(unseen):
        names = list(crowd.workers.take(unseen))
        note("workers-unseen", n=len(names), n_workers=crowd.n_workers, names=names)
    worker = np.where(worker == MISSING, len(model.workers_), worker)
    code = worker[:, None] * len(model.classes_) + label
    return code.astype(np.int32).ravel(), label == MISSING


def _in_codes_of(
    model: Estimator,
    crowd: Responses,
    knowledge: Knowledge | None,
    own: tuple[Codes, Mask] | None = None,
) -> ByTask:
    """Lay out responses in the codes of a model; labels that it does not know are left out."""
    own_code, unknown = own or _own_codes(model, crowd, knowledge)
    code = own_code[crowd.code]
    start = crowd.start
    weight = crowd.weight
    if unknown.any():
        kept = ~unknown[crowd.code % crowd.n_classes]
        names = list(crowd.classes.take(np.flatnonzero(unknown)))
        note("labels-unknown", n=int((~kept).sum()), names=names)
        code = code[kept]
        weight = None if weight is None else weight[kept]
        start = np.concatenate([[0], np.cumsum(kept)])[start]
    role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
    n_codes = (len(model.workers_) + 1) * len(model.classes_)
    n_states = len(model.classes_) if knowledge is None else knowledge.workers.n_states
    return layout.lay_out(start, code, role, n_codes, n_states, weight)


# -- tasks alone -----------------------------------------------------------------------------------


def _label_alone(model: Estimator, crowd: Responses, knowledge: Knowledge) -> Floats:
    """Return the probabilities of classes, where no task is linked.

    Where a worker has many responses, rows of the table are put in the order of the crowd's codes
    and the responses stay as they are: to recode 1e7 of them takes as long as a sweep or two.
    """
    backend, n_threads = _where_it_runs(model)
    table = knowledge.workers.table
    own_code, unknown = _own_codes(model, crowd, knowledge)
    n_codes = len(own_code)
    if unknown.any() or n_codes * table.shape[1] > len(crowd.code):
        tasks = _in_codes_of(model, crowd, knowledge, (own_code, unknown))
    else:
        role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
        edges = layout.chunk_edges(crowd.start, 0)  # nothing is counted
        tasks = ByTask(crowd.start, crowd.code, role, edges, n_codes, weight=crowd.weight)
        if not np.array_equal(own_code, np.arange(n_codes)):
            table = table[own_code]
    scale = (model.calibration_ or AS_IT_IS).scale(calibration.n_responses(tasks))
    log_prior = knowledge.states.expected_log(knowledge.alpha)
    kernels = choose_backend(backend, len(crowd.code))
    n_classes = len(model.classes_)
    return calibration.probabilities_by(
        (log_prior, table), tasks, scale, n_classes, kernels, n_threads
    )


def _committee_says(model: Any, tasks: ByTask, log_prior: Floats | None = None) -> Floats:
    """Return what a committee says of new tasks: every member, pooled, and moved by gold."""
    said: dict[str, Floats] = {}
    for opinion in model._opinions:
        if opinion.name in said:
            continue
        if opinion.model is None:
            said[opinion.name] = committee.by_votes(tasks, len(model.classes_), log_prior)
            continue
        known = _of_crowd_model(model, opinion.model, opinion.parameters)
        problem = known.problem(model, tasks)
        if log_prior is not None:
            problem = with_log_prior(problem, log_prior)
        parameters = (known.alpha, known.workers.table)
        if opinion.name in (committee.FIRST_STEP, committee.EVEN):
            said |= committee.by_step(problem, parameters)
        else:
            honest = model.dependence if opinion.name == committee.VB else 0.0
            said[opinion.name] = committee.by_model(problem, parameters, honest)
    weight = {each.name: each.weight for each in model._opinions if each.weight}
    q = committee.pool(said, weight)
    stage = model._gold_stage
    if stage is None:
        return q
    heard = [said[each.name] for each in model._opinions if each.name != committee.VOTES]
    backend = choose_backend(_where_it_runs(model)[0], len(tasks.code))
    return np.asarray(stage.with_a_stranger().probabilities([q, *heard], tasks, backend))


# -- tasks with links ------------------------------------------------------------------------------


def _label_linked(
    model: Any,
    crowd: Responses,
    knowledge: Knowledge | None,
    links: Any,
    log_prior: Floats | None = None,
) -> Labels:
    """Label the tasks of these responses, with links among them and to tasks of the model."""
    from tiebreak.estimators.base import refuse_links
    from tiebreak.estimators.variational_bayes import VariationalBayes

    is_committee = "_opinions" in vars(model)
    if knowledge is None or not (isinstance(model, VariationalBayes) or is_committee):
        refuse_links(model, links)
    assert knowledge is not None  # votes were refused
    new = _in_codes_of(model, crowd, knowledge)
    old, pairs = _join(model, crowd, tables.read_links(links))
    has_rows = not is_committee and model._carried is None
    problem = knowledge.problem(model, _with_old(model, new, old, has_rows=has_rows))
    if log_prior is not None:
        of_old = raised(np.log(model.classifier_probabilities_[old]), model.classifier_weight_)
        problem = with_log_prior(problem, np.concatenate([log_prior, of_old]))
    options = decoding_of(model)
    problem = _with_links(model, problem, options, crowd.tasks, old, pairs)
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    assert tasks.own is not None  # there are links
    if is_committee:
        of_new = _committee_says(model, new, log_prior)
        said = np.concatenate([of_new, model.probabilities_[old]])
        scores = np.log(np.maximum(said, TINY))
        scale = np.ones(len(scores))
        alpha = model.class_prior_
    else:
        alpha = knowledge.alpha
        scores, scale = _scores(model, problem, alpha, old)
    own = tasks.own
    shares = ClassPrior(alpha, FIXED) if is_committee else tasks.shares
    linked = calibration.scale_own(own, scores[own.at], scale[own.at], shares, alpha)
    q = softmax(scale[:, None] * scores)
    parameters = (alpha, knowledge.workers.table)
    concluded = tasks.conclude(parameters, linked, scale[own.at], q[own.at], None)
    q[own.at] = concluded.q
    q = tasks.known.clamp(q)
    label, _ = likeliest(q)
    decoded = joint_labels(tasks, concluded.memory, options)
    if decoded is not None:
        label[tasks.task] = decoded
    n = crowd.n_tasks
    return _labels(model, crowd, q[:n], label[:n])


def _join(model: Any, crowd: Responses, links: Links) -> tuple[Codes, Links]:
    """Return the codes of old tasks that links lead to, and the links with those among them."""
    is_new = crowd.tasks.codes(links.tasks) != MISSING
    seeds = model.tasks_.codes(links.tasks)[~is_new]
    seeds = np.unique(seeds[seeds != MISSING]).astype(np.int32)
    old = seeds
    former = model.links_
    if former is not None and len(former) and model._carried is None and len(seeds):
        code = model.tasks_.codes(former.tasks)
        left = code[former.left]
        right = code[former.right]
        component = link_graph.components(len(model.tasks_), left, right)
        old = np.flatnonzero(np.isin(component, component[seeds])).astype(np.int32)
        old = old[crowd.tasks.codes(model.tasks_.take(old)) == MISSING]
        inside = np.isin(left, old) & np.isin(right, old)
        links = links + former.select(np.flatnonzero(inside))
    return old, links


def _with_old(model: Any, new: ByTask, old: Codes, *, has_rows: bool) -> ByTask:
    """Lay out new tasks and, after them, old ones: with their responses or without any."""
    crowd = model.responses_
    if not has_rows:
        crowd = replace(crowd, start=np.zeros_like(crowd.start), code=crowd.code[:0], weight=None)
    start, code = layout.responses_on(crowd, old)
    weight = None
    if new.weight is not None or crowd.weight is not None:
        of_old = layout.weights_or_ones(layout.weights_on(crowd, old), len(code))
        weight = np.concatenate([layout.weights_or_ones(new.weight, len(new.code)), of_old])
    start = np.concatenate([new.start, new.start[-1] + start[1:]])
    code = np.concatenate([new.code, code]).astype(np.int32)
    role = np.full(len(start) - 1, FREE, dtype=np.int8)
    n_states = len(model.classes_)
    return layout.lay_out(start, code, role, new.n_codes, n_states, weight)


def _with_links(
    model: Any, problem: Problem, options: ExactLinkOptions, new: Ids, old: Codes, pairs: Links
) -> Problem:
    """Tie new tasks and, after them, old ones, whose gold comes along."""
    tasks = new.merge(model.tasks_.take(old))
    codes = pairs.on(tasks)
    gold = _gold_of(model, old, len(new))
    given = replace(pairs.select(codes.row), must=codes.must, weight=codes.weight)
    found = weighed(model, given, codes.left, codes.right)
    found = found._replace(row=codes.row[found.row])
    implied = link_graph.imply(found, problem.n_classes, firm=found.is_hard, gold=gold)
    implied = check(
        implied,
        tasks,
        classes=model.classes_,
        links=pairs,
        on_contradiction=model.on_contradiction,
    )
    return with_links(problem, implied, options)


def _scores(model: Any, problem: Problem, alpha: Floats, old: Codes) -> tuple[Floats, Floats]:
    """Return the class scores of new and old tasks, and by how much each counts."""
    found = model.calibration_ or AS_IT_IS
    everyone = np.arange(problem.rows.n_tasks, dtype=np.int32)
    logs = problem.logs((alpha, problem.workers.table))  # type: ignore[attr-defined]
    scores = calibration.class_scores_of(problem, logs, everyone)
    n_given = calibration.n_responses(problem.rows)
    if problem.tasks.own is not None and problem.tasks.own.is_prior:
        n_given = n_given + 1.0  # the classifier counts as one more response
    if model._carried is None or not len(old):
        return scores, found.scale(n_given)
    crowd = model.responses_
    n_kept = total_weights(crowd.start, crowd.weight)
    n_given[-len(old) :] = (n_kept + model._carried.n_dropped)[old]
    scale = found.scale(n_given)
    logs = np.log(np.maximum(model.probabilities_[old], TINY))
    scores[-len(old) :] = logs / scale[-len(old) :, None]
    return scores, scale


def decoding_of(model: Any) -> ExactLinkOptions:
    """Return how linked tasks get labels: links have weights, whatever the model's options are."""
    return ExactLinkOptions(decode=getattr(model.link_options, "decode", None))


def weighed(model: Any, links: Links, left: Codes, right: Codes) -> LinkCodes:
    """Return links between these tasks as a model takes them: a weight each, unless they hold."""
    odds = _link_odds(model, links)
    weight = np.where(np.isinf(odds), np.nan, np.abs(odds))
    found = link_graph.distinct(
        left, right, odds > 0.0, None if np.isnan(weight).all() else weight, None
    )
    if found.weight is not None:
        found = found.keep(found.weight != 0.0)  # where what two links say cancels
    if links.duplicate is None:
        return found
    return found._replace(duplicate=links.duplicate[found.row] & found.must)


def _link_odds(model: Any, links: Links) -> Floats:
    """Return the log-odds that the tasks of each link agree; infinite where the link holds."""
    sign = np.where(links.must, 1.0, -1.0)
    options = model.link_options or ExactLinkOptions()
    if isinstance(options, MeanFieldOptions):
        odds = sign * (model.link_strength_ or np.inf)
    elif options.error is None:
        odds = sign * np.inf
    elif options.error == "learn":
        odds = _learnt_odds(model, options, links)
    else:
        error = float(options.error)
        odds = sign * (np.log1p(-error) - np.log(error))
    if links.weight is None:
        return odds
    return np.asarray(np.where(np.isnan(links.weight), odds, sign * links.weight))


def _learnt_odds(model: Any, options: ExactLinkOptions, links: Links) -> Floats:
    """Return log-odds by the error rates of sources that the model learnt, else as expected."""
    wrong, right = options.error_prior
    expected = wrong / (wrong + right)
    rates = model.link_errors_ or {}
    unnamed = rates.get(None, ErrorRate(expected, expected))
    by_source = np.array([*(rates.get(name, unnamed) for name in links.sources or ()), unnamed])
    who = np.full(len(links), -1) if links.who is None else links.who  # -1 is the last one
    of_same, of_different = by_source[who].T
    said_same = np.log1p(-of_same) - np.log(of_different)
    said_different = np.log(of_same) - np.log1p(-of_different)
    return np.asarray(np.where(links.must, said_same, said_different))
