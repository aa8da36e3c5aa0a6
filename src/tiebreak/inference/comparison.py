"""Comparing methods by cross-validation on gold: what each would have said of held-out tasks.

Every member sees the responses and four fifths of gold, and predicts the rest: majority vote, VB
with gold, the worker model that fits the responses best, the log opinion pool, the best worker
alone, and the best worker (as far as gold shows who that is) with the crowd behind.
The better it does, the more it counts: see `stacking`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, opinion_weights, stacking, stages, vb
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.calibration import Evidence, Honesty
from tiebreak.inference.folds import deal
from tiebreak.inference.likely_best import LikelyBest
from tiebreak.inference.vb import Problem, Run, Stopping
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats

N_FOLDS = 5
LEAST_GOLD = 10  # known tasks: with fewer nothing is compared
Z = 1.959964  # 95 %

MV = "mv"
VB = "vb"
POOL = "pool"
BEST = "best worker"
BACKED = "best+crowd"

# The Dirichlet prior of the weights of methods; others have the last count. Chosen among counts of
# 0.1 to 3 on draws 200 to 219 of gold; little hangs on it, see experiments/07_juries/README.md.
COUNTS = {VB: 2.0, POOL: 1.5, BEST: 0.5, BACKED: 0.5}
COUNT_OF_OTHERS = 0.25


class Member(NamedTuple):
    """How a method did on held-out gold."""

    name: str
    accuracy: float
    interval: tuple[float, float]  # of the accuracy, 95 %
    log_loss: float
    lead: float  # mean log-loss of VB with gold less this one's: above 0 is better than VB
    lead_error: float  # standard error of the lead, over tasks
    weight: float = 0.0  # how much it counts, of 1
    is_chosen: bool = False  # whether it counts most


class Plain(NamedTuple):
    """A problem without links and gold, and where plain VB ended on it."""

    problem: Problem
    run: Run

    @property
    def shares(self) -> Floats:
        """The share of each class."""
        return self.problem.states.mean(self.run.beliefs.alpha)


Predictor = Callable[[GoldCodes, Codes], Floats]  # known tasks, asked tasks: probabilities


def compare(
    members: dict[str, Predictor], gold: GoldCodes, random_state: int | None
) -> list[Member]:
    """Predict each fold of gold from the others, by every member, and weigh the members."""
    fold = deal(gold.label, N_FOLDS, random_state)
    predicted = {name: _predictions(each, gold, fold) for name, each in members.items()}
    prior = np.array([COUNTS.get(name, COUNT_OF_OTHERS) for name in members])
    stacked = np.stack(list(predicted.values()))
    weights = stacking.weigh(stacked, gold.label, prior, random_state).tolist()
    most = max(weights)
    of_vb = _log_losses(predicted[VB], gold.label)
    return [
        _member(name, predicted[name], gold.label, of_vb)._replace(
            weight=weight, is_chosen=weight == most
        )
        for name, weight in zip(members, weights, strict=True)
    ]


def _predictions(predict: Predictor, gold: GoldCodes, fold: Codes) -> Floats:
    """Return what a member says of each fold of gold, (n_known, n_classes), from the others."""
    parts = []
    for number in np.unique(fold):
        asked = fold == number
        known = GoldCodes(gold.task[~asked], gold.label[~asked])
        parts.append(predict(known, gold.task[asked]))
    by_fold = np.concatenate(parts)
    found = np.empty_like(by_fold)
    found[np.argsort(fold, kind="stable")] = by_fold
    return found


def _log_losses(q: Floats, label: Codes) -> Floats:
    return -stacking.log_shares(q)[np.arange(len(label)), label]


def _member(name: str, q: Floats, label: Codes, of_vb: Floats) -> Member:
    loss = _log_losses(q, label)
    lead = of_vb - loss
    error = float(lead.std(ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else np.inf
    accuracy = float((q.argmax(axis=1) == label).mean())
    mean = float(loss.mean())
    return Member(name, accuracy, wilson(accuracy, len(label)), mean, float(lead.mean()), error)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the interval of a share of n, 95 %.

    >>> [round(end, 2) for end in wilson(0.8, 50)]
    [0.67, 0.89]
    """
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return float(centre - half), float(centre + half)


# The members


def by_vb(plain: Plain, stopping: Stopping, honesty: Honesty) -> Predictor:
    """VB with gold, from where plain VB ended."""

    def predict(known: GoldCodes, asked: Codes) -> Floats:
        run = plain.run
        found = stages.fit_gold(plain.problem, run, run.beliefs, known, stopping, honesty)
        return found.q[asked]

    return predict


def by_pool(plain: Plain, terms: opinion_weights.Terms, random_state: int | None) -> Predictor:
    """The log opinion pool."""

    def predict(known: GoldCodes, asked: Codes) -> Floats:
        opinion = opinion_weights.learn(terms, known, random_state)
        some = terms.of_tasks(asked)
        return softmax(some.scores(opinion, plain.problem.backend) + opinion.offset)

    return predict


def by_votes(plain: Plain, dependence: float) -> Predictor:
    """Majority vote, whose shares gold calibrates."""

    def predict(known: GoldCodes, asked: Codes) -> Floats:
        return softmax(vote_scores(plain, known, dependence)[asked])

    return predict


def vote_scores(plain: Plain, known: GoldCodes, dependence: float) -> Floats:
    """Return scores of tasks by their votes, scaled so that probabilities fit known labels."""
    tasks = plain.problem.tasks
    counted = calibration.n_responses(tasks)
    votes = vb.majority(tasks, plain.problem.n_classes) * counted[:, None]
    scores = opinion_weights.VOTE * (votes - votes.mean(axis=1, keepdims=True))
    places = np.arange(len(known.task), dtype=np.int32)
    evidence = Evidence(None, np.empty(0), GoldCodes(places, known.label))
    backend = choose_backend("numpy", len(known.task))  # a few known tasks: nothing is compiled
    found = calibration.fit(scores[known.task], counted[known.task], evidence, dependence, backend)
    return np.asarray(found.scale(counted)[:, None] * scores)


def by_best_worker(plain: Plain) -> Predictor:
    """The worker who is right most often on gold; where silent, the next best."""

    def predict(known: GoldCodes, asked: Codes) -> Floats:
        best = BestWorker.of(plain.problem.tasks, plain.shares, known)
        return softmax(best.scores()[asked])

    return predict


def by_best_and_crowd(plain: Plain, terms: opinion_weights.Terms) -> Predictor:
    """The likely best worker and honest VB, each with a weight that gold says: [eq:likely-best].

    One worker's word alone says nothing of the classes that it rules out; the crowd does.
    """
    together = terms.together(plain.problem.backend)
    log_shares = np.log(plain.shares)

    def predict(known: GoldCodes, asked: Codes) -> Floats:
        tasks = plain.problem.tasks
        best = LikelyBest.of(tasks, len(log_shares), known)

        def opinions(some: Codes) -> Floats:
            of_best = np.log(best.probabilities(tasks, some, plain.shares)) - log_shares
            of_best -= of_best.mean(axis=1, keepdims=True)
            return np.stack([together[some], of_best], axis=2)

        weights, offset = opinion_weights.weigh_opinions(terms, opinions(known.task), known)
        return softmax(opinions(asked) @ weights + offset)

    return predict
