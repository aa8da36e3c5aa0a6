"""Log opinion pool: the words of workers, weighed by what gold says of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from tiebreak.errors import GoldError, note
from tiebreak.gold import GoldCodes
from tiebreak.inference import dirichlet, opinion_weights, publishing, stages, vb
from tiebreak.inference.calibration import DEPENDENCE
from tiebreak.inference.estimator import (
    BayesEstimator,
    require_exact_links,
    start_from_model,
)
from tiebreak.inference.exact_links import from_scores
from tiebreak.inference.exact_links.from_scores import ClassScores
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.opinion_weights import INTERVAL, LEAST_TO_CHOOSE, Opinion, Terms
from tiebreak.inference.problem import Fit
from tiebreak.inference.publishing import Fitted
from tiebreak.inference.vb import Problem, Run
from tiebreak.inference.worker_models import PLAIN
from tiebreak.kernels.layout import Floats
from tiebreak.links import OnContradiction
from tiebreak.options import ExactLinkOptions, LinkOptions, check_common
from tiebreak.wording import counted


class LogOpinionPool(BayesEstimator):
    """Weigh workers by gold: for LLM judges and others who err together.

    Plain VB says what responses mean; how much that counts, and how much each worker's own word
    counts beside it, is learnt from known labels: one weight per worker, which may be 0 or
    negative, and one offset per class, by log-loss with a ridge that cross-validation on gold
    chooses: [eq:opinion-pool]. Links join the probabilities as in `VariationalBayes`. Needs gold,
    from some 25 labels on; without it errors that workers share cannot be seen.

    Parameters
    ----------
    class_prior, confusion_prior, trust
        Of plain VB, as in `VariationalBayes`.
    dependence
        How much the errors of workers on one task are expected to be shared, 0 to 1: what weights
        are before gold. 0.35 suits people, 0.5 LLM judges.
    link_options, on_contradiction
        As in `VariationalBayes`; links are inferred exactly.
    tol, max_iter, accelerate, backend, n_threads
        Of plain VB, as in `VariationalBayes`.
    random_state
        Deals gold into the folds of cross-validation.

    Attributes
    ----------
    labels_, probabilities_
        The labels; (n_tasks, n_classes), in the order of `tasks_` and `classes_`.
    weights_, weight_intervals_
        (n_workers,) how much a worker's word counts, the share of VB's term and the vote that gold
        adds; (n_workers, 2) where it lies with 95 %. 1 is a full word, as if workers erred apart.
    offsets_, ridge_
        (n_classes,) what speaks for each class before any response; the penalty that was chosen.
    confusion_, class_prior_
        As plain VB has them: from responses alone.
    violations_, doubtful_links_, link_report_
        As in `VariationalBayes`.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(300, 6, 2, responses_per_task=6, shared=0.5, random_state=0)
    >>> known = dict(list(crowd.gold.to_dict().items())[:50])
    >>> pool = tb.LogOpinionPool().fit(crowd.responses, gold=known)
    >>> pool.weights_.shape, bool((pool.weights_ < 1.0).all())
    ((6,), True)
    """

    weights_: Floats
    weight_intervals_: Floats
    offsets_: Floats
    ridge_: float
    link_report_: LinkReport | None
    uncertain_groups_: list[list[Hashable]]
    _opinion: Opinion

    def __init__(
        self,
        *,
        class_prior: dirichlet.ClassPriorOption = 1.0,
        confusion_prior: dirichlet.ConfusionPrior = "diagonal",
        trust: dirichlet.Trust | None = None,
        dependence: float = DEPENDENCE,
        link_options: LinkOptions | None = None,
        on_contradiction: OnContradiction = "error",
        tol: float = 1e-6,
        max_iter: int = 500,
        accelerate: bool = True,
        backend: str = "auto",
        n_threads: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.trust = trust
        self.dependence = dependence
        self.link_options = link_options
        self.on_contradiction = on_contradiction
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.backend = backend
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Fit to responses and gold and, if given, links; plain VB starts where `start` ended."""
        check_common(self.get_params())
        options = require_exact_links(self.link_options, type(self).__name__)
        inputs = self._read_inputs(responses, links, gold)
        _require_gold(inputs)
        _note_little_gold(inputs)
        whole = stages.lay_out(inputs.responses)
        q = None if start is None else start_from_model(start, inputs.responses, whole)
        patterns = stages.patterns_of(inputs, whole, q)
        by_pattern = stages.to_patterns(inputs, patterns)
        problem = self._plain_problem(PLAIN, patterns, inputs)
        q = vb.majority(problem.tasks, problem.n_classes) if q is None else patterns.to_patterns(q)
        run = vb.ascend(problem, q, **self._stopping._asdict())
        terms = opinion_weights.make_terms(problem, run.beliefs, self.dependence)
        opinion = opinion_weights.learn(terms, _require_gold(by_pattern), self.random_state)
        found = self._infer(problem, run, terms, opinion, by_pattern, options)
        fitted = Fitted(inputs, by_pattern, problem, patterns, run.beliefs, found)
        self._publish_weights(terms, opinion)
        self._publish_fit(fitted)
        self._warn_unsettled(self.tol)
        return self

    def _infer(
        self,
        problem: Problem,
        run: Run,
        terms: Terms,
        opinion: Opinion,
        inputs: Inputs,
        options: ExactLinkOptions,
    ) -> Fit:
        scores = ClassScores(terms.scores(opinion, problem.backend), opinion.offset)
        links = inputs.link_codes
        implied = inputs.implied
        gold = inputs.gold_codes
        if links is None or implied is None or problem.n_classes < 2:
            return from_scores.infer_alone(run, scores, gold)
        given = (links, implied, gold, options, self._stopping)
        return from_scores.infer_linked(problem, run, scores, *given)

    def _publish_weights(self, terms: Terms, opinion: Opinion) -> None:
        scale = terms.scale_of_workers()
        self.weights_ = opinion.multiplier * scale + opinion.extra
        variance = (
            scale**2 * opinion.multiplier_variance
            + 2.0 * scale * opinion.covariance
            + opinion.extra_variance
        )
        half = INTERVAL * np.sqrt(np.maximum(variance, 0.0))
        self.weight_intervals_ = np.column_stack([self.weights_ - half, self.weights_ + half])
        self._opinion = opinion
        self.offsets_ = opinion.offset
        self.ridge_ = opinion.ridge

    def _publish_fit(self, fitted: Fitted) -> None:
        found = fitted.found
        run = found.run
        self.class_prior_ = fitted.problem.states.mean(run.beliefs.alpha)
        self.confusion_ = vb.confusion(fitted.problem, run.beliefs)
        self.bounds_ = run.bounds
        self.n_iter_ = run.n_sweeps
        self.converged_ = run.converged
        self.link_report_ = found.link_report
        self.doubtful_links_ = publishing.doubtful_links(fitted)
        self.uncertain_groups_ = []
        self._publish(fitted.inputs, *publishing.label_tasks(fitted))
        may_break = self.on_contradiction == "drop" or self.link_error is not None
        if found.decoded is not None and not may_break:
            publishing.note_broken(self.violations_)
        publishing.note_doubts(fitted, self.labels_, self.dependence)


def _require_gold(inputs: Inputs) -> GoldCodes:
    """Return the known tasks; refuse a fit without any."""
    if inputs.gold_codes is None:
        raise GoldError(
            "LogOpinionPool learns weights from gold, and there is none. Give gold= (some 50 "
            "known labels do), or use VariationalBayes."
        )
    return inputs.gold_codes


def _note_little_gold(inputs: Inputs) -> None:
    """Say so where gold is too little to learn from."""
    gold = _require_gold(inputs)
    crowd = inputs.responses
    seen = np.unique(gold.label)
    if len(seen) == 1 and crowd.n_classes > 1:
        note(
            f"All gold is {crowd.classes[int(seen[0])]!r}: nothing can be learnt of workers from "
            "one class, and their weights stay as expected. Label tasks of other classes too."
        )
    elif len(gold.task) < LEAST_TO_CHOOSE:
        note(
            f"With {counted(len(gold.task), 'gold label')} the weights of workers stay near what "
            "is expected. Some 50 labels show who errs with whom."
        )
