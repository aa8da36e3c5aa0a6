"""Asking: the next pairs to ask about, by the strategy one names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tiebreak.arguments import SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import Ids
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Floats
from tiebreak.options import require_word
from tiebreak.selection import adaptive, draws, value
from tiebreak.selection.adaptive import PairGain
from tiebreak.selection.draws import Seed
from tiebreak.selection.state import allowed, settled, task_state

Strategy = Literal["adaptive", "bvsb", "random"]
STRATEGIES: tuple[Strategy, ...] = ("adaptive", "bvsb", "random")
DRAWS = 20  # pairs for each one wanted, where some are known; then
MOST_DRAWS = 1_000_000  # pairs in all


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of tasks to ask about, the best first.

    `gain` is the number of labels that the answer is expected to put right, by itself; that of a
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
    if strategy == "adaptive":
        chosen = adaptive.choose(task_state(model, among), n, rng)
    else:
        chosen = _drawn(model, among, n, strategy, rng)
    left, right = (
        Ids(model.tasks_.take(np.array([pair[end] for pair in chosen], dtype=np.int64)))
        for end in (0, 1)
    )
    gain = np.array([pair.gain for pair in chosen], dtype=np.float64)
    return Pairs(left, right, gain, model.responses_.frame)


def _drawn(
    model: Estimator, among: Iterable[Hashable] | None, n: int, strategy: Strategy, rng: Any
) -> list[PairGain]:
    """Draw pairs whose answer is not known, at random or by best versus second best."""
    groups = settled(model)
    task = np.flatnonzero(allowed(model, among))
    q = model.probabilities_
    every = len(task) * (len(task) - 1) // 2
    for many in (n, DRAWS * n, min(every, MOST_DRAWS)):  # known pairs are few, mostly
        if strategy == "random":
            drawn = draws.random_pairs(len(task), many, rng)
        else:
            drawn = draws.bvsb_pairs(q[task], many, random_state=rng)
        left, right = task[drawn]
        is_open = ~groups.is_known(left, right)
        if np.count_nonzero(is_open) >= n:
            break
    left, right = left[is_open][:n], right[is_open][:n]
    stake = groups.at_stake()
    gain = stake[left] * value.link_gain(q[left], q[right])
    gain = gain + stake[right] * value.link_gain(q[right], q[left])
    return [PairGain(*pair) for pair in zip(left, right, gain.tolist(), strict=True)]
