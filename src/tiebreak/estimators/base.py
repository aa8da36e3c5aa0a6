"""What every estimator does alike: store its options, refuse bad ones, publish its results."""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.frames import as_html
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.data.pairs import pair_tasks
from tiebreak.data.scale import Scale, ScaleOption, read_scale
from tiebreak.errors import ConvergenceWarning, NotFittedError, OptionError, sentence, warn
from tiebreak.inference import (
    CrowdFacts,
    Independent,
    Inputs,
    Known,
    Problem,
    Rows,
    Stopping,
    Workers,
    read_and_check_inputs,
    rows_of,
)
from tiebreak.inference.calibration import DEPENDENCE, Calibration
from tiebreak.inference.dirichlet import ClassPriorOption, ConfusionPrior, Trust
from tiebreak.inference.workers import PLAIN, SCALE, Channels, WorkerModel, named
from tiebreak.inference.workers.turned import Turned
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Constraints, Links, OnContradiction
from tiebreak.links.graph import violated
from tiebreak.options import AUTO, PROCESSOR, ExactLinkOptions, LinkOptions, MeanFieldOptions
from tiebreak.wording import counted

OF_CROWDKIT = {  # what its users look for, and our name
    "probas_": "probabilities_, with rows tasks_ and columns classes_",
    "errors_": "confusion_, [worker, truth, answer]",
    "priors_": "class_prior_",
    "skills_": "workers_table()",
    "fit_predict_proba": "fit(…).probabilities_",
}

if TYPE_CHECKING:
    from tiebreak.data.pairs import PairTasks
    from tiebreak.decide import Decisions
    from tiebreak.inference.tasks.classifier import (
        ClassifierGain,
        ClassifierPrior,
        Learnt,
        TaskClassifier,
    )
    from tiebreak.inference.tasks.coupling.constrain import ConstraintReport, DoubtfulConstraints
    from tiebreak.inference.tasks.coupling.link_errors import DoubtfulLinks
    from tiebreak.inference.tasks.ranked import PairPrior
    from tiebreak.inference.worker_summary import WorkersTable
    from tiebreak.life.update import Carried
    from tiebreak.report.explain import Explanation
    from tiebreak.report.measure import Plots
    from tiebreak.tables import Features


