"""Calibration: honest probabilities from scores that are too sure of themselves.

Workers err together on hard tasks, and the model believes that they err apart, so that scores grow
too fast with the number of responses. A task with n responses is scaled by 1 / (1 + ρ (n − 1)), the
design effect of n answers whose errors are alike by ρ; a multiplier t serves all tasks. Both have
priors that gold and links overrule as they grow. Labels stay what they are.

Scores that evidence is compared with have not seen it. Plain VB has seen no label; where much is
known it is not the fit whose scores become probabilities, as gold repairs what is believed of
workers. So known tasks are dealt into folds, and each is scored by a fit with the gold of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.known import Known, deal
from tiebreak.inference.tasks import OwnRows, Parameters
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import by_class, for_each, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Codes, Floats
from tiebreak.kernels.sweeper import Logs
from tiebreak.links.graph import LinkCodes, each_once

if TYPE_CHECKING:
    from tiebreak.inference.stages import FitOptions

MODES = ("auto", "votes", "none")
DEPENDENCE = 0.35  # ρ expected of people; chosen on ten datasets, see docs/probabilities.md
LOGIT_SPREAD = 1.5  # of the prior on logit ρ: some tens of known labels overrule it
LOG_SPREAD = 0.5  # of the prior on log t around 0
LOWEST_DEPENDENCE = 1e-3
TASKS_AT_ONCE = 1 << 15  # memory for the scores of some tasks, not of all
BEND = 0.1  # the step over which the bend of the cost is measured
N_FOLDS = 5
LEAST_SHARE = 0.05  # of all tasks: where less is known, plain VB scores as the fit with gold does
# Of the fits of folds; scores need no more, as what is fitted to them is two numbers.
FOLD_STOPPING = Stopping(tol=1e-3, max_iter=50, accelerate=True)
TRUSTED_ERROR = 0.01  # how often a gold label or hard link may be wrong; .02 hid shared errors


class Calibration(NamedTuple):
    """How scores become probabilities: p ∝ exp(t X / (1 + ρ (n − 1))), [eq:design-effect]."""

    dependence: float = DEPENDENCE  # ρ
    multiplier: float = 1.0  # t
    dependence_variance: float = LOGIT_SPREAD**2  # of logit ρ; before any evidence, the prior's
    multiplier_variance: float = LOG_SPREAD**2  # of log t
    covariance: float = 0.0  # of both

    def scale(self, n_responses: Floats) -> Floats:
        """Return by how much the scores of tasks with so many responses count.

        >>> Calibration(0.25).scale(np.array([0.0, 1.0, 11.0])).round(2).tolist()
        [1.0, 1.0, 0.29]
        """
        others = np.asarray(n_responses - 1.0)
        scale = np.maximum(others, 0.0, out=others)  # in place: fresh memory costs five times more
        scale *= self.dependence
        scale += 1.0
        return np.divide(self.multiplier, scale, out=scale)


class Evidence(NamedTuple):
    """What a calibration is fitted to: links, the error rate of each, and gold."""

    links: LinkCodes | None
    error: Floats  # (n_links,)
    gold: GoldCodes | None
    is_sample: bool = True  # gold is of any tasks; not so where doubtful ones were asked about

    def tasks(self) -> Codes:
        """Return the tasks that links or gold name, each once."""
        links = [] if self.links is None else [self.links.left, self.links.right]
        known = [] if self.gold is None else [self.gold.task]
        return each_once(np.concatenate([*links, *known])).astype(np.int32)

    def among(self, tasks: Codes) -> Evidence:
        """Return the same with tasks numbered by their places in `tasks`, which is sorted."""
        links = None if self.links is None else self.links.among(tasks)
        gold = None if self.gold is None else self.gold.among(tasks)
        return self._replace(links=links, gold=gold)


def choose(
    plain: Problem,
    parameters: Parameters,
    options: FitOptions,
    evidence: Evidence | None,
    known: Known | None = None,
    *,
    from_gold: bool = False,
) -> Calibration | None:
    """Return how scores become probabilities; None: as the model says.

    Parameters
    ----------
    plain, parameters
        Plain VB, which has seen neither links nor gold.
    evidence
        Links and gold, which overrule what is expected; None where there are none.
    known
        All known rows, where they are all of the evidence.
    from_gold
        Whether the fit with these started from workers as known labels alone show them.
    """
    if options.calibrate == "none":
        return None
    if options.calibrate == "votes" or evidence is None:
        return Calibration(options.dependence)
    tasks = evidence.tasks()
    # On a scale gold moves workers however few labels it has: plain VB scores as no fit with gold.
    share = 0.0 if plain.workers.starts_at_gold else LEAST_SHARE
    if known is not None and len(tasks) >= max(N_FOLDS, share * plain.n_tasks):
        scores = held_out_scores(plain, parameters, known, from_gold=from_gold)
        scores = scores[np.argsort(known.task, kind="stable")]
    else:
        scores = class_scores_of(plain, plain.logs(parameters), tasks)
    n_given = n_responses(plain.rows, tasks) + options.n_more
    return fit(scores, n_given, evidence.among(tasks), options.dependence)


def held_out_scores(
    plain: Problem, parameters: Parameters, known: Known, *, from_gold: bool
) -> Floats:
    """Return the class scores of known tasks, each by a fit without its fold's labels."""
    scores = np.empty((len(known.task), plain.n_classes))
    fold = folds_of(plain, parameters, known)
    # Parameters say where a fold starts; q only has to be the same after a cold and a warm start.
    q = plain.votes()
    for own in (fold == each for each in range(N_FOLDS)):
        rest = known.keep(~own)
        implied = rest.parameters(plain, q) if from_gold else parameters
        start = FitState(rest.clamp(q, plain.n_classes), implied)
        state = climb(rest.on(plain), start, FOLD_STOPPING)
        scores[own] = class_scores_of(plain, plain.logs(state.parameters), known.task[own])
    return scores


