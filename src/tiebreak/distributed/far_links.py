"""Linked tasks elsewhere: what the driver knows of link units, and their joint inference.

The driver keeps q of linked tasks, as it stood at the start of an ascent and as it is fetched at
its end; responses, nodes and messages are the units'. They are swept together with all other units:
see `sweeper.Units`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak import link_graph
from tiebreak.distributed.link_units import (
    Begin,
    Concluded,
    LinkRecipe,
    LinkSet,
    LinkSwept,
    LinkTables,
    cut_link_units,
)
from tiebreak.gold import GoldCodes
from tiebreak.inference.exact_links import ascents
from tiebreak.inference.exact_links.place import open_members, share_of_prior
from tiebreak.inference.exact_links.plan import LinkReport, Merged, in_large, merge
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import FREE, POOLED, ByTask, Codes, Floats, Mask, Offsets, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.link_graph import LinkCodes
from tiebreak.options import ExactLinkOptions

if TYPE_CHECKING:
    from tiebreak.distributed.sweeper import Units


class FarTasks:
    """The driver's tasks that lie in link units, and what these were last told."""

    def __init__(self, recipes: list[LinkRecipe], n_tasks: int) -> None:
        self.recipes = recipes
        self.is_far: Mask = np.zeros(n_tasks, dtype=bool)
        for recipe in recipes:
            self.is_far[recipe.tasks] = True
        self.n_sets = 0  # of links
        self.n_ascents = 0
        self.is_there = self.is_far  # in this ascent: known tasks are the driver's
        self.links: LinksElsewhere | None = None  # of the ascent that begins, or began
        self.ways: list[tuple[Begin, LinkTables | None]] = []  # to where each unit stands
        self.last: LinkSwept | None = None  # sweep of this ascent, of all units

    def begin(self, tasks: ByTask, q: Floats) -> ByTask:
        """Begin an ascent; return the tasks as the driver sweeps them, without those that are far.

        What is free is swept where it lies, linked tasks as links say.
        """
        free = self._free_there(tasks)
        linked = self.is_far & (tasks.role == POOLED)
        self.is_there = free | linked
        links = self.links if linked.any() else None
        self.links = links
        self.last = None
        self.n_ascents += 1
        role = np.where(free, FREE, POOLED).astype(np.int8)
        self.ways = [
            (Begin(role[at], q[at], None if links is None else links.sets[u]), None)
            for u, at in enumerate(recipe.tasks for recipe in self.recipes)
        ]
        return tasks._replace(role=np.where(free, POOLED, tasks.role).astype(np.int8))

    def log_odds_of(self, unit: int) -> Floats | None:
        """Return the log-odds of a unit's soft links; None where they are not learnt."""
        if self.links is None or not self.links.is_learnt:
            return None
        return self.links.log_odds[self.links.soft_at[unit]]

    def add(self, found: list[LinkSwept]) -> LinkSwept:
        """Add up what units say of a sweep, in their order."""
        swept = reduce(Swept.plus, (each.swept for each in found))
        agree = np.empty(0)
        if self.links is not None and self.links.is_learnt:
            agree = self.links.by_soft_link([each.agree for each in found])
        return LinkSwept(swept, sum(each.value for each in found), agree)

    def swept(self, tables: list[LinkTables], found: LinkSwept) -> None:
        """Take note of a sweep: what units were told, and what they found together."""
        self.ways = [(begin, own) for (begin, _), own in zip(self.ways, tables, strict=True)]
        self.last = found

    def set_rows(self, q: Floats, of_units: Sequence[Floats]) -> None:
        """Set the rows of q to what units say of their tasks."""
        for recipe, each in zip(self.recipes, of_units, strict=True):
            there = self.is_there[recipe.tasks]
            q[recipe.tasks[there]] = each[there]

    def _free_there(self, tasks: ByTask) -> Mask:
        """Return the far tasks that are free.

        Where classes have subtypes, known tasks are free too, but for one more code, which comes
        last: these are the driver's.
        """
        free = self.is_far & (tasks.role == FREE)
        n_codes = self.recipes[0].n_codes
        if tasks.n_codes > n_codes:
            last = np.maximum(tasks.start[1:] - 1, 0)
            free &= tasks.code[last] < n_codes
        return np.asarray(free)


