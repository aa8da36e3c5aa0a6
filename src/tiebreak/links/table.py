"""The table of links: one row per link, as given."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, SEVERAL, TEXT, checks, has_parts, optional
from tiebreak.data import ids
from tiebreak.data.frames import as_frame, as_html
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Column, Ids
from tiebreak.errors import LinkError, note
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.links.columns import (
    Said,
    Sampling,
    as_must,
    as_said,
    as_weights,
    check_lengths,
    duplicates,
    encode_ends,
    encode_sources,
    guess,
    is_boolean,
    recode_sources,
    show_sources,
    show_weights,
)
from tiebreak.links.graph import LinkCodes
from tiebreak.wording import NOWHERE, Source, agreeing, counted

if TYPE_CHECKING:
    from tiebreak.links.closed import ClosedLinks

SHOWN = 10  # rows

Asker = Literal["fit", "session"]  # who is told the way out of a contradiction: `check`
OnContradiction = Literal["error", "drop"]  # of cannot-links that must-links contradict: `check`


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """One row per link: left[e] and right[e] must, or cannot, be the same class.

    tasks[i] names task i, in order of first appearance. A link without `weight` (nan, or None for
    all) is hard: it holds. A weight > 0 is the log-odds that the link is right. `who` says where a
    link comes from, in codes of `sources`. `row` is the row of the source each came from.
    `duplicate` says which must-links join copies of one task (`columns.py`); None: none does.

    >>> Links.from_pairs(must=[("a", "b")], cannot=[("b", "c")])
    Links(1 must, 1 cannot, 3 tasks)
    """

    left: Codes
    right: Codes
    must: Mask
    tasks: Ids
    row: Offsets = field(repr=False)
    weight: Floats | None = None
    who: Codes | None = None
    sources: Ids | None = None
    source: Source = field(default=NOWHERE, repr=False)
    frame: str = field(default="pyarrow", repr=False)
    duplicate: Mask | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        arrays = (self.left, self.right, self.must, self.row)
        for array in (*arrays, self.weight, self.who, self.duplicate):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    @checks(
        left=COLUMN,
        right=COLUMN,
        link=COLUMN,
        weight=optional(COLUMN),
        who=optional(COLUMN),
        frame=TEXT,
    )
    def from_columns(
        cls,
        left: Column,
        right: Column,
        link: Column,
        weight: Column | None = None,
        who: Column | None = None,
        *,
        sampling: Sampling | None = None,
        said: Said | None = None,
        frame: str = "pyarrow",
        source: Source = NOWHERE,
    ) -> Links:
        """Build from columns of equal length; see `tiebreak.read_links`.

        `link` holds booleans, True for must, or words: must, cannot, duplicate. A missing weight
        means a hard link. Rows with the same pair, kind and source are one link; the last weight
        counts, and a change is reported. `sampling` says how links came about: "pairs" were drawn
        or asked, "duplicates" are copies of one task. None: must-links of a source without
        cannot-links are duplicates, which is reported. `said` is what the words of a table say of
        that, where `link` holds booleans.
        """
        check_lengths(left=left, right=right, link=link, weight=weight, who=who)
        left_code, right_code, tasks = encode_ends(left, right, source)
        if is_boolean(link):
            must = np.array(link, dtype=bool)
        else:
            must = as_must(link, source)
            said = as_said(link)
        weights = None if weight is None else as_weights(weight, source)
        who_code, sources = (None, None) if who is None else encode_sources(who)
        rows = np.arange(len(must))
        given = cls(
            left_code,
            right_code,
            must,
            tasks,
            rows,
            weights,
            who_code,
            sources,
            source,
            frame,
            duplicates(must, who_code, said, sampling),
        )
        return _each_once(given)

    @classmethod
    @checks(must=SEVERAL, cannot=SEVERAL)
    def from_pairs(
        cls,
        must: Iterable[tuple[Hashable, Hashable]] = (),
        cannot: Iterable[tuple[Hashable, Hashable]] = (),
        *,
        sampling: Sampling | None = None,
    ) -> Links:
        """Build from pairs of tasks; `sampling`: see `from_columns`."""
        together = list(must)
        apart = list(cannot)
        for pair in (*together, *apart):
            if not has_parts(pair, 2):  # "t1" is one id, not a pair of letters
                raise LinkError(f"A link joins two tasks: give (left, right) pairs; got {pair!r}.")
        left, right = zip(*together, *apart, strict=True) if together or apart else ((), ())
        link = [True] * len(together) + [False] * len(apart)
        return cls.from_columns(left, right, link, sampling=sampling)

    @classmethod
    @checks(gold=Gold)
    def from_gold(cls, gold: Gold) -> Links:
        """Return links that say no more than which known tasks share a class: [eq:label-derived].

        In each class a must-link from its first task to every other, and a cannot-link between the
        first tasks of each two classes; all others follow from these. Class names play no part.

        >>> Links.from_gold(Gold.from_dict({"a": "cat", "b": "dog", "c": "cat"})).pairs()
        [('a', 'c', 'must'), ('a', 'b', 'cannot')]
        """
        _, first, its_class = np.unique(gold.label, return_index=True, return_inverse=True)
        task = np.arange(len(gold.label))
        rest = task[first[its_class] != task]
        one, other = (np.sort(first)[ends] for ends in np.triu_indices(len(first), k=1))
        left = np.concatenate([first[its_class[rest]], one])
        right = np.concatenate([rest, other])
        return cls(
            left.astype(np.int32),
            right.astype(np.int32),
            np.arange(len(left)) < len(rest),
            gold.tasks,
            np.arange(len(left)),
            source=Source("links from gold"),
        )

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write left, right, link, weight and who to a file: CSV, TSV, JSON or Parquet."""
        from tiebreak.tables import write_links

        write_links(target, self, format=format)

    @classmethod
    @checks(rows=SEVERAL)
    def from_rows(
        cls,
        rows: Iterable[tuple[Hashable, Hashable, str]],
        *,
        sampling: Sampling | None = None,
    ) -> Links:
        """Build from (left, right, "must" or "cannot") triples: see `pairs`.

        >>> Links.from_rows([("a", "b", "must"), ("b", "c", "must")])
        Links(2 must, 0 cannot, 3 tasks)
        """
        rows = list(rows)
        for row in rows:
            if not has_parts(row, 3):
                raise LinkError(f"Each row must be (left, right, link); got {row!r}.")
        left, right, link = zip(*rows, strict=True) if rows else ((), (), ())
        return cls.from_columns(left, right, link, sampling=sampling)

    @property
    def n_must(self) -> int:
        """How many must-links were given."""
        return int(np.count_nonzero(self.must))

    @property
    def n_cannot(self) -> int:
        """How many cannot-links were given."""
        return len(self) - self.n_must

    def __len__(self) -> int:
        return len(self.must)

    def __repr__(self) -> str:
        n_tasks = len(link_graph.each_once(np.concatenate([self.left, self.right])))
        return f"Links({self.n_must:,} must, {self.n_cannot:,} cannot, {n_tasks:,} tasks)"

    def _repr_html_(self) -> str:
        first = self.select(np.arange(min(len(self), SHOWN)))
        return as_html(repr(self), ("left", "right", "link"), first.pairs())

    def select(self, index: npt.NDArray[Any]) -> Links:
        """Return the links at these places, or under this mask; tasks keep their codes."""
        return replace(
            self,
            left=self.left[index],
            right=self.right[index],
            must=self.must[index],
            row=self.row[index],
            weight=None if self.weight is None else self.weight[index],
            who=None if self.who is None else self.who[index],
            duplicate=None if self.duplicate is None else self.duplicate[index],
        )

    def __add__(self, other: Links) -> Links:
        """Append the links of another table; errors then count rows of both together.

        A link that both have is one link; another weight replaces the former one, with a note.
        """
        if not isinstance(other, Links):
            return NotImplemented
        tasks = ids.merge(self.tasks, other.tasks)
        code = tasks.codes(other.tasks)
        who, sources = _join_who(self, other)
        both = np.concatenate
        joined = Links(
            both([self.left, code[other.left]]),
            both([self.right, code[other.right]]),
            both([self.must, other.must]),
            tasks,
            np.arange(len(self) + len(other)),
            _join_weights(self, other),
            who,
            sources,
            Source("the links put together"),
            self.frame,
            _join_duplicates(self, other),
        )
        return _each_once(joined)

    def where(self, at: int) -> str:
        """Name the file and line of the link at a place."""
        return self.source.where(int(self.row[at]))

    def pairs(self) -> list[tuple[Hashable, Hashable, str]]:
        """Return (left, right, "must" or "cannot") for each link.

        >>> Links.from_pairs(cannot=[("a", "b")]).pairs()
        [('a', 'b', 'cannot')]
        """
        left = Ids(self.tasks.take(self.left))
        right = Ids(self.tasks.take(self.right))
        words = np.where(self.must, "must", "cannot").tolist()
        return list(zip(left, right, words, strict=True))

    def _words(self) -> list[str]:
        """Return must or cannot for each link; duplicate, or same, where must would mislead."""
        words = np.where(self.must, "must", "cannot").astype(object)
        is_copy = np.zeros(len(words), dtype=bool) if self.duplicate is None else self.duplicate
        guessed = guess(self.must, self.who)  # what a reader would take must-links for
        words[is_copy & ~guessed] = "duplicate"
        words[guessed & ~is_copy] = "same"
        return list(words)

    def columns(self) -> dict[str, Column]:
        """Return left, right, link and, where given, weight and who."""
        table: dict[str, Column] = {
            "left": self.tasks.take(self.left),
            "right": self.tasks.take(self.right),
            "link": self._words(),
        }
        if self.weight is not None:
            table["weight"] = show_weights(self.weight)
        if self.who is not None and self.sources is not None:
            table["who"] = show_sources(self.sources, self.who)
        return table

    def to_frame(self) -> Any:
        """Return left, right, link … as the caller's kind of table, else pyarrow."""
        return as_frame(self.columns(), self.frame)

    def on(self, tasks: Ids) -> LinkCodes:
        """Translate into the codes of a crowd that has these tasks, each pair once.

        Links with the same pair, kind and source count once, with the last weight. The weights of
        a must- and a cannot-link of one source are set off against each other, and where they
        cancel the pair is dropped and reported. Links from different sources stay apart, being
        different observations. A must-link from a task to itself says nothing: dropped and
        reported.

        Raises LinkError where a task is unknown or cannot-linked to itself.
        """
        code = tasks.codes(self.tasks)
        left = code[self.left]
        right = code[self.right]
        self._refuse_unknown(left, right)
        itself = left == right
        if n := int(np.count_nonzero(itself)):
            self._refuse_unlike_itself(itself)
            note(f"{counted(n, 'must-link')} {agreeing(n, 'join')} a task to itself: dropped.")
        kept = np.flatnonzero(~itself)
        if self.weight is not None:  # of links without weight, equal ones collapse below
            kept = np.intersect1d(kept, _last_given(self).at)
        weight = None if self.weight is None else self.weight[kept]
        who = None if self.who is None else self.who[kept]
        found = link_graph.distinct(left[kept], right[kept], self.must[kept], weight, who)
        found = found._replace(row=kept[found.row])
        if self.duplicate is not None:
            found = found._replace(duplicate=self.duplicate[found.row] & found.must)
        return found if found.weight is None else _drop_cancelled(found, found.weight)

    def closure(self) -> ClosedLinks:
        """Find what follows from the links without weight.

        >>> links = Links.from_pairs(must=[("a", "b"), ("b", "c")], cannot=[("c", "d")])
        >>> closed = links.closure()
        >>> closed, closed.groups(), closed.cannot_pairs()
        (ClosedLinks(3 must, 3 cannot), [['a', 'b', 'c']], [('a', 'd')])
        """
        from tiebreak.links.closed import ClosedLinks

        codes = self.on(self.tasks)
        return ClosedLinks(self.tasks, codes, link_graph.close(len(self.tasks), codes))

    def _refuse_unknown(self, left: Codes, right: Codes) -> None:
        end = np.flatnonzero(np.column_stack([left, right]) == MISSING)  # left and right in turn
        if not len(end):
            return
        task = np.column_stack([self.left, self.right]).ravel()[end]
        _, first = np.unique(task, return_index=True)
        shown = "; ".join(
            f"{self.tasks[int(task[at])]!r} ({self.where(int(end[at]) // 2)})"
            for at in np.sort(first)[:3]
        )
        n = len(first)
        raise LinkError(
            f"{counted(n, 'task')} of links {agreeing(n, 'are')} not among the responses: "
            f"{shown}.\nCorrect these ids, remove the rows, or list tasks without responses with "
            "tasks=."
        )

    def _refuse_unlike_itself(self, itself: Mask) -> None:
        wrong = np.flatnonzero(itself & ~self.must)
        if len(wrong):
            shown = "; ".join(
                f"{self.tasks[int(self.left[at])]!r} ({self.where(int(at))})" for at in wrong[:3]
            )
            n = len(wrong)
            raise LinkError(
                f"{counted(n, 'cannot-link')} {agreeing(n, 'join')} a task to itself: {shown}. "
                "Correct or remove these rows."
            )


