"""The table of constraints: how many of some statements about tasks hold.

A literal says "the class of this task is one of these". A constraint has literals, and says how
many of them hold:

    exactly one of a, b, c is cat      literals a ∈ {cat}, b ∈ {cat}, c ∈ {cat}    count 1
    at most two of them are            the same literals                           count 0-2
    if a is cat, d is animal           a ∈ {cat}, d ∉ {animal}                     count 0-1
    x is cat or dog                    x ∈ {cat, dog}                              count 1
    x is not 3                         x ∈ {3}                                     count 0
    same(ab), same(bc), same(ac)       three literals                              count 0,1,3

Three relations are no counts: `order` of two tasks, `same` and `different` (links), and the `rate`
of a class among all tasks.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import MAPPING, SEVERAL, checks, has_parts
from tiebreak.data.frames import as_html
from tiebreak.data.ids import MISSING, Column, Ids, as_numbers, encode, is_missing
from tiebreak.errors import ConstraintError, LinkError, note
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.links.table import Links, who_among
from tiebreak.wording import NOWHERE, Source, first_few

ORDER, SAME, DIFFERENT, RATE = "order", "same", "different", "rate"
RELATIONS = (ORDER, SAME, DIFFERENT)
LEARN = "learn"
SHOWN = 6  # tasks of many
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PHRASE = re.compile(rf"(exactly|at most|at least)\s+(\d+|{'|'.join(NUMBERS)}|none)\b\s*(.*)", re.S)
ALL_OR_NONE = re.compile(r"(?:all or none|none or all)\b\s*(.*)", re.S)
SPAN = re.compile(r"(\d+)(?:\s*-\s*(\d+)?)?")

LabelSet = tuple[bool, tuple[Hashable, ...]]  # whether it is all but these, and labels


class Literals(NamedTuple):
    """Constraints in the codes of a crowd."""

    task: Codes  # (n_literals,)
    member: Mask  # (n_literals, n_classes)
    classes: Ids
    rank: Offsets | None  # (n_classes,) their order, where it is known


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Constraint f has the literals start[f] … start[f + 1] − 1: task[i] is of labels[i].

    Build them with `groups`, `implies`, `allowed`, `forbidden`, `order`, `rate`, `transitive`,
    `from_links` or `from_records`, and add them up. `rule[f]` is the code of how many literals
    hold, in `rules`; `labels[i]` that of a set of labels, in `sets`. `weight` is the log-odds that
    a constraint is right (nan, or None for all: it holds); `who` says where it comes from, in codes
    of `sources`. `none` says how often a group is empty: "learn", or the log-odds that it is not.

    >>> rules = Constraints.groups([("a", "g"), ("b", "g")], "at most one", "cat")
    >>> rules += Constraints.implies(("a", "cat"), ("c", "animal"))
    >>> rules
    Constraints(2 constraints, 3 tasks)
    >>> rules.say(0), rules.say(1)
    ("at most one of 'a', 'b' is 'cat'", "if 'a' is 'cat', 'c' is 'animal'")
    """

    start: Offsets
    task: Codes
    labels: Codes
    rule: Codes
    tasks: Ids
    sets: tuple[LabelSet, ...]
    rules: tuple[str, ...]
    row: Offsets = field(repr=False)
    weight: Floats | None = None
    who: Codes | None = None
    sources: Ids | None = None
    none: str | float | None = None
    source: Source = field(default=NOWHERE, repr=False)

    def __post_init__(self) -> None:
        is_weight = isinstance(self.none, int | float) and 0.0 <= self.none < np.inf
        if self.none not in (None, LEARN) and (not is_weight or self.none is True):
            raise ConstraintError("constraint-odd-none", value=self.none)
        for array in (self.start, self.task, self.labels, self.rule, self.row):
            array.flags.writeable = False

    # Building

    @classmethod
    def groups(
        cls,
        table: Any,
        rule: str,
        label: Hashable = None,
        *,
        weight: float | None = None,
        who: Hashable = None,
        none: str | float | None = None,
    ) -> Constraints:
        """Say how many tasks of each group are of a class.

        `table` has columns task and group: anything that `read_gold` takes, or (task, group) rows.
        `rule` is "exactly one", "at most 2", "at least one" or "all or none"; it may name the
        class, as "at most one cat".
        """
        from tiebreak.tables import read_groups

        columns, source = read_groups(table)
        text, named = read_rule(rule)
        label = named if label is None else label
        if label is None:
            raise ConstraintError("constraint-no-label", rule=rule)
        task, tasks = encode(columns[0])
        group, names = encode(columns[1])
        for what, codes in (("task", task), ("group", group)):
            for row in np.flatnonzero(codes == MISSING)[:1]:
                raise ConstraintError("constraint-empty", what=what, where=source.where(int(row)))
        order = np.argsort(group, kind="stable")
        made = cls(
            np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(names)))]),
            task[order],
            np.zeros(len(task), np.int32),
            np.zeros(len(names), np.int32),
            tasks,
            ((False, (label,)),),
            (text,),
            row=order[np.searchsorted(group[order], np.arange(len(names)))],
            weight=None if weight is None else np.full(len(names), float(weight)),
            who=None if who is None else np.zeros(len(names), np.int32),
            sources=None if who is None else Ids([who]),
            none=none,
            source=source,
        )
        made._checked(order)
        n_single = int((np.diff(made.start) == 1).sum()) if text == "1" else 0
        if n_single:
            note("constraints-name-classes", n=n_single)
        return made

    @classmethod
    def implies(
        cls,
        condition: Any,
        consequence: Any,
        *,
        weight: float | None = None,
        who: Hashable = None,
    ) -> Constraints:
        """Say that if a task has a label another one has: two (task, label) pairs.

        Either may be a mapping of several tasks, and a label may be a list of several.
        """
        for each in (condition, consequence):
            if not isinstance(each, Mapping) and not has_parts(each, 2):
                raise ConstraintError("constraint-odd-record", where="implies", record=each)
        given, then = (
            each if isinstance(each, Mapping) else dict([each]) for each in (condition, consequence)
        )
        return cls.from_records([_weighed({"if": given, "then": then}, weight, who)])

    @classmethod
    @checks(labels=MAPPING)
    def allowed(cls, labels: Mapping[Hashable, Any], **more: Any) -> Constraints:
        """Say which labels a task may have: a mapping of task to a label, or a list of them.

        >>> Constraints.allowed({"a": ["cat", "dog"]}).say(0)
        "'a' is 'cat' or 'dog'"
        """
        given = [{"task": task, "labels": _several(each)} for task, each in labels.items()]
        return cls.from_records([_weighed(each, **more) for each in given])

    @classmethod
    @checks(labels=MAPPING)
    def forbidden(cls, labels: Mapping[Hashable, Any], **more: Any) -> Constraints:
        """Say which labels a task does not have: a mapping of task to a label, or a list."""
        given = [{"task": task, "not": _several(each)} for task, each in labels.items()]
        return cls.from_records([_weighed(each, **more) for each in given])

    @classmethod
    @checks(pairs=SEVERAL)
    def order(
        cls, pairs: Iterable[Sequence[Hashable]], *, classes: Sequence[Hashable] = (), **more: Any
    ) -> Constraints:
        """Say that the class of the first task of each pair is at least that of the second.

        `classes` lists the classes, lowest first, where their order is not known otherwise.
        """
        named = {"classes": list(classes)} if len(classes) else {}
        given = [_weighed({"order": list(pair), **named}, **more) for pair in pairs]
        return cls.from_records(given)

    @classmethod
    @checks(triples=SEVERAL)
    def transitive(
        cls, triples: Iterable[Sequence[Hashable]], label: Hashable = "same", **more: Any
    ) -> Constraints:
        """Say of three tasks, each about a pair out of three records, that not just two are same.

        The tasks (ab, bc, ac) have the label "same" where their two records are.
        """
        given = [{"tasks": list(each), "label": label, "count": [0, 1, 3]} for each in triples]
        return cls.from_records([_weighed(each, **more) for each in given])

    @classmethod
    def rate(cls, label: Hashable, low: float, high: float) -> Constraints:
        """Say which share of all tasks is of a class: between `low` and `high`."""
        return cls.from_records([{"label": label, "rate": [low, high]}])

    @classmethod
    @checks(links=Links)
    def from_links(cls, links: Links) -> Constraints:
        """Return links as constraints: same for must, different for cannot."""
        if links.near:
            raise LinkError("near-elsewhere")
        n = len(links)
        return cls(
            np.arange(0, 2 * n + 1, 2),
            np.column_stack([links.left, links.right]).ravel().astype(np.int32),
            np.full(2 * n, MISSING, np.int32),
            np.where(links.must, 0, 1).astype(np.int32),
            links.tasks,
            (),
            (SAME, DIFFERENT),
            row=links.row.copy(),
            weight=links.weight,
            who=links.who,
            sources=links.sources,
            source=links.source,
        )

    @classmethod
    @checks(records=SEVERAL)
    def from_records(
        cls, records: Iterable[Mapping[str, Any]], source: Source = NOWHERE
    ) -> Constraints:
        """Build from objects, as lines of a JSON file have them: see docs/constraints.md.

        >>> given = [{"tasks": ["a", "b"], "label": "1", "count": "0-1"}, {"same": ["b", "c"]}]
        >>> [made.say(f) for made in [Constraints.from_records(given)] for f in range(2)]
        ["at most one of 'a', 'b' is '1'", "'b' and 'c' are of the same class"]
        """
        made = _Builder(source)
        for row, record in enumerate(records):
            made.add(row, record)
        return made.table()

    # The table

    def __len__(self) -> int:
        return len(self.rule)

    def __repr__(self) -> str:
        n = len(self)
        return f"Constraints({n:,} constraint{'s' * (n != 1)}, {len(self.used_tasks()):,} tasks)"

    def _repr_html_(self) -> str:
        rows = [(self.where(f), self.say(f)) for f in range(min(len(self), 10))]
        return as_html(repr(self), ("row", "constraint"), rows)

    def used_tasks(self) -> Ids:
        """Return the tasks that are named."""
        return self.tasks.take(np.unique(self.task[self.task >= 0]))

    def used_labels(self) -> Ids:
        """Return the labels that are named."""
        codes = np.unique(self.labels[self.labels >= 0]).tolist()
        names = list(dict.fromkeys(name for code in codes for name in self.sets[code][1]))
        return Ids(names) if names else Ids()

    def tasks_of(self, f: int) -> list[Hashable]:
        """Return the tasks of a constraint; none of a rate."""
        task = self.task[self.start[f] : self.start[f + 1]]
        return list(self.tasks.take(task[task >= 0]))

    def where(self, f: int) -> str:
        """Name the file and row of a constraint."""
        return self.source.where(int(self.row[f]))

    def is_rate(self) -> Mask:
        """Return which constraints are rates."""
        of_rule = np.array([text.startswith(RATE) for text in self.rules], dtype=bool)
        return np.asarray(of_rule[self.rule], dtype=bool) if len(self) else np.empty(0, bool)

    def rates(self) -> list[tuple[int, Hashable, float, float]]:
        """Return place, label, low and high of each rate."""
        found = []
        for f in np.flatnonzero(self.is_rate()).tolist():
            low, high = map(float, self.rules[self.rule[f]].split()[1:])
            found.append((f, self.sets[self.labels[self.start[f]]][1][0], low, high))
        return found

    def select(self, index: npt.NDArray[Any]) -> Constraints:
        """Return the constraints at these places, or under this mask; tasks keep their codes."""
        at = np.arange(len(self))[index]
        size = np.diff(self.start)[at]
        start = np.concatenate([[0], np.cumsum(size)])
        literal = np.repeat(self.start[at] - start[:-1], size) + np.arange(start[-1])
        return replace(
            self,
            start=start,
            task=self.task[literal],
            labels=self.labels[literal],
            rule=self.rule[at],
            row=self.row[at],
            weight=None if self.weight is None else self.weight[at],
            who=None if self.who is None else self.who[at],
        )

    def __add__(self, other: Constraints) -> Constraints:
        """Append the constraints of another table."""
        if not isinstance(other, Constraints):
            return NotImplemented
        if self.none is not None and other.none is not None and self.none != other.none:
            raise ConstraintError("constraint-two-nones", values=(self.none, other.none))
        n, tasks = len(self), self.tasks.merge(other.tasks)
        sets = tuple(dict.fromkeys(self.sets + other.sets))
        rules = tuple(dict.fromkeys(self.rules + other.rules))
        set_of = np.array([*map(sets.index, other.sets), MISSING], np.int32)
        rule_of = np.array([*map(rules.index, other.rules), 0], np.int32)
        sources = who = weight = None
        if self.weight is not None or other.weight is not None:
            weight = np.concatenate([self.weights(), other.weights()])
        if self.sources is not None or other.sources is not None:
            sources = (self.sources or Ids()).merge(other.sources or Ids())
            who = np.concatenate([who_among(each, sources) for each in (self, other)])
        code = np.append(tasks.codes(other.tasks), MISSING)  # of what names no task

        def place(row: int) -> str:
            table, at = (self, row) if row < n else (other, row - n)
            return table.where(at) if table.source.place_of else f"constraint {row + 1}"

        return Constraints(
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.task, code[other.task]]),
            np.concatenate([self.labels, set_of[other.labels]]),
            np.concatenate([self.rule, rule_of[other.rule]]),
            tasks,
            sets,
            rules,
            row=np.arange(n + len(other)),
            weight=weight,
            who=who,
            sources=sources,
            none=other.none if self.none is None else self.none,
            source=Source("the constraints put together", place),
        )

    def weights(self) -> Floats:
        """Return the weight of each constraint, nan where it holds for sure."""
        return np.full(len(self), np.nan) if self.weight is None else self.weight

    def say(self, f: int) -> str:
        """Return a constraint in words."""
        at = slice(self.start[f], self.start[f + 1])
        tasks = [repr(each) for each in self.tasks_of(f)]
        text = self.rules[self.rule[f]]
        if text.startswith(RATE):
            _, low, high = text.split()
            name = self.sets[self.labels[at][0]][1][0]
            return f"{float(low):.3g} to {float(high):.3g} of all tasks are {name!r}"
        if text in RELATIONS:
            is_order = text == ORDER
            words = "is not below" if is_order else "and"
            return f"{tasks[0]} {words} {tasks[1]}" + ("" if is_order else _RELATION[text])
        sets = [self.sets[code] for code in self.labels[at]]
        if len(tasks) == 1:
            allowed = allowed_counts(text, 1)
            return f"{tasks[0]} {_is(sets[0], is_not=not allowed[1])}"
        if text == f"0-{len(tasks) - 1}" and len(set(sets)) > 1:
            said = [f"{task} {_is(each)}" for task, each in zip(tasks, sets, strict=True)]
            return f"if {' and '.join(said[:-1])}, {tasks[-1]} {_is(sets[-1], is_not=True)}"
        if len(set(sets)) == 1:
            return f"{_how_many(text)} of {first_few(tasks, SHOWN)} {_is(sets[0])}"
        said = [f"{task} {_is(each)}" for task, each in zip(tasks, sets, strict=True)]
        return f"{_how_many(text)} of: {first_few(said, SHOWN)}"

    def records(self) -> list[dict[str, Any]]:
        """Return one object per constraint, as `from_records` takes them."""
        found = []
        given = zip(self.rule.tolist(), self.weights().tolist(), strict=True)
        for f, (text, weight) in enumerate(given):
            at = slice(int(self.start[f]), int(self.start[f + 1]))
            tasks = self.tasks_of(f)
            rule, sets = self.rules[text], [self.sets[code] for code in self.labels[at]]
            made: dict[str, Any] = {"tasks": tasks, "count": rule}
            if rule.startswith(RATE):
                low, high = map(float, rule.split()[1:])
                made = {"label": sets[0][1][0], "rate": [low, high]}
            elif rule in RELATIONS:
                made = {rule: tasks}
                if rule == ORDER and sets[0][1]:
                    made["classes"] = list(sets[0][1])
            elif len(set(sets)) == 1 and not sets[0][0]:
                made["labels"] = list(sets[0][1])
            else:
                made["negated"] = [each[0] for each in sets]
                made["literals"] = [list(each[1]) for each in sets]
            if weight == weight:
                made["weight"] = weight
            if self.who is not None and self.sources is not None and self.who[f] != MISSING:
                made["who"] = self.sources[int(self.who[f])]
            if self.none is not None:
                made["none"] = self.none
            found.append(made)
        return found

    def write(self, target: str | os.PathLike[str]) -> None:
        """Write one JSON object per line."""
        from tiebreak.tables import open_target

        with open_target(target) as sink:
            for record in self.records():
                sink.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())

    # In the codes of a crowd

    def on(self, tasks: Ids, classes: Ids, *, is_ordered: bool = False) -> Literals:
        """Translate into the codes of a crowd, refusing classes that it does not have.

        Classes have an order where `is_ordered` says so, and where all are numbers.
        """
        numbers, is_number = as_numbers(classes.values)
        rank = np.arange(len(classes)) if is_ordered else None
        if rank is None and is_number.all() and np.isfinite(numbers).all():
            rank = np.argsort(np.argsort(numbers))
        member = np.zeros((len(self.sets) + 1, len(classes)), dtype=bool)
        is_used = np.zeros(len(self.sets) + 1, dtype=bool)
        is_used[self.labels] = True
        for code, (is_not, names) in enumerate(self.sets):
            if not names or not is_used[code]:
                continue
            found = classes.codes(list(names))
            for name in (name for name, at in zip(names, found, strict=True) if at == MISSING):
                f = int(
                    np.searchsorted(self.start, np.flatnonzero(self.labels == code)[0], "right")
                )
                close = difflib.get_close_matches(str(name), [str(each) for each in classes], n=1)
                raise ConstraintError(
                    "constraint-unknown-label",
                    label=name,
                    where=self.where(f - 1),
                    classes=list(classes),
                    meant=close[0] if close else None,
                )
            member[code, found] = True
            member[code] ^= is_not
        own = np.append(tasks.codes(self.tasks), MISSING)  # of what names no task
        return Literals(own[self.task], member[self.labels], classes, rank)

    def _checked(self, row_of_literal: Offsets) -> Constraints:
        """Refuse a task twice in a constraint, and counts that cannot be; note groups of one."""
        size = np.diff(self.start)
        owner = np.repeat(np.arange(len(self)), size)
        order = np.lexsort((row_of_literal, self.task, owner))
        same = (np.diff(owner[order]) == 0) & (np.diff(self.task[order]) == 0)
        for at in np.flatnonzero(same)[:1].tolist():
            rows = sorted(int(row_of_literal[order[each]]) for each in (at, at + 1))
            raise ConstraintError(
                "constraint-task-twice",
                task=self.tasks[int(self.task[order[at]])],
                where=[self.source.where(each) for each in rows],
            )
        for rule, n in sorted({*zip(self.rule.tolist(), size.tolist(), strict=True)}):
            text = self.rules[rule]
            if text in RELATIONS or text.startswith(RATE):
                continue
            allowed = allowed_counts(text, n)
            is_above = any(int(each) > n for each in re.findall(r"\d+", text.split("-")[0]))
            if n == 0 or not allowed.any() or is_above:
                f = int(np.flatnonzero((self.rule == rule) & (size == n))[0])
                raise ConstraintError("constraint-count", n=n, rule=text, where=self.where(f))
        return self


