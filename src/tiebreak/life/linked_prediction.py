"""Prediction with links: new tasks, and the old ones they are linked to, inferred jointly.

Old tasks come with their responses and with the links among them, as far as these lead; where
responses were dropped, with what they are believed to be. Workers stay as they are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.data import Responses, ids
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import MISSING, Ids
from tiebreak.data.labels import Labels
from tiebreak.estimators.base import refuse_links
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference import calibration
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling.ascents import Setup, set_up
from tiebreak.inference.tasks.coupling.fit import joint_labels
from tiebreak.inference.tasks.coupling.link_errors import ErrorRate
from tiebreak.inference.vb import Problem
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import default_threads, likeliest, softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats
from tiebreak.life.prediction import (
    AS_IT_IS,
    committee_says,
    knowledge_of,
    where_it_runs,
)
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.options import ExactLinkOptions, MeanFieldOptions

TINY = 1e-300


class Union(NamedTuple):
    """New tasks, and after them the old ones that links lead to."""

    tasks: Ids
    old: Codes  # their codes in the model
    links: Links
    gold: GoldCodes | None  # of the old ones


def predict_linked(model: Any, crowd: Responses, tasks: ByTask, links: Any) -> Labels:
    """Label the tasks of these responses, with links among them and to tasks of the model."""
    is_committee = "_opinions" in vars(model)
    if not isinstance(model, VariationalBayes) and not is_committee:
        refuse_links(model, links)
    union = _join(model, crowd, tables.read_links(links))
    problem = _problem(model, tasks, len(union.old))
    options = _options(model)
    setup = _set_up(model, union, problem, options)
    if is_committee:
        log_prior = np.log(model.class_prior_)
        said = np.concatenate([committee_says(model, tasks), model.probabilities_[union.old]])
        scores = np.log(np.maximum(said, TINY))
        scale = np.ones(len(scores))
    else:
        scores, scale = _scores(model, problem, tasks.n_tasks, union.old)
        log_prior = problem.states.expected_log_of_class(model._beliefs.alpha)
    exact = setup.exact
    nodes = exact.nodes
    linked = calibration.scale_scores(
        scores[exact.task], scale[exact.task], log_prior, nodes.pays, nodes.unit
    )
    q = softmax(scale[:, None] * scores)
    q[exact.task] = exact.probabilities(linked)
    q = clamp(q, setup.known)
    label, _ = likeliest(q)
    decoded = joint_labels(setup, options)
    if decoded is not None:
        label[exact.task] = decoded
    n_new = tasks.n_tasks
    return Labels.from_probabilities(
        crowd.tasks, model.classes_, q[:n_new], label=label[:n_new], frame=crowd.frame
    )


def _join(model: Any, crowd: Responses, links: Links) -> Union:
    """Find the old tasks that links lead to, and the links and gold that they bring along."""
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
        old = old[crowd.tasks.codes(Ids(model.tasks_.take(old))) == MISSING]
        inside = np.isin(left, old) & np.isin(right, old)
        links = links + former.select(np.flatnonzero(inside))
    tasks = ids.merge(crowd.tasks, Ids(model.tasks_.take(old)))
    gold = None
    if model.gold_ is not None and len(old):
        known = model.gold_.on(model.tasks_, model.classes_).among(old)
        gold = known._replace(task=(known.task + crowd.n_tasks).astype(np.int32))
    return Union(tasks, old, links, gold)


def _problem(model: Any, tasks: ByTask, n_old: int) -> Problem:
    """Return the inference of new tasks and, without responses, of old ones."""
    knowledge = knowledge_of(model)
    assert knowledge is not None  # refused above: votes know no workers
    start = np.concatenate([tasks.start, np.full(n_old, tasks.start[-1])])
    role = np.full(tasks.n_tasks + n_old, FREE, dtype=np.int8)
    n_states = knowledge.workers.n_states
    whole = layout.lay_out(start, tasks.code, role, tasks.n_codes, n_states, tasks.weight)
    return knowledge.problem(whole, *where_it_runs(model))


def _options(model: Any) -> ExactLinkOptions:
    """Return how links are inferred: exactly. Those of mean field count by their strength."""
    options = model.link_options or ExactLinkOptions()
    if not isinstance(options, MeanFieldOptions):
        return options
    strength = model.link_strength_
    if not strength:
        return ExactLinkOptions()
    return ExactLinkOptions(error=float(1.0 / (1.0 + np.exp(strength))))


def _set_up(model: Any, union: Union, problem: Problem, options: ExactLinkOptions) -> Setup:
    codes = union.links.on(union.tasks)
    firm = np.zeros(codes.n_links, dtype=bool) if options.is_soft else codes.is_hard
    implied = link_graph.imply(codes, problem.n_classes, firm=firm, gold=union.gold)
    checked = check(
        codes,
        implied,
        union.tasks,
        classes=model.classes_,
        links=union.links,
        on_contradiction=model.on_contradiction,
    )
    assert checked.codes is not None
    assert checked.implied is not None
    setup = set_up(problem, checked.codes, checked.implied, union.gold, options)
    if options.error == "learn" and getattr(model, "link_errors_", None):
        soft = union.links.select(checked.codes.row[~setup.hard])
        setup.exact.set_log_odds(link_odds(model, replace(soft, weight=None)))
    return setup


def link_odds(model: VariationalBayes, links: Links) -> Floats:
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


def _learnt_odds(model: VariationalBayes, options: ExactLinkOptions, links: Links) -> Floats:
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
    odds = np.where(links.must, said_same, said_different)
    if links.duplicate is not None:
        odds = odds + np.where(links.duplicate, np.log(max(len(model.classes_) - 1, 1)), 0.0)
    return np.asarray(odds)


def _scores(
    model: VariationalBayes, problem: Problem, n_new: int, old: Codes
) -> tuple[Floats, Floats]:
    """Return the class scores of new and old tasks, and by how much each counts."""
    found = model.calibration_ or AS_IT_IS
    knowledge = knowledge_of(model)
    assert knowledge is not None  # variational Bayes knows workers
    new = np.arange(n_new, dtype=np.int32)
    scores = calibration.class_scores_of(problem, knowledge.beliefs, new)
    scale = found.scale(calibration.n_responses(problem.tasks)[:n_new])
    if not len(old):
        return scores, scale
    tasks = model._warm_start.tasks
    n_given = calibration.n_responses(tasks)[old]
    if model._carried is not None:
        of_old = found.scale(n_given + model._carried.n_dropped[old])
        logs = np.log(np.maximum(model.probabilities_[old], TINY))
        return np.concatenate([scores, logs / of_old[:, None]]), np.concatenate([scale, of_old])
    backend = choose_backend("auto", len(tasks.code))
    states, workers = model._crowd_model
    former = Problem(tasks, states, workers, backend, model.n_threads or default_threads())
    old_scores = calibration.class_scores_of(former, model._beliefs, old)
    return np.concatenate([scores, old_scores]), np.concatenate([scale, found.scale(n_given)])