class _LastGiven(NamedTuple):
    """Which rows stand for all: one for each pair, kind and source."""

    at: Offsets  # in the order in which each came first
    n_changed: int  # links that came again with another weight


def _last_given(links: Links) -> _LastGiven:
    """Find the rows that count: of equal ones the first, where weights differ the last."""
    low = np.minimum(links.left, links.right)
    high = np.maximum(links.left, links.right)
    who = np.full(len(links), MISSING) if links.who is None else links.who
    order = np.lexsort((who, links.must, high, low))  # stable: equal ones stay in their order
    keys = np.stack([column[order] for column in (low, high, links.must, who)])
    start = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(links)])
    first = order[start]
    if len(first) == len(links):
        return _LastGiven(np.arange(len(links)), 0)
    in_turn = np.argsort(first)
    if links.weight is None:
        return _LastGiven(first[in_turn], 0)
    length = np.diff(np.append(start, len(links)))
    last = order[start + length - 1]
    weight = np.nan_to_num(links.weight, nan=0.0)  # weights are above 0
    differs = weight[order] != np.repeat(weight[last], length)
    is_changed = np.logical_or.reduceat(differs, start)
    at = np.where(is_changed, last, first)
    return _LastGiven(at[in_turn], int(np.count_nonzero(is_changed)))


