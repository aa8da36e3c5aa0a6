"""Verdicts: a word for each worker, from what is known of their accuracy and of its interval.

`chance` is how often a worker would be right who gives the same answers, as often, whatever the
task is. Skill is the way from chance to always right: 0 is chance, 1 is perfect, below 0 is worse
than chance.

| verdict | when |
|---|---|
| too few to tell | the interval holds chance, and ends above a skill of `RELIABLE` |
| no better than chance | the interval holds chance |
| inverted | the interval ends below chance |
| biased towards c | c is said of other classes often, and twice as often as c is missed |
| reliable | skill of at least `RELIABLE` |
| weak | better than chance, but not by that much |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.kernels.layout import Floats

TOO_FEW = "too few to tell"
CHANCE = "no better than chance"
INVERTED = "inverted"
RELIABLE_WORD = "reliable"
WEAK = "weak"
BIASED = "biased towards "

RELIABLE = 0.5  # skill
OFTEN = 0.25  # of tasks of other classes: so often is a class said wrongly by who is biased
TWICE = 2.0  # as often as the class is missed


class Skill(NamedTuple):
    """What verdicts look at; each is (n_workers,) but the confusions, (worker, truth, answer)."""

    accuracy: Floats
    low: Floats
    high: Floats
    chance: Floats
    confusion: Floats
    class_prior: Floats


def chance_of(confusion: Floats, class_prior: Floats) -> Floats:
    """Return how often each worker would be right with the same answers, given blindly.

    >>> always_first = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> chance_of(always_first, np.array([0.9, 0.1])).tolist()
    [0.9]
    """
    said = np.einsum("k,wkl->wl", class_prior, confusion)
    return np.asarray(said @ class_prior)


def verdicts(skill: Skill, classes: Ids) -> list[str]:
    """Return a word for each worker."""
    towards, is_biased = _bias(skill)
    room = 1.0 - skill.chance
    reliable_from = skill.chance + RELIABLE * room
    words = []
    for w in range(len(skill.accuracy)):
        if skill.low[w] <= skill.chance[w] <= skill.high[w]:
            words.append(TOO_FEW if skill.high[w] > reliable_from[w] else CHANCE)
        elif skill.high[w] < skill.chance[w]:
            words.append(INVERTED)
        elif is_biased[w]:
            words.append(f"{BIASED}{classes[int(towards[w])]}")
        else:
            words.append(RELIABLE_WORD if skill.accuracy[w] >= reliable_from[w] else WEAK)
    return words


def _bias(skill: Skill) -> tuple[Floats, Floats]:
    """Return the class that each worker says too often, and whether that is a bias."""
    prior = skill.class_prior
    said_of_all = np.einsum("k,wkl->wl", prior, skill.confusion)
    right = np.diagonal(skill.confusion, axis1=1, axis2=2)
    others = np.maximum(1.0 - prior, np.finfo(float).tiny)
    wrongly = (said_of_all - prior * right) / others  # Pr(said c | truth is not c)
    missed = 1.0 - right
    towards = wrongly.argmax(axis=1)
    every = np.arange(len(towards))
    worst = wrongly[every, towards]
    n_classes = wrongly.shape[1]
    rest = (wrongly.sum(axis=1) - worst) / max(n_classes - 1, 1)
    compared = np.maximum(missed[every, towards], rest)
    return towards, (worst >= OFTEN) & (worst >= TWICE * compared)
