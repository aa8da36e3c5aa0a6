"""The table of links: one row per link, as given.

The words of a table also say how links came about, as answers about pairs or as duplicates. Pairs
that were drawn or asked are outcomes: "same" is one answer of two, and each task has a class of its
own draw. Duplicates are copies of one task: the group is one draw of the class. A must-link says
the same in both cases, but what a group of m tasks says about how common its class is differs by a
factor of m.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, SEVERAL, TEXT, checks, has_parts, optional
from tiebreak.data import ids
from tiebreak.data.frames import as_frame, as_html
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Column, Ids, as_numbers, offenders
from tiebreak.errors import InputError, LinkError, note
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Closure, LinkCodes
from tiebreak.options import require_word
from tiebreak.wording import NOWHERE, Source

SHOWN = 10  # rows
SHOWN_PLACES = 3  # of rows that are refused

Asker = Literal["fit", "session"]  # who is told the way out of a contradiction: `check`
OnContradiction = Literal["error", "drop"]  # of cannot-links that must-links contradict: `check`
Sampling = Literal["pairs", "duplicates"]
SAMPLINGS: tuple[Sampling, ...] = ("pairs", "duplicates")

DUPLICATE_WORDS = frozenset({"duplicate", "duplicates", "copy"})
PAIR_WORDS = frozenset({"same", "different"})  # answers about a pair
MUST_WORDS = DUPLICATE_WORDS | {"must", "mustlink", "same", "ml", "1", "+1", "1.0", "true"}
NEAR_WORDS = frozenset({"near", "neighbour", "neighbor"})  # in a network
CANNOT_WORDS = frozenset({"cannot", "cannotlink", "different", "cl", "-1", "-1.0", "false"})

COLUMNS = ("left", "right", "must", "row", "weight", "who", "duplicate")  # one value per link
PAIR = 0
DUPLICATE = 1
UNSAID = -1  # the table does not say


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """One row per link: left[e] and right[e] must, or cannot, be the same class.

    tasks[i] names task i, in order of first appearance. A link without `weight` (nan, or None for
    all) is hard: it holds. A weight > 0 is the log-odds that the link is right. `who` says where a
    link comes from, in codes of `sources`. `row` is the row of the source each came from.
    `duplicate` says which must-links join copies of one task; None: none does. `near`: all join
    neighbours in a network, which imply nothing.

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
    near: bool = field(default=False, repr=False)  # edges of a network: neither must nor cannot

    def __post_init__(self) -> None:
        for name in COLUMNS:
            column = getattr(self, name)
            if column is not None:
                column.flags.writeable = False

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
        frame: str = "pyarrow",
        source: Source = NOWHERE,
    ) -> Links:
        """Build from columns of equal length; see `tiebreak.read_links`.

        `link` holds booleans, True for must, or words: must, cannot, duplicate; near alone. A
        missing weight means a hard link. Rows with the same pair, kind and source are one link; the
        last weight counts, and a change is reported. `sampling` says how links came about: "pairs"
        were drawn or asked, "duplicates" are copies of one task. None: must-links of a source
        without cannot-links are duplicates, which is reported.
        """
        columns = {"left": left, "right": right, "link": link, "weight": weight, "who": who}
        lengths = {name: len(column) for name, column in columns.items() if column is not None}
        if len(set(lengths.values())) > 1:
            raise LinkError("links-unequal-columns", lengths=lengths)
        left_code, right_code, tasks = _encode_ends(left, right, source)
        is_near = False
        if _is_boolean(link):
            must = np.array(link, dtype=bool)
            says = np.full(len(must), UNSAID, dtype=np.int8)
        elif is_near := _are_near(link, weight):
            must, says = np.ones(len(left_code), dtype=bool), np.full(len(left_code), PAIR, np.int8)
        else:
            must, says = _read_words(link, source)
        who_code, sources = (None, None) if who is None else _encode_sources(who)
        given = cls(
            left_code,
            right_code,
            must,
            tasks,
            row=np.arange(len(must)),
            weight=None if weight is None else _as_weights(weight, source),
            who=who_code,
            sources=sources,
            source=source,
            frame=frame,
            duplicate=None if is_near else _duplicates(must, who_code, says, sampling),
            near=is_near,
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
                raise LinkError("links-not-a-pair", pair=pair)
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
        from tiebreak.tables import write_table

        write_table(target, self.columns(), format=format)

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
                raise LinkError("links-not-a-row", row=row)
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
        columns = {name: getattr(self, name) for name in COLUMNS}
        kept = {name: each[index] for name, each in columns.items() if each is not None}
        return replace(self, **kept)

    def __add__(self, other: Links) -> Links:
        """Append the links of another table; errors then count rows of both together.

        A link that both have is one link; another weight replaces the former one, with a note.
        """
        if not isinstance(other, Links):
            return NotImplemented
        tasks = self.tasks.merge(other.tasks)
        code = tasks.codes(other.tasks)
        who = sources = None
        if self.sources is not None or other.sources is not None:
            sources = (self.sources or Ids()).merge(other.sources or Ids())
            who = np.concatenate([who_among(self, sources), who_among(other, sources)])
        joined = Links(
            np.concatenate([self.left, code[other.left]]),
            np.concatenate([self.right, code[other.right]]),
            np.concatenate([self.must, other.must]),
            tasks,
            row=np.arange(len(self) + len(other)),
            weight=_joined(self, other, "weight", np.nan),
            who=who,
            sources=sources,
            source=Source("the links put together"),
            frame=self.frame,
            duplicate=_joined(self, other, "duplicate", False),
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
        left = self.tasks.take(self.left)
        right = self.tasks.take(self.right)
        words = np.where(self.must, "must", "cannot").tolist()
        return list(zip(left, right, words, strict=True))

    def _words(self) -> list[str]:
        """Return must or cannot for each link; duplicate, or same, where must would mislead."""
        if self.near:
            return ["near"] * len(self)
        words = np.where(self.must, "must", "cannot").astype(object)
        is_copy = np.zeros(len(words), dtype=bool) if self.duplicate is None else self.duplicate
        guessed = _guessed_duplicates(
            self.must, self.who
        )  # what a reader would take must-links for
        words[is_copy & ~guessed] = "duplicate"
        words[guessed & ~is_copy] = "same"
        return list(words)

    def columns(self) -> dict[str, Column]:
        """Return left, right, link and, where given, weight and who."""
        table: dict[str, Column] = {
            "left": self.tasks.take(self.left).values,
            "right": self.tasks.take(self.right).values,
            "link": self._words(),
        }
        if self.weight is not None:
            table["weight"] = self.weight
            if np.isnan(self.weight).any():
                table["weight"] = [None if each != each else each for each in self.weight.tolist()]
        if self.who is not None and self.sources is not None:
            names = [*self.sources, None]  # MISSING is -1
            table["who"] = [names[code] for code in self.who.tolist()]
        return table

    def to_frame(self) -> Any:
        """Return left, right, link … as the caller's kind of table, else pyarrow."""
        return as_frame(self.columns(), self.frame)

    def edges(self, tasks: Ids) -> tuple[Codes, Codes]:
        """Return both ends of each edge of a network, in the codes of a crowd, each pair once."""
        codes = replace(self, near=False).on(tasks)
        return codes.left, codes.right

    def on(self, tasks: Ids) -> LinkCodes:
        """Translate into the codes of a crowd that has these tasks, each pair once.

        Links with the same pair, kind and source count once, with the last weight. The weights of
        a must- and a cannot-link of one source are set off against each other, and where they
        cancel the pair is dropped and reported. Links from different sources stay apart, being
        different observations. A must-link from a task to itself says nothing: dropped and
        reported.

        Raises LinkError where a task is unknown or cannot-linked to itself.
        """
        if self.near:
            raise LinkError("near-elsewhere")
        code = tasks.codes(self.tasks)
        left = code[self.left]
        right = code[self.right]
        self._refuse_unknown(code)
        itself = left == right
        if itself.any():
            self._refuse_unlike_itself(itself)
            note("links-to-itself", n=int(np.count_nonzero(itself)))
        kept = np.flatnonzero(~itself)
        if self.weight is not None:  # of links without weight, equal ones collapse below
            kept = np.intersect1d(kept, _last_given(self)[0])
        given = self.select(kept)
        found = link_graph.distinct(left[kept], right[kept], given.must, given.weight, given.who)
        found = found._replace(row=kept[found.row])
        if self.duplicate is not None:
            found = found._replace(duplicate=self.duplicate[found.row] & found.must)
        if found.weight is None or (found.weight != 0.0).all():
            return found
        note("links-cancel", n=int(np.count_nonzero(found.weight == 0.0)))
        return found.keep(found.weight != 0.0)

    def closure(self) -> ClosedLinks:
        """Find what follows from the links without weight.

        >>> links = Links.from_pairs(must=[("a", "b"), ("b", "c")], cannot=[("c", "d")])
        >>> closed = links.closure()
        >>> closed, closed.groups(), closed.cannot_pairs()
        (ClosedLinks(3 must, 3 cannot), [['a', 'b', 'c']], [('a', 'd')])
        """
        codes = self.on(self.tasks)
        return ClosedLinks(self.tasks, codes, link_graph.close(len(self.tasks), codes))

    def _refuse_unknown(self, code: Codes) -> None:
        ends = np.column_stack([self.left, self.right]).ravel()
        at = np.flatnonzero(code[ends] == MISSING)
        _, first = np.unique(ends[at], return_index=True)
        if len(first):
            places = at[np.sort(first)[:SHOWN_PLACES]]
            raise LinkError("links-unknown-tasks", n=len(first), tasks=self._placed(ends, places))

    def _refuse_unlike_itself(self, itself: Mask) -> None:
        wrong = np.flatnonzero(itself & ~self.must)
        if len(wrong):
            tasks = self._placed(np.repeat(self.left, 2), 2 * wrong[:SHOWN_PLACES])
            raise LinkError("links-unlike-itself", n=len(wrong), tasks=tasks)

    def _placed(self, ends: Codes, at: Offsets) -> list[tuple[Hashable, str]]:
        """Return the tasks at some ends, two to a link, with the lines of the links."""
        return [(self.tasks[int(ends[end])], self.where(int(end) // 2)) for end in at]


@dataclass(frozen=True, slots=True, eq=False)
class ClosedLinks:
    """Groups of tasks that must be the same class, and which groups cannot be.

    `codes` and `closure` are the same in numbers, for the functions of `tiebreak.links.graph`.
    """

    tasks: Ids
    codes: LinkCodes = field(repr=False)
    closure: Closure = field(repr=False)

    @property
    def n_must(self) -> int:
        """How many pairs of tasks must be the same class."""
        return self.closure.n_must

    @property
    def n_cannot(self) -> int:
        """How many pairs of tasks cannot be the same class."""
        return self.closure.n_cannot

    def __repr__(self) -> str:
        return f"ClosedLinks({self.n_must:,} must, {self.n_cannot:,} cannot)"

    def groups(self) -> list[list[Hashable]]:
        """Return the groups of two or more tasks that must be the same class."""
        order = np.argsort(self.closure.group, kind="stable")
        parts = np.split(order, np.cumsum(self.closure.size)[:-1])
        return [self._named(part.tolist()) for part in parts if len(part) > 1]

    def cannot_pairs(self) -> list[tuple[Hashable, Hashable]]:
        """Return one pair per two groups that cannot be the same class: their first tasks."""
        closure = self.closure
        first = link_graph.first_members(closure.group, closure.n_groups)
        left = self._named(first[closure.left].tolist())
        right = self._named(first[closure.right].tolist())
        return list(zip(left, right, strict=True))

    def contradictions(self) -> list[list[Hashable]]:
        """Return, for each cannot-link that must-links contradict, the chain of must-links."""
        from tiebreak.links.chains import Chains

        must = self.codes.keep(self.codes.is_hard & self.codes.must)
        chains = Chains.along(must, two_classes=False)
        left = self.codes.left[self.closure.conflicts].tolist()
        right = self.codes.right[self.closure.conflicts].tolist()
        found = (chains.shortest(*ends, same=True) for ends in zip(left, right, strict=True))
        return [self._named([steps[0].start, *(step.end for step in steps)]) for steps in found]

    def _named(self, codes: list[int]) -> list[Hashable]:
        return [self.tasks[code] for code in codes]


# -- equal links -----------------------------------------------------------------------------------


def _last_given(links: Links) -> tuple[Offsets, int]:
    """Find the rows that count, one for each pair, kind and source, in the order they came first.

    Of equal rows that is the first, where weights differ the last. Returns also how many links
    came again with another weight.
    """
    low = np.minimum(links.left, links.right)
    high = np.maximum(links.left, links.right)
    who = np.full(len(links), MISSING) if links.who is None else links.who
    order, start = link_graph.runs_of_equal((low, high, links.must, who))
    first = order[start]
    in_turn = np.argsort(first)
    if links.weight is None or len(first) == len(links):
        return first[in_turn], 0
    length = np.diff(np.append(start, len(links)))
    last = order[start + length - 1]
    weight = np.nan_to_num(links.weight, nan=0.0)  # weights are above 0
    is_changed = np.logical_or.reduceat(weight[order] != np.repeat(weight[last], length), start)
    return np.where(is_changed, last, first)[in_turn], int(np.count_nonzero(is_changed))


def _each_once(links: Links) -> Links:
    """Return the links, equal ones once; say how many weights were replaced."""
    at, n_changed = _last_given(links)
    if n_changed:
        note("links-new-weight", n=n_changed)
    return links if len(at) == len(links) else links.select(at)


def _joined(first: Links, second: Links, name: str, missing: Any) -> npt.NDArray[Any] | None:
    """Return a column of two tables one after the other; None where neither has it."""
    columns = [getattr(first, name), getattr(second, name)]
    if columns[0] is None and columns[1] is None:
        return None
    filled = [np.full(len(first), missing), np.full(len(second), missing)]
    return np.concatenate([b if a is None else a for a, b in zip(columns, filled, strict=True)])


def who_among(table: Any, sources: Ids) -> Codes:
    """Return where links or constraints come from, in the codes of these sources."""
    if table.who is None or table.sources is None:
        return np.full(len(table), MISSING, dtype=np.int32)
    return np.where(table.who == MISSING, MISSING, sources.codes(table.sources)[table.who])


# -- columns ---------------------------------------------------------------------------------------


def _encode_ends(left: Column, right: Column, source: Source) -> tuple[Codes, Codes, Ids]:
    """Turn both columns of ids into codes of one list of tasks, in order of first appearance."""
    try:
        left_code, tasks = ids.encode(left)
        right_code, others = ids.encode(right)
        _refuse_missing_ids("left", left_code, source)
        _refuse_missing_ids("right", right_code, source)
        tasks = tasks.merge(others)
    except (TypeError, ValueError) as error:
        if isinstance(error, LinkError):
            raise
        raise LinkError("links-mixed-ids", reason=str(error)) from None
    ends = np.column_stack([left_code, tasks.codes(others)[right_code]]).ravel()
    found, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    order = np.argsort(first)
    new = np.empty(len(found), dtype=np.int32)
    new[order] = np.arange(len(found), dtype=np.int32)
    code = new[inverse].reshape(-1, 2)
    return code[:, 0].copy(), code[:, 1].copy(), tasks.take(found[order])


def _refuse_missing_ids(side: str, codes: Codes, source: Source) -> None:
    missing = np.flatnonzero(codes == MISSING)
    if len(missing):
        places = [source.where(int(row)) for row in missing[:SHOWN_PLACES]]
        raise LinkError("links-no-task", n=len(missing), side=side, places=places)


def _encode_sources(who: Column) -> tuple[Codes | None, Ids | None]:
    """Turn the column that says where links come from into codes, -1 where it is empty."""
    try:
        codes, sources = ids.encode(who)
    except TypeError as error:
        raise LinkError("links-odd-source", reason=str(error)) from None
    return (codes, sources) if len(sources) else (None, None)


def _are_near(column: Column, weight: Column | None) -> bool:
    """Say whether links join neighbours in a network: all of them, or none."""
    _, words = ids.encode(_by_row(column))
    is_near = [_squashed(word) in NEAR_WORDS for word in words]
    if any(is_near) and not (all(is_near) and weight is None):
        raise LinkError("near-beside-others")
    return any(is_near)


def _read_words(column: Column, source: Source) -> tuple[Mask, npt.NDArray[np.int8]]:
    """Return which links say must, and how each says that it came about."""
    column = _by_row(column)
    codes, words = ids.encode(column)
    squashed = [_squashed(word) for word in words]
    is_must = np.array([word in MUST_WORDS for word in squashed], dtype=bool)
    is_known = is_must | np.array([word in CANNOT_WORDS for word in squashed], dtype=bool)
    rows = np.flatnonzero(np.isin(codes, [MISSING, *np.flatnonzero(~is_known)]))
    if len(rows):
        raise LinkError("links-odd-word", n=len(rows), shown=offenders(rows, column, source))
    translated = [
        (word, "must" if must else "cannot")
        for word, must in zip(words, is_must, strict=True)
        if str(word).strip().casefold() not in ("must", "cannot", "duplicate")
    ]
    if translated:
        note("links-words-read", name=source.name, words=translated)
    says = np.full(len(words), UNSAID, dtype=np.int8)
    says[[word in DUPLICATE_WORDS for word in squashed]] = DUPLICATE
    says[[word in PAIR_WORDS for word in squashed]] = PAIR
    return is_must[codes], says[codes]


def _duplicates(
    must: Mask, who: Codes | None, says: npt.NDArray[np.int8], sampling: Sampling | None
) -> Mask | None:
    """Return which links join duplicates; None where none does.

    Parameters
    ----------
    says
        (n_links,) PAIR, DUPLICATE or UNSAID, as the words of the table say.
    sampling
        What holds for links of which the table does not say it. None: must-links of a source that
        gives no cannot-link are duplicates, since answers would be of both kinds; that is reported.
    """
    if sampling is not None:
        require_word("sampling", sampling, SAMPLINGS)
    found = says == DUPLICATE
    if sampling == "duplicates":
        found |= must & (says == UNSAID)
    elif sampling is None:
        guessed = _guessed_duplicates(must, who) & (says == UNSAID)
        n_guessed = int(np.count_nonzero(guessed))
        if n_guessed:
            note("links-taken-for-duplicates", n=n_guessed)
        found |= guessed
    return found if found.any() else None


def _guessed_duplicates(must: Mask, who: Codes | None) -> Mask:
    """Return the must-links of sources that give no cannot-link."""
    source = np.zeros(len(must), dtype=np.int64) if who is None else who
    return np.asarray(must & ~np.isin(source, source[~must]))


def _as_weights(column: Column, source: Source) -> Floats | None:
    """Return weights as numbers, NaN where none is given; None where no link has one."""
    if not (ids.is_arrow(column) or hasattr(column, "__array__")):
        column = list(column)
    weights, is_given = as_numbers(column)
    rows = np.flatnonzero(is_given & ~((weights > 0) & np.isfinite(weights)))
    if len(rows):
        raise LinkError("links-odd-weight", n=len(rows), shown=offenders(rows, column, source))
    return None if np.isnan(weights).all() else weights


def _is_boolean(column: Column) -> bool:
    """Tell whether a column holds nothing but True and False."""
    if ids.is_arrow(column) or hasattr(column, "__array__"):
        return bool(np.asarray(column).dtype == bool)
    return all(type(value) is bool for value in column)


def _by_row(column: Column) -> Column:
    """Return a column of one type: values of several become text."""
    try:
        return ids.arrow(column)
    except InputError:
        return ids.arrow([None if ids.is_missing(value) else str(value) for value in column])


def _squashed(word: object) -> str:
    """Return a word in small letters without blanks and dashes: must-link is mustlink."""
    text = str(word).strip().casefold()
    if text.isascii() and text[:1].isalpha():  # but "- 1" is not -1
        text = "".join(c for c in text if c not in " \t_-")
    return text
