"""Self-preference: does a judge accept answers of its own family more than others do?

    acceptance of             by gpt   by the other judges
    answers of gpt            .80      .66
    answers of other models   .60      .58

gpt prefers its own by (.80 − .60) − (.66 − .58) = .12: what is merely lenient, or merely good, is
taken out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats, Mask
from tiebreak.panel.table import responses_on
from tiebreak.responses import Responses

N_BOOTSTRAP = 300
LEAST = 10  # answers of the own family and of others
INTERVAL = (2.5, 97.5)


class SelfPreference(NamedTuple):
    """How much more a judge accepts answers of its own family; interval of 95 %."""

    worker: Hashable
    family: str
    n_own: int
    preference: float
    interval: tuple[float, float]


def self_preference(
    responses: Responses,
    systems: Mapping[Hashable, str],
    families: Mapping[Hashable, str],
    accepts: int,
    seed: int = 0,
) -> tuple[SelfPreference, ...]:
    """Return the self-preference of each judge whose family is among the judged systems.

    Parameters
    ----------
    systems
        Which model made the answer that a task is about, by task.
    families
        The family of each judge; a judge without one is known by its own name.
    accepts
        The class that means that the answer is accepted.
    """
    task = responses.tasks.codes(list(systems))
    known = np.flatnonzero(task >= 0)
    made_by = [str(list(systems.values())[i]).casefold() for i in known.tolist()]
    at, place = responses_on(responses, task[known])
    worker = responses.code[at] // responses.n_classes
    counts = np.ones(len(at)) if responses.weight is None else responses.weight[at]
    shape = (len(known), responses.n_workers)
    cell = place * responses.n_workers + worker
    size = int(np.prod(shape))
    total = np.bincount(cell, weights=counts, minlength=size).reshape(shape)
    yes = counts * (responses.code[at] % responses.n_classes == accepts)
    accepted = np.bincount(cell, weights=yes, minlength=size).reshape(shape)
    share = np.where(total > 0.0, accepted / np.maximum(total, 1e-300), np.nan)
    rng = np.random.default_rng(seed)
    found = []
    for j in range(responses.n_workers):
        family = families.get(responses.workers[j], str(responses.workers[j]))
        of_family = [family.casefold() in name or name in family.casefold() for name in made_by]
        own = np.array(of_family, dtype=bool)
        each = _of_judge(share, j, own, rng)
        if each is not None:
            found.append(SelfPreference(responses.workers[j], family, *each))
    return tuple(sorted(found, key=lambda each: -each.preference))


def _of_judge(
    share: Floats, j: int, own: Mask, rng: np.random.Generator
) -> tuple[int, float, tuple[float, float]] | None:
    others = np.delete(share, j, axis=1)
    n_others = np.isfinite(others).sum(axis=1)
    mean = np.nansum(others, axis=1) / np.maximum(n_others, 1)
    usable = np.isfinite(share[:, j]) & (n_others > 0)
    mine = np.flatnonzero(usable & own)
    theirs = np.flatnonzero(usable & ~own)
    if min(len(mine), len(theirs)) < LEAST:
        return None
    gap = share[:, j] - mean
    found = float(gap[mine].mean() - gap[theirs].mean())
    draws = [
        gap[rng.choice(mine, len(mine))].mean() - gap[rng.choice(theirs, len(theirs))].mean()
        for _ in range(N_BOOTSTRAP)
    ]
    low, high = np.percentile(draws, INTERVAL)
    return len(mine), found, (float(low), float(high))