def folds_of(plain: Problem, parameters: Parameters, known: Known) -> Codes:
    """Deal known tasks out by how much plain VB prefers their class.

    What was said decides, so that neither names nor the order of rows and gold do. Tasks that are
    equal in it, such as those with the same responses, may stand for each other.
    """
    scores = class_scores_of(plain, plain.logs(parameters), known.task)
    is_known = np.arange(plain.n_classes) == known.label[:, None]
    of_others = np.logaddexp.reduce(np.where(is_known, -np.inf, scores), axis=1)
    return deal(np.argsort(scores[is_known] - of_others, kind="stable"), N_FOLDS)


def fit(scores: Floats, n_responses: Floats, evidence: Evidence, dependence: float) -> Calibration:
    """Return ρ and t that make probabilities fit links and gold best: [eq:calibration].

    How far they are known is said by Laplace's method: the inverse of how the cost bends there.

    Parameters
    ----------
    scores
        (n_tasks, n_classes) that have seen neither the links nor the gold.
    n_responses
        (n_tasks,) by weight.
    dependence
        ρ as expected before any evidence.
    """
    expected = float(logit(max(dependence, LOWEST_DEPENDENCE)))
    log_likelihood = log_likelihood_of(scores, n_responses, evidence)

    def cost(x: Sequence[float]) -> float:
        prior = ((x[0] - expected) / LOGIT_SPREAD) ** 2 + (x[1] / LOG_SPREAD) ** 2
        return prior / 2.0 - log_likelihood(float(expit(x[0])), float(np.exp(x[1])))

    from scipy.optimize import minimize  # here: it takes longer to load than many a fit

    at = minimize(cost, (expected, 0.0), method="Nelder-Mead").x.tolist()
    best = Calibration(float(expit(at[0])), float(np.exp(at[1])))
    beside = {
        (i, j): cost((at[0] + i * BEND, at[1] + j * BEND)) for i in (-1, 0, 1) for j in (-1, 0, 1)
    }
    first = beside[1, 0] - 2.0 * beside[0, 0] + beside[-1, 0]
    second = beside[0, 1] - 2.0 * beside[0, 0] + beside[0, -1]
    mixed = (beside[1, 1] - beside[1, -1] - (beside[-1, 1] - beside[-1, -1])) / 4.0
    size = first * second - mixed**2
    if first <= 0.0 or size <= 0.0:  # no bowl: the priors still hold
        return best
    step = BEND**2 / size
    return Calibration(*best[:2], second * step, first * step, -mixed * step)


def log_likelihood_of(
    scores: Floats, n_responses: Floats, evidence: Evidence
) -> Callable[[float, float], float]:
    """Return the log-likelihood of ρ and t as a function: [eq:calibration] without its priors.

    With p_i ∝ exp(t u_i / (1 + ρ (n_i − 1))) it is the sum of log p_i(y_i) over known tasks, and of
    log((1 − ε) s + ε (1 − s)) over links, with s = ⟨p_i, p_j⟩ or, of a cannot-link, 1 − ⟨p_i, p_j⟩.
    """
    links = evidence.links
    gold = evidence.gold
    error = evidence.error
    # A class at a time: in loops over few classes, most of the time is the loops'.
    gaps = np.ascontiguousarray((scores - scores.max(axis=1, keepdims=True)).T)
    others = np.maximum(n_responses - 1.0, 0.0)
    least = least_share(scores.shape[1] if evidence.is_sample else 2)

    def log_likelihood(dependence: float, multiplier: float) -> float:
        scale = multiplier / (1.0 + dependence * others)
        share = np.multiply(scale, gaps)
        np.exp(share, out=share)
        share /= share.sum(axis=0)
        total = 0.0
        if links is not None:
            same = sum(each[links.left] * each[links.right] for each in share)
            same = np.clip(same, 0.0, 1.0)
            says = np.where(links.must, same, 1.0 - same)
            total += np.log(error + (1.0 - 2.0 * error) * says).sum()
        if gold is not None:
            total += np.log(np.maximum(share[gold.label, gold.task], least)).sum()
        return float(total)

    return log_likelihood


