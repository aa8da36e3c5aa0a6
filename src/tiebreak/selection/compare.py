"""Compare: a link question, a known label or one more vote: which is worth most for its cost?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference.estimator import Estimator
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.selection import adaptive, value
from tiebreak.selection.adaptive import TaskState
from tiebreak.selection.asking import task_state
from tiebreak.selection.draws import Seed


class Offer(NamedTuple):
    """Something one could ask for: what it is expected to put right, and what it costs."""

    kind: str  # "link", "gold" or "vote"
    task: Hashable
    other: Hashable | None  # of a link
    worker: Hashable | None  # of a vote
    gain: float  # labels put right, as expected
    cost: float

    @property
    def worth(self) -> float:
        """Labels put right for one unit of cost."""
        return self.gain / self.cost


Offers = list[Offer]


def compare(
    model: Estimator,
    n: int = 10,
    *,
    link: float | None = 1.0,
    gold: float | None = 1.0,
    vote: float | Mapping[Hashable, float] | None = None,
    among: Iterable[Hashable] | None = None,
    random_state: Seed = None,
) -> Offers:
    """Return the n questions that are worth most for their cost, of all kinds, the best first.

    Parameters
    ----------
    link, gold
        What the answer to a link question, and a known label, cost; None: not to be had.
    vote
        What one more vote costs: a number for any worker, or a mapping of worker to cost, for
        those who can be asked. A worker is not asked again about a task.
    among
        Ask only about these tasks; None: about all.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(n_tasks=50, n_workers=5, n_classes=3, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> [offer.kind for offer in tb.selection.compare(model, 2, link=1.0, gold=30.0)]
    ['link', 'link']
    >>> [offer.kind for offer in tb.selection.compare(model, 2, link=1.0, gold=0.1)]
    ['gold', 'gold']
    """
    rng = np.random.default_rng(random_state)
    state = task_state(model, among)
    offers: Offers = []
    if link is not None:
        cost = _cost("link", link)
        for left, right, gain in adaptive.choose(state, n, rng, check=False):
            offers.append(Offer("link", model.tasks_[left], model.tasks_[right], None, gain, cost))
    if gold is not None:
        offers += _labels(model, state, n, _cost("gold", gold))
    if vote is not None:
        offers += _votes(model, state, n, vote)
    return sorted(offers, key=lambda offer: -offer.worth)[:n]


def _labels(model: Estimator, state: TaskState, n: int, cost: float) -> Offers:
    task, stake = _doubtful(state)
    gain = value.gold_gain(state.q[task]) * stake
    best = np.argsort(-gain, kind="stable")[:n]
    return [Offer("gold", model.tasks_[int(task[i])], None, None, gain[i], cost) for i in best]


def _votes(
    model: Estimator, state: TaskState, n: int, vote: float | Mapping[Hashable, float]
) -> Offers:
    """Return the best votes of each worker who can be asked."""
    workers = list(vote) if isinstance(vote, Mapping) else list(model.workers_)
    codes = model.workers_.codes(workers)
    if len(codes) and codes.min() < 0:
        unknown = workers[int(codes.argmin())]
        raise OptionError(f"vote names a worker who gave no response: {unknown!r}.")
    task, stake = _doubtful(state)
    first = task[np.argsort(-value.gold_gain(state.q[task]) * stake, kind="stable")[: 10 * n]]
    offers: Offers = []
    answered = [set(model.responses_.of(int(each))[0].tolist()) for each in first]
    for name, code in zip(workers, codes.tolist(), strict=True):
        cost = _cost("vote", vote[name] if isinstance(vote, Mapping) else vote)
        open_to = first[[code not in done for done in answered]]
        at_stake = stake[np.searchsorted(task, open_to)]
        gain = value.vote_gain(state.q[open_to], model.confusion_[code]) * at_stake
        for i in np.argsort(-gain, kind="stable")[:n]:
            task_name = model.tasks_[int(open_to[i])]
            offers.append(Offer("vote", task_name, None, name, float(gain[i]), cost))
    return offers


def _doubtful(state: TaskState) -> tuple[Offsets, Floats]:
    """Return one task of each super-task that can be asked about, sorted, and its size."""
    groups = state.settled
    task = np.flatnonzero(state.among)
    _, first = np.unique(groups.unit()[task], return_index=True)
    task = np.sort(task[first])
    return task, np.asarray(groups.at_stake()[task], dtype=np.float64)


def _cost(kind: str, cost: float) -> float:
    if not (np.isfinite(cost) and cost > 0.0):
        raise OptionError(f"The cost of a {kind} must be above 0 and finite; got {cost!r}.")
    return float(cost)
