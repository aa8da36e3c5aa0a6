"""Variational Bayes with links and gold: VB, VB-LC and VB-ILC of the paper."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from tiebreak.errors import OptionError, note
from tiebreak.inference import (
    communities,
    doubts,
    honest,
    mean_field,
    model_choice,
    priors,
    response_patterns,
    spectral,
    vb,
)
from tiebreak.inference.calibration import DEPENDENCE, Calibration, Honesty
from tiebreak.inference.estimator import (
    Estimator,
    require_fitted,
    require_tolerance,
    start_from,
)
from tiebreak.inference.exact_links import fit as exact_links
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.inference.link_errors.suspect import (
    DoubtfulLinks,
    LinkErrors,
    errors_by_source,
    suspect_links,
)
from tiebreak.inference.model_choice import Tried
from tiebreak.inference.response_patterns import Patterns
from tiebreak.inference.results import Fit, GridPoint
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.inference.warm_start import WarmStart, q_from
from tiebreak.inference.worker_models import AUTO, crowd_model, require_model
from tiebreak.inference.worker_models.kinds import Kinds
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.threads import default_threads
from tiebreak.links import OnContradiction
from tiebreak.options import ExactLinkOptions, LinkOptions, MeanFieldOptions
from tiebreak.responses import Responses
from tiebreak.wording import counted

INITS = ("majority", "spectral")
CALIBRATIONS = ("auto", "votes", "none")
SHOWN_GROUPS = 5  # in a note

RENAMED = {  # arguments of earlier versions, and what to write now
    "link_inference": "link_options=tb.ExactLinkOptions() or tb.MeanFieldOptions()",
    "link_error": "link_options=tb.ExactLinkOptions(error=…)",
    "link_error_prior": "link_options=tb.ExactLinkOptions(error_prior=…)",
    "decode": "link_options=tb.ExactLinkOptions(decode=…)",
    "link_strength": "link_options=tb.MeanFieldOptions(strength=…)",
    "schedule": "link_options=tb.MeanFieldOptions(schedule=…)",
    "closure": "link_options=tb.MeanFieldOptions(closure=…)",
}


class VariationalBayes(Estimator):
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
        "communities": kinds whose priors are learnt. "auto": what fits of the first and of those
        with kinds or subtypes; `worker_model_` says which.
    trust
        Workers who are known to be good: how many right answers to tasks of each class each of
        them starts with, such as {"ann": 50}.
    link_options
        `ExactLinkOptions(…)` (the default): linked tasks are inferred jointly, and links without
        weight always hold, unless its `error` says that they may be wrong.
        `MeanFieldOptions(…)`: the paper's, where links pull and push with one strength.
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
        "majority"; "spectral", from moments of the votes (majority where they do not suffice, with
        a note that says why); or probabilities (n_tasks, n_classes) in the order of `tasks_`. To
        go on from a fitted model, give it to `fit` as `start`.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    accelerate
        Whether SQUAREM may extrapolate, so that fewer sweeps are needed; the bound never falls.
        Sweeps over links, and those of `tol=0`, are plain.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.
    random_state
        Seeds `init="spectral"`, which draws groups of workers; nothing else draws.

    Attributes
    ----------
    labels_, probabilities_
        The labels; (n_tasks, n_classes), in the order of `tasks_` and `classes_`.
    confusion_, class_prior_
        E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    bounds_, n_iter_, converged_
        The bound at the start of the last ascent and after each of its sweeps.
    violations_
        The links that the labels break, or None without links.
    doubtful_links_
        The soft links that are more likely wrong than right, most doubtful first, or None.
    link_report_
        How many components of linked tasks were settled exactly and how many approximately.
    uncertain_groups_
        Groups of linked tasks whose class another mode, nearly as likely, has otherwise: label one
        task of each.
    link_errors_
        Learnt error rates of links, by source, or None.
    calibration_
        How scores became probabilities: `dependence` and `multiplier`, or None.
    worker_model_, models_tried_
        The worker model of the fit; what "auto" tried, or None.
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

    link_strength_: float | None
    link_grid_: tuple[GridPoint, ...] | None
    link_report_: LinkReport | None
    link_errors_: LinkErrors | None
    doubtful_links_: DoubtfulLinks | None
    calibration_: Calibration | None
    uncertain_groups_: list[list[Hashable]]
    worker_model_: str
    models_tried_: tuple[Tried, ...] | None
    _warm_start: WarmStart
    _communities: Kinds | None

    supports_adaptive_selection = True

    def __new__(cls, **options: Any) -> Self:
        """Refuse arguments of earlier versions with what to write now."""
        _refuse_renamed(options)
        return super().__new__(cls)

    def __init__(
        self,
        *,
        class_prior: priors.ClassPrior = 1.0,
        confusion_prior: priors.ConfusionPrior = "diagonal",
        worker_model: str = "confusion",
        trust: priors.Trust | None = None,
        link_options: LinkOptions | None = None,
        calibrate: str | bool = "auto",
        dependence: float = DEPENDENCE,
        on_contradiction: OnContradiction = "error",
        init: str | Floats = "majority",
        tol: float = 1e-6,
        max_iter: int = 500,
        accelerate: bool = True,
        backend: str = "auto",
        n_threads: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.worker_model = worker_model
        self.trust = trust
        self.link_options = link_options
        self.calibrate = calibrate
        self.dependence = dependence
        self.on_contradiction = on_contradiction
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.backend = backend
        self.n_threads = n_threads
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        _refuse_renamed(params)
        return super().set_params(**params)

    @property
    def link_error(self) -> float | str | None:
        """How often links without weight are wrong, as the options say; None: never."""
        options = self.link_options
        return options.error if isinstance(options, ExactLinkOptions) else None

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Fit to responses and, if given, links and gold; `start` is a fitted model to go on from.

        The start may have been fitted to other responses: tasks and workers that it has not seen
        start as in a cold fit.
        """
        self._check_options()
        options = self.link_options or ExactLinkOptions()
        inputs = read_and_check_inputs(
            responses,
            links,
            gold,
            on_contradiction=self.on_contradiction,
            soft_links=options.is_soft,
            may_break=options.may_break,
        )
        crowd = inputs.responses
        warm = None if start is None else _warm_start_of(start)
        same = warm is not None and warm.is_for(crowd)
        whole = warm.tasks if warm is not None and same else _lay_out(crowd)
        self.worker_model_ = self.worker_model
        self.models_tried_ = None
        if warm is not None and same and self.worker_model == AUTO:
            self.worker_model_ = warm.worker_model  # chosen once for these responses
            self.models_tried_ = start.models_tried_
        self._communities = start._communities if same else None
        q = self._start_of_q(inputs, whole, start)
        patterns = Patterns(whole)
        if warm is None or not same or warm.has_patterns:
            patterns = _find_patterns(inputs, whole, q)
        by_pattern = inputs._replace(
            link_codes=patterns.links(inputs.link_codes),
            implied=patterns.implied(inputs.implied),
            gold_codes=patterns.gold(inputs.gold_codes),
        )
        q = None if q is None else patterns.to_patterns(q)
        is_given = q is not None and not (isinstance(self.init, str) and self.init == "spectral")
        if self.worker_model_ == AUTO:
            q = self._choose_model(patterns, inputs, by_pattern, q)
            is_given = False
        problem = self._problem(patterns, inputs)
        if self.worker_model_ == communities.NAME and self._communities is None:
            votes = vb.majority(problem.tasks, problem.n_classes) if q is None else q
            self._communities = communities.learn(problem, votes, self._stopping).workers
            problem = problem._replace(workers=self._communities)
        if q is not None:
            q = vb.to_states(problem, q, self.random_state)
        run, plain = self._plain(problem, q, by_pattern, warm if same else None, is_given=is_given)
        found = self._fit_tasks(problem, run, plain, by_pattern, options, is_warm=start is not None)
        self._warm_start = WarmStart(
            crowd,
            whole,
            plain,
            patterns.to_tasks(found.run.q),
            vb.added(problem, found.run.beliefs),
            self.worker_model_,
            patterns.pattern is not None,
        )
        self._publish_fit(inputs, by_pattern, problem, patterns, found)
        self._note_doubts(inputs, by_pattern, problem, plain, found.run)
        self._warn_unsettled(self.tol)
        return self

    def _check_options(self) -> None:
        require_tolerance(self.tol, self.max_iter)
        require_model(self.worker_model)
        if isinstance(self.init, str) and self.init not in INITS:
            raise OptionError.unknown("init", self.init, (*INITS, "an array of probabilities"))
        if isinstance(self.init, Estimator):
            raise OptionError("To go on from a fitted model, write fit(…, start=model), not init=.")
        if not isinstance(self.link_options, LinkOptions | None):
            raise OptionError(
                "link_options must be tb.ExactLinkOptions(…), tb.MeanFieldOptions(…) or None; "
                f"got {self.link_options!r}."
            )
        if isinstance(self.calibrate, bool):
            note(f"calibrate={self.calibrate} is now calibrate={self._honesty.mode!r}.")
        elif self.calibrate not in CALIBRATIONS:
            raise OptionError.unknown("calibrate", self.calibrate, CALIBRATIONS)
        if not 0.0 <= self.dependence <= 1.0:
            raise OptionError(
                f"dependence, the share of errors in common, lies between 0 and 1; "
                f"got {self.dependence!r}."
            )
        if isinstance(self.link_options, MeanFieldOptions) and "subtypes" in self.worker_model:
            raise OptionError(
                f"worker_model={self.worker_model!r} needs exact links: tb.ExactLinkOptions()."
            )

    def _start_of_q(self, inputs: Inputs, tasks: ByTask, start: Any) -> Floats | None:
        """Return where q starts; None: at the votes."""
        crowd = inputs.responses
        if start is not None:
            require_fitted(start)
            end = getattr(start, "_warm_start", None)
            q = start.probabilities_ if end is None else end.class_q
            if end is not None and end.is_for(crowd):
                return np.asarray(end.q if end.worker_model == self.worker_model_ else q)
            return q_from(start.responses_, q, crowd, vb.majority(tasks, crowd.n_classes))
        if not isinstance(self.init, str):
            return start_from(self.init, crowd)
        if self.init == "spectral":
            return spectral.start(self._problem(Patterns(tasks), inputs), self.random_state)
        return None

    def _problem(self, patterns: Patterns, inputs: Inputs) -> Problem:
        """Set up plain VB: no links, nothing known."""
        crowd = inputs.responses
        n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
        problem = Problem(
            patterns.tasks,
            *crowd_model(
                model_choice.PLAIN if self.worker_model_ == AUTO else self.worker_model_,
                self.confusion_prior,
                priors.class_prior(self.class_prior, crowd.n_classes),
                crowd,
                self.trust,
            ),
            choose_backend(self.backend, len(patterns.tasks.code), n_linked),
            self.n_threads or default_threads(),
            copies=patterns.copies,
        )
        if self.worker_model_ == communities.NAME and self._communities is not None:
            return problem._replace(workers=self._communities)
        return problem

    def _choose_model(
        self, patterns: Patterns, inputs: Inputs, by_pattern: Inputs, q: Floats | None
    ) -> Floats:
        """Choose a worker model on plain responses; return where its run ended."""

        def problem_of(name: str) -> Problem:
            self.worker_model_ = name
            return self._problem(patterns, inputs)

        found = model_choice.choose(
            problem_of,
            q,
            by_pattern.gold_codes,
            self._stopping,
            members=model_choice.members_for(inputs.responses, self.link_options),
            first_seed=self.random_state or 0,
            dependence=self.dependence,
        )
        self.worker_model_ = found.worker_model
        self.models_tried_ = found.tried
        return found.q

    @property
    def _stopping(self) -> Stopping:
        return Stopping(self.tol, self.max_iter, self.accelerate)

    @property
    def _honesty(self) -> Honesty:
        """What the user wants of probabilities; True and False are older words for two modes."""
        older = {True: "auto", False: "none"}
        mode = older[self.calibrate] if isinstance(self.calibrate, bool) else self.calibrate
        return Honesty(mode, self.dependence)

    def _plain(
        self,
        problem: Problem,
        q: Floats | None,
        inputs: Inputs,
        warm: WarmStart | None,
        *,
        is_given: bool,
    ) -> tuple[Run, Beliefs]:
        """Fit plain VB: links and gold start from what it finds, as in the paper.

        Probabilities given as `init` are taken as they are where links or gold follow, and so is
        the end of an earlier model, with what plain VB believed there where it saw these responses.

        Returns
        -------
        Where links and gold start, and the beliefs of plain VB.
        """
        is_alone = inputs.link_codes is None and inputs.gold_codes is None
        if q is None:
            votes = vb.majority(problem.tasks, problem.n_classes)
            q = vb.to_states(problem, votes, self.random_state)
        if is_given and not is_alone and warm is not None:
            implied = warm.implied(problem, self.worker_model_)
            return Run(q, implied, [], 0, converged=True), warm.plain
        if is_given and not is_alone and not isinstance(self.init, str):
            implied = vb.implied_beliefs(problem, q)
            return Run(q, implied, [], 0, converged=True), implied
        run = vb.ascend(problem, q, **self._stopping._asdict())
        if is_given and not is_alone:  # a model of other responses: its q, and plain VB from there
            return Run(q, vb.implied_beliefs(problem, q), [], 0, converged=True), run.beliefs
        return run, run.beliefs

    def _fit_tasks(
        self,
        problem: Problem,
        run: Run,
        plain: Beliefs,
        inputs: Inputs,
        options: LinkOptions,
        *,
        is_warm: bool,
    ) -> Fit:
        gold = inputs.gold_codes
        honesty = self._honesty
        links = inputs.link_codes
        implied = inputs.implied
        if links is not None and implied is not None and problem.n_classes > 1:
            if isinstance(options, MeanFieldOptions):
                return mean_field.fit(
                    problem, run, links, implied, gold, options, self._stopping, honesty
                )
            return exact_links.fit(
                problem,
                run,
                plain,
                links,
                implied,
                gold,
                options,
                self._stopping,
                honesty,
                is_warm=is_warm,
                is_given=not isinstance(self.init, str),
            )
        if gold is not None:
            return exact_links.fit_gold(
                problem,
                run,
                plain,
                gold,
                self._stopping,
                honesty,
                is_warm=is_warm or not isinstance(self.init, str),
            )
        return exact_links.fit_alone(problem, run, honesty)

    def _publish_fit(
        self, inputs: Inputs, by_pattern: Inputs, problem: Problem, patterns: Patterns, found: Fit
    ) -> None:
        """Name what was found by the caller's ids."""
        run = found.run
        # Labels come from what the model believes: scaling must not break ties otherwise.
        label, _ = problem.backend.likeliest(vb.class_probabilities(problem, run.q))
        if found.decoded is not None:
            task, decoded = found.decoded
            label[task] = decoded
        top = np.take_along_axis(found.q, label[:, None], axis=1)[:, 0]
        self.class_prior_ = problem.states.mean(run.beliefs.alpha)
        self.confusion_ = vb.confusion(problem, run.beliefs)
        self.bounds_ = run.bounds
        self.n_iter_ = run.n_sweeps
        self.converged_ = run.converged
        self.calibration_ = found.calibration
        self.link_strength_ = found.link_strength
        self.link_grid_ = found.link_grid
        self.link_report_ = found.link_report
        self.doubtful_links_ = None
        if found.wrong is not None and by_pattern.link_codes is not None:
            self.doubtful_links_ = suspect_links(inputs.links, by_pattern.link_codes, found.wrong)
        self.uncertain_groups_ = [
            [inputs.responses.tasks[int(task)] for task in np.flatnonzero(np.isin(of_task, group))]
            for of_task in (patterns.to_tasks(np.arange(len(run.q))),)
            for group in found.uncertain
        ]
        self.link_errors_ = None
        if found.rates is not None:
            self.link_errors_ = errors_by_source(inputs.links, found.rates)
        self._publish(inputs, *(patterns.to_tasks(each) for each in (found.q, label, top)))
        if found.decoded is not None:
            self._warn_broken()
        self._warn_uncertain()

    def _warn_uncertain(self) -> None:
        """Name groups of linked tasks that could well have another class."""
        groups = self.uncertain_groups_
        if not groups:
            return
        tasks = ", ".join(repr(group[0]) for group in groups[:SHOWN_GROUPS])
        more = f" and {len(groups) - SHOWN_GROUPS:,} more" if len(groups) > SHOWN_GROUPS else ""
        n_tasks = sum(map(len, groups))
        note(
            f"The class of {counted(len(groups), 'group')} of linked tasks ({n_tasks:,} tasks) is "
            "uncertain: another way to name the classes fits nearly as well. Label one task of "
            f"each: {tasks}{more}."
        )

    def _note_doubts(
        self, inputs: Inputs, by_pattern: Inputs, problem: Problem, plain: Beliefs, run: Run
    ) -> None:
        crowd = inputs.responses
        by_class = vb.class_probabilities(problem, run.q)
        if not doubts.note_collapse(crowd, np.average(by_class, axis=0, weights=problem.copies)):
            doubts.note_missing_classes(crowd, self.labels_.label)
        gold = by_pattern.gold_codes
        if gold is not None and inputs.gold_codes is not None:
            expected = Calibration(self.dependence)
            scores = honest.scaled_scores(problem, plain, expected, gold.task)
            doubts.note_gold_against_crowd(gold, softmax(scores))
            doubts.note_workers_below_chance(crowd, inputs.gold_codes)

    def _warn_broken(self) -> None:
        """Say so where joint decoding found no labelling that breaks no hard link."""
        if not self.violations_ or self.on_contradiction == "drop":
            return
        hard = self.violations_.weight is None or bool(np.isnan(self.violations_.weight).any())
        if hard and self.link_error is None:
            note(f"No labelling was found that breaks no link: {len(self.violations_)} are broken.")


def _refuse_renamed(options: dict[str, Any]) -> None:
    for name in options:
        if name in RENAMED:
            raise OptionError(f"{name} is now part of the options of links: {RENAMED[name]}.")


def _warm_start_of(start: Any) -> WarmStart | None:
    """Return where a fitted model ended; None where it is of another kind."""
    require_fitted(start)
    return getattr(start, "_warm_start", None)


def _lay_out(crowd: Responses) -> ByTask:
    return vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, None))


def _find_patterns(inputs: Inputs, tasks: ByTask, q: Floats | None) -> Patterns:
    crowd = inputs.responses
    single = response_patterns.must_stay_single(crowd.n_tasks, inputs.link_codes, inputs.gold_codes)
    return response_patterns.find_patterns(tasks, crowd.n_classes, single, q)