def _each_once(links: Links) -> Links:
    """Return the links, equal ones once; say how many weights were replaced."""
    at, n_changed = _last_given(links)
    if n_changed:
        note(
            f"{counted(n_changed, 'link')} given again with another weight: the last weight counts."
        )
    return links if len(at) == len(links) else links.select(at)


def _drop_cancelled(found: LinkCodes, weight: Floats) -> LinkCodes:
    cancelled = weight == 0.0
    if not cancelled.any():
        return found
    note(f"The weights of {np.count_nonzero(cancelled):,} pairs of tasks cancel: no link there.")
    return found.keep(~cancelled)


def _join_weights(first: Links, second: Links) -> Floats | None:
    if first.weight is None and second.weight is None:
        return None
    return np.concatenate(
        [
            np.full(len(links), np.nan) if links.weight is None else links.weight
            for links in (first, second)
        ]
    )


def _join_duplicates(first: Links, second: Links) -> Mask | None:
    if first.duplicate is None and second.duplicate is None:
        return None
    return np.concatenate(
        [
            np.zeros(len(links), dtype=bool) if links.duplicate is None else links.duplicate
            for links in (first, second)
        ]
    )


def _join_who(first: Links, second: Links) -> tuple[Codes | None, Ids | None]:
    if first.sources is None and second.sources is None:
        return None, None
    sources = ids.merge(first.sources or Ids(()), second.sources or Ids(()))
    first_who = recode_sources(first.who, first.sources, sources, len(first))
    second_who = recode_sources(second.who, second.sources, sources, len(second))
    return np.concatenate([first_who, second_who]), sources
