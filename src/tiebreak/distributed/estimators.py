"""The estimators over partitions: the functions of one machine on sweeps that reach far.

What each returns is how its labels are made. Its parameters go into the estimator, as a model that
keeps counts in the place of responses.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tiebreak.distributed.far_links import LinksElsewhere
from tiebreak.distributed.starts import StartOf
from tiebreak.distributed.sweeper import ClusterBackend, ClusterSweeper, Units
from tiebreak.distributed.units import Loaded, kernels_for
from tiebreak.errors import OptionError
from tiebreak.inference import (
    DawidSkene,
    MajorityVote,
    VariationalBayes,
    communities,
    dawid_skene,
    dirichlet,
    gold_weights,
    publishing,
    stages,
    vb,
)
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.dawid_skene import POOLS, Estimates
from tiebreak.inference.estimator import Estimator, check_options, normalise
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.kept.dropping import Carried
from tiebreak.inference.overturned import Overturned
from tiebreak.inference.problem import Beliefs, Patterns, Problem, Run, Stopping, TasksElsewhere
from tiebreak.inference.publishing import Fitted
from tiebreak.inference.stages import Start, WarmStart
from tiebreak.inference.worker_models import COMMUNITIES, AnswerCounts, crowd_model, one_class
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.options import ExactLinkOptions, MeanFieldOptions
from tiebreak.responses import Responses

WORKER_MODELS = ("confusion", "coin", "kinds", "communities", "subtypes", "kinds+subtypes")
BACKENDS = ("auto", "numpy", "numba")


class Sums(NamedTuple):
    """What all units say of their responses, named tasks included."""

    counts: Offsets  # (n_workers, n_classes)
    given: Floats  # (n_workers,) responses, by weight
    elsewhere: TasksElsewhere


class Outcome(NamedTuple):
    """How labels are made, and those of named tasks."""

    tables: Logs | None  # of the last beliefs; None: labels are those of q
    calibration: Calibration | None
    label: Codes  # of named tasks
    q: Floats  # (n_named, n_classes)
    overturned: Overturned | None = None  # where gold contradicts the crowd


def refuse_unable(estimator: Estimator, *, has_links: bool) -> None:
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
    if has_links and not isinstance(estimator, VariationalBayes):
        raise OptionError(f"{name} cannot use links. VariationalBayes can: use it, or drop links.")
    if not isinstance(estimator, VariationalBayes):
        return
    check_options(estimator)
    if estimator.worker_model not in WORKER_MODELS:
        raise OptionError(
            f"worker_model={estimator.worker_model!r} compares the labels of all tasks, and is "
            "fitted on one machine. Over partitions it is one of "
            f"{', '.join(map(repr, WORKER_MODELS))}."
        )
    if estimator.saw_all:
        raise OptionError("saw_all counts silence on one machine only. Leave it out.")
    if not isinstance(estimator.init, str) or estimator.init != "majority":
        raise OptionError("Over partitions q starts at the votes: init='majority'.")
    if isinstance(estimator.link_options, MeanFieldOptions):
        raise OptionError(
            "Mean-field links are fitted on one machine. Over partitions links are exact: leave "
            "out link_options, or give tb.ExactLinkOptions(…)."
        )


def add_up(units: Units, loaded: list[Loaded]) -> Sums:
    """Add up what units said when they were loaded."""
    n_classes = len(units.crowd.classes)
    counts = units.by_row([each.counts for each in loaded], n_classes, np.int64)
    given = counts.sum(axis=1).astype(np.float64)
    if any(each.weights is not None for each in loaded):
        by_weight = [
            each.counts.reshape(-1, n_classes).sum(axis=1).astype(np.float64)
            if each.weights is None
            else each.weights
            for each in loaded
        ]
        given = units.by_row(by_weight, 1)[:, 0]
    n_tasks = sum(each.n_tasks for each in loaded)
    elsewhere = TasksElsewhere(n_tasks, sum(each.n_votes for each in loaded))
    return Sums(counts, given, elsewhere)


def fit(model: Estimator, inputs: Inputs, units: Units, sums: Sums, start: StartOf) -> Outcome:
    """Fit an estimator; set what it learnt."""
    crowd = inputs.responses
    model.workers_ = crowd.workers
    model.classes_ = crowd.classes
    model.links_ = inputs.links
    model.gold_ = inputs.gold
    if isinstance(model, VariationalBayes):
        return _fit_bayes(model, inputs, units, sums, start)
    if isinstance(model, DawidSkene):
        return _fit_dawid_skene(model, inputs, units, sums, start)
    assert isinstance(model, MajorityVote)  # all others were refused
    return _fit_majority(model, inputs, units)


def _fit_bayes(
    model: VariationalBayes, inputs: Inputs, units: Units, sums: Sums, start: StartOf
) -> Outcome:
    problem = _problem(model, inputs, units, sums)
    q = start.q(problem.tasks, problem.n_classes, problem.backend)
    n_subtypes = problem.n_states // problem.n_classes
    if n_subtypes > 1:
        q = vb.split_into_subtypes(q, n_subtypes, model.random_state, start.places)
    if model.worker_model == COMMUNITIES:
        model._communities = communities.learn(problem, q, model._stopping).workers
        problem = problem._replace(workers=model._communities)
    is_alone = inputs.link_codes is None and inputs.gold_codes is None
    is_warm = start.tables is not None
    begin = Start(q, is_warm, is_warm, None, model.worker_model)
    plain = stages.fit_plain(problem, begin, model._stopping, is_alone=is_alone)
    found = stages.fit_links_and_gold(
        problem,
        plain,
        inputs,
        model.link_options or ExactLinkOptions(),
        model._stopping,
        model._honesty,
        is_warm=is_warm,
        is_given=False,
    )
    units.state = found.run.elsewhere
    fitted = Fitted(inputs, inputs, problem, Patterns(problem.tasks), plain.beliefs, found)
    model.worker_model_ = model.worker_model
    model.models_tried_ = None
    labels = publishing.publish_learnt(model, fitted)
    here = HostSweeper(problem.backend, problem.tasks, found.run.q, problem.n_threads)
    model._carried = _carried(here, units)
    model._warm_start = _warm_start(model, units.crowd.empty(), problem, plain.beliefs, found.run)
    _note_doubts(fitted, units, model._carried, model.dependence)
    tables = vb.expected_logs(problem, found.run.beliefs)
    of_named = model.probabilities_
    return Outcome(tables, found.calibration, labels.label, of_named, model.overturned_)


def _problem(model: VariationalBayes, inputs: Inputs, units: Units, sums: Sums) -> Problem:
    crowd = inputs.responses
    n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
    inner = kernels_for(model.backend, crowd.n_responses, n_linked)
    has_links = inputs.link_codes is not None
    known = crowd_model(
        model.worker_model,
        model.confusion_prior,
        dirichlet.class_prior(model.class_prior, crowd.n_classes),
        crowd,
        model.trust,
        AnswerCounts(sums.counts, _rows_to_fix(units, sums.counts)),
    )
    elsewhere = sums.elsewhere
    if units.far is not None:
        elsewhere = elsewhere._replace(join=partial(LinksElsewhere, units, crowd.n_classes))
    return Problem(
        stages.lay_out(crowd),
        *known,
        ClusterBackend(inner, units),
        model.n_threads or default_threads(),
        gold_weight=_gold_weight(model, inputs, sums, has_links=has_links),
        elsewhere=elsewhere,
        watch_bound=units.watch,
    )


def _rows_to_fix(units: Units, counts: Offsets) -> Any:
    """Return the rows of one-class voters that are not learnt, as `one_class` finds them."""
    if not one_class.is_of_rules(counts):
        return None
    agree, asked = units.by_row([each.T for each in units.ask("agreement")], 2).T
    return one_class.rows_of_rules(counts, agree, asked)


def _gold_weight(
    model: VariationalBayes | DawidSkene, inputs: Inputs, sums: Sums, *, has_links: bool
) -> Floats | None:
    """Return how often a known task counts, as `gold_weights.find` does of all responses."""
    is_auto = model.gold_weight == gold_weights.AUTO
    if inputs.gold_codes is None or model.gold_weight == 1.0 or (has_links and is_auto):
        return None
    n_classes = inputs.responses.n_classes
    of_each = gold_weights.of_answers(model.gold_weight, sums.given, n_classes)
    return np.repeat(of_each[:, None], n_classes, axis=1)


def _warm_start(
    model: VariationalBayes, nobody: Responses, problem: Problem, plain: Beliefs, run: Run
) -> WarmStart:
    """Return where the fit ended, of no task: what responses added to workers stays."""
    return WarmStart(
        nobody,
        stages.lay_out(nobody),
        plain,
        np.zeros((0, problem.n_states)),
        vb.added(problem, run.beliefs),
        model.worker_model,
        has_patterns=False,
    )


def _note_doubts(fitted: Fitted, units: Units, carried: Carried, dependence: float) -> None:
    """Say so where one class took nearly all tasks, or gold is against the crowd."""
    n_classes = fitted.problem.n_classes
    totals = carried.totals.reshape(n_classes, -1).sum(axis=1)
    votes = carried.counts.reshape(-1, n_classes, carried.counts.shape[1]).sum(axis=(0, 2))
    publishing.note_collapse(
        _Size(units.crowd.n_tasks, units.crowd.classes),  # type: ignore[arg-type]
        votes.round().astype(np.int64),
        totals / max(totals.sum(), 1.0),
    )
    publishing.note_gold(fitted, dependence)


class _Size(NamedTuple):
    """What a note needs to know of responses."""

    n_tasks: int
    classes: Any

    @property
    def n_classes(self) -> int:
        return len(self.classes)


def _carried(here: HostSweeper, units: Units) -> Carried:
    """Return what all tasks say, as a model keeps it in the place of responses."""
    others = units.sums()
    if not here.tasks.n_tasks:
        return Carried(others.counts, others.totals, np.zeros(0))
    counts, totals = here.tally()
    return Carried(others.counts + counts, others.totals + totals, np.zeros(0))


def _fit_dawid_skene(
    model: DawidSkene, inputs: Inputs, units: Units, sums: Sums, start: StartOf
) -> Outcome:
    crowd = inputs.responses
    gold = inputs.gold_codes
    n_classes = crowd.n_classes
    tasks = vb.lay_out(crowd, vb.roles(crowd.n_tasks, gold, None))
    inner = kernels_for(model.backend, crowd.n_responses)
    q = np.ascontiguousarray(vb.clamp(start.q(tasks, n_classes, inner), gold))
    table = _gold_weight(model, inputs, sums, has_links=False)
    weighed = tasks
    if gold is not None and table is not None:
        weighed = gold_weights.weigh_known(tasks, gold, table, n_classes)
    threads = model.n_threads or default_threads()
    sweeper = ClusterSweeper(HostSweeper(inner, weighed, q, threads), units)
    stopping = Stopping(model.tol, model.max_iter, model.accelerate)
    pool = POOLS[model.worker_model]
    climbed, _ = dawid_skene.climb(sweeper, model.smoothing, stopping, pool)
    estimates = Estimates(*climbed.implied)
    last = units.log_norm(dawid_skene.expected_logs(estimates))
    last += dawid_skene.log_likelihood(weighed, q, inner, estimates)
    model.class_prior_, model.confusion_ = estimates
    model.bounds_ = [*climbed.bounds, last + dawid_skene.log_prior(estimates, model.smoothing)]
    model.n_iter_ = len(climbed.bounds)
    model.converged_ = climbed.converged
    model._publish(inputs, q)
    model._carried = _carried(HostSweeper(inner, tasks, q, threads), units)
    return Outcome(None, None, model.labels_.label, model.probabilities_, model.overturned_)


def _fit_majority(model: MajorityVote, inputs: Inputs, units: Units) -> Outcome:
    crowd = inputs.responses
    tasks = vb.lay_out(crowd, vb.roles(crowd.n_tasks, inputs.gold_codes, None))
    q = vb.clamp(vb.majority(tasks, crowd.n_classes), inputs.gold_codes)
    inner = kernels_for(model.backend, crowd.n_responses)
    threads = model.n_threads or default_threads()
    sweeper = ClusterSweeper(HostSweeper(inner, tasks, np.ascontiguousarray(q), threads), units)
    counts, totals = sweeper.tally()
    model.class_prior_ = totals / totals.sum()
    model.confusion_ = normalise(counts, crowd.n_workers)
    model.bounds_ = []
    model.n_iter_ = 0
    model.converged_ = True
    model._publish(inputs, q)
    model._carried = Carried(counts, totals, np.zeros(0))
    return Outcome(None, None, model.labels_.label, q)
