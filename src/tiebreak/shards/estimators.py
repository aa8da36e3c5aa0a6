"""The estimators over partitions: the fits of one machine, with tasks elsewhere.

A model that comes out of it keeps counts in the place of responses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators import publishing
from tiebreak.estimators.base import Estimator, check_options, require_fitted
from tiebreak.estimators.dawid_skene import DawidSkene
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.estimators.publishing import Fitted
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference import vb
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.workers import name_of, named
from tiebreak.kernels.arrays import default_threads, softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.life.predict import knowledge_of
from tiebreak.life.update import Carried
from tiebreak.options import MeanFieldOptions
from tiebreak.shards.partitions import JoinedCrowd
from tiebreak.shards.sweeper import Units

BACKENDS = ("auto", "numpy", "numba")


def refuse_unable(estimator: Estimator, links: Any, start: Any) -> None:
    """Refuse, before any work, what cannot be fitted over partitions, and say what can."""
    name = type(estimator).__name__
    if not isinstance(estimator, VariationalBayes | DawidSkene | MajorityVote):
        raise OptionError(
            f"{name} is not fitted over partitions. VariationalBayes, DawidSkene and MajorityVote "
            "are (--method vb, ds or mv)."
        )
    if estimator.backend not in BACKENDS:
        raise OptionError(
            f"backend={estimator.backend!r} sweeps on one machine. Over partitions it is one of "
            f"{', '.join(map(repr, BACKENDS))}."
        )
    if not isinstance(estimator, VariationalBayes):
        estimator._check(links, start)
        return
    check_options(estimator)
    if not isinstance(estimator.init, str) or estimator.init != "majority":
        raise OptionError("Over partitions q starts at the votes: init='majority'.")
    if isinstance(estimator.link_options, MeanFieldOptions):
        raise OptionError(
            "Mean-field links are fitted on one machine. Over partitions links are exact: leave "
            "out link_options, or give tb.ExactLinkOptions(…)."
        )


def n_states(model: Estimator, crowd: JoinedCrowd) -> int:
    """Return how many states a task may be in."""
    workers = named(getattr(model, "worker_model", "confusion"))
    return len(crowd.classes) * getattr(workers, "n_subtypes", 1)


def start_tables(start: Any, crowd: JoinedCrowd, model: Estimator) -> Logs:
    """Return the tables by which tasks start where a model would label them."""
    require_fitted(start)
    knowledge = knowledge_of(start)
    is_split = n_states(model, crowd) > len(crowd.classes)
    if knowledge is None or is_split or knowledge.workers.n_states != len(start.classes_):
        raise OptionError(
            "Over partitions a fit starts from a model of workers with one state a class: "
            "VariationalBayes or DawidSkene, without subtypes."
        )
    return knowledge.tables_for(
        start.workers_.codes(crowd.workers), start.classes_.codes(crowd.classes)
    )


def fit(model: Any, inputs: Inputs, units: Units, start: Logs | None) -> Logs | None:
    """Fit an estimator; return the tables of its last beliefs, None: labels are those of q."""
    crowd = inputs.responses
    n_linked = 0 if inputs.link_codes is None else 2 * inputs.link_codes.n_links
    n_responses = units.crowd.n_responses if crowd.n_responses else 0
    kernels = choose_backend(model.backend, n_responses, n_linked, may_be_device=False)
    tasks = vb.lay_out(crowd)
    q = None if start is None else softmax(kernels.score_tasks(tasks, *start))
    fitted: Fitted | None = None
    if isinstance(model, VariationalBayes):
        model.worker_model_ = name_of(model.worker_model)
        model._communities = None
        fitted = model._fit_inputs(inputs, tasks, q, None, is_warm=q is not None)
        q = fitted.found.run.q
        units.state = fitted.found.run.elsewhere
        publishing.publish_learnt(model, fitted)
    else:
        q = model._fit_inputs(inputs, q)
    carried = units.sums()
    if crowd.n_tasks:
        here = HostSweeper(kernels, tasks, q, model.n_threads or default_threads())
        carried = carried.plus(Swept(*here.tally(), 0.0, 0.0))
    model._carried = Carried(carried.counts, carried.totals, np.zeros(0))
    if not isinstance(model, MajorityVote):
        _note_doubts(inputs, units, model._carried)
    if fitted is None:
        return None
    publishing.note_gold(fitted, model.dependence)
    return vb.expected_logs(fitted.problem, fitted.found.run.beliefs)


def _note_doubts(inputs: Inputs, units: Units, carried: Carried) -> None:
    """Say so where one class took nearly all, or responses are few."""
    crowd = units.crowd
    totals = carried.totals.reshape(len(crowd.classes), -1).sum(axis=1)
    votes = units.answers.counts.sum(axis=0)
    mean_q = totals / max(totals.sum(), 1.0)
    if not publishing.note_collapse(crowd.n_tasks, crowd.classes, votes, mean_q):
        publishing.note_few_responses(inputs, crowd.n_tasks, votes.sum())
