"""Which tasks to label: a sample with known chances, half of it where the panel is unsure.

Shared errors hide where judges agree, so that asking only about doubtful tasks would miss them.
Each task is drawn with a known chance, half even and half by how unsure the panel is;
`tiebreak rate --selection` takes these chances, and its intervals hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import SEED, WITH_RESPONSES, checks, whole
from tiebreak.kernels.layout import Codes, Floats

N_TASKS = 50
EVEN = 0.5  # of the sample is drawn evenly


class Sample(NamedTuple):
    """Tasks to label, and the chance with which each was drawn."""

    task: Codes
    probability: Floats


@checks(model=WITH_RESPONSES, n=whole(1), random_state=SEED)
def sample(model: Any, n: int = N_TASKS, *, random_state: int | None = 0) -> Sample:
    """Draw tasks to label from those that have responses and are not known.

    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 5, random_state=0)
    >>> drawn = sample(tb.VariationalBayes().fit(crowd.responses), 20)
    >>> len(drawn.task), bool(drawn.probability.min() > 0.04)
    (20, True)
    """
    free = np.diff(model.responses_.start) > 0
    if model.gold_ is not None:
        known = model.tasks_.codes(model.gold_.tasks)
        free[known[known >= 0]] = False
    among = np.flatnonzero(free)
    n = min(n, len(among))
    top = model.probabilities_[among].max(axis=1)
    unsure = np.sqrt(np.maximum(top * (1.0 - top), 1e-6))
    chance = inclusion(EVEN / len(among) + (1.0 - EVEN) * unsure / unsure.sum(), n)
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(among))
    # Systematic sampling: one start, equal steps along the sum of chances.
    marks = np.floor(np.cumsum(chance[order]) + rng.random())
    drawn = order[np.flatnonzero(np.diff(marks, prepend=0.0) > 0.0)][:n]
    drawn = np.sort(drawn)
    return Sample(among[drawn].astype(np.int32), chance[drawn])


def inclusion(share: Floats, n: int) -> Floats:
    """Return chances of being drawn, n in sum and none above 1, in proportion to shares."""
    chance = np.minimum(n * share, 1.0)
    for _ in range(20):
        free = chance < 1.0
        rest = n - float(np.count_nonzero(~free))
        if not free.any() or rest <= 0.0:
            break
        new = np.where(free, np.minimum(rest * share / share[free].sum(), 1.0), 1.0)
        if np.allclose(new, chance):
            break
        chance = new
    return np.asarray(chance)