class LinksElsewhere:
    """Joint inference in link units: a `vb.LinkModel` with what a fit asks of `ExactLinks`.

    Open linked tasks are its own pool, of tasks in the place of nodes.
    """

    may_cycle = False
    takes_everyone = True  # no update of linked tasks alone: a sweep is of all units

    def __init__(
        self,
        units: Units,
        far: FarTasks,
        links: LinkCodes,
        merged: Merged,
        gold: GoldCodes | None,
        options: ExactLinkOptions,
    ) -> None:
        self._units = units
        self._far = far
        self._far.n_sets += 1
        self.n_classes = far.recipes[0].n_classes
        log_odds, hard = ascents.expected_log_odds(links, options, self.n_classes)
        self.log_odds = log_odds[~hard]
        self.is_learnt = False
        self.remembers = bool(in_large(merged, links.keep(~hard), self.n_classes).any())
        has_subtypes = far.recipes[0].n_states > self.n_classes  # there copies count each
        self.unit = None if has_subtypes else ascents.units_of_copies(links, len(far.is_far))
        self.pool = self
        task, node, flip = open_members(merged, np.arange(len(merged.node_class), dtype=np.int32))
        self.task = task
        self.pays = share_of_prior(task, node, flip, self.unit)
        self.q = np.empty((0, self.n_classes))  # of open tasks, once all is done
        self.last_value: float | None = None
        self.sets: list[LinkSet] = []
        self.soft_at: list[Offsets] = []  # the places of each unit's soft links
        soft_number = np.cumsum(~hard) - 1
        for recipe in far.recipes:
            at = np.flatnonzero(np.isin(links.left, recipe.tasks))
            own = links.keep(at).among(recipe.tasks)
            known = None if gold is None else gold.among(recipe.tasks)
            self.sets.append(LinkSet(far.n_sets, own, known, options))
            self.soft_at.append(soft_number[at[~hard[at]]])
        self._scores: Floats | None = None
        self._concluded: list[Concluded] = []
        self._agree = np.empty(0)

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def members_of(self, q: Floats) -> Floats:
        """Return q as it is: by task, not by node."""
        return q

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree: these are learnt."""
        self.log_odds = log_odds
        self.is_learnt = True

    def reset(self) -> None:
        """Forget messages and values: the next ascent begins anew in the units."""
        self.last_value = None
        self._concluded = []

    def gather(self, q: Floats) -> None:
        """Be the links of the ascent that begins."""
        self._far.links = self

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Return what the units found in the sweep of all tasks: sums are in that sweep's."""
        assert self._far.last is not None  # all tasks are swept before
        _, self.last_value, self._agree = self._far.last
        nothing = np.zeros((1, len(logs[0])))
        return Swept(nothing, nothing[0], 0.0, self.last_value, 0.0)

    def spread(self, q: Floats) -> None:
        """Give linked tasks their states; before the end they were fetched with all others."""
        if self._concluded:
            q[self.task] = self._of_open("q")

    def infer_from(self, member_scores: Floats, *, is_last: bool = False) -> None:
        """Take scaled scores of the open tasks, from which `finish` infers."""
        self._scores = np.zeros((len(self._far.is_far), self.n_classes))
        self._scores[self.task] = member_scores

    def finish(self) -> LinkReport:
        """Have units infer a last time; report how components were inferred."""
        if not self._concluded:
            given = {
                len(self._units.rows) + u: (
                    None if self._scores is None else self._scores[recipe.tasks],
                    self._far.log_odds_of(u),
                )
                for u, recipe in enumerate(self._far.recipes)
            }
            self._concluded = self._units.ask("conclude", given)
            self._agree = self.by_soft_link([each.agree for each in self._concluded])
            self.q = self._of_open("by_class")
        *numbers, by_mean_field = zip(*(each.report for each in self._concluded), strict=True)
        merged, forest, small, large = map(sum, numbers)
        return LinkReport(merged, forest, small, large, any(by_mean_field))

    def decode(self) -> Codes:
        """Return the classes of the open tasks, decoded jointly."""
        return np.asarray(self._of_open("label"))

    def agreement(self) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        return self._agree

    def entropy(self) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self.last_value is not None  # asked for after an update
        return self.last_value - float(self.log_odds @ self._agree)

    def by_soft_link(self, of_units: list[Floats]) -> Floats:
        """Return by link what units say of their own."""
        found = np.zeros(len(self.log_odds))
        for at, each in zip(self.soft_at, of_units, strict=True):
            found[at] = each
        return found

    def _of_open(self, what: str) -> Any:
        """Return what units said of open tasks in the end."""
        parts = [getattr(each, what) for each in self._concluded]
        found = np.zeros((len(self._far.is_far), *parts[0].shape[1:]), dtype=parts[0].dtype)
        for recipe, part in zip(self._far.recipes, parts, strict=True):
            found[recipe.tasks] = part
        return found[self.task]


def cut_far_tasks(
    model: VariationalBayes, inputs: Inputs, n_states: int, folder: Path, unit_bytes: int
) -> FarTasks:
    """Cut linked tasks into units, by the input alone; components stay whole."""
    links = inputs.link_codes
    assert links is not None
    assert inputs.implied is not None
    crowd = inputs.responses
    merged = merge(inputs.implied)
    options = model.link_options or ExactLinkOptions()
    _, hard = ascents.expected_log_odds(links, options, crowd.n_classes)  # type: ignore[arg-type]
    component = link_graph.components(crowd.n_tasks, links.left, links.right)[merged.task]
    length = crowd.start[merged.task + 1] - crowd.start[merged.task]
    in_units = cut_link_units(
        component,
        np.asarray(4.0 * length + 8.0 * n_states, dtype=np.float64),
        in_large(merged, links.keep(~hard), crowd.n_classes),
        unit_bytes,
    )
    sizes = (crowd.n_workers * crowd.n_classes, crowd.n_classes, n_states)
    recipes = []
    for number, at in enumerate(in_units):
        tasks = np.asarray(merged.task[at])
        n_links = int(np.isin(links.left, tasks).sum())
        where = (number, str(folder), tasks, n_links)
        recipes.append(LinkRecipe(*where, *sizes, model.backend, model.n_threads))
    return FarTasks(recipes, crowd.n_tasks)