_RELATION = {SAME: " are of the same class", DIFFERENT: " are of different classes"}


def allowed_counts(text: str, n: int) -> Mask:
    """Return which counts of n literals keep a rule, (n + 1,).

    >>> allowed_counts("0-1", 3).tolist(), allowed_counts("0,all", 2).tolist()
    ([True, True, False, False], [True, False, True])
    """
    allowed = np.zeros(n + 1, dtype=bool)
    for part in text.split(","):
        if part == "all":
            allowed[n] = True
            continue
        low, dash, high = part.partition("-")
        last = int(high) if high else n if dash else int(low)
        allowed[int(low) : last + 1] = True
    return allowed


def require_rule(text: Any) -> None:
    """Refuse, with ValueError, what a file says is a rule and is none."""
    if text not in RELATIONS and not str(text).startswith(RATE):
        read_rule(text)
    elif text not in RELATIONS:
        low, high = map(float, text.split()[1:])
        if not 0.0 <= low <= high <= 1.0:
            raise ValueError(text)


def read_rule(rule: Any) -> tuple[str, str | None]:
    """Return how many literals hold, as text, and the class that the words name.

    >>> read_rule("at most one cat"), read_rule("exactly 2"), read_rule([0, 1, 3])
    (('0-1', 'cat'), ('2', None), ('0,1,3', None))
    """
    if isinstance(rule, int) and not isinstance(rule, bool) and rule >= 0:
        return str(rule), None
    if isinstance(rule, list | tuple) and rule and all(type(each) is int for each in rule):
        return ",".join(str(each) for each in sorted(set(rule))), None
    words = str(rule).strip() if isinstance(rule, str) else ""
    if found := PHRASE.fullmatch(words):
        how, number, name = found.groups()
        m = NUMBERS.index(number) if number in NUMBERS else 0 if number == "none" else int(number)
        text = {"exactly": f"{m}", "at most": f"0-{m}", "at least": f"{m}-"}[how]
        return text, name or None
    if found := ALL_OR_NONE.fullmatch(words):
        return "0,all", found[1] or None
    parts = [part.strip() for part in words.split(",")]
    if words and all(part == "all" or SPAN.fullmatch(part) for part in parts):
        return ",".join(part.replace(" ", "") for part in parts), None
    raise ConstraintError("constraint-odd-rule", rule=rule)


