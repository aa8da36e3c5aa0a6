"""Draws: the next pairs by the strategy one names; at random, and best versus second best.

`random_pairs` and `bvsb_pairs` are pure functions on class probabilities. Pairs come back as codes
of tasks, (2, n), in the order in which they were drawn: the first n of a longer draw are a draw of
n, so that one draw serves a series of growing sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import Ids
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.options import as_floats, require_word
from tiebreak.selection import adaptive, value
from tiebreak.selection.adaptive import PairGain
from tiebreak.selection.state import TaskState, task_state
from tiebreak.simulate import unrank_pairs

Seed = int | np.random.Generator | None
Strategy = Literal["adaptive", "bvsb", "random"]
STRATEGIES: tuple[Strategy, ...] = ("adaptive", "bvsb", "random")
DRAWS = 20  # pairs for each one wanted, where some are known; then
MOST_DRAWS = 1_000_000  # pairs in all


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of tasks to ask about, the best first.

    `gain` is the number of labels that the answer is expected to correct, by itself; that of a
    check, which guards later answers, may be small.
    """

    left: Ids
    right: Ids
    gain: Floats
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.gain)

    def __iter__(self) -> Iterator[PairGain]:
        return map(PairGain._make, zip(self.left, self.right, self.gain.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Pairs({len(self):,} pairs)"

    def to_frame(self) -> Any:
        """Return left, right and gain as a table of the caller's kind."""
        every = np.arange(len(self))
        columns = {"left": self.left.take(every), "right": self.right.take(every)}
        return as_frame({**columns, "gain": self.gain}, self.frame)


@checks(model=WITH_RESPONSES, n=whole(0), among=optional(SEVERAL), random_state=SEED)
def pairs(
    model: Estimator,
    n: int,
    strategy: Strategy = "adaptive",
    among: Iterable[Hashable] | None = None,
    random_state: Seed = None,
) -> Pairs:
    """Choose the next n pairs of tasks to ask "are these two the same class?".

    A pair that links or gold of the model settle is never chosen. Where fewer than n are open, all
    of those that the strategy would ask come back.

    Parameters
    ----------
    model
        A fitted `VariationalBayes`. Fit it again with the answers as links, and ask on. "random"
        and "bvsb" take any fitted estimator: with `MajorityVote` the shares of votes decide.
    strategy
        "adaptive": tasks in doubt against tasks that are known well, by expected gain; cores are
        checked first. "bvsb": the paper's, doubtful tasks against sure ones at random: [eq:bvsb].
        "random": any pair.
    among
        Ask only about these tasks; None: about all.
    random_state
        A seed or a generator.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(n_tasks=50, n_workers=5, n_classes=3, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> tb.selection.pairs(model, 5, random_state=0)
    Pairs(5 pairs)
    """
    require_word("strategy", strategy, STRATEGIES)
    if len(model.classes_) < 2:
        raise OptionError("nothing-to-ask")
    rng = np.random.default_rng(random_state)
    state = task_state(model, among, by_workers=strategy == "adaptive")
    if strategy == "adaptive":
        chosen = adaptive.choose(state, n, rng)
    else:
        chosen = _drawn(state, n, strategy, rng)
    left, right = (
        Ids(model.tasks_.take(np.array([pair[end] for pair in chosen], dtype=np.int64)))
        for end in (0, 1)
    )
    gain = np.array([pair.gain for pair in chosen], dtype=np.float64)
    return Pairs(left, right, gain, model.responses_.frame)


def _drawn(
    state: TaskState, n: int, strategy: Strategy, rng: np.random.Generator
) -> list[PairGain]:
    """Draw pairs whose answer is not known, at random or by best versus second best."""
    task = np.flatnonzero(state.among)
    every = len(task) * (len(task) - 1) // 2
    for many in (n, DRAWS * n, min(every, MOST_DRAWS)):  # known pairs are few, mostly
        if strategy == "random":
            drawn = random_pairs(len(task), many, rng)
        else:
            drawn = bvsb_pairs(state.q[task], many, random_state=rng)
        left, right = task[drawn]
        is_open = ~state.is_known(left, right)
        if np.count_nonzero(is_open) >= n:
            break
    left, right = left[is_open][:n], right[is_open][:n]
    q, stake = state.q, state.at_stake()
    gain = stake[left] * value.link_gain(q[left], q[right])
    gain = gain + stake[right] * value.link_gain(q[right], q[left])
    return [PairGain(*pair) for pair in zip(left, right, gain.tolist(), strict=True)]


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
    wanted = min(int(n), n_pairs)
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
    n_pairs = int(n)
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
