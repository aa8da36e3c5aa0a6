"""Asking: the next pairs to ask about, by the strategy one names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from tiebreak.arguments import SEED, SEVERAL, WITH_RESPONSES, checks, optional, whole
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import Ids
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.inference import vb
from tiebreak.inference.calibration import Calibration
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats, Mask, Offsets, total_weights
from tiebreak.options import require_word
from tiebreak.selection import adaptive, draws, value
from tiebreak.selection.adaptive import ScoredPair, TaskState
from tiebreak.selection.draws import Seed
from tiebreak.selection.settled import known_classes, settled

Strategy = Literal["adaptive", "bvsb", "random"]
STRATEGIES: tuple[Strategy, ...] = ("adaptive", "bvsb", "random")
DRAWS = 20  # pairs for each one wanted, where some are known; then
MOST_DRAWS = 1_000_000  # pairs in all


class PairGain(NamedTuple):
    """One pair to ask about."""

    left: Hashable
    right: Hashable
    gain: float


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
        left, right, gain = _columns(adaptive.choose(task_state(model, among), n, rng))
    else:
        left, right, gain = _drawn(model, among, n, strategy, rng)
    return Pairs(_names(model, left), _names(model, right), gain, model.responses_.frame)


def task_state(model: Estimator, among: Iterable[Hashable] | None) -> TaskState:
    """Gather what questions are chosen by."""
    if not model.supports_adaptive_selection:
        raise OptionError("no-question-state", model=type(model).__name__)
    groups = settled(model)
    known = known_classes(model, groups)
    return TaskState(
        tempered(model),
        own_probabilities(model),
        groups,
        _among(model, among),
        known,
        example=known,
    )


def tempered(model: Estimator) -> Floats:
    """Return the model's probabilities; scaled as expected where it was told not to."""
    if model.calibration_ is not None:
        return model.probabilities_
    logs = np.log(np.maximum(model.probabilities_, np.finfo(np.float64).tiny))
    return softmax(_scale(model)[:, None] * logs)


def _scale(model: Estimator) -> Floats:
    """Return by how much the scores of each task count, as in a fit: by weight, [eq:design-effect].

    Where a fit was told not to scale, as much as its `dependence` lets expect.
    """
    crowd = model.responses_
    found: Calibration = model.calibration_ or Calibration(model.dependence)
    return found.scale(total_weights(crowd.start, crowd.weight))


def own_probabilities(model: Estimator) -> Floats:
    """Return what the responses of each task alone say of it, scaled: links and gold left out."""
    crowd = model.responses_
    scale = _scale(model)
    tiny = np.finfo(np.float64).tiny
    by_answer = np.log(np.maximum(model.confusion_, tiny)).transpose(0, 2, 1)
    log_prior = np.log(np.maximum(model.class_prior_, tiny))
    log_table = np.ascontiguousarray(by_answer).reshape(-1, crowd.n_classes)  # [code, truth]
    tasks = vb.lay_out(crowd)
    backend = choose_backend("auto", crowd.n_responses)
    return softmax(scale[:, None] * backend.score_tasks(tasks, log_prior, log_table))


def _among(model: Estimator, among: Iterable[Hashable] | None) -> Mask:
    chosen = np.ones(len(model.tasks_), dtype=bool)
    if among is not None:
        wanted = list(among)
        codes = model.tasks_.codes(wanted)
        unknown = [name for name, code in zip(wanted, codes.tolist(), strict=True) if code < 0]
        if unknown:
            raise OptionError("among-unknown-tasks", n=len(unknown), first=unknown[0])
        chosen[:] = False
        chosen[codes] = True
    return chosen


def _drawn(
    model: Estimator, among: Iterable[Hashable] | None, n: int, strategy: Strategy, rng: Any
) -> tuple[Offsets, Offsets, Floats]:
    """Draw pairs whose answer is not known, at random or by best versus second best."""
    groups = settled(model)
    task = np.flatnonzero(_among(model, among))
    q = model.probabilities_
    every = len(task) * (len(task) - 1) // 2
    for many in (n, DRAWS * n, min(every, MOST_DRAWS)):  # known pairs are few, mostly
        if strategy == "random":
            codes = draws.random_pairs(len(task), many, rng)
        else:
            codes = draws.bvsb_pairs(q[task], many, random_state=rng)
        left = task[codes.left]
        right = task[codes.right]
        is_open = ~groups.is_known(left, right)
        if np.count_nonzero(is_open) >= n:
            break
    left = left[is_open][:n]
    right = right[is_open][:n]
    stake = groups.at_stake()
    gain = stake[left] * value.link_gain(q[left], q[right])
    return left, right, gain + stake[right] * value.link_gain(q[right], q[left])


def _columns(questions: list[ScoredPair]) -> tuple[Offsets, Offsets, Floats]:
    left, right, gain = zip(*questions, strict=True) if questions else ((), (), ())
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), np.array(gain, float)


def _names(model: Estimator, codes: Offsets) -> Ids:
    return Ids(model.tasks_.take(codes))
