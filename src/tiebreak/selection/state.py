"""What is known of the tasks when questions are chosen.

Tasks that are tied form a group, a super-task: see `links.graph.Implications`. Known labels tie all
tasks of a class. Soft links settle nothing for good, so that a pair is known only where it was
asked; their groups leave out the links that are more likely wrong than right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.inference import vb
from tiebreak.inference.calibration import Calibration
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets, total_weights
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import OPEN, Implications, LinkCodes


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Groups of tied tasks, and which pairs are known."""

    implied: Implications  # of all tasks, known labels as links
    size: Offsets  # (n_groups,) how many tasks
    linked: LinkCodes | None
    asked: Offsets | None  # keys of the pairs that links name, where those are soft

    @property
    def group(self) -> Codes:
        """The group of each task."""
        return self.implied.group

    @property
    def flip(self) -> Codes:
        """1 where a task is the opposite of its group, with two classes."""
        return self.implied.flip

    @property
    def n_links(self) -> int:
        """How many links the model has."""
        return 0 if self.linked is None else self.linked.n_links

    def unit(self) -> Codes:
        """What a question is about: a group or, where links are soft, a task alone."""
        return self.group if self.asked is None else self.implied.task

    def at_stake(self) -> Offsets:
        """How many labels hang on the unit of each task."""
        if self.asked is None:
            return np.asarray(self.size[self.group])
        return np.ones(len(self.group), dtype=np.int64)

    def is_known(self, left: Offsets, right: Offsets) -> Mask:
        """Say of pairs of tasks whether the answer is known."""
        if self.asked is None:
            return np.asarray(self.implied.implied(left, right) != OPEN)
        keys = link_graph.pair_keys(left, right, len(self.group))
        return np.asarray(np.isin(keys, self.asked) | (left == right))


def settled(model: Estimator) -> Settled:
    """Find what the links and the gold of a fitted model settle."""
    n_tasks = len(model.tasks_)
    linked = None if model.links_ is None else model.links_.on(model.tasks_)
    asked = None
    if linked is not None and (model.links_may_err or linked.weight is not None):
        asked = link_graph.pair_keys(linked.left, linked.right, n_tasks)
    implied = link_graph.imply(
        _ties(model, linked), len(model.classes_), tasks=np.arange(n_tasks, dtype=np.int32)
    )
    size = np.bincount(implied.group, minlength=len(implied.group_class))
    return Settled(implied, size, linked, asked)


def known_classes(model: Estimator, settled: Settled) -> Codes:
    """Return the class of each task that gold, or a link that holds for sure, tells; else OPEN."""
    known = np.full(len(model.tasks_), OPEN, dtype=np.int32)
    if model.gold_ is None:
        return known
    gold = model.gold_.on(model.tasks_, model.classes_)
    if settled.asked is not None:  # links may err: what is given is known, nothing else
        known[gold.task] = gold.label
        return known
    of_group = np.full(len(settled.size), OPEN, dtype=np.int32)
    of_group[settled.group[gold.task]] = gold.label ^ settled.flip[gold.task]
    label = of_group[settled.group]
    return np.where(label == OPEN, OPEN, label ^ settled.flip).astype(np.int32)


def _ties(model: Estimator, linked: LinkCodes | None) -> LinkCodes:
    """Return the links to believe, and known labels as links."""
    believed = _believed(model, linked)
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


def _believed(model: Estimator, linked: LinkCodes | None) -> LinkCodes:
    """Return the links without those that are more likely wrong than right."""
    if linked is None:
        nothing = np.empty(0, dtype=np.int32)
        return LinkCodes(nothing, nothing, nothing.astype(bool), None, None, nothing.astype(int))
    if model.doubtful_links_ is None:
        return linked
    disbelieved = np.isin(linked.row, model.doubtful_links_.links.row)
    return linked.keep(~disbelieved)._replace(weight=None)


class TaskState(NamedTuple):
    """What is known of the tasks when questions are chosen."""

    q: Floats  # (n_tasks, n_classes) with all links and gold
    own: Floats  # (n_tasks, n_classes) by the responses of each task alone
    settled: Settled
    among: Mask  # (n_tasks,) which tasks can be asked about
    known: Codes  # (n_tasks,) the class of each task that is known, else OPEN
    example: Codes  # (n_tasks,) the class that each task can be shown as an example of, or OPEN
    error: float = 0.0  # how often answers are wrong
    gain_for_others: Floats | None = None  # (n_tasks,) what a label of each puts right in others


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
        allowed(model, among),
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


def allowed(model: Estimator, among: Iterable[Hashable] | None) -> Mask:
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
