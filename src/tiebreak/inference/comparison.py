"""Comparing methods by cross-validation on gold: what each would have said of held-out tasks.

Every member sees the responses and four fifths of gold, and foretells the rest: majority vote, VB
with gold, the worker model that fits the responses best, the log opinion pool, the best worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, honest, opinion_weights, vb
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.calibration import TRUSTED_ERROR, Evidence, Honesty
from tiebreak.inference.exact_links import fit as exact_links
from tiebreak.inference.folds import deal
from tiebreak.inference.vb import Problem, Run, Stopping
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats

N_FOLDS = 5
LEAST_GOLD = 10  # known tasks: with fewer nothing is compared
VOTE = 1.5  # log-odds of one vote before gold calibrates it: right four times of five, or so
Z = 1.959964  # 95 %

MV = "mv"
VB = "vb"
POOL = "pool"
BEST = "best worker"


class Member(NamedTuple):
    """How a method did on held-out gold."""

    name: str
    accuracy: float
    interval: tuple[float, float]  # of the accuracy, 95 %
    log_loss: float
    lead: float  # mean log-loss of VB with gold less this one's: above 0 is better than VB
    lead_error: float  # standard error of the lead, over tasks
    is_chosen: bool = False


class Plain(NamedTuple):
    """A problem without links and gold, and where plain VB ended on it."""

    problem: Problem
    run: Run

    @property
    def shares(self) -> Floats:
        """The share of each class."""
        return self.problem.states.mean(self.run.beliefs.alpha)


Foretell = Callable[[GoldCodes, Codes], Floats]  # known tasks, asked tasks: probabilities


def compare(
    members: dict[str, Foretell], gold: GoldCodes, random_state: int | None
) -> list[Member]:
    """Foretell each fold of gold from the others, by every member."""
    fold = deal(gold.label, N_FOLDS, random_state)
    right = {name: np.zeros(len(fold)) for name in members}
    loss = {name: np.zeros(len(fold)) for name in members}
    for number in range(N_FOLDS):
        asked = fold == number
        if not asked.any():
            continue
        known = GoldCodes(gold.task[~asked], gold.label[~asked])
        label = gold.label[asked]
        for name, foretell in members.items():
            q = foretell(known, gold.task[asked])
            share = q[np.arange(len(label)), label]
            loss[name][asked] = -np.log(np.maximum(share, TRUSTED_ERROR))
            right[name][asked] = q.argmax(axis=1) == label
    return [_member(name, right[name], loss[name], loss[VB]) for name in members]


def choose(found: list[Member]) -> str:
    """Keep VB with gold unless another leads by more than one standard error: [eq:auto]."""
    ahead = [each for each in found if each.name != VB and each.lead > each.lead_error]
    if not ahead:
        return VB
    return max(ahead, key=lambda each: each.lead).name


def _member(name: str, right: Floats, loss: Floats, of_vb: Floats) -> Member:
    lead = of_vb - loss
    error = float(lead.std(ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else np.inf
    accuracy = float(right.mean())
    mean = float(loss.mean())
    return Member(name, accuracy, wilson(accuracy, len(right)), mean, float(lead.mean()), error)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the interval of a share of n, 95 %.

    >>> [round(end, 2) for end in wilson(0.8, 50)]
    [0.67, 0.89]
    """
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return float(centre - half), float(centre + half)


# The members


def by_vb(plain: Plain, stopping: Stopping, honesty: Honesty) -> Foretell:
    """VB with gold, from where plain VB ended."""

    def foretell(known: GoldCodes, asked: Codes) -> Floats:
        run = plain.run
        found = exact_links.fit_gold(plain.problem, run, run.beliefs, known, stopping, honesty)
        return found.q[asked]

    return foretell


def by_pool(plain: Plain, terms: opinion_weights.Terms, random_state: int | None) -> Foretell:
    """The log opinion pool."""

    def foretell(known: GoldCodes, asked: Codes) -> Floats:
        opinion = opinion_weights.learn(terms, known, random_state)
        some = terms.of_tasks(asked)
        return softmax(some.scores(opinion, plain.problem.backend) + opinion.offset)

    return foretell


def by_votes(plain: Plain, dependence: float) -> Foretell:
    """Majority vote, whose shares gold calibrates."""

    def foretell(known: GoldCodes, asked: Codes) -> Floats:
        return softmax(vote_scores(plain, known, dependence)[asked])

    return foretell


def vote_scores(plain: Plain, known: GoldCodes, dependence: float) -> Floats:
    """Return scores of tasks by their votes, scaled so that probabilities fit known labels."""
    tasks = plain.problem.tasks
    counted = honest.n_responses(tasks)
    votes = vb.majority(tasks, plain.problem.n_classes) * counted[:, None]
    scores = VOTE * (votes - votes.mean(axis=1, keepdims=True))
    places = np.arange(len(known.task), dtype=np.int32)
    evidence = Evidence(None, np.empty(0), GoldCodes(places, known.label))
    found = calibration.fit(scores[known.task], counted[known.task], evidence, dependence)
    return np.asarray(found.scale(counted)[:, None] * scores)


def by_best_worker(plain: Plain) -> Foretell:
    """The worker who is right most often on gold; where silent, the next best."""

    def foretell(known: GoldCodes, asked: Codes) -> Floats:
        best = BestWorker.of(plain.problem.tasks, plain.shares, known)
        return softmax(best.scores()[asked])

    return foretell
