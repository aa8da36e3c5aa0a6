"""Settled: what links and known labels already say, so that no pair is asked in vain.

Tasks that are tied form a group, a super-task: with two classes links of either kind tie, and a
task may be the opposite of its group; with more, only must-links do, and cannot-links set groups
apart. Known labels tie all tasks of a class. Soft links settle nothing for good, so that a pair is
known only where it was asked; their groups leave out the links that the model disbelieves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak import link_graph
from tiebreak.gold import GoldCodes
from tiebreak.inference import VariationalBayes
from tiebreak.inference.estimator import Estimator
from tiebreak.kernels.layout import Codes, Mask
from tiebreak.link_graph import LinkCodes
from tiebreak.link_graph.codes import Ints, distinct


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Groups of tied tasks, and which pairs are known."""

    group: Codes  # (n_tasks,) codes of groups
    flip: Codes  # (n_tasks,) 1: the opposite of its group, with two classes
    size: Ints  # (n_groups,) how many tasks
    apart: Ints  # sorted keys of groups that are known to differ, or, soft, of pairs asked
    is_soft: bool
    n_links: int
    linked: LinkCodes | None

    def unit(self) -> Codes:
        """What a question is about: a group or, where links are soft, a task alone."""
        return np.arange(len(self.group), dtype=np.int32) if self.is_soft else self.group

    def at_stake(self) -> Ints:
        """How many labels hang on the unit of each task."""
        if self.is_soft:
            return np.ones(len(self.group), dtype=np.int64)
        return np.asarray(self.size[self.group])

    def is_known(self, unit: Ints, other: Ints) -> Mask:
        """Say of pairs of units whether the answer is known."""
        keys = link_graph.pair_keys(unit, other, len(self.group))
        at = np.searchsorted(self.apart, keys)
        at[at == len(self.apart)] = 0
        found = self.apart[at] == keys if len(self.apart) else np.zeros(len(keys), dtype=bool)
        return np.asarray(found | (unit == other))


def settled(model: Estimator) -> Settled:
    """Find what the links and the gold of a fitted model settle."""
    n_tasks = len(model.tasks_)
    n_classes = len(model.classes_)
    given = None if model.links_ is None else model.links_.on(model.tasks_)
    stated = model.link_error if isinstance(model, VariationalBayes) else None
    is_soft = given is not None and (stated is not None or given.weight is not None)
    believed = _believed(model, given)
    tied = _with_gold(believed, _gold(model))
    group, flip, apart = _groups(n_tasks, n_classes, tied)
    if is_soft and given is not None:
        apart = link_graph.pair_keys(given.left, given.right, n_tasks)
    n_links = 0 if given is None else given.n_links
    size = np.bincount(group, minlength=int(group.max(initial=-1)) + 1)
    return Settled(group, flip, size, link_graph.each_once(apart), is_soft, n_links, given)


def _gold(model: Estimator) -> GoldCodes | None:
    return None if model.gold_ is None else model.gold_.on(model.tasks_, model.classes_)


def _believed(model: Estimator, given: LinkCodes | None) -> LinkCodes | None:
    """Return the links without those that are likelier wrong than right."""
    doubtful = model.doubtful_links_ if isinstance(model, VariationalBayes) else None
    if given is None or doubtful is None:
        return given
    disbelieved = np.isin(given.row, doubtful.links.row)
    return given.keep(~disbelieved)._replace(weight=None)


def _with_gold(links: LinkCodes | None, gold: GoldCodes | None) -> LinkCodes | None:
    """Tie known tasks of one class to its first, and set the first of the classes apart."""
    if gold is None or not len(gold.task):
        return links
    order = np.argsort(gold.label, kind="stable")
    task, label = gold.task[order], gold.label[order]
    first = np.searchsorted(label, np.unique(label))
    head = task[first][np.cumsum(np.isin(np.arange(len(task)), first)) - 1]
    i, j = np.triu_indices(len(first), 1)
    rest = task != head
    left = np.concatenate([head[rest], task[first][i]])
    right = np.concatenate([task[rest], task[first][j]])
    must = np.arange(len(left)) < np.count_nonzero(rest)
    if links is not None:
        left, right = np.concatenate([left, links.left]), np.concatenate([right, links.right])
        must = np.concatenate([must, links.must])
    return distinct(left, right, must, None, None)


def _groups(n_tasks: int, n_classes: int, links: LinkCodes | None) -> tuple[Codes, Codes, Ints]:
    flip = np.zeros(n_tasks, dtype=np.int32)
    if links is None:
        return np.arange(n_tasks, dtype=np.int32), flip, np.empty(0, dtype=np.int64)
    if n_classes == 2:
        tied = link_graph.parity(n_tasks, links)
        _, group = np.unique(tied.root, return_inverse=True)
        return group.astype(np.int32), tied.parity.astype(np.int32), np.empty(0, dtype=np.int64)
    closed = link_graph.close(n_tasks, links)
    return closed.group, flip, link_graph.pair_keys(closed.left, closed.right, n_tasks)