def least_share(n_classes: int) -> float:
    """Return the least probability that a known class counts with.

    A gold label that is wrong is any of the other classes: of 21, each is the wrong one in 2,000.
    One floor for all, 0.01, hid how sure the scores are of wrong classes where there are many.
    Of a task that was asked about because two classes are near, it is the other one of the two.

    >>> [least_share(n) for n in (2, 21)]
    [0.01, 0.0005]
    """
    return TRUSTED_ERROR / max(n_classes - 1, 1)


def n_responses(tasks: ByTask, at: Codes | None = None) -> Floats:
    """Return the number of responses of each task, by weight, or of those listed."""
    if tasks.weight is None and at is not None:
        return (tasks.start[at + 1] - tasks.start[at]).astype(np.float64)
    counted = layout.total_weights(tasks.start, tasks.weight)
    return counted if at is None else counted[at]


def class_scores_of(problem: Problem, logs: Logs, tasks: Codes) -> Floats:
    """Return the class scores of some rows, (n, n_classes): prior, responses, what is given."""
    part = layout.part_of(problem.rows, tasks, problem.n_states)
    scores = problem.backend.score_tasks(part, *logs)
    own = problem.tasks.own
    if own is not None:
        scores = scores + own.fixed_of(tasks, problem.rows.n_tasks)
    return by_class(scores, problem.n_classes)


def probabilities(
    problem: Problem,
    state: FitState,
    found: Calibration | None,
    n_given: Floats | None = None,
    known: Known | None = None,
) -> tuple[Floats, Any]:
    """Return the probability of each class, (n_rows, n_classes), and what the task model concludes.

    Scores count by the number of responses of each row; where the task model has rows of its own
    it infers them once more. Known rows are certain. `n_given` is how many responses each row has
    had, where some are gone.
    """
    own, memory = problem.tasks.own, state.memory
    if found is None:
        q = problem.by_class(state.q)
        if own is not None:
            scale = np.ones(len(own.at))
            concluded = problem.tasks.conclude(state.parameters, None, scale, q[own.at], memory)
            q = np.array(q)
            q[own.at], memory = concluded.q, concluded.memory
        return q, memory
    logs = problem.logs(state.parameters)
    scale = found.scale(n_responses(problem.rows) if n_given is None else n_given)
    q = probabilities_by(
        logs, problem.rows, scale, problem.n_classes, problem.backend, problem.n_threads
    )
    if own is not None:
        score = by_class(own.score(problem, logs), problem.n_classes)
        score = scale_own(own, score, scale[own.at], problem.tasks.shares, state.parameters[0])
        former = problem.by_class(state.q[own.at])
        concluded = problem.tasks.conclude(state.parameters, score, scale[own.at], former, memory)
        q[own.at], memory = concluded.q, concluded.memory
    return (q if known is None else known.clamp(q)), memory


def scale_own(
    own: OwnRows, score: Floats, scale: Floats, shares: ClassPrior, alpha: Floats
) -> Floats:
    """Return class scores of own rows times their scale.

    Copies of one task have one prior among them, which is scaled by the mean over the copies, so
    that it does not matter which of them holds it.
    """
    if own.draws is None or own.unit is None:
        return np.asarray(scale[:, None] * score)
    log_prior = shares.expected_log_of_class(alpha)
    scaled = np.asarray(scale[:, None] * (score - own.draws[:, None] * log_prior))
    is_copy = own.unit >= 0
    unit = own.unit[is_copy]
    mean = scale.copy()
    mean[is_copy] = (np.bincount(unit, scale[is_copy]) / np.maximum(np.bincount(unit), 1))[unit]
    return scaled + (own.draws * mean)[:, None] * log_prior


def probabilities_by(
    logs: Logs, tasks: ByTask, scale: Floats, n_classes: int, backend: Backend, n_threads: int
) -> Floats:
    """Return the probability of each class by expected logs, the scores of each task scaled."""
    if len(logs[0]) == n_classes:
        return np.asarray(backend.scaled_probabilities(tasks, *logs, scale, n_threads))
    q = np.empty((tasks.n_tasks, n_classes))

    def work(piece: int) -> None:
        low = piece * TASKS_AT_ONCE
        high = min(low + TASKS_AT_ONCE, tasks.n_tasks)
        part = layout.part_of(tasks, slice(low, high), len(logs[0]))
        scores = by_class(backend.score_tasks(part, *logs), n_classes)
        q[low:high] = softmax(scores, scale[low:high])

    for_each(work, -(-tasks.n_tasks // TASKS_AT_ONCE), n_threads)
    return q
