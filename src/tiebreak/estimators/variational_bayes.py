"""Variational Bayes with links and gold: VB, VB-LC and VB-ILC of the paper."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.errors import OptionError
from tiebreak.estimators import publishing
from tiebreak.estimators.base import BayesEstimator, Estimator, require_fitted
from tiebreak.inference import CrowdModel, FitState, Inputs, Parameters, rows_of, stages
from tiebreak.inference.calibration import MODES, Calibration
from tiebreak.inference.known import GoldWeight, weight_of_gold
from tiebreak.inference.stages import FitOptions, Fitted, Scored, Start
from tiebreak.inference.tasks import of_shares, with_log_prior
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.workers import (
    COMMUNITIES,
    SCALE,
    WorkerModel,
    has_subtypes,
    name_of,
    require_model,
)
from tiebreak.kernels.arrays import majority
from tiebreak.kernels.layout import Floats
from tiebreak.links import Links
from tiebreak.options import (
    AUTO,
    LinkOptions,
    MeanFieldOptions,
    SequenceOptions,
    check_common,
    require_word,
)

if TYPE_CHECKING:
    from tiebreak.data.sequences import Sequences, Spans
    from tiebreak.inference.sequencing import Candidate
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
    _may_find = (
        *("calibration_", "sequences_", "spans_", "transitions_", "sequence_model_"),
        *("sequence_choice_", "neighbours_", "link_strength_", "link_grid_", "link_report_"),
        *("link_errors_", "doubtful_links_", "uncertain_groups_"),
    )

    worker_model: WorkerModel = "confusion"
    gold_weight: GoldWeight = AUTO
    sequence_options: SequenceOptions | None = None
    calibrate: str = "auto"
    init: str | Floats = "majority"

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
        self._check()
        placed = None if sequences is None else tables.read_sequences(sequences)
        pulls = None if links is None else tables.read_links(links)
        network = pulls if pulls is not None and pulls.near else None
        about, ordered = None, placed if network is None else network
        if pairs:
            others = placed if features is None else features
            responses, about = self._as_pairs(responses, pairs, others)
        if placed is not None:
            if features is not None:
                raise OptionError("features-with-sequences")
            if constraints is not None:
                raise OptionError("constraints-beside-sequences")
            if has_subtypes(self.worker_model):
                raise OptionError("subtypes-with-sequences", worker_model=self.worker_model)
        if network is not None:
            if not (placed is features is constraints is about is None):
                raise OptionError("network-beside-others")
            pulls = None
        if ordered is not None:  # all of their tasks, answered or not
            if not isinstance(responses, Responses):
                responses = tables.read_responses(responses)
            responses = responses.with_tasks(ordered.tasks)
        inputs = self._read_inputs(responses, pulls, gold, features, constraints)
        inputs = inputs._replace(pairs=about)
        self.network_ = network
        if network is not None:
            inputs = inputs._replace(network=network.edges(inputs.responses.tasks))
        if placed is not None:
            from tiebreak.inference import sequencing

            how = self.sequence_options or SequenceOptions()
            given = inputs.responses, inputs.gold_codes, inputs.link_codes, how
            inputs = inputs._replace(sequences=sequencing.place(placed, *given))
        self.worker_model_ = SCALE if inputs.scale is not None else name_of(self.worker_model)
        self._communities = None
        fitted, scored = self._fit_inputs(inputs, start)
        publishing.publish(self, fitted, scored)
        has_collapsed = publishing.note_doubts(fitted, self.labels_.label, self.dependence)
        more = inputs.link_codes, inputs.gold_codes, inputs.sequences, inputs.network
        # On a scale two levels that are swapped mean nothing.
        if not has_collapsed and inputs.scale is None and all(each is None for each in more):
            from tiebreak.inference import near_modes

            how_far = fitted.state, inputs.responses, self._stopping, self.dependence
            near_modes.note_near_mode(fitted.plain, *how_far)
        if self.classifier_weight_ or about is not None:
            self.class_prior_ = self._crowd_model.states.mean(self._state.parameters[0])
        self._warn_unconverged(self.tol)
        return self

    def _check(self) -> None:
        """Refuse options that mean nothing or contradict each other."""
        check_common(self.get_params())
        if not (isinstance(self.worker_model, str) and self.worker_model == SCALE):
            require_model(self.worker_model)
        self._check_scale(self.worker_model)
        if isinstance(self.init, str):
            require_word("init", self.init, ("majority",), "an array of probabilities")
        if isinstance(self.init, Estimator):
            raise OptionError("start-not-init")
        if not isinstance(self.sequence_options, SequenceOptions | None):
            raise OptionError("no-sequence-options", value=self.sequence_options)
        if not isinstance(self.link_options, LinkOptions | None):
            raise OptionError("no-link-options", value=self.link_options)
        require_word("calibrate", self.calibrate, MODES)
        if isinstance(self.link_options, MeanFieldOptions) and has_subtypes(self.worker_model):
            raise OptionError("subtypes-need-exact-links", worker_model=self.worker_model)

    def _fit_inputs(
        self, inputs: Inputs, start: Any = None, q: Floats | None = None
    ) -> tuple[Fitted, Scored]:
        """Fit from an earlier model, from q, or else from `init`; keep where the fit ended."""
        crowd = inputs.responses
        plain: Parameters = ()
        weight = weight_of_gold(self.gold_weight, inputs)
        learnt = self._learn_prior(inputs, weight)
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
        problem = self._plain_problem(self.worker_model, rows, inputs)
        by_row = majority(problem.rows, problem.n_classes) if q is None else rows.mean(q)
        if self.worker_model_ == COMMUNITIES:
            if self._communities is None:
                from tiebreak.inference import communities

                self._communities, _ = communities.learn(problem, by_row, self._stopping)
            problem = problem._replace(workers=self._communities)
        states = problem.tasks.shares
        if learnt is not None:
            problem, by_row = with_log_prior(problem, learnt.log_prior), learnt.q
        state = FitState(q=problem.to_states(by_row))
        if plain:  # the same responses: what q adds to priors is known, and these may be others now
            former = start._crowd_model.states.prior, start._crowd_model.workers.prior
            ends = zip(problem.prior, start._state.parameters, former, strict=True)
            parameters = tuple(prior + (end - before) for prior, end, before in ends)
            state = state._replace(parameters=parameters)
        options = FitOptions(
            self._stopping,
            self.link_options,
            weight,
            self.calibrate,
            self.dependence,
            n_more=0.0 if learnt is None else 1.0,
        )
        begin = Start(state, q is None, is_warm, plain)
        fitted, scored = stages.fit(problem, inputs, rows, begin, options)
        alpha, *_, beta = fitted.state.parameters
        q = rows.to_tasks(fitted.state.q)
        self._crowd_model = CrowdModel(states, problem.workers)
        self._state = FitState(q, of_shares((alpha, beta), problem.tasks.shares, states))
        self._plain = of_shares(fitted.plain_parameters, problem.tasks.shares, states)
        return fitted, scored
