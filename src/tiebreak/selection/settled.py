"""Settled: what links and known labels already say, so that no question is wasted.

Tasks that are tied form a group, a super-task: see `link_graph.Implications`. Known labels tie all
tasks of a class. Soft links settle nothing for good, so that a pair is known only where it was
asked; their groups leave out the links that are more likely wrong than right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.estimators.base import Estimator
from tiebreak.kernels.layout import Codes, Mask, Offsets
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
