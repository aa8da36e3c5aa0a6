"""Draws: pairs of tasks at random, and the paper's best versus second best.

Pure functions on class probabilities. Pairs come back as codes of tasks, (2, n), in the order in
which they were drawn: the first n of a longer draw are a draw of n, so that one draw serves a
series of growing sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.options import as_floats
from tiebreak.simulate import unrank_pairs

Seed = int | np.random.Generator | None


def margins(q: npt.ArrayLike) -> Floats:
    """Return how far the best class of each task is ahead of the second best: [eq:margin].

    Between 0, in doubt, and 1, sure. The paper calls it an uncertainty measure.

    Parameters
    ----------
    q
        (n_tasks, n_classes), rows sum to 1.

    Examples
    --------
    >>> margins([[0.5, 0.3, 0.2], [0.98, 0.01, 0.01]]).round(2)
    array([0.2 , 0.97])
    """
    of_class = as_floats("q", q)
    if of_class.ndim != 2 or of_class.shape[1] < 2:
        raise OptionError("margin-shape", shape=of_class.shape)
    top_two = np.partition(of_class, -2, axis=1)[:, -2:]
    return np.asarray(top_two[:, 1] - top_two[:, 0])


def draw_in_order(weight: Floats, n: int, rng: np.random.Generator) -> Offsets:
    """Draw n different places one after the other, each in proportion to the weights left.

    The n largest of log w + Gumbel are such a draw. Places of weight 0 come only when no other
    is left, each as likely as the next; where there are fewer than n places, all are drawn.

    >>> draw_in_order(np.array([0.0, 2.0, 0.0]), 1, np.random.default_rng(0))
    array([1])
    """
    is_zero = weight <= 0.0
    key = rng.gumbel(size=len(weight)) + np.log(np.where(is_zero, 1.0, weight))
    return np.lexsort((-key, is_zero))[:n]


def random_pairs(n_tasks: int, n: int, random_state: Seed = None) -> Offsets:
    """Draw n different pairs of tasks, all equally likely; all pairs where there are fewer.

    >>> pairs = random_pairs(3, 3, random_state=0)
    >>> sorted(map(tuple, pairs.T.tolist()))
    [(0, 1), (0, 2), (1, 2)]
    """
    rng = np.random.default_rng(random_state)
    n_pairs = n_tasks * (n_tasks - 1) // 2
    wanted = min(_count(n), n_pairs)
    place = rng.choice(n_pairs, size=wanted, replace=False) if wanted else np.empty(0, np.int64)
    return np.stack(unrank_pairs(place))


def bvsb_pairs(q: npt.ArrayLike, n: int, *, random_state: Seed = None) -> Offsets:
    """Draw pairs of a doubtful and a sure task, by best versus second best: [eq:bvsb].

    Doubtful tasks are drawn in proportion to 1 - margin, and for each K partners in proportion to
    their margin. No task is its own partner, and no pair is drawn twice, in either order.

    Departs from the paper: partners are drawn without replacement; and where K does not divide n,
    the last doubtful task has fewer partners, so that n pairs come back, not K ⌊n / K⌋.

    Parameters
    ----------
    q
        (n_tasks, n_classes), rows sum to 1: what plain VB finds, or shares of votes.

    Examples
    --------
    >>> pairs = bvsb_pairs([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]], 2, random_state=0)
    >>> sorted(map(tuple, pairs.T.tolist()))
    [(0, 1), (0, 2)]
    """
    margin = margins(q)
    n_partners = np.asarray(q).shape[1]
    n_pairs = _count(n)
    rng = np.random.default_rng(random_state)
    asked = draw_in_order(1.0 - margin, -(-n_pairs // n_partners), rng)
    partners = _draw_partners(asked, margin, n_partners, rng)
    left = np.repeat(asked, [len(each) for each in partners])
    right = np.concatenate([np.empty(0, dtype=np.int64), *partners])
    return np.stack([left, right])[:, :n_pairs]


def _draw_partners(
    asked: Offsets, margin: Floats, n_partners: int, rng: np.random.Generator
) -> list[Offsets]:
    """Draw the partners of each doubtful task, leaving out those it was paired with before."""
    paired: dict[int, list[int]] = {}  # doubtful tasks that already have this one as a partner
    drawn: list[Offsets] = []
    for task in asked.tolist():
        is_free = np.ones(len(margin), dtype=bool)
        is_free[[task, *paired.get(task, ())]] = False
        candidates = np.flatnonzero(is_free)
        partners = candidates[draw_in_order(margin[candidates], n_partners, rng)]
        for partner in partners.tolist():
            paired.setdefault(partner, []).append(task)
        drawn.append(partners)
    return drawn


def _count(n: Any) -> int:
    if n < 0:
        raise OptionError.must_be("n, the number of pairs,", "0 or more", n)
    return int(n)
