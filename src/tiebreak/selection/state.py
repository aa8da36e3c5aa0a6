"""What is known of the tasks when questions are chosen.

Tasks that are tied form a group, a super-task: see `links.graph.Implications`. Known labels tie all
tasks of a class. Soft links settle nothing for good, so that a pair is known only where it was
asked; their groups leave out the links that are more likely wrong than right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.door import lay_out
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets, total_weights
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import OPEN, Implications, LinkCodes

TINY = np.finfo(np.float64).tiny


@dataclass(eq=False)
class TaskState:
    """What is known of the tasks when questions are chosen.

    A question is about a unit: a group of tied tasks or, where links may err, one task.
    """

    model: Estimator
    q: Floats  # (n_tasks, n_classes) what is believed
    among: Mask  # (n_tasks,) which tasks can be asked about
    implied: Implications  # of all tasks, known labels as links
    linked: LinkCodes | None
    asked: Offsets | None  # keys of the pairs that links name, where those are soft
    known: Codes  # (n_tasks,) the class of each task that is known, else OPEN
    example: Codes  # (n_tasks,) the class that each task can be shown as an example of, or OPEN
    error: float = 0.0  # how often answers are wrong
    gain_for_others: Floats | None = None  # (n_tasks,) what a label of each corrects in others

    @property
    def group(self) -> Codes:
        return self.implied.group

    @property
    def n_links(self) -> int:
        return 0 if self.linked is None else self.linked.n_links

    @cached_property
    def size(self) -> Offsets:
        return np.bincount(self.group, minlength=len(self.implied.group_class))

    @cached_property
    def own(self) -> Floats:
        return own_probabilities(self.model)

    def unit(self) -> Codes:
        return self.group if self.asked is None else self.implied.task

    def at_stake(self) -> Offsets:
        """Return how many labels depend on the unit of each task."""
        if self.asked is None:
            return np.asarray(self.size[self.group])
        return np.ones(len(self.group), dtype=np.int64)

    def is_known(self, left: Offsets, right: Offsets) -> Mask:
        """Return of pairs of tasks whether the answer is known."""
        if self.asked is None:
            return np.asarray(self.implied.implied(left, right) != OPEN)
        keys = link_graph.pair_keys(left, right, len(self.group))
        return np.asarray(np.isin(keys, self.asked) | (left == right))


def task_state(
    model: Estimator, among: Iterable[Hashable] | None, *, by_workers: bool = True
) -> TaskState:
    """Gather what questions are chosen by.

    `by_workers`: by what a model of the workers finds; else by the probabilities of any estimator.
    """
    if by_workers and not model.supports_adaptive_selection:
        raise OptionError("no-question-state", model=type(model).__name__)
    n_tasks = len(model.tasks_)
    linked = None if model.links_ is None else model.links_.on(model.tasks_)
    asked = None
    if linked is not None and (model.links_may_err or linked.weight is not None):
        asked = link_graph.pair_keys(linked.left, linked.right, n_tasks)
    implied = link_graph.imply(
        _ties(model, linked), len(model.classes_), tasks=np.arange(n_tasks, dtype=np.int32)
    )
    known = np.full(n_tasks, OPEN, dtype=np.int32)
    if model.gold_ is not None:
        gold = model.gold_.on(model.tasks_, model.classes_)
        known[gold.task] = gold.label
        if asked is None:  # what holds for sure makes more known
            of_group = np.full(len(implied.group_class), OPEN, dtype=np.int32)
            of_group[implied.group[gold.task]] = gold.label ^ implied.flip[gold.task]
            label = of_group[implied.group]
            known = np.where(label == OPEN, OPEN, label ^ implied.flip).astype(np.int32)
    return TaskState(
        model,
        tempered(model) if by_workers else model.probabilities_,
        allowed(model, among),
        implied,
        linked,
        asked,
        known,
        example=known,
    )


def _ties(model: Estimator, linked: LinkCodes | None) -> LinkCodes:
    """Return the links that are not more likely wrong than right, and known labels as links."""
    nothing = np.empty(0, dtype=np.int32)
    believed = LinkCodes(nothing, nothing, nothing.astype(bool), None, None, nothing.astype(int))
    if linked is not None:
        believed = linked
        if model.doubtful_links_ is not None:
            disbelieved = np.isin(linked.row, model.doubtful_links_.links.row)
            believed = linked.keep(~disbelieved)._replace(weight=None)
    if model.gold_ is None:
        return believed
    gold = Links.from_gold(model.gold_).on(model.tasks_)
    return link_graph.distinct(
        np.concatenate([gold.left, believed.left]),
        np.concatenate([gold.right, believed.right]),
        np.concatenate([gold.must, believed.must]),
        None,
        None,
    )


def tempered(model: Estimator) -> Floats:
    """Return the model's probabilities; scaled as expected where it does not scale itself."""
    if model.calibration_ is not None:
        return model.probabilities_
    logs = np.log(np.maximum(model.probabilities_, TINY))
    return softmax(_scale(model)[:, None] * logs)


def _scale(model: Estimator) -> Floats:
    """Return by how much the scores of each task count, as in a fit: the design effect, by weight.

    Where a fit does not scale, as much as its `dependence` lets expect.
    """
    crowd = model.responses_
    found: Calibration = model.calibration_ or Calibration(model.dependence)
    return found.scale(total_weights(crowd.start, crowd.weight))


def own_probabilities(model: Estimator) -> Floats:
    """Return what the responses of each task alone say of it, scaled: links and gold left out."""
    crowd = model.responses_
    by_answer = np.log(np.maximum(model.confusion_, TINY)).transpose(0, 2, 1)
    log_prior = np.log(np.maximum(model.class_prior_, TINY))
    log_table = np.ascontiguousarray(by_answer).reshape(-1, crowd.n_classes)  # [code, truth]
    tasks = lay_out(crowd)
    backend = choose_backend("auto", crowd.n_responses)
    return softmax(_scale(model)[:, None] * backend.score_tasks(tasks, log_prior, log_table))


def allowed(model: Estimator, among: Iterable[Hashable] | None) -> Mask:
    """Return which tasks may be asked about; refuse names that no response has."""
    if among is None:
        return np.ones(len(model.tasks_), dtype=bool)
    wanted = list(among)
    codes = model.tasks_.codes(wanted)
    unknown = [name for name, code in zip(wanted, codes.tolist(), strict=True) if code < 0]
    if unknown:
        raise OptionError("among-unknown-tasks", n=len(unknown), first=unknown[0])
    chosen = np.zeros(len(model.tasks_), dtype=bool)
    chosen[codes] = True
    return chosen