class Estimator:
    """Base of the estimators: parameters by keyword, results that end in an underscore.

    Follows scikit-learn's habits (its `clone` works) without importing it.
    """

    labels_: Labels
    probabilities_: Floats
    tasks_: Ids
    workers_: Ids
    classes_: Ids
    class_prior_: Floats
    confusion_: Floats
    bounds_: list[float]
    n_iter_: int
    converged_: bool
    violations_: Any  # Links; Constraints where some were given, with broken links among them
    responses_: Responses
    links_: Links | None
    constraints_: Constraints | None = None
    constraint_report_: ConstraintReport | None = None
    doubtful_constraints_: DoubtfulConstraints | None = None
    own_probabilities_: Floats | None = None
    gold_: Gold | None
    link_options: LinkOptions | None = None
    on_contradiction: OnContradiction = "error"
    scale_: Scale | None = None
    supports_adaptive_selection = False  # whether workers are modelled well enough to ask by that
    _may_find: ClassVar[tuple[str, ...]] = ()  # what a fit may find beside labels and workers

    ran_on_: str = PROCESSOR
    calibration_: Calibration | None = None
    doubtful_links_: DoubtfulLinks | None = None
    classifier_: TaskClassifier | None = None
    classifier_weight_: float | None = None
    classifier_gain_: ClassifierGain | None = None
    classifier_probabilities_: Floats | None = None
    pairs_: PairTasks | None = None
    strengths_: Floats | None = None
    pair_prior_: Floats | None = None
    _features: Features | None = None  # of a fit in this process, for fits of the same again
    _carried: Carried | None = None  # where responses were dropped and counts stay
    _stream_notes: Mapping[str, Any] = MappingProxyType({})  # of the last stream that saved it
    _batches: tuple[str, ...] = ()  # what was given so far, by `digest`; empty: the fit alone

    @property
    def scores_(self) -> Floats | None:
        """Where each task lies on the scale, (n_tasks,), as expected; None without a scale."""
        scores = self.labels_.scores
        return None if scores is None else scores.mean

    @property
    def score_intervals_(self) -> Floats | None:
        """Where each task lies with 90 %, (n_tasks, 2); None without a scale."""
        scores = self.labels_.scores
        return None if scores is None else np.column_stack([scores.low, scores.high])

    @property
    def link_error(self) -> float | str | None:
        """How often links without weight are wrong, as the options say; None: never."""
        options = self.link_options
        return options.error if isinstance(options, ExactLinkOptions) else None

    @property
    def links_may_err(self) -> bool:
        """Whether links without weight count as fallible."""
        return self.link_error is not None

    def fit(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        constraints: Any = None,
    ) -> Self:
        """Fit to responses and, if given, links and gold; `start` is a fitted model to go on from.

        Labels keep `constraints` (see `Constraints`), and probabilities are conditioned on them.
        The start may have been fitted to other responses: tasks and workers that it has not seen
        start as in a cold fit.
        """
        raise TypeError(f"{type(self).__name__} is a base; use one of the estimators.")

    @property
    def plot(self) -> Plots:
        """Pictures of the fitted model: `.workers()`, `.confusion(worker)`, `.bound()` …"""
        from tiebreak.report.measure import Plots

        return Plots(self)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write what the fit found as one HTML page; see `tiebreak.report.write`.

        Such as `truth=`, known labels to compare with, `texts=`, what tasks look like, and
        `json_path=`, where to write the same numbers as JSON.
        """
        from tiebreak.report.write import write

        return write(self, path, **options)

    def explain(self, task: Hashable) -> Explanation:
        """Return why a task has its label: votes, what each counts, links that moved it.

        Print it for words; notebooks show it with a chart.
        """
        from tiebreak.report.explain import explain

        return explain(self, task)

    def fit_predict(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        **more: Any,
    ) -> Labels:
        """Fit and return the labels; `more` is what else `fit` takes, such as features."""
        return self.fit(responses, links=links, gold=gold, start=start, **more).labels_

    def workers_table(self, *, level: float = 0.9) -> WorkersTable:
        """Return accuracy, confusions, information and a verdict for each worker, with intervals.

        Intervals hold with probability `level`. See `WorkersTable`.
        """
        from tiebreak.inference.worker_summary import workers_table

        return workers_table(self, level=level)

    def decide(self, cost_matrix: Any = None, *, abstain_rate: float | None = None) -> Decisions:
        """Return the decision of least expected cost for each task: see `tiebreak.decide`."""
        from tiebreak.decide import decide

        return decide(self, cost_matrix, abstain_rate=abstain_rate)

    def save(self, target: Any, *, keep: str = "responses") -> None:
        """Write the fitted model into a folder that `tiebreak.load` reads: see docs/life.md.

        With `keep="counts"` responses are left out; what workers are believed to be stays.
        """
        from tiebreak.life import model_file

        model_file.save(self, target, keep)

    def predict(
        self,
        responses: Any = None,
        *,
        links: Any = None,
        features: Any = None,
        classifier: Any = None,
        constraints: Any = None,
    ) -> Labels:
        """Label new tasks by workers as they are known; the model stays as it is.

        Workers never seen count as the prior says. `links` and `constraints` tie new tasks to each
        other and to tasks of the model. With `features` the classifier of a model that was fitted
        with features is the class prior of each task, so that no responses are needed. A model that
        was saved keeps the default classifiers alone; give another one again as `classifier`.
        """
        from tiebreak.life.predict import predict

        return predict(self, responses, links, features, classifier, constraints)

    def update(
        self,
        responses: Any = None,
        *,
        links: Any = None,
        gold: Any = None,
        features: Any = None,
        forget: float = 1.0,
        again: bool = False,
        constraints: Any = None,
    ) -> Self:
        """Go on with more responses, links, gold and constraints, on old tasks and new ones.

        Where responses are kept, this ends where a fit of everything together does that starts
        from here. With `forget` below 1 what workers did counts that much less, update by update;
        such a model keeps counts in the place of responses.

        A model that was fitted with features needs those of all tasks, old and new.

        A model of counts cannot tell single responses that it is given twice; it knows whole
        batches again and leaves them out, with a note. `again=True` counts them once more.
        """
        from tiebreak.life.update import update

        update(self, responses, links, gold, forget, again, features, constraints)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        for name, value in params.items():
            if name not in self._parameters():
                raise OptionError.unknown("parameter", name, self._parameters())
            setattr(self, name, value)
        return self

    @classmethod
    def _parameters(cls) -> tuple[str, ...]:
        return tuple(p for p in inspect.signature(cls.__init__).parameters if p != "self")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        if "labels_" not in vars(self):
            return as_html(f"{self!r}, not fitted", (), ())
        how = "converged" if self.converged_ else "not converged"
        title = f"{self!r}, {how} after {counted(self.n_iter_, 'iteration')}"
        return as_html(title, (), ()) + self.labels_._repr_html_()

    def __getattr__(self, name: str) -> Any:
        meant = OF_CROWDKIT.get(name)
        is_result = name.endswith("_") and not name.startswith("_") and meant is None
        if is_result and "labels_" not in vars(self):
            raise NotFittedError("no-result-yet", name=type(self).__name__, result=name)
        # Python adds the name that may have been meant: labels_ for label_.
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        message += f"; here it is {meant}" if meant else ""
        raise AttributeError(message, name=name, obj=self)

    def _read_inputs(
        self, responses: Any, links: Any, gold: Any, features: Any = None, constraints: Any = None
    ) -> Inputs:
        """Read and check what is to be fitted, as the options of links say."""
        options = self.link_options or ExactLinkOptions()
        return read_and_check_inputs(
            responses,
            links,
            gold,
            features=features,
            on_contradiction=self.on_contradiction,
            soft_links=options.is_soft,
            may_break=options.may_break,
            scale=vars(self).get("scale"),
            constraints=constraints,
        )

    def _publish(
        self,
        inputs: Inputs,
        q: Floats,
        label: Codes | None = None,
        found: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the inputs, and name the results by the caller's ids."""
        responses, links, rules = inputs.responses, inputs.links, inputs.rules
        self._carried = None
        self._stream_notes = {}
        self._batches = ()
        self.responses_, self.links_, self.gold_ = responses, links, inputs.gold
        self.scale_ = inputs.scale
        self.tasks_, self.workers_ = responses.tasks, responses.workers
        self.classes_ = responses.classes
        self.probabilities_ = q
        values = None if inputs.scale is None else inputs.scale.values
        self.labels_ = Labels.from_probabilities(
            self.tasks_, self.classes_, q, label=label, frame=responses.frame, values=values
        )
        self.violations_ = None
        if links is not None:
            codes, of_tasks = inputs.given_codes, self.labels_.label
            nothing = np.empty(0, dtype=np.int64)
            broken = nothing if codes is None else codes.row[violated(of_tasks, codes)]
            self.violations_ = links.select(broken)
        self.constraints_ = None
        if rules is not None:
            self.constraints_ = rules.table
            broken_rules = rules.table.select(rules.broken(self.labels_.label))
            if self.violations_ is not None:
                broken_rules = broken_rules + Constraints.from_links(self.violations_)
            self.violations_ = broken_rules
        if found is not None:
            of_constraints = "constraint_report_", "doubtful_constraints_", "own_probabilities_"
            for name in (*of_constraints, *self._may_find):
                setattr(self, name, found.get(name))

    def _warn_unconverged(self, tol: float) -> None:
        """Say that the fit has not converged, unless the caller asked for the number of sweeps."""
        if not self.converged_ and tol > 0.0:
            warn(sentence("not-converged", {"n": self.n_iter_}), ConvergenceWarning)


