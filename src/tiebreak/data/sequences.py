"""Sequences: which tasks follow each other, and the words that they are; spans found in them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import messages  # noqa: F401  # registered
from tiebreak.data.frames import as_frame, as_html, as_text
from tiebreak.data.ids import MISSING, Column, Ids, as_numbers, encode
from tiebreak.data.ids import as_text as texts_of
from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.wording import NOWHERE, Source

SHOWN = 10  # rows
DIGITS = "[0-9]"


class SequenceCodes(NamedTuple):
    """Sequences by the rows of a crowd: those of sequence s are row[start[s]:start[s + 1]]."""

    row: Codes
    start: Offsets
    n_rows: int
    word: Codes | None = None  # of each; the last word stands for none
    n_words: int = 0

    @property
    def is_first(self) -> Mask:
        """Which rows begin a sequence, in their order."""
        first = np.zeros(len(self.row), dtype=bool)
        first[self.start[:-1]] = True
        return first

    def previous(
        self, row: npt.NDArray[Any], worker: npt.NDArray[Any], label: npt.NDArray[Any], none: int
    ) -> npt.NDArray[np.int64]:
        """Return what the worker of each response answered on the row before; `none` where nothing.

        >>> codes = SequenceCodes(np.array([0, 1, 2]), np.array([0, 3]), 3)
        >>> codes.previous(
        ...     np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([4, 5, 6]), 9
        ... ).tolist()
        [9, 4, 9]
        """
        place = np.full(self.n_rows, -1, dtype=np.int64)
        place[self.row] = np.arange(len(self.row))
        at = place[row]
        before = np.full(len(row), none, dtype=np.int64)
        inside = np.flatnonzero(at >= 0)
        key = worker[inside].astype(np.int64) * len(self.row) + at[inside]
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        found = np.searchsorted(ordered, key - 1, side="right") - 1  # the last, where it repeats
        has_one = (found >= 0) & ~self.is_first[at[inside]]
        has_one &= ordered[np.maximum(found, 0)] == key - 1
        before[inside[has_one]] = label[inside[order[found[has_one]]]]
        return before


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """The tasks of sequence s are tasks[start[s]:start[s + 1]], in their order; names[s] names it.

    `word` and `words` say what each task is, where texts were given: tokens of a sentence. `begin`
    and `end` are where it stands among the characters of the whole text.

    >>> Sequences.from_columns(["a", "b", "c"], ["s1", "s1", "s2"])
    Sequences(3 tasks, 2 sequences)
    """

    tasks: Ids
    start: Offsets
    names: Ids
    word: Codes | None = field(default=None, repr=False)  # -1: none
    words: Ids | None = field(default=None, repr=False)
    begin: Offsets | None = field(default=None, repr=False)
    end: Offsets | None = field(default=None, repr=False)
    frame: str = field(default="pyarrow", repr=False)

    @classmethod
    def from_table(cls, source: Any, **options: Any) -> Sequences:
        """Read columns task, sequence and, where they are there, position and text.

        Without positions the rows of a sequence are in order. See `tiebreak.read_responses` for
        what a source may be.

        >>> Sequences.from_table({"task": [1, 2, 3], "sequence": ["a", "b", "a"]}).start.tolist()
        [0, 2, 3]
        """
        from tiebreak.tables import read_sequences

        return read_sequences(source, **options)

    @classmethod
    def from_columns(
        cls,
        task: Column,
        sequence: Column,
        position: Column | None = None,
        text: Column | None = None,
        begin: Column | None = None,
        end: Column | None = None,
        *,
        frame: str = "pyarrow",
        source: Source = NOWHERE,
    ) -> Sequences:
        """Build from columns of equal length."""
        task_code, tasks = encode(task)
        sequence_code, names = encode(sequence)
        for role, code in (("task", task_code), ("sequence", sequence_code)):
            if len(nameless := np.flatnonzero(code == MISSING)):
                raise InputError(
                    "no-id-in-sequences", role=role, where=source.where(int(nameless[0]))
                )
        _, first = np.unique(task_code, return_index=True)
        if len(first) < len(task_code):
            again = int(np.setdiff1d(np.arange(len(task_code)), first)[0])
            rows = int(np.flatnonzero(task_code == task_code[again])[0]), again
            where = [source.where(row) for row in rows]
            raise InputError("task-in-two-places", task=tasks[int(task_code[again])], where=where)
        place = np.arange(len(task_code), dtype=np.float64)
        if position is not None:
            place, _ = as_numbers(position)
            if len(wrong := np.flatnonzero(~np.isfinite(place))):
                raise InputError("no-position", where=source.where(int(wrong[0])))
        order = np.lexsort((place, sequence_code))
        same = (np.diff(sequence_code[order]) == 0) & (np.diff(place[order]) == 0)
        if same.any():
            one = int(np.flatnonzero(same)[0])
            rows = int(order[one]), int(order[one + 1])
            where = [source.where(row) for row in rows]
            shown = [tasks[int(task_code[row])] for row in rows]
            raise InputError("two-at-one-position", tasks=shown, where=where)
        start = np.concatenate([[0], np.cumsum(np.bincount(sequence_code, minlength=len(names)))])
        word, words = (None, None) if text is None else encode(text)
        if word is not None and (word == MISSING).all():
            word = words = None
        offsets = [None if each is None else as_numbers(each)[0] for each in (begin, end)]
        if any(each is None or not np.isfinite(each).all() for each in offsets):
            offsets = [None, None]
        first_of, last_of = (None if each is None else each[order] for each in offsets)
        return cls(
            tasks.take(task_code[order]),
            start.astype(np.int64),
            names,
            None if word is None else word[order],
            words,
            None if first_of is None else first_of.astype(np.int64),
            None if last_of is None else last_of.astype(np.int64),
            frame,
        )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Sequences({len(self.tasks):,} tasks, {len(self):,} sequences)"

    def on(self, tasks: Ids) -> SequenceCodes:
        """Translate into the codes of a crowd that has all these tasks."""
        row = tasks.codes(self.tasks)
        if self.word is None or self.words is None:
            return SequenceCodes(row, self.start, len(tasks))
        import pyarrow.compute as pc

        lower = pc.utf8_lower(texts_of(self.words.values))
        alike, shapes = encode(pc.replace_substring_regex(lower, DIGITS, "0"))
        word = np.append(alike, len(shapes))[self.word].astype(np.int32)  # -1: the last
        return SequenceCodes(row, self.start, len(tasks), word, len(shapes) + 1)

    def sequence_of_each(self) -> Codes:
        """Make the column of sequences, one code a task."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))

    def text_of(self, first: int, last: int) -> str | None:
        """Return the words of tasks first … last, joined; None where there are no texts."""
        if self.word is None or self.words is None:
            return None
        parts: list[str] = []
        for i in range(first, last + 1):
            parts += [" "] if i > first and self.has_gap(i) else []
            parts += [str(self.words[int(self.word[i])])] if self.word[i] >= 0 else []
        return "".join(parts)

    def has_gap(self, i: int) -> bool:
        """Return whether the text has a gap before task i, which is not the first of its text."""
        return self.begin is None or self.end is None or bool(self.begin[i] > self.end[i - 1])

    def pieces(
        self, low: int, high: int, spans: Iterable[tuple[int, int, Any]]
    ) -> list[tuple[str, Any]]:
        """Cut the text of tasks low … high into spans (first, last, name) and what lies between.

        Spans are in order and do not overlap. What lies between has the name None.

        >>> tokens = Sequences.from_columns([1, 2, 3], list("sss"), text=["met", "Ada", "."])
        >>> tokens.pieces(0, 2, [(1, 1, "PER")])
        [('met', None), (' ', None), ('Ada', 'PER'), (' ', None), ('.', None)]
        """
        parts: list[tuple[int, int, Any]] = []
        at = low
        for first, last, name in spans:
            parts += [(at, first - 1, None)] if first > at else []
            parts.append((first, last, name))
            at = last + 1
        parts += [(at, high, None)] if at <= high else []
        found: list[tuple[str, Any]] = []
        for first, last, name in parts:
            found += [(" ", None)] if first > low and self.has_gap(first) else []
            found.append((self.text_of(first, last) or "", name))
        return found

    def columns(self) -> dict[str, Column]:
        """Return task, sequence, position and, where there are any, text, begin and end."""
        position = np.arange(len(self.tasks)) - np.repeat(self.start[:-1], np.diff(self.start))
        named = self.names.take(self.sequence_of_each())
        found = {"task": self.tasks.values, "sequence": named.values, "position": position}
        if self.word is not None and self.words is not None:
            found["text"] = take_known(self.words, self.word)
        if self.begin is not None:
            found |= {"begin": self.begin, "end": self.end}
        return found

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write a table that `from_table` reads, by its name CSV, TSV, JSON or Parquet."""
        from tiebreak.tables import write_table

        write_table(target, self.columns(), format=format)


def take_known(names: Ids, codes: Codes) -> Column:
    """Return the name of each code, nothing for -1."""
    import pyarrow as pa

    return names.values.take(pa.array(codes, mask=codes < 0))


class TaskSpan(NamedTuple):
    """Tasks side by side that belong together."""

    sequence: Hashable
    first: Hashable
    last: Hashable
    label: Hashable
    probability: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans of sequences: span i is tasks first[i] … last[i], by their places in `sequences`.

    >>> tokens = Sequences.from_columns(["a", "b"], ["s", "s"], text=["New", "York"])
    >>> spans = Spans(
    ...     tokens, np.array([0]), np.array([1]), Ids(["City"]), np.array([0]), np.array([0.9])
    ... )
    >>> next(iter(spans))
    TaskSpan(sequence='s', first='a', last='b', label='City', probability=0.9, text='New York')
    """

    sequences: Sequences
    first: Offsets
    last: Offsets
    kinds: Ids
    kind: Codes
    probability: Floats | None = None

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        title, header, rows = self._head()
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"{title}\n{as_text(header, rows)}{more}" if rows else title

    def _repr_html_(self) -> str:
        return as_html(*self._head())

    def _head(self) -> tuple[str, tuple[str, ...], list[tuple[Any, ...]]]:
        """Return a title, the names of columns, and the first rows."""
        n_columns = 6 if self.sequences.word is not None else 5
        rows = [each[:n_columns] for each in self.take(np.arange(min(SHOWN, len(self))))]
        return f"Spans({len(self):,} spans)", TaskSpan._fields[:n_columns], rows

    def __iter__(self) -> Iterator[TaskSpan]:
        """Yield sequence, first and last task, label, probability and text of each span."""
        tokens = self.sequences
        named = zip(
            tokens.names.take(tokens.sequence_of_each()[self.first]),
            tokens.tasks.take(self.first),
            tokens.tasks.take(self.last),
            self.kinds.take(self.kind),
            [None] * len(self) if self.probability is None else self.probability.tolist(),
            strict=True,
        )
        for each, a, b in zip(named, self.first.tolist(), self.last.tolist(), strict=True):
            yield TaskSpan(*each, tokens.text_of(a, b))

    def take(self, chosen: Offsets) -> Spans:
        """Return some of the spans."""
        sure = None if self.probability is None else self.probability[chosen]
        given = self.sequences, self.first[chosen], self.last[chosen], self.kinds
        return Spans(*given, self.kind[chosen], sure)

    def columns(self) -> dict[str, Column]:
        """Return sequence, first, last, label, probability; as far as known text, begin, end."""
        tokens = self.sequences
        named = tokens.names.take(tokens.sequence_of_each()[self.first])
        found: dict[str, Column] = {
            "sequence": named.values,
            "first": tokens.tasks.take(self.first).values,
            "last": tokens.tasks.take(self.last).values,
            "label": self.kinds.take(self.kind).values,
        }
        if self.probability is not None:
            found["probability"] = self.probability
        if tokens.word is not None:
            ends = zip(self.first.tolist(), self.last.tolist(), strict=True)
            found["text"] = [tokens.text_of(a, b) for a, b in ends]
        if tokens.begin is not None and tokens.end is not None:
            found |= {"begin": tokens.begin[self.first], "end": tokens.end[self.last]}
        return found

    def to_frame(self, frame: str | None = None) -> Any:
        """Return the spans as a table: "pandas", "polars" or "pyarrow"."""
        return as_frame(self.columns(), frame or self.sequences.frame)

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write the spans to a file, by its name CSV, TSV, JSON or Parquet."""
        from tiebreak.tables import write_table

        write_table(target, self.columns(), format=format)
