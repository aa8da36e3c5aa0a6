"""Link units: linked tasks that are too many for the driver, swept in other processes.

Components of linked tasks are placed whole, so that a unit infers its own as one machine would, and
what units say is added up in their order. A unit holds the responses; the driver says at the start
of each ascent where its tasks begin and which links join them. Where messages remember, they are
written beside the sweep that made them; all else follows from the tables of that sweep. So a unit
that died is brought back bit by bit.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.distributed.executor import own_threads
from tiebreak.distributed.tables import opened
from tiebreak.gold import GoldCodes
from tiebreak.inference.exact_links import ascents
from tiebreak.inference.exact_links.fit import decode
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.plan import LinkReport, merge
from tiebreak.kernels import layout
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, Codes, Floats, Mask, Roles, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.link_graph import LinkCodes
from tiebreak.options import ExactLinkOptions
from tiebreak.tables.write import open_target


class LinkRecipe(NamedTuple):
    """How a link unit is made."""

    number: int
    folder: str  # of the responses on all named tasks, and of messages
    tasks: Codes  # the places of the unit's tasks there, ascending
    n_links: int
    n_codes: int
    n_classes: int
    n_states: int
    backend: str
    n_threads: int | None

    def open(self) -> LinkUnit:
        """Load the unit."""
        return LinkUnit(self)

    def __str__(self) -> str:
        return f"link unit {self.number} ({self.folder})"


class LinkSet(NamedTuple):
    """The links of a unit, between places of its tasks."""

    number: int  # sets of one fit differ in it
    links: LinkCodes
    gold: GoldCodes | None
    options: ExactLinkOptions


class Begin(NamedTuple):
    """Where an ascent begins: of the tasks of a unit."""

    role: Roles  # FREE: swept alone here; others are linked, or the driver's
    q: Floats
    links: LinkSet | None


LinkTables = tuple[Logs, Floats | None]  # with log-odds of soft links; None: as they were at first


class LinkSwept(NamedTuple):
    """What a link unit says of a sweep; linked tasks are in all sums but the entropy."""

    swept: Swept
    value: float  # the linked tasks' part of the bound
    agree: Floats  # (n_soft,) that two tasks agree, where log-odds are learnt


class Concluded(NamedTuple):
    """What a unit says of its tasks once no sweep follows."""

    q: Floats  # (n_tasks, n_states)
    by_class: Floats  # (n_tasks, n_classes), from scaled scores where these were given
    label: Codes
    agree: Floats
    report: LinkReport


class LinkUnit:
    """Linked tasks, loaded."""

    def __init__(self, recipe: LinkRecipe) -> None:
        self.recipe = recipe
        folder = Path(recipe.folder)
        file = folder / "weight.npy"
        whole = SimpleNamespace(
            start=np.load(folder / "start.npy", mmap_mode="r"),
            code=np.load(folder / "code.npy", mmap_mode="r"),
            weight=np.load(file, mmap_mode="r") if file.exists() else None,
        )
        start, code = layout.responses_on(whole, recipe.tasks)
        weight = layout.weights_on(whole, recipe.tasks)
        free = np.full(len(recipe.tasks), FREE, dtype=np.int8)
        self.tasks = layout.lay_out(start, code, free, recipe.n_codes, recipe.n_states, weight)
        n_linked = 2 * recipe.n_links
        self.backend = choose_backend(recipe.backend, len(code), n_linked, may_be_device=False)
        self.n_threads = recipe.n_threads or own_threads()
        self.exact: ExactLinks | None = None
        self.set_number: int | None = None  # of the links that `exact` infers
        self.at: tuple[int, int] | None = None  # ascent and sweep; None: nowhere

    def bring_to(self, at: tuple[int, int], way: tuple[Begin, LinkTables | None]) -> None:
        """Begin an ascent, and be where the unit was after its sweep with these tables."""
        begin, tables = way
        self.at = None
        self.q = np.array(begin.q)
        tasks = self.tasks._replace(role=begin.role)
        self.sweeper = HostSweeper(self.backend, tasks, self.q, self.n_threads)
        number = None if begin.links is None else begin.links.number
        if number != self.set_number:
            self.exact = None if begin.links is None else self._join(begin.links)
            self.set_number = number
        if self.exact is not None:
            self.exact.reset()
            self.exact.gather(self.q)
        if tables is not None:
            self._sweep(tables)
            if self.exact is not None and self.exact.remembers:
                with np.load(self._memory(at[1])) as memory:
                    self.exact.remember(memory)
        self.ascent = at[0]
        self.at = at

    def sweep(self, number: int, tables: LinkTables) -> LinkSwept:
        """Sweep the tasks that are alone, infer the linked ones; add up both."""
        self.at = None
        made = self._sweep(tables)
        if self.exact is not None and self.exact.remembers:
            with open_target(self._memory(number)) as out:
                np.savez(out, **self.exact.memory())  # type: ignore[arg-type]
            self._memory(number - 2).unlink(missing_ok=True)  # the one before may be asked for
        self.at = (self.ascent, number)
        return made

    def states(self) -> Floats:
        """Return q of all tasks of the unit."""
        if self.exact is not None:
            self.exact.spread(self.q)
        return self.q

    def conclude(self, scores: Floats | None, log_odds: Floats | None) -> Concluded:
        """Infer a last time, from scaled scores where these are given; decode."""
        assert self.exact is not None  # the last ascent had links
        exact = self.exact
        self.at = None
        if log_odds is not None:
            exact.set_log_odds(log_odds)
        if scores is not None:
            exact.infer_from(scores[exact.task], is_last=True)
        report = exact.finish()
        by_class = np.zeros((len(self.recipe.tasks), self.recipe.n_classes))
        by_class[exact.task] = exact.pool.members_of(exact.q)
        label = np.zeros(len(by_class), dtype=np.int32)
        label[exact.task] = decode(exact)
        return Concluded(self.states(), by_class, label, exact.agreement(), report)

    def _sweep(self, tables: LinkTables) -> LinkSwept:
        logs = opened(tables[0])
        log_odds = tables[1]
        made = self.sweeper.sweep(logs)
        if self.exact is None:
            return LinkSwept(made, 0.0, np.empty(0))
        if log_odds is not None:
            self.exact.set_log_odds(log_odds)
        linked = self.exact.infer(*logs)
        both = made.plus(linked)._replace(entropy=made.entropy)
        agree = np.empty(0) if log_odds is None else self.exact.agreement()
        return LinkSwept(both, linked.entropy, agree)

    def _join(self, given: LinkSet) -> ExactLinks:
        recipe = self.recipe
        links = given.links
        firm = np.zeros(links.n_links, bool) if given.options.is_soft else links.is_hard
        implied = link_graph.imply(links, recipe.n_classes, firm=firm, gold=given.gold)
        log_odds, hard = ascents.expected_log_odds(links, given.options, recipe.n_classes)
        return ascents.join(
            self.tasks, merge(implied), links.keep(~hard), log_odds[~hard], links, recipe.n_classes,
            recipe.n_states, self.backend, self.n_threads,
        )  # fmt: skip

    def _memory(self, number: int) -> Path:
        return Path(self.recipe.folder) / f"messages-{self.recipe.number:05d}-{number:05d}.npz"


def cut_link_units(
    component: Codes, n_bytes: Floats, is_coupled: Mask, unit_bytes: float
) -> list[Codes]:
    """Cut linked tasks into units of about so many bytes; return the tasks of each.

    Components stay whole, and follow each other as their first tasks do. Those that are coupled
    (large and with loops: messages are passed until those of all have settled) are one unit.

    >>> component = np.array([0, 1, 0, 2, 1])
    >>> cut_link_units(component, np.ones(5), np.zeros(5, bool), 2.0)
    [array([0, 2], dtype=int32), array([1, 4], dtype=int32), array([3], dtype=int32)]
    """
    _, first, number = np.unique(component, return_index=True, return_inverse=True)
    size = np.bincount(number, weights=n_bytes)
    in_order = np.argsort(first, kind="stable")
    middle = np.empty(len(size))
    middle[in_order] = np.cumsum(size[in_order]) - size[in_order] / 2.0
    unit = (middle // unit_bytes).astype(np.int64)[number]
    unit[(np.bincount(number, weights=is_coupled) > 0)[number]] = -1
    found = (np.flatnonzero(unit == each).astype(np.int32) for each in np.unique(unit))
    return list(found)
