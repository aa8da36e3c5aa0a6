"""Variational Bayes with links and gold: VB, VB-LC and VB-ILC of the paper."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.scale import ScaleOption
from tiebreak.errors import OptionError
from tiebreak.estimators import publishing
from tiebreak.estimators.base import (
    BayesEstimator,
    as_pairs,
    check_options,
    require_fitted,
    weight_of_gold,
    with_sequences,
    with_tasks_of,
)
from tiebreak.inference import dirichlet, stages
from tiebreak.inference.calibration import DEPENDENCE, Calibration, CalibrationOptions
from tiebreak.inference.climb import FitState, Problem
from tiebreak.inference.door import Inputs, Rows, rows_of
from tiebreak.inference.known import GoldWeight
from tiebreak.inference.stages import FitOptions, Fitted, Scored, Start
from tiebreak.inference.tasks import Parameters, of_shares, with_log_prior
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.workers import COMMUNITIES, SCALE, CrowdModel, WorkerModel, name_of
from tiebreak.kernels.arrays import majority
from tiebreak.kernels.layout import Floats
from tiebreak.links import Links, OnContradiction
from tiebreak.options import AUTO, LinkOptions, SequenceOptions

if TYPE_CHECKING:
    from tiebreak.data.sequences import Sequences, Spans
    from tiebreak.inference.sequencing import Candidate
    from tiebreak.inference.tasks.classifier import ClassifierPrior
    from tiebreak.inference.tasks.coupling.link_errors import DoubtfulLinks, LinkErrors
    from tiebreak.inference.tasks.mean_field import GridPoint
    from tiebreak.inference.workers.kinds import Kinds


@dataclass(kw_only=True, eq=False, repr=False)
class VariationalBayes(BayesEstimator):
    """Infer true labels from noisy responses, links between tasks and known labels.

    Every worker has a confusion matrix with a Dirichlet prior; links pull the classes of two
    tasks together or push them apart; known labels stay fixed. Fitted by coordinate ascent on
    the bound [eq:bound]. Without links and gold this is the paper's VB, with gold its VB-LC, with
    links its VB-ILC (as printed there: `MeanFieldOptions(schedule="parallel", strength="grid")`).

    Parameters
    ----------
    class_prior
        Pseudo-counts of the classes: one number, or one per class.
    confusion_prior
        "diagonal" (K for the right answer, 1 for each wrong one), "uniform", (right, wrong), an
        array (truth, answer) or (worker, truth, answer), or a mapping of worker to array: what
        they did in earlier jobs.
    worker_model
        "confusion": a confusion matrix per worker, the paper's. "coin": one accuracy per worker.
        "kinds": good, middling and flat workers, each kind with its own prior. "subtypes": tasks
        of a class fall into groups that workers take alike. "kinds+subtypes": both.
        "communities": kinds whose priors are learnt. Or a model of your own, a
        `tiebreak.inference.workers.Workers`.
    task_model
        `tb.ClassifierPrior(…)`: how features of tasks, given to `fit`, become the class prior of
        each task. None: the default one, where there are features.
    trust
        Workers who are known to be good: how many right answers to tasks of each class each of
        them starts with, such as {"ann": 50}.
    scale
        Classes in their order, where they have one: a range ("1..5", "0..100/20": answers count as
        the nearest level), a list of levels, or "auto": numbers, where answers show that their
        order matters. Workers then have a bias, a gain, a blur and lapses on that scale in the
        place of confusion matrices, and labels have scores.
    link_options
        `ExactLinkOptions(…)` (the default): linked tasks are inferred jointly, and links without
        weight always hold, unless its `error` says that they may be wrong.
        `MeanFieldOptions(…)`: the paper's, where links pull and push with one strength.
    sequence_options
        `SequenceOptions(…)`: how tasks depend on the task before them, where `fit` is given
        sequences.
    gold_weight
        How often a known task counts for its workers, where a guessed one counts once. "auto": the
        more, the more a worker answered, because guesses have errors in common;
        once where there are links. 1 is the paper's VB-LC.
    calibrate
        "auto": probabilities are scaled by how much errors are shared, which gold and links
        decide where there are enough of them. "votes": by `dependence` alone. "none": as the model
        says. Labels are the same.
    dependence
        How much the errors of workers on one task are expected to be shared, 0 to 1: 0.35 suits
        people, 0.5 LLM judges.
    on_contradiction
        "error", or "drop": leave out cannot-links whose tasks must-links join. Soft links may
        contradict each other.
    init
        "majority", or probabilities (n_tasks, n_classes) in the order of `tasks_`. To go on from a
        fitted model, give it to `fit` as `start`.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    accelerate
        Whether SQUAREM may extrapolate, so that fewer sweeps are needed; the bound never falls.
        Sweeps over links, and those of `tol=0`, are plain.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.

    Attributes
    ----------
    labels_, probabilities_
        The labels; (n_tasks, n_classes), in the order of `tasks_` and `classes_`.
    confusion_, class_prior_
        E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    bounds_, n_iter_, converged_
        The bound at the start of the last ascent and after each of its sweeps.
    violations_
        The links that the labels break, with constraints these too; None without either.
    constraint_report_, doubtful_constraints_
        What constraints did: how they were inferred, whether responses speak for them, how many
        labels they moved; the soft ones that are more likely wrong than right. None without.
    own_probabilities_
        The probabilities before constraints, or None.
    doubtful_links_
        The soft links that are more likely wrong than right, most doubtful first, or None.
    link_report_
        How many components of linked tasks were inferred exactly and how many approximately.
    uncertain_groups_
        Groups of linked tasks whose class another mode, nearly as likely, has otherwise: label one
        task of each.
    link_errors_
        Learnt error rates of links, by source, or None.
    calibration_
        How scores became probabilities: `dependence` and `multiplier`, or None.
    worker_model_
        The worker model of the fit.
    spans_
        With sequences: the spans that labels make, each with its probability, or None.
    transitions_
        With sequences: E[A], (n_classes, n_classes), how often each class follows each, or None.
    sequence_model_, sequence_choice_
        With sequences: the model of them, and what was compared to choose it.
    classifier_, classifier_weight_, classifier_gain_, classifier_probabilities_
        With features: the classifier, trained on all tasks; how far it is believed, 0 to 1, where 0
        means dropped; by how many nats a task, and standard errors, it predicts responses better
        than class shares; (n_tasks, n_classes), each by training without it. None without features.
    pairs_, strengths_, pair_prior_
        With pairs: the items of each task; how good each item is in log odds, in the order of
        `pairs_.items`; (n_tasks, n_classes), what the ranking says of each task. For a ranking with
        intervals fit `BradleyTerry`.
    network_, neighbours_
        With edges of a network: these, and (n_classes, n_classes), how often neighbours are of each
        pair of classes, or None.
    link_strength_, link_grid_
        For mean-field: the strength used; what each strength of the grid gave, or None.

    Examples
    --------
    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x"), ("c", "bob", "x")]
    >>> apart = tb.Links.from_pairs(cannot=[("a", "b")])
    >>> tb.VariationalBayes().fit(votes, links=apart).labels_.best()
    {'a': 'x', 'b': 'y', 'c': 'x'}
    """

    sequences_: Sequences | None = field(init=False)
    network_: Links | None = field(init=False)
    neighbours_: Floats | None = field(init=False)
    spans_: Spans | None = field(init=False)
    transitions_: Floats | None = field(init=False)
    sequence_model_: str | None = field(init=False)
    sequence_choice_: tuple[Candidate, ...] = field(init=False)
    link_strength_: float | None = field(init=False)
    link_grid_: tuple[GridPoint, ...] | None = field(init=False)
    link_report_: LinkReport | None = field(init=False)
    link_errors_: LinkErrors | None = field(init=False)
    doubtful_links_: DoubtfulLinks | None = field(init=False)
    calibration_: Calibration | None = field(init=False)
    uncertain_groups_: list[list[Hashable]] = field(init=False)
    worker_model_: str = field(init=False)
    _communities: Kinds | None = field(init=False, default=None)
    _crowd_model: CrowdModel = field(init=False)
    _state: FitState = field(init=False)  # where the fit ended: (α, β), and q by task
    _plain: Parameters = field(init=False)  # (α, β) of plain VB on the same responses
    supports_adaptive_selection = True

    class_prior: dirichlet.ClassPriorOption = 1.0
    confusion_prior: dirichlet.ConfusionPrior = "diagonal"
    worker_model: WorkerModel = "confusion"
    task_model: ClassifierPrior | None = None
    trust: dirichlet.Trust | None = None
    gold_weight: GoldWeight = AUTO
    scale: ScaleOption = None
    link_options: LinkOptions | None = None
    sequence_options: SequenceOptions | None = None
    calibrate: str | bool = "auto"
    dependence: float = DEPENDENCE
    on_contradiction: OnContradiction = "error"
    init: str | Floats = "majority"
    tol: float = 1e-6
    max_iter: int = 500
    accelerate: bool = True
    backend: str = "auto"
    n_threads: int | None = None

    def fit(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        sequences: Any = None,
        features: Any = None,
        constraints: Any = None,
        pairs: Any = False,
    ) -> Self:
        """Fit to responses and, if given, links and gold; `start` is a fitted model to go on from.

        Labels keep `constraints` (see `Constraints`), and probabilities are conditioned on them.
        The start may have been fitted to other responses: tasks and workers that it has not seen
        start as in a cold fit. `sequences` says which tasks follow each other: `Sequences`, or a
        table of task, sequence, position and text. `features`, of all tasks, train a classifier
        that is the class prior of each task: a table (task and columns of numbers, or one of text),
        a mapping of task to its row or text, or a pair (tasks, array). Tasks in it without
        responses are labelled too; a fit with features starts from the votes.

        With `pairs=True` the responses are verdicts on pairs of items, such as `BradleyTerry` is
        fitted to. Each pair on a prompt is a task, whose classes `model_a`, `model_b` (the items by
        name) and `tie` say which item is better, and a ranking of the items, learnt from all tasks,
        is the class prior of each. A judge who saw items in both orders is two workers.
        """
        check_options(self)
        given = None if sequences is None else tables.read_sequences(sequences)
        about = None
        if pairs:
            others = given if features is None else features
            responses, about = as_pairs(self, responses, pairs, others)
        if given is not None:
            if features is not None:
                raise OptionError("features-with-sequences")
            if constraints is not None:
                raise OptionError("constraints-beside-sequences")
            responses = with_tasks_of(given, responses, self.worker_model)
        pulls = None if links is None else tables.read_links(links)
        network = pulls if pulls is not None and pulls.near else None
        if network is not None:
            others = (given, features, constraints, about)
            if any(each is not None for each in others):
                raise OptionError("network-beside-others")
            if not isinstance(responses, Responses):
                responses = tables.read_responses(responses)
            responses = responses.with_tasks(network.tasks)
            pulls = None
        inputs = self._read_inputs(responses, pulls, gold, features, constraints)
        inputs = inputs._replace(pairs=about)
        if network is not None:
            inputs = inputs._replace(network=network.edges(inputs.responses.tasks))
        self.network_ = network
        if given is not None:
            inputs = with_sequences(inputs, given, self.sequence_options)
        self.worker_model_ = SCALE if inputs.scale is not None else name_of(self.worker_model)
        self._communities = None
        publishing.publish(self, *self._fit_inputs(inputs, start))
        if self.classifier_weight_ or about is not None:
            self.class_prior_ = self._crowd_model.states.mean(self._state.parameters[0])
        self._warn_unconverged(self.tol)
        return self

    def _fit_inputs(
        self, inputs: Inputs, start: Any = None, q: Floats | None = None
    ) -> tuple[Fitted, Scored]:
        """Fit from an earlier model, from q, or else from `init`; keep where the fit ended."""
        crowd = inputs.responses
        plain: Parameters = ()
        weight = weight_of_gold(self.gold_weight, inputs)
        of_pairs = self._learn_strengths(inputs, weight)
        learnt = self._learn_classifier(inputs, weight) or of_pairs
        if start is not None and learnt is None:
            require_fitted(start)
            q = stages.q_of_model(start, crowd, self.worker_model_)
            if stages.are_equal(start.responses_, crowd):
                self._communities = getattr(start, "_communities", None)
                if getattr(start, "worker_model_", None) == self.worker_model_:
                    plain = start._plain
        is_warm = q is not None
        if q is None and not isinstance(self.init, str):
            q = stages.q_of_init(self.init, crowd)
        is_ordered = inputs.sequences is not None or inputs.network is not None
        alone = is_ordered or learnt is not None
        rows = rows_of(inputs, None if is_warm else q, alone=alone)
        problem = self._problem(rows, inputs)
        by_row = majority(problem.rows, problem.n_classes) if q is None else rows.mean(q)
        if self.worker_model_ == COMMUNITIES and self._communities is None:
            from tiebreak.inference import communities

            self._communities, _ = communities.learn(problem, by_row, self._stopping)
            problem = problem._replace(workers=self._communities)
        states, how = problem.tasks.shares, self._calibration_options
        if learnt is not None:
            problem = with_log_prior(problem, learnt.log_prior)
            by_row, how = learnt.q, how._replace(n_more=1.0)
        state = FitState(q=problem.to_states(by_row))
        if plain:  # the same responses: what q adds to priors is known
            state = state._replace(parameters=_with_priors_of(problem, start))
        begin = Start(state, q is None, is_warm, plain)
        options = FitOptions(self._stopping, how, self.link_options, weight)
        fitted, scored = stages.fit(problem, inputs, rows, begin, options)
        alpha, *_, beta = fitted.state.parameters
        q = rows.to_tasks(fitted.state.q)
        self._crowd_model = CrowdModel(states, problem.workers)
        self._state = FitState(q, of_shares((alpha, beta), problem.tasks.shares, states))
        self._plain = of_shares(fitted.plain_parameters, problem.tasks.shares, states)
        return fitted, scored

    def _problem(self, rows: Rows, inputs: Inputs) -> Problem:
        """Set up plain VB."""
        problem = self._plain_problem(self.worker_model, rows, inputs)
        if self._communities is not None:
            problem = problem._replace(workers=self._communities)
        return problem

    @property
    def _calibration_options(self) -> CalibrationOptions:
        """What the user wants of probabilities; True and False are older words for two modes."""
        older = {True: "auto", False: "none"}
        mode = older[self.calibrate] if isinstance(self.calibrate, bool) else self.calibrate
        return CalibrationOptions(mode, self.dependence)


def _with_priors_of(problem: Problem, model: VariationalBayes) -> Parameters:
    """Return the parameters of an earlier model under these priors, which may be others now."""
    former = model._crowd_model.states.prior, model._crowd_model.workers.prior
    ends = zip(problem.prior, model._state.parameters, former, strict=True)
    return tuple(prior + (end - before) for prior, end, before in ends)
