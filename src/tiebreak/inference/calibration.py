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
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp, deal
from tiebreak.inference.vb import Beliefs, Problem, Stopping
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import by_class, for_each, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Codes, Floats
from tiebreak.kernels.sweeper import Logs
from tiebreak.links.graph import LinkCodes, each_once

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


class Honesty(NamedTuple):
    """What the user wants of probabilities."""

    mode: str = "auto"  # "auto", "votes" or "none"
    dependence: float = DEPENDENCE


def choose(
    plain: Problem, beliefs: Beliefs, honesty: Honesty, evidence: Evidence | None
) -> Calibration | None:
    """Return how scores become probabilities; None: as the model says.

    Parameters
    ----------
    plain, beliefs
        Plain VB, which has seen neither links nor gold.
    evidence
        Links and gold, which overrule what is expected; None where there are none.
    """
    if honesty.mode == "none":
        return None
    if honesty.mode == "votes" or evidence is None:
        return Calibration(honesty.dependence)
    tasks = evidence.tasks()
    return _fit_to(plain, tasks, class_scores_of(plain, beliefs, tasks), evidence, honesty)


def choose_by_gold(
    plain: Problem, beliefs: Beliefs, gold: GoldCodes, honesty: Honesty, *, from_gold: bool
) -> Calibration | None:
    """Return how the scores of a fit with gold alone become probabilities.

    Parameters
    ----------
    plain, beliefs
        Plain VB, which has not seen the gold.
    from_gold
        Whether the fit with gold started from workers as known labels alone show them.
    """
    evidence = Evidence(None, np.empty(0), gold)
    if honesty.mode != "auto" or len(gold.task) < max(N_FOLDS, LEAST_SHARE * plain.n_tasks):
        return choose(plain, beliefs, honesty, evidence)
    scores = held_out_scores(plain, beliefs, gold, from_gold=from_gold)
    order = np.argsort(gold.task, kind="stable")
    return _fit_to(plain, gold.task[order], scores[order], evidence, honesty)


def _fit_to(
    plain: Problem, tasks: Codes, scores: Floats, evidence: Evidence, honesty: Honesty
) -> Calibration:
    """Fit to evidence on these tasks, in ascending order, by their class scores."""
    by_place = evidence.among(tasks)._replace(is_sample=plain.gold_weight is not None)
    return fit(scores, n_responses(plain.tasks, tasks), by_place, honesty.dependence)


def held_out_scores(
    plain: Problem, beliefs: Beliefs, gold: GoldCodes, *, from_gold: bool
) -> Floats:
    """Return the class scores of known tasks, each by a fit without its fold's labels."""
    scores = np.empty((len(gold.task), plain.n_classes))
    # Beliefs say where a fold starts; q only has to be the same after a cold and a warm start.
    q = vb.to_states(plain, vb.majority(plain.tasks, plain.n_classes))
    fold = folds_of(plain, beliefs, gold)
    for own in (fold == each for each in range(N_FOLDS)):
        rest = GoldCodes(gold.task[~own], gold.label[~own])
        implied = vb.beliefs_of_known(plain, q, rest) if from_gold else beliefs
        start = clamp(q, rest, plain.n_classes)
        known = vb.with_known(plain, rest)
        run = vb.ascend(known, start, **FOLD_STOPPING._asdict(), implied=implied)
        scores[own] = class_scores_of(plain, run.beliefs, gold.task[own])
    return scores


def folds_of(plain: Problem, beliefs: Beliefs, gold: GoldCodes) -> Codes:
    """Deal known tasks out by how much plain VB prefers their class.

    What was said decides, so that neither names nor the order of rows and gold do. Tasks that are
    equal in it, such as those with the same responses, may stand for each other.
    """
    scores = class_scores_of(plain, beliefs, gold.task)
    is_known = np.arange(plain.n_classes) == gold.label[:, None]
    of_others = np.logaddexp.reduce(np.where(is_known, -np.inf, scores), axis=1)
    return deal(np.argsort(scores[is_known] - of_others, kind="stable"), N_FOLDS)


