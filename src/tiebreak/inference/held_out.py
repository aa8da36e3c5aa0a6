"""Scores of known tasks by fits that have not seen their labels: what gold calibrates.

Plain VB has not seen any label, and where much is known it is not the fit whose scores become
probabilities: gold repairs what is believed of workers. So known tasks are dealt into folds, and
each fold is scored by a fit with the gold of the others.
"""

from __future__ import annotations

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration, Evidence, Honesty
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.kernels.layout import Codes, Floats

N_FOLDS = 5
LEAST_SHARE = 0.05  # of all tasks: where less is known, plain VB scores as the fit with gold does
# Scores need no more: what is fitted to them is two numbers.
TOLERANCE = 1e-3
MAX_SWEEPS = 50


def choose(
    plain: Problem,
    beliefs: Beliefs,
    gold: GoldCodes,
    honesty: Honesty,
    *,
    from_gold: bool,
) -> Calibration | None:
    """Return how the scores of a fit with gold become probabilities; None: as the model says.

    Parameters
    ----------
    plain, beliefs
        Plain VB, which has not seen the gold.
    from_gold
        Whether the fit with gold started from workers as known labels alone show them.
    """
    evidence = Evidence(None, np.empty(0), gold)
    if honesty.mode != "auto" or len(gold.task) < max(N_FOLDS, LEAST_SHARE * plain.n_tasks):
        return calibration.choose(plain, beliefs, honesty, evidence)
    scores = _scores(plain, beliefs, gold, from_gold=from_gold)
    n_responses = calibration.n_responses(plain.tasks)[gold.task]
    places = np.arange(len(gold.task), dtype=np.int32)
    by_place = evidence._replace(
        gold=GoldCodes(places, gold.label), is_sample=plain.gold_weight is not None
    )
    return calibration.fit(scores, n_responses, by_place, honesty.dependence)


def _scores(plain: Problem, beliefs: Beliefs, gold: GoldCodes, *, from_gold: bool) -> Floats:
    """Return the class scores of known tasks, (n_known, n_classes), in the order of `gold`."""
    scores = np.empty((len(gold.task), plain.n_classes))
    # Beliefs say where a fold starts; q only has to be the same after a cold and a warm start.
    q = vb.to_states(plain, vb.majority(plain.tasks, plain.n_classes))
    fold = _folds(plain, beliefs, gold)
    for own in (fold == each for each in range(N_FOLDS)):
        rest = GoldCodes(gold.task[~own], gold.label[~own])
        run = vb.ascend(
            vb.with_known(plain, rest),
            vb.clamp(q, rest, plain.n_classes),
            tol=TOLERANCE,
            max_iter=MAX_SWEEPS,
            accelerate=True,
            implied=vb.beliefs_of_known(plain, q, rest) if from_gold else beliefs,
        )
        scores[own] = calibration.class_scores_of(plain, run.beliefs, gold.task[own])
    return scores


def _folds(plain: Problem, beliefs: Beliefs, gold: GoldCodes) -> Codes:
    """Deal known tasks out by how much plain VB prefers their class.

    What was said decides, so that neither names nor the order of rows and gold do. Tasks that are
    equal in it, such as those with the same responses, may stand for each other.
    """
    scores = calibration.class_scores_of(plain, beliefs, gold.task)
    is_known = np.arange(plain.n_classes) == gold.label[:, None]
    of_others = np.logaddexp.reduce(np.where(is_known, -np.inf, scores), axis=1)
    fold = np.empty(len(gold.task), dtype=np.int32)
    fold[np.argsort(scores[is_known] - of_others, kind="stable")] = np.arange(len(fold)) % N_FOLDS
    return fold
