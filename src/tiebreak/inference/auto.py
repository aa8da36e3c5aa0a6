"""Auto: the method that foretells gold best."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tiebreak.errors import note
from tiebreak.gold import GoldCodes
from tiebreak.inference import (
    comparison,
    gold_weights,
    model_choice,
    opinion_weights,
    priors,
    publishing,
    stages,
    vb,
)
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.calibration import DEPENDENCE, Honesty
from tiebreak.inference.comparison import BEST, LEAST_GOLD, MV, POOL, VB, Member, Plain
from tiebreak.inference.estimator import Estimator, require_tolerance
from tiebreak.inference.exact_links import from_scores
from tiebreak.inference.exact_links.from_scores import ClassScores
from tiebreak.inference.gold_weights import GoldWeight, require_weight
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.inference.log_opinion_pool import LogOpinionPool
from tiebreak.inference.opinion_weights import Terms
from tiebreak.inference.option_checks import require_dependence, require_exact_links
from tiebreak.inference.publishing import Fitted
from tiebreak.inference.response_patterns import Patterns
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.inference.vb import Problem, Stopping
from tiebreak.inference.worker_models import PLAIN, crowd_model
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.threads import default_threads
from tiebreak.links import OnContradiction
from tiebreak.options import ExactLinkOptions, LinkOptions
from tiebreak.wording import counted

TRIAL = 1e-4  # tolerance of fits that are only compared
MOST_FOR_MODELS = 2_000_000  # responses: with more, other worker models are not tried


class Auto(Estimator):
    """Let gold choose: VB with gold, another worker model, the pool, the best worker or votes.

    Each foretells folds of gold from the others. VB with gold is kept unless another's log-loss is
    lower by more than one standard error of the difference, task by task [eq:auto]. What is chosen
    is then fitted with all gold and links. `members_` says what each scored. Without gold, or with
    fewer than ten labels or one class of them, nothing can be compared: it is VB, with a note.

    Parameters
    ----------
    class_prior, confusion_prior, trust, gold_weight, dependence
        As in `VariationalBayes`.
    link_options, on_contradiction
        As in `VariationalBayes`; links are inferred exactly. They are not used in the comparison.
    tol, max_iter, accelerate, backend, n_threads
        As in `VariationalBayes`.
    random_state
        Deals gold into folds, and seeds the worker models that draw.

    Attributes
    ----------
    chosen_, members_
        The name of the method that was fitted; what each scored on held-out gold: accuracy with
        its interval, log-loss, and how far it leads VB.
    model_
        The fitted estimator: a `VariationalBayes` or a `LogOpinionPool`; None for the best worker
        and for votes.
    best_worker_
        The worker who is right most often on gold, or None without gold.
    labels_, probabilities_, confusion_, class_prior_, violations_
        As in `VariationalBayes`.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, 2, responses_per_task=6, shared=0.5, random_state=0)
    >>> known = dict(list(crowd.gold.to_dict().items())[:50])
    >>> auto = tb.Auto().fit(crowd.responses, gold=known)
    >>> [member.name for member in auto.members_]
    ['vb', 'pool', 'best worker', 'mv', 'subtypes']
    """

    chosen_: str
    members_: tuple[Member, ...]
    model_: Estimator | None
    best_worker_: Any

    supports_adaptive_selection = False

    def __init__(
        self,
        *,
        class_prior: priors.ClassPrior = 1.0,
        confusion_prior: priors.ConfusionPrior = "diagonal",
        trust: priors.Trust | None = None,
        gold_weight: GoldWeight = gold_weights.AUTO,
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

    @property
    def link_error(self) -> float | str | None:
        """How often links without weight are wrong, as the options say; None: never."""
        options = self.link_options
        return options.error if isinstance(options, ExactLinkOptions) else None

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Compare on gold, then fit what was chosen; `start` serves that fit, if it is VB's."""
        require_tolerance(self.tol, self.max_iter)
        require_dependence(self.dependence)
        require_weight(self.gold_weight)
        options = require_exact_links(self.link_options, type(self).__name__)
        inputs = read_and_check_inputs(
            responses,
            links,
            gold,
            on_contradiction=self.on_contradiction,
            soft_links=options.is_soft,
            may_break=options.may_break,
        )
        self.members_ = ()
        self.best_worker_ = None
        self.chosen_ = VB
        known = inputs.gold_codes
        if known is None:
            note("Without gold nothing can be compared: VariationalBayes is used.")
        if known is None or not _can_compare(inputs, known):
            self._fit_estimator(VB, inputs, start)
            return self
        patterns = stages.patterns_of(inputs, stages.lay_out(inputs.responses), None)
        by_pattern = stages.to_patterns(inputs, patterns)
        plain = self._plain(patterns, inputs, PLAIN)
        other = self._other_model(patterns, inputs)
        self._compare(plain, self._terms(plain), other, _gold_of(by_pattern))
        best = BestWorker.of(plain.problem.tasks, plain.shares, _gold_of(by_pattern))
        self.best_worker_ = inputs.responses.workers[int(best.order[0])]
        if self.chosen_ in (BEST, MV):
            self._fit_scores(plain, best, patterns, inputs, by_pattern, options)
        else:
            self._fit_estimator(self.chosen_, inputs, start)
        return self

    def _terms(self, plain: Plain) -> Terms:
        return opinion_weights.make_terms(plain.problem, plain.run.beliefs, self.dependence)

    def _compare(
        self, plain: Plain, terms: Terms, other: tuple[str, Plain] | None, gold: GoldCodes
    ) -> None:
        """Foretell gold by each member, and choose."""
        plain = self._with_weight(plain, gold)
        trial = self._stopping._replace(tol=max(TRIAL, self.tol))
        honesty = Honesty("auto", self.dependence)
        members = {
            VB: comparison.by_vb(plain, trial, honesty),
            POOL: comparison.by_pool(plain, terms, self.random_state),
            BEST: comparison.by_best_worker(plain),
            MV: comparison.by_votes(plain, self.dependence),
        }
        if other is not None:
            name, of_model = other
            members[name] = comparison.by_vb(self._with_weight(of_model, gold), trial, honesty)
        found = comparison.compare(members, gold, self.random_state)
        self.chosen_ = comparison.choose(found)
        self.members_ = tuple(each._replace(is_chosen=each.name == self.chosen_) for each in found)

    def _with_weight(self, plain: Plain, gold: GoldCodes) -> Plain:
        """Return the problem in which known tasks count as often as they should."""
        problem = plain.problem
        patterns = Patterns(problem.tasks, problem.copies)
        table = gold_weights.find(self.gold_weight, gold, patterns, problem.n_classes)
        return plain._replace(problem=problem._replace(gold_weight=table))

    def _other_model(self, patterns: Patterns, inputs: Inputs) -> tuple[str, Plain] | None:
        """Return the worker model with the highest bound on responses; None: the plain one."""
        crowd = inputs.responses
        members = model_choice.members_for(crowd, None)
        if len(members) == 1 or crowd.n_responses > MOST_FOR_MODELS:
            return None

        def problem_of(name: str) -> Problem:
            return self._problem(patterns, inputs, name)

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
        problem = self._problem(patterns, inputs, name)
        q = vb.majority(problem.tasks, problem.n_classes)
        return Plain(problem, vb.ascend(problem, q, **self._stopping._asdict()))

    def _problem(self, patterns: Patterns, inputs: Inputs, name: str) -> Problem:
        crowd = inputs.responses
        of_class = priors.class_prior(self.class_prior, crowd.n_classes)
        n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
        return Problem(
            patterns.tasks,
            *crowd_model(name, self.confusion_prior, of_class, crowd, self.trust),
            choose_backend(self.backend, len(patterns.tasks.code), n_linked),
            self.n_threads or default_threads(),
            copies=patterns.copies,
        )

    @property
    def _stopping(self) -> Stopping:
        return Stopping(self.tol, self.max_iter, self.accelerate)

    def _fit_estimator(self, name: str, inputs: Inputs, start: Any) -> None:
        """Fit an estimator to all there is, and take over what it learnt."""
        chosen = LogOpinionPool() if name == POOL else VariationalBayes()
        shared = {
            key: value for key, value in self.get_params().items() if key in chosen.get_params()
        }
        chosen.set_params(**shared)
        if name not in (POOL, VB):
            chosen.set_params(worker_model=name)
        chosen.fit(inputs.responses, links=inputs.links, gold=inputs.gold, start=start)
        learnt = {key: value for key, value in vars(chosen).items() if key.endswith("_")}
        vars(self).update(learnt)
        self.model_ = chosen

    def _fit_scores(
        self,
        plain: Plain,
        best: BestWorker,
        patterns: Patterns,
        inputs: Inputs,
        by_pattern: Inputs,
        options: ExactLinkOptions,
    ) -> None:
        """Publish the best worker's labels, or votes; links join them as ever."""
        problem, run = plain
        gold = _gold_of(by_pattern)
        of_prior = np.zeros(problem.n_classes)
        scores: Floats
        if self.chosen_ == BEST:
            of_prior = best.log_shares
            scores = best.scores() - of_prior
        else:
            scores = comparison.vote_scores(plain, gold, self.dependence)
        given = ClassScores(scores, of_prior)
        links = by_pattern.link_codes
        if links is None or by_pattern.implied is None or problem.n_classes < 2:
            found = from_scores.infer_alone(run, given, gold)
        else:
            found = from_scores.infer_linked(
                problem, run, given, links, by_pattern.implied, gold, options, self._stopping
            )
        fitted = Fitted(inputs, by_pattern, problem, patterns, run.beliefs, found)
        self.class_prior_ = problem.states.mean(run.beliefs.alpha)
        self.confusion_ = vb.confusion(problem, run.beliefs)
        self.bounds_ = run.bounds
        self.n_iter_ = run.n_sweeps
        self.converged_ = run.converged
        self.doubtful_links_ = publishing.doubtful_links(fitted)
        self.model_ = None
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