def fit(
    scores: Floats,
    n_responses: Floats,
    evidence: Evidence,
    dependence: float,
) -> Calibration:
    """Return ρ and t that make probabilities fit links and gold best: [eq:calibration].

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

    found = minimize(cost, (expected, 0.0), method="Nelder-Mead").x
    x = (float(found[0]), float(found[1]))
    best = Calibration(float(expit(x[0])), float(np.exp(x[1])))
    return _with_spread(best, cost, x)


def _with_spread(
    best: Calibration, cost: Callable[[Sequence[float]], float], at: Sequence[float]
) -> Calibration:
    """Say how far it is known, by Laplace's method: the inverse of how the cost bends there."""

    def beside(one: int, other: int) -> float:
        return cost((at[0] + one * BEND, at[1] + other * BEND))

    least = cost(at)
    first = beside(1, 0) - 2.0 * least + beside(-1, 0)
    second = beside(0, 1) - 2.0 * least + beside(0, -1)
    mixed = (beside(1, 1) - beside(1, -1) - (beside(-1, 1) - beside(-1, -1))) / 4.0
    size = first * second - mixed**2
    if first <= 0.0 or size <= 0.0:  # no bowl: the priors still hold
        return best
    step = BEND**2 / size
    return best._replace(
        dependence_variance=second * step,
        multiplier_variance=first * step,
        covariance=-mixed * step,
    )


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
    gaps = scores - scores.max(axis=1, keepdims=True)
    others = np.maximum(n_responses - 1.0, 0.0)
    least = least_share(scores.shape[1] if evidence.is_sample else 2)

    def log_likelihood(dependence: float, multiplier: float) -> float:
        scale = multiplier / (1.0 + dependence * others)
        share = np.exp(scale[:, None] * gaps)
        share /= share.sum(axis=1, keepdims=True)
        total = 0.0
        if links is not None:
            same = np.clip((share[links.left] * share[links.right]).sum(axis=1), 0.0, 1.0)
            says = np.where(links.must, same, 1.0 - same)
            total += np.log(error + (1.0 - 2.0 * error) * says).sum()
        if gold is not None:
            total += np.log(np.maximum(share[gold.task, gold.label], least)).sum()
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


def mean_responses(problem: Problem) -> float:
    """Return how many responses a task has on average, by weight."""
    here = n_responses(problem.tasks)
    if problem.elsewhere is None:
        return float(np.average(here, weights=problem.copies))
    return float((here.sum() + problem.elsewhere.n_responses) / problem.n_tasks)


def class_scores_of(
    problem: Problem, beliefs: Beliefs, tasks: Codes, logs: Logs | None = None
) -> Floats:
    """Return the class scores of some tasks, (n, n_classes); `logs` as in `scaled_scores`."""
    logs = vb.expected_logs(problem, beliefs) if logs is None else logs
    part = layout.part_of(problem.tasks, tasks, problem.n_states)
    return by_class(problem.backend.score_tasks(part, *logs), problem.n_classes)


def scaled_scores(
    problem: Problem,
    beliefs: Beliefs,
    found: Calibration,
    tasks: Codes,
    pays: Floats | None = None,
    unit: Codes | None = None,
    n_given: Floats | None = None,
    logs: Logs | None = None,
) -> Floats:
    """Return the scaled class scores of some tasks, (n, n_classes).

    `logs` is what the beliefs expect, where the caller has found it. Copies of one task, equal in
    `unit`, have one prior among them; `pays` says how much of it each holds. It is scaled by the
    mean over the unit, so that it does not matter which holds it.
    """
    scores = class_scores_of(problem, beliefs, tasks, logs)
    counted = n_responses(problem.tasks, tasks) if n_given is None else n_given[tasks]
    scale = found.scale(counted)
    log_prior = problem.states.expected_log_of_class(beliefs.alpha)
    return scale_scores(scores, scale, log_prior, pays, unit)


def scale_scores(
    scores: Floats,
    scale: Floats,
    log_prior: Floats,
    pays: Floats | None = None,
    unit: Codes | None = None,
) -> Floats:
    """Return class scores times the scale of each task; `pays` and `unit` as in `scaled_scores`."""
    if pays is None or unit is None:
        return np.asarray(scale[:, None] * scores)
    scaled = np.asarray(scale[:, None] * (scores - log_prior))
    total = np.bincount(unit, weights=scale)[unit]
    mean = total / np.bincount(unit)[unit]
    scaled += (pays * mean)[:, None] * log_prior
    return scaled


def probabilities(
    problem: Problem,
    beliefs: Beliefs,
    found: Calibration,
    n_given: Floats | None = None,
    logs: Logs | None = None,
) -> Floats:
    """Return the probability of each class of each task, by its responses alone.

    `n_given`, (n_tasks,), is how many responses each has had, where some were dropped; `logs` as in
    `scaled_scores`.
    """
    logs = vb.expected_logs(problem, beliefs) if logs is None else logs
    scale = found.scale(n_responses(problem.tasks) if n_given is None else n_given)
    return probabilities_by(
        logs, problem.tasks, scale, problem.n_classes, problem.backend, problem.n_threads
    )


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
        part = layout.slice_of(tasks, low, high, len(logs[0]))
        scores = by_class(backend.score_tasks(part, *logs), n_classes)
        q[low:high] = softmax(scores, scale[low:high])

    for_each(work, -(-tasks.n_tasks // TASKS_AT_ONCE), n_threads)
    return q
