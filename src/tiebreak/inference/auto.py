"""Auto: methods pooled by how well they predict gold."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from tiebreak.errors import InputNote, note
from tiebreak.gold import GoldCodes
from tiebreak.inference import (
    calibration,
    comparison,
    dirichlet,
    gold_weights,
    model_choice,
    opinion_weights,
    publishing,
    stacking,
    stages,
    vb,
)
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.calibration import DEPENDENCE, Calibration, Honesty
from tiebreak.inference.comparison import (
    BACKED,
    BEST,
    LEAST_GOLD,
    MV,
    POOL,
    VB,
    Member,
    Plain,
    Predictor,
)
from tiebreak.inference.estimator import (
    BayesEstimator,
    Estimator,
    require_exact_links,
)
from tiebreak.inference.exact_links import fit as exact_links
from tiebreak.inference.exact_links import from_scores
from tiebreak.inference.exact_links.from_scores import ClassScores
from tiebreak.inference.gold_weights import GoldWeight
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.log_opinion_pool import LogOpinionPool
from tiebreak.inference.problem import Fit, Patterns
from tiebreak.inference.publishing import Fitted
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.inference.vb import Problem
from tiebreak.inference.worker_models import PLAIN
from tiebreak.kernels.layout import Floats
from tiebreak.links import OnContradiction
from tiebreak.options import AUTO, ExactLinkOptions, LinkOptions, check_common
from tiebreak.wording import counted

TRIAL = 1e-4  # tolerance of fits that are only compared
MOST_FOR_MODELS = 2_000_000  # responses: with more, other worker models are not tried


class Auto(BayesEstimator):
    """Let gold weigh methods: VB with gold, another worker model, the pool, the best worker, votes.

    Each predicts folds of gold from the others. The better it does, the more it counts in the
    probabilities, which are a logarithmic pool of all [eq:stack]; VB with gold and the pool count
    most until gold says otherwise. Each is then fitted with all gold, and links join what they say.
    `members_` says what each scored and counts. Without gold, or with fewer than ten labels or one
    class of them, nothing can be compared: it is VB, with a note.

    Parameters
    ----------
    class_prior, confusion_prior, trust, gold_weight, dependence
        As in `VariationalBayes`.
    link_options, on_contradiction
        As in `VariationalBayes`; links are inferred exactly. They are not used in the comparison.
    tol, max_iter, accelerate, backend, n_threads
        As in `VariationalBayes`.
    random_state
        Deals gold into folds, and seeds the worker models and weights that are drawn.

    Attributes
    ----------
    chosen_, members_
        The method that counts most; what each scored on held-out gold: accuracy with its interval,
        log-loss, how far it leads VB, and its weight.
    model_
        A fitted `VariationalBayes` or `LogOpinionPool`, whichever counts more: what `save` keeps,
        and `predict` labels new tasks by.
    best_worker_
        The worker who is right most often on gold, or None without gold.
    labels_, probabilities_, violations_
        As in `VariationalBayes`.
    confusion_, class_prior_
        As VB with gold has them.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, 2, responses_per_task=6, shared=0.5, random_state=0)
    >>> known = dict(list(crowd.gold.to_dict().items())[:50])
    >>> auto = tb.Auto().fit(crowd.responses, gold=known)
    >>> [member.name for member in auto.members_]
    ['vb', 'pool', 'best worker', 'best+crowd', 'mv', 'subtypes']
    """

    chosen_: str
    members_: tuple[Member, ...]
    model_: Estimator
    best_worker_: Any

    supports_adaptive_selection = False

    def __init__(
        self,
        *,
        class_prior: dirichlet.ClassPriorOption = 1.0,
        confusion_prior: dirichlet.ConfusionPrior = "diagonal",
        trust: dirichlet.Trust | None = None,
        gold_weight: GoldWeight = AUTO,
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
        self.gold_weight = gold_weight
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
        """Compare on gold, then fit all methods; `start` serves where it is VB alone."""
        check_common(self.get_params())
        options = require_exact_links(self.link_options, type(self).__name__)
        inputs = self._read_inputs(responses, links, gold)
        self.members_ = ()
        self.best_worker_ = None
        self.chosen_ = VB
        known = inputs.gold_codes
        if known is None:
            note("Without gold nothing can be compared: VariationalBayes is used.")
        if known is None or not _can_compare(inputs, known):
            self._fit_vb_alone(inputs, start)
            return self
        patterns = stages.patterns_of(inputs, stages.lay_out(inputs.responses), None)
        by_pattern = stages.to_patterns(inputs, patterns)
        gold = _gold_of(by_pattern)
        plain = self._plain(patterns, inputs, PLAIN)
        members = self._methods(plain, self._other_model(patterns, inputs), gold)
        self._weigh(members, gold)
        best = BestWorker.of(plain.problem.tasks, plain.shares, gold)
        self.best_worker_ = inputs.responses.workers[int(best.order[0])]
        of_vb = self._fit_vb(plain, by_pattern, options)
        scores = self._pooled_scores(members, of_vb, gold, plain.problem.tasks.n_tasks)
        self._publish_pooled(plain, of_vb, scores, patterns, inputs, by_pattern, options)
        self._fit_heaviest(inputs)
        return self

    def _methods(
        self, plain: Plain, other: tuple[str, Plain] | None, gold: GoldCodes
    ) -> dict[str, Predictor]:
        """Return what is compared."""
        terms = opinion_weights.make_terms(plain.problem, plain.run.beliefs, self.dependence)
        plain = self._with_weight(plain, gold)
        trial = self._stopping._replace(tol=max(TRIAL, self.tol))
        honesty = Honesty("auto", self.dependence)
        members = {
            VB: comparison.by_vb(plain, trial, honesty),
            POOL: comparison.by_pool(plain, terms, self.random_state),
            BEST: comparison.by_best_worker(plain),
            BACKED: comparison.by_best_and_crowd(plain, terms),
            MV: comparison.by_votes(plain, self.dependence),
        }
        if other is not None:
            name, of_model = other
            members[name] = comparison.by_vb(self._with_weight(of_model, gold), trial, honesty)
        return members

    def _weigh(self, members: dict[str, Predictor], gold: GoldCodes) -> None:
        """Predict gold by each member, and say how much it counts."""
        self.members_ = tuple(comparison.compare(members, gold, self.random_state))
        self.chosen_ = max(self.members_, key=lambda each: each.weight).name

    def _fit_vb(self, plain: Plain, inputs: Inputs, options: ExactLinkOptions) -> Fit:
        """Fit VB to all gold and, if there are any, links, which teach it what workers are like.

        The probabilities are those of each task alone: links join them after methods are pooled.
        """
        gold = _gold_of(inputs)
        links = inputs.link_codes
        honesty = Honesty("auto", self.dependence)
        run = plain.run
        if links is None or inputs.implied is None:
            problem = self._with_weight(plain, gold).problem
            return stages.fit_gold(problem, run, run.beliefs, gold, self._stopping, honesty)
        problem = self._with_weight(plain, gold, has_links=True).problem
        given = (links, inputs.implied, gold, options, self._stopping, honesty)
        found = exact_links.fit(problem, run, run.beliefs, *given)
        scale = found.calibration or Calibration(self.dependence)
        return found._replace(q=calibration.probabilities(problem, found.run.beliefs, scale))

    def _pooled_scores(
        self, members: dict[str, Predictor], of_vb: Fit, gold: GoldCodes, n_tasks: int
    ) -> Floats:
        """Return log p of all tasks by the pool of methods, (n_tasks, n_classes)."""
        everything = np.arange(n_tasks, dtype=np.int32)
        scores = np.zeros_like(of_vb.q)
        for each in self.members_:
            q = of_vb.q if each.name == VB else members[each.name](gold, everything)
            scores += each.weight * stacking.log_shares(q)
        return scores

    def _with_weight(self, plain: Plain, gold: GoldCodes, *, has_links: bool = False) -> Plain:
        """Return the problem in which known tasks count as often as they should."""
        problem = plain.problem
        patterns = Patterns(problem.tasks, problem.copies)
        n_classes = problem.n_classes
        table = gold_weights.find(self.gold_weight, gold, patterns, n_classes, has_links=has_links)
        return plain._replace(problem=problem._replace(gold_weight=table))

    def _other_model(self, patterns: Patterns, inputs: Inputs) -> tuple[str, Plain] | None:
        """Return the worker model with the highest bound on responses; None: the plain one."""
        crowd = inputs.responses
        members = model_choice.members_for(crowd, None)
        if len(members) == 1 or crowd.n_responses > MOST_FOR_MODELS:
            return None

        def problem_of(name: str) -> Problem:
            return self._plain_problem(name, patterns, inputs)

        found = model_choice.choose(
            problem_of,
            None,
            None,
            self._stopping,
            members=members,
            first_seed=self.random_state or 0,
        )
        if found.worker_model == PLAIN:
            return None
        problem = problem_of(found.worker_model)
        short = self._stopping._replace(tol=max(TRIAL, self.tol))
        return found.worker_model, Plain(problem, vb.ascend(problem, found.q, **short._asdict()))

    def _plain(self, patterns: Patterns, inputs: Inputs, name: str) -> Plain:
        problem = self._plain_problem(name, patterns, inputs)
        q = vb.majority(problem.tasks, problem.n_classes)
        return Plain(problem, vb.ascend(problem, q, **self._stopping._asdict()))

    def _fit_model(self, name: str, inputs: Inputs, start: Any) -> Estimator:
        """Fit the estimator of a method to all there is."""
        model = LogOpinionPool() if name == POOL else VariationalBayes()
        shared = {
            key: value for key, value in self.get_params().items() if key in model.get_params()
        }
        model.set_params(**shared)
        if name not in (POOL, VB):
            model.set_params(worker_model=name)
        return model.fit(inputs.responses, links=inputs.links, gold=inputs.gold, start=start)

    def _fit_vb_alone(self, inputs: Inputs, start: Any) -> None:
        """Fit VB to all there is, and take over what it learnt."""
        model = self._fit_model(VB, inputs, start)
        learnt = {key: value for key, value in vars(model).items() if key.endswith("_")}
        vars(self).update(learnt)
        self.model_ = model

    def _fit_heaviest(self, inputs: Inputs) -> None:
        """Fit the estimator that counts most: what can be saved, and predicts new tasks."""
        with_model = [each for each in self.members_ if each.name not in (BEST, BACKED, MV)]
        name = max(with_model, key=lambda each: each.weight).name
        with warnings.catch_warnings(action="ignore", category=InputNote):  # said already
            self.model_ = self._fit_model(name, inputs, None)

    def _publish_pooled(
        self,
        plain: Plain,
        of_vb: Fit,
        scores: Floats,
        patterns: Patterns,
        inputs: Inputs,
        by_pattern: Inputs,
        options: ExactLinkOptions,
    ) -> None:
        """Join the pooled scores by links, and publish labels and probabilities."""
        problem, run = plain
        gold = _gold_of(by_pattern)
        of_prior = np.log(plain.shares)
        given = ClassScores(scores - of_prior, of_prior)
        links = by_pattern.link_codes
        if links is None or by_pattern.implied is None:
            found = from_scores.infer_alone(run, given, gold)
        else:
            found = from_scores.infer_linked(
                problem, run, given, links, by_pattern.implied, gold, options, self._stopping
            )
        fitted = Fitted(inputs, by_pattern, problem, patterns, run.beliefs, found)
        beliefs = of_vb.run.beliefs
        self.class_prior_ = problem.states.mean(beliefs.alpha)
        self.confusion_ = vb.confusion(problem, beliefs)
        self.bounds_ = of_vb.run.bounds
        self.n_iter_ = of_vb.run.n_sweeps
        self.converged_ = of_vb.run.converged
        self.doubtful_links_ = publishing.doubtful_links(fitted)
        self._publish(inputs, *publishing.label_tasks(fitted))
        publishing.note_doubts(fitted, self.labels_, self.dependence)


def _gold_of(inputs: Inputs) -> GoldCodes:
    assert inputs.gold_codes is not None  # checked before anything is compared
    return inputs.gold_codes


def _can_compare(inputs: Inputs, gold: GoldCodes) -> bool:
    """Say whether gold suffices to compare methods; where it does not, say so to the user."""
    crowd = inputs.responses
    seen = np.unique(gold.label)
    if len(gold.task) < LEAST_GOLD:
        note(
            f"With {counted(len(gold.task), 'gold label')} methods cannot be compared: "
            f"VariationalBayes is used. From {LEAST_GOLD} on they are; some 50 do well."
        )
        return False
    if len(seen) < 2 <= crowd.n_classes:
        note(
            f"All gold is {crowd.classes[int(seen[0])]!r}: methods cannot be compared on one "
            "class, and VariationalBayes is used. Label tasks of other classes too."
        )
        return False
    return crowd.n_classes > 1
