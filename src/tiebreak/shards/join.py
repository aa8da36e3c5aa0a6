"""Shards joined: whose ids mean whom, and the tasks that links or gold name.

Responses keep the codes of their shard. What joins them is small: for each shard the row of each of
its workers among all, which whoever loads the shard finds by the ids.

    shard 0: workers ann, bob     shard 1: workers bob, cy     all: ann, bob, cy
    rows     [0, 1]               rows     [1, 2]

Tasks that links or gold name are few. The driver has them, with all their responses: links join
tasks of different shards, and gold is compared with what the crowd says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold, note_unused_classes
from tiebreak.data.ids import Ids
from tiebreak.data.scale import Scale
from tiebreak.errors import note
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import Links
from tiebreak.shards.executor import Executor, each
from tiebreak.shards.sources import Look, naming
from tiebreak.tables.array_folder import read_packed


class JoinedCrowd(NamedTuple):
    """Shards, joined."""

    looks: list[Look]
    workers: Ids  # in order of first appearance
    classes: Ids
    names: Ids  # of the tasks that links or gold name
    scale: Scale | None = None  # of the classes

    @property
    def n_tasks(self) -> int:
        return sum(one.n_tasks for one in self.looks)

    @property
    def n_responses(self) -> int:
        return sum(one.n_responses for one in self.looks)

    def empty(self) -> Responses:
        """Return responses with all workers and classes, and no task."""
        first = read_packed(self.looks[0].path, is_checked=True)
        nothing = first.on_tasks(np.zeros(0, dtype=np.int32))
        nothing = replace(nothing, workers=self.workers, classes=self.classes, weight=None)
        return nothing if self.scale is None else replace(nothing, is_class_ordered=True)


def in_classes(responses: Responses, classes: Ids, scale: Scale | None) -> Responses:
    """Return the responses of a shard in the classes of all shards, or on their scale."""
    return responses.in_classes(classes) if scale is None else scale.on(responses)


def join(
    looks: list[Look], links: Links | None, gold: Gold | None, scale: Scale | None = None
) -> JoinedCrowd:
    """Join shards in their order: workers as they first appear, classes sorted, or of a scale."""
    first = looks[0]
    if scale is not None:
        looks = [one._replace(classes=scale.classes, is_class_ordered=True) for one in looks]
        first = looks[0]
    classes = reduce(Ids.merge, (one.classes for one in looks))
    n_differ = sum(one.classes != first.classes for one in looks)
    if n_differ:
        note("shard-classes-differ", n=n_differ, first=first.shard.path, n_classes=len(classes))
    names = Ids(())
    if gold is not None:
        n_known = len(classes)
        classes = classes.merge(gold.classes)
        if len(classes) > n_known:
            note_unused_classes(classes[n_known:], classes[:n_known])
        names = gold.tasks
    if not (first.is_class_ordered and not n_differ):
        classes = classes.sorted()[0]
    if links is not None and len(links):
        names = names.merge(links.tasks)
    workers = reduce(Ids.merge, (one.workers for one in looks))
    light = [one._replace(workers=Ids(()), notes=()) for one in looks]  # the driver stays small
    return JoinedCrowd(light, workers, classes, names, scale)


def named_tasks(tasks: Ids, names: Ids) -> Codes:
    """Return which tasks of a shard links or gold name, ascending.

    >>> named_tasks(Ids(["a", "b", "c"]), Ids(["c", "z", "a"])).tolist()
    [0, 2]
    """
    found = tasks.codes(names)
    return np.unique(found[found >= 0]).astype(np.int32)


def gather_named(executor: Executor, crowd: JoinedCrowd) -> tuple[list[int], Responses]:
    """Return how many tasks of each shard links or gold name, and the responses on all of them."""
    if not len(crowd.names):
        return [0] * len(crowd.looks), crowd.empty()
    find = partial(find_named, crowd._replace(looks=[]))
    found = each(executor, find, ((one,) for one in crowd.looks))
    length = np.concatenate([np.diff(one.start) for one in found])
    weight: Floats | None = None
    if any(one.weight is not None for one in found):
        weight = np.concatenate([one.weight_of_each() for one in found])
    gathered = replace(
        crowd.empty(),
        start=np.concatenate([[0], np.cumsum(length)]).astype(np.int64),
        code=np.concatenate([one.code for one in found]),
        tasks=ids.concatenate([one.tasks for one in found]),
        weight=weight,
    )
    return [one.n_tasks for one in found], gathered


def find_named(crowd: JoinedCrowd, one: Look) -> Responses:
    """Return the responses on the tasks of a shard that are named, in the codes of all shards."""
    with naming(one):
        whole = read_packed(one.path, is_checked=True)
        named = whole.on_tasks(named_tasks(whole.tasks, crowd.names))
        named = in_classes(named, crowd.classes, crowd.scale)
    rows = crowd.workers.codes(named.workers)
    code = rows[named.worker_of_each()] * np.int32(len(crowd.classes)) + named.label_of_each()
    order = np.lexsort((code, named.task_of_each()))
    weight = None if named.weight is None else named.weight[order]
    code = code[order].astype(np.int32)
    return replace(named, code=code, weight=weight, workers=Ids(()), classes=Ids(()))