def _how_many(text: str) -> str:
    """Say how many literals hold.

    >>> _how_many("0-1"), _how_many("2-"), _how_many("0,1,3")
    ('at most one', 'at least two', '0, 1 or 3')
    """
    low, dash, high = text.partition("-")
    if "," in text or (dash and low != "0" and high):
        parts = text.split(",")
        return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else f"{low} to {high}"
    m = int(high if high else low)
    number = NUMBERS[m] if 0 < m < len(NUMBERS) else str(m)
    return f"{'exactly' if not dash else 'at most' if high else 'at least'} {number}"


def _is(labels: LabelSet, *, is_not: bool = False) -> str:
    words = " or ".join(map(repr, labels[1]))
    return f"is {'not ' if labels[0] != is_not else ''}{words}"


def _several(labels: Any) -> list[Any]:
    if isinstance(labels, set | frozenset):
        return sorted(labels, key=str)
    return list(labels) if isinstance(labels, list | tuple) else [labels]


def _weighed(
    record: dict[str, Any], weight: float | None = None, who: Hashable = None
) -> dict[str, Any]:
    more = {"weight": weight, "who": who}
    return record | {name: value for name, value in more.items() if value is not None}


KEYS = {  # what a record may have beside weight, who and none
    "tasks": {"label", "labels", "count", "literals", "negated"},
    "if": {"then"},
    "task": {"label", "labels", "not"},
    ORDER: {"classes"},
    SAME: set(),
    DIFFERENT: set(),
    RATE: {"label"},
}


