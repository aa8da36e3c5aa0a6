"""Links of a stream: between slots of open tasks, as they come."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.tasks.coupling.link_errors import ErrorRate
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.life.open_tasks import GrowingArray
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions, MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.estimators.variational_bayes import VariationalBayes


LinkKey = tuple[int, int, bool, int]  # the two slots in order, must, the source
SETTLED = -1  # the place of a link that what is believed of its tasks holds already


class LinkRows(NamedTuple):
    """Some links as they were given, between slots."""

    left: Codes
    right: Codes
    must: Mask
    weight: Floats  # log-odds that the link is right; nan: none was given
    duplicate: Mask  # the two are copies of one task
    who: Codes  # the source, in codes of the stream's sources; -1: not known


class StreamLinks:
    """Links between slots; what they tie together is found anew where it changed."""

    def __init__(self, model: VariationalBayes) -> None:
        self._model = model
        self.sources: list[Hashable] = []
        self._columns = (
            GrowingArray(np.int32, 0),
            GrowingArray(np.int32, 0),
            GrowingArray(bool, 0),
            GrowingArray(np.float64, np.nan),
            GrowingArray(bool, 0),
            GrowingArray(np.int32, -1),
        )
        self._component: Codes | None = None
        self._place: dict[LinkKey, int] = {}
        self._replaced: list[tuple[int, float]] = []  # by the last `add`: where, and what it was
        self._n_added = 0  # by the last `add`

    def __len__(self) -> int:
        return self._columns[0].n

    @property
    def rows(self) -> LinkRows:
        """All links."""
        return LinkRows(*(column.now for column in self._columns))

    def source_code(self, who: Hashable) -> int:
        """Return the code of a source; None is one that is not known."""
        if who is None:
            return -1
        if who not in self.sources:
            self.sources.append(who)
        return self.sources.index(who)

    def add(self, rows: LinkRows) -> int:
        """Take links; one that is there takes the new weight. Return how many weights changed.

        One that `settle` was told of counts already, and stays as it is.
        """
        before = len(self)
        weight = np.array(rows.weight)
        fresh: list[int] = []
        self._replaced = []
        for at, key in enumerate(_keys(rows)):
            place = self._place.setdefault(key, before + len(fresh))
            if place == before + len(fresh):
                fresh.append(at)
            elif place >= before:
                weight[fresh[place - before]] = weight[at]
            elif place != SETTLED:
                former = float(self.rows.weight[place])
                if not np.array_equal(former, weight[at], equal_nan=True):
                    self._replaced.append((place, former))
                    self.rows.weight[place] = weight[at]
        for column, values in zip(self._columns, rows._replace(weight=weight), strict=True):
            column.extend(np.asarray(values)[fresh])
        self._n_added = len(fresh)
        self._component = None
        return len(self._replaced)

    def settle(self, rows: LinkRows) -> None:
        """Know links that count already, in what their tasks are believed to be."""
        self._place.update(dict.fromkeys(_keys(rows), SETTLED))

    def take_back(self) -> None:
        """Forget the links of the last `add`."""
        for place, former in reversed(self._replaced):
            self.rows.weight[place] = former
        kept = len(self) - self._n_added
        for column in self._columns:
            column.keep(np.arange(kept))
        self._place = {key: place for key, place in self._place.items() if place < kept}
        self._component = None

    def renumber(self, new_slot: Codes) -> None:
        """Forget links to tasks that are gone; the others get new slots."""
        rows = self.rows
        kept = np.flatnonzero((new_slot[rows.left] >= 0) & (new_slot[rows.right] >= 0))
        left = new_slot[rows.left[kept]]
        right = new_slot[rows.right[kept]]
        for column in self._columns:
            column.keep(kept)
        self.rows.left[:] = left
        self.rows.right[:] = right
        settled = [key for key, place in self._place.items() if place == SETTLED]
        moved = ((int(new_slot[a]), int(new_slot[b]), must, who) for a, b, must, who in settled)
        self._place = {key: place for place, key in enumerate(_keys(self.rows))}
        self._place |= {
            (min(a, b), max(a, b), must, who): SETTLED
            for a, b, must, who in moved
            if min(a, b) >= 0
        }
        self._component = None

    def tied_to(self, slots: Codes, n_slots: int) -> Codes:
        """Return these slots and all that links tie to them, sorted."""
        if not len(self):
            return np.unique(slots)
        rows = self.rows
        if self._component is None or len(self._component) != n_slots:
            self._component = link_graph.components(n_slots, rows.left, rows.right)
        chosen = np.zeros(int(self._component.max()) + 1, dtype=bool)
        chosen[self._component[slots]] = True
        is_end = np.zeros(n_slots, dtype=bool)
        is_end[rows.left] = True
        is_end[rows.right] = True
        tied = np.flatnonzero(is_end & chosen[self._component])
        return np.union1d(slots, tied).astype(np.int32)

    def among(self, slots: Codes) -> LinkCodes | None:
        """Return the links between these slots, which are sorted, numbered by place; None: none."""
        rows = self.rows
        if not len(rows.left):
            return None
        inside = np.flatnonzero(np.isin(rows.left, slots) & np.isin(rows.right, slots))
        if not len(inside):
            return None
        chosen = LinkRows(*(column.now[inside] for column in self._columns))
        left = np.searchsorted(slots, chosen.left).astype(np.int32)
        right = np.searchsorted(slots, chosen.right).astype(np.int32)
        odds = link_odds(self._model, chosen, self.sources)
        weight = np.where(np.isinf(odds), np.nan, np.abs(odds))
        found = link_graph.distinct(
            left, right, odds > 0.0, None if np.isnan(weight).all() else weight, None
        )
        if found.weight is not None:
            found = found.keep(found.weight != 0.0)  # where what two links say cancels
        if not chosen.duplicate.any():
            return found
        return found._replace(duplicate=chosen.duplicate[found.row] & found.must)


def _keys(rows: LinkRows) -> list[LinkKey]:
    low = np.minimum(rows.left, rows.right).tolist()
    high = np.maximum(rows.left, rows.right).tolist()
    return list(zip(low, high, np.asarray(rows.must).tolist(), rows.who.tolist(), strict=True))


def link_odds(model: VariationalBayes, rows: LinkRows, sources: list[Hashable]) -> Floats:
    """Return the log-odds that the tasks of each link agree; infinite where the link holds."""
    sign = np.where(rows.must, 1.0, -1.0)
    options = model.link_options or ExactLinkOptions()
    if isinstance(options, MeanFieldOptions):
        odds = sign * (model.link_strength_ or np.inf)
    elif options.error is None:
        odds = sign * np.inf
    elif options.error == "learn":
        odds = _learnt_odds(model, options, rows, sources)
    else:
        error = float(options.error)
        odds = sign * (np.log1p(-error) - np.log(error))
    return np.asarray(np.where(np.isnan(rows.weight), odds, sign * rows.weight))


def _learnt_odds(
    model: VariationalBayes, options: ExactLinkOptions, rows: LinkRows, sources: list[Hashable]
) -> Floats:
    """Return log-odds by the error rates of sources that the model learnt, else as expected."""
    wrong, right = options.error_prior
    expected = wrong / (wrong + right)
    rates = model.link_errors_ or {}
    unnamed = rates.get(None, ErrorRate(expected, expected))
    by_source = np.array([*(rates.get(name, unnamed) for name in sources), unnamed])
    of_same, of_different = by_source[rows.who].T  # -1 is the last one
    said_same = np.log1p(-of_same) - np.log(of_different)
    said_different = np.log(of_same) - np.log1p(-of_different)
    odds = np.where(rows.must, said_same, said_different)
    n_others = max(len(model.classes_) - 1, 1)
    return np.asarray(odds + np.where(rows.duplicate, np.log(n_others), 0.0))


def imply(links: LinkCodes, gold: GoldCodes | None, n_classes: int) -> Implications:
    """Return what follows from the links that hold, and from gold."""
    return link_graph.imply(links, n_classes, firm=links.is_hard, gold=gold)