@dataclass(kw_only=True, eq=False, repr=False)
class BayesEstimator(Estimator):
    """Base of the estimators that begin with plain VB: what their common options set up."""

    class_prior: ClassPriorOption = 1.0
    confusion_prior: ConfusionPrior = "diagonal"
    task_model: ClassifierPrior | None = None
    trust: Trust | None = None
    scale: ScaleOption = None
    dependence: float = DEPENDENCE
    link_options: LinkOptions | None = None
    on_contradiction: OnContradiction = "error"
    tol: float = 1e-6
    max_iter: int = 500
    accelerate: bool = True
    backend: str = "auto"
    n_threads: int | None = None

    @property
    def _stopping(self) -> Stopping:
        return Stopping(self.tol, self.max_iter, self.accelerate)

    def _check_scale(self, worker_model: object = PLAIN) -> None:
        """Refuse what a scale has no place for, and a worker model that lacks its scale."""
        if self.scale is None:
            if worker_model == SCALE:
                raise OptionError("scale-without-levels")
            return
        if worker_model not in (PLAIN, SCALE):
            raise OptionError("scale-and-model", worker_model=worker_model)
        if not (isinstance(self.confusion_prior, str) and self.confusion_prior == "diagonal"):
            raise OptionError("scale-and-prior")
        if not (isinstance(self.scale, str) and self.scale == AUTO):
            read_scale(self.scale)

    def _as_pairs(self, responses: Any, pairs: Any, others: Any) -> tuple[Responses, PairTasks]:
        """Return verdicts on pairs as responses; pairs of an earlier fit are of its responses."""
        if others is not None:
            raise OptionError("pairs-beside-others")
        for name, usual in (("scale", None), ("worker_model", PLAIN), ("link_options", None)):
            given = getattr(self, name, usual)
            if given != usual and not isinstance(given, ExactLinkOptions):
                raise OptionError("option-without-pairs", name=name, value=given)
        if isinstance(pairs, bool):
            from tiebreak.tables.pairs import read_pairs

            return pair_tasks(read_pairs(responses))
        return responses, pairs

    def _plain_problem(self, worker_model: WorkerModel, rows: Rows, inputs: Inputs) -> Problem:
        """Set up plain VB: no links, nothing known. On a scale every worker reads that."""
        if inputs.scale is not None:
            worker_model = Channels(values=inputs.scale.values)
        remote, pairs = inputs.remote, inputs.pairs
        crowd = CrowdFacts.of_responses(
            inputs.responses if pairs is None else pairs.by_judge(inputs.responses),
            self.confusion_prior,
            self.class_prior,
            self.trust,
            None if remote is None else remote.answers,
        )
        states, workers = named(worker_model).bind(crowd)
        if pairs is not None:
            workers = Turned(workers, *pairs.seats(inputs.responses.workers))
        return problem_on(self, inputs, rows, Independent(states), workers)

    def _learn_prior(
        self, inputs: Inputs, weight: Floats | None = None
    ) -> Learnt | PairPrior | None:
        """Learn a class prior of each task by plain VB: from its features, or from pairs of items.

        None: there are neither, or the classifier on features is dropped. `weight` is how often
        known tasks count.
        """
        self.classifier_ = self.classifier_probabilities_ = None
        self.classifier_weight_ = self.classifier_gain_ = None
        self.pairs_, self.strengths_, self.pair_prior_ = inputs.pairs, None, None
        self._features = features = inputs.features
        prior, pairs = self.task_model, inputs.pairs
        if prior is None and features is None and pairs is None:
            return None
        from tiebreak.inference.tasks import classifier, ranked

        if not isinstance(prior, classifier.ClassifierPrior | None):
            raise OptionError("no-task-model", value=prior)
        if prior is not None and features is None:
            raise OptionError("task-model-without-features")
        if features is not None and isinstance(self.link_options, MeanFieldOptions):
            raise OptionError("features-need-exact-links")
        rows = rows_of(inputs, alone=True)
        plain, known = self._plain_problem(PLAIN, rows, inputs), Known.of(rows.gold, weight)
        crowd = inputs.responses
        if features is None:
            assert pairs is not None  # one of the two is
            of_pairs = ranked.learn(pairs, plain, known, crowd.tasks)
            self.strengths_, self.pair_prior_ = of_pairs.strengths, np.exp(of_pairs.log_prior)
            return of_pairs
        given = features, plain, known, crowd, self.dependence
        learnt = classifier.learn(prior or classifier.ClassifierPrior(), *given)
        self.classifier_, self.classifier_probabilities_ = learnt.classifier, learnt.probabilities
        self.classifier_weight_, self.classifier_gain_ = learnt.weight, learnt.gain
        return learnt if learnt.weight else None


def problem_on(
    model: Any, inputs: Inputs, rows: Rows, tasks: Independent, workers: Workers
) -> Problem:
    """Return a problem on the backend that an estimator's options choose."""
    choose = choose_backend if inputs.remote is None else inputs.remote.backend
    n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
    if inputs.sequences is not None:
        n_linked += len(inputs.sequences.codes.row)
    if inputs.network is not None:
        n_linked += 2 * len(inputs.network[0])
    return Problem(
        rows.laid,
        tasks,
        workers,
        choose(model.backend, len(rows.laid.code), n_linked),
        model.n_threads or default_threads(),
        copies=rows.copies,
    )


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def refuse_links(estimator: Estimator, links: Any) -> None:
    """Say which estimator can use links."""
    if links is not None:
        raise OptionError("no-links", estimator=type(estimator).__name__)


def require_fitted(start: Any) -> None:
    """Refuse a start that is not a fitted model."""
    if not isinstance(start, Estimator):
        inner = isinstance(getattr(start, "model", None), Estimator)
        hint = "Give its model." if inner else "Probabilities to start from are given as init=."
        raise OptionError("start-no-model", given=type(start).__name__, hint=hint)
    if "probabilities_" not in vars(start):
        raise NotFittedError("start-not-fitted")