class _Builder:
    """Collects constraints from records."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.literals: list[list[tuple[Hashable, LabelSet | None]]] = []
        self.rule: list[str] = []
        self.row: list[int] = []
        self.weight: list[float] = []
        self.who: list[Any] = []
        self.none: Any = None

    def add(self, row: int, record: Mapping[str, Any]) -> None:
        """Add what one record says: one constraint or several."""
        kind = next((key for key in KEYS if isinstance(record, Mapping) and key in record), None)
        known = set() if kind is None else {kind, "weight", "who", "none", *KEYS[kind]}
        if kind is None or not known >= set(record):
            raise self._odd(row, record)
        weight = record.get("weight")
        if weight is not None and not (
            isinstance(weight, int | float) and 0.0 < weight < np.inf and weight is not True
        ):
            raise ConstraintError("constraint-odd-weight", weight=weight, where=self._at(row))
        none = record.get("none")
        if none is not None and self.none not in (None, none):
            raise ConstraintError("constraint-two-nones", values=(self.none, none))
        self.none = self.none if none is None else none
        try:
            found = self._read(kind, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise error if isinstance(error, ConstraintError) else self._odd(row, record) from None
        for rule, literals in found:
            names = [task for task, _ in literals]
            if any(is_missing(task) for task in names if not rule.startswith(RATE)):
                raise ConstraintError("constraint-empty", what="task", where=self._at(row))
            self.rule.append(rule)
            self.literals.append(literals)
            self.row.append(row)
            self.weight.append(np.nan if weight is None else float(weight))
            self.who.append(record.get("who"))

    def _read(
        self, kind: str, record: Mapping[str, Any]
    ) -> list[tuple[str, list[tuple[Hashable, LabelSet | None]]]]:
        """Return rule and literals of each constraint of a record."""
        given = record[kind]
        if kind == RATE:
            low, high = map(float, given)
            if not 0.0 <= low <= high <= 1.0:
                raise ValueError
            return [(f"{RATE} {low!r} {high!r}", [(None, (False, (record["label"],)))])]
        if kind in RELATIONS:
            tasks = _sequence(given)
            if len(tasks) < 2:
                raise ValueError
            classes = (False, tuple(record["classes"])) if "classes" in record else None
            pairs = combinations(tasks, 2) if kind == DIFFERENT else pairwise(tasks)
            return [(kind, [(a, classes), (b, classes)]) for a, b in pairs]
        if kind == "if":
            conditions = [(task, (False, tuple(_several(each)))) for task, each in given.items()]
            n = len(conditions)
            return [
                (f"0-{n}", [*conditions, (task, (True, tuple(_several(each))))])
                for task, each in record["then"].items()
                if conditions
            ]
        if kind == "task":
            named = [key for key in ("label", "labels", "not") if key in record]
            (key,) = named
            labels = (False, tuple(_several(record[key])))
            return [("0" if key == "not" else "1", [(given, labels)])]
        if "literals" in record:
            negated = record.get("negated") or [False] * len(record["literals"])
            sets = [
                (bool(is_not), tuple(_several(each)))
                for is_not, each in zip(negated, record["literals"], strict=True)
            ]
        else:
            labels = record["labels"] if "labels" in record else record["label"]
            sets = [(False, tuple(_several(labels)))] * len(_sequence(given))
        text, _ = read_rule(record["count"])
        return [(text, list(zip(_sequence(given), sets, strict=True)))]

    def table(self) -> Constraints:
        """Return all as a table."""
        size = [len(each) for each in self.literals]
        flat = [each for literals in self.literals for each in literals]
        names = [task for task, _ in flat]
        task, tasks = encode(names if names else np.empty(0, dtype=object))
        sets = tuple(dict.fromkeys(labels for _, labels in flat if labels is not None))
        place = {each: code for code, each in enumerate(sets)}
        rules = tuple(dict.fromkeys(self.rule))
        who, sources = encode(self.who) if any(w is not None for w in self.who) else (None, None)
        weight = np.array(self.weight)
        made = Constraints(
            np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
            task.astype(np.int32),
            np.array([MISSING if s is None else place[s] for _, s in flat], np.int32),
            np.array([rules.index(each) for each in self.rule], np.int32),
            tasks,
            sets,
            rules,
            row=np.array(self.row, np.int64),
            weight=None if np.isnan(weight).all() else weight,
            who=who,
            sources=sources,
            none=self.none,
            source=self.source,
        )
        return made._checked(np.repeat(made.row, size) if size else made.row)

    def _at(self, row: int) -> str:
        return self.source.where(row)

    def _odd(self, row: int, record: Any) -> ConstraintError:
        return ConstraintError("constraint-odd-record", where=self._at(row), record=record)


def _sequence(given: Any) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise TypeError
    return list(given)


def of_columns(columns: Mapping[str, Column], source: Source) -> Constraints:
    """Build from columns constraint, task, label, count and, where given, weight and who."""
    values = {name: list(column.to_pylist()) for name, column in columns.items()}
    found: dict[Any, dict[str, Any]] = {}
    rows: dict[Any, list[int]] = {}
    for row, name in enumerate(values["constraint"]):
        given = {each: values[each][row] for each in values if values[each][row] is not None}
        own = found.setdefault(name, {"tasks": [], "literals": [], "row": row})
        rows.setdefault(name, []).append(row)
        if name is None or not {"task", "label"} <= given.keys():
            what = "constraint" if name is None else "task" if "task" not in given else "label"
            raise ConstraintError("constraint-empty", what=what, where=source.where(row))
        own["tasks"].append(given["task"])
        own["literals"].append([given["label"]])
        for each in ("count", "weight", "who"):
            if each in given and own.setdefault(each, given[each]) != given[each]:
                where = [source.where(own["row"]), source.where(row)]
                raise ConstraintError("constraint-unequal", name=name, what=each, where=where)
    made = _Builder(Source(source.name, lambda f: source.where(first[f])))
    first = [own.pop("row") for own in found.values()]
    for f, own in enumerate(found.values()):
        if "count" not in own:
            raise ConstraintError("constraint-empty", what="count", where=source.where(first[f]))
        if "weight" in own:
            weight = float(as_numbers([own["weight"]])[0][0])
            own["weight"] = weight if weight == weight else own["weight"]
        made.add(f, own)
    table = made.table
    for name, own in zip(rows, found.values(), strict=True):
        seen: dict[Any, int] = {}
        for task, row in zip(own["tasks"], rows[name], strict=True):
            if task in seen:
                where = [source.where(seen[task]), source.where(row)]
                raise ConstraintError("constraint-task-twice", task=task, where=where)
            seen[task] = row
    return table()
