r"""Spans of texts: what annotators marked becomes one tag a token, and comes back as characters.

    Ada met Alan Turing .          {0–3 PER}, {8–19 PER}
    Ada  met  Alan   Turing  .     tokens of the text: words and marks, \w+|[^\w\s]
    B-PER O   B-PER  I-PER   O     a token belongs to the span that it overlaps

Whoever opened a text and marked nothing said `O` of all its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from tiebreak.errors import InputError, note
from tiebreak.tables.source import Place

TOKEN = re.compile(r"\w+|[^\w\s]")
OUTSIDE = "O"
LONGEST, FIRST = "longest", "first"
NESTED = (LONGEST, FIRST)
MOST_UNMATCHED = 0.05  # of the tokens of a worker, that are not those of the others

Span = tuple[int, int, str]  # begin, end, label, by characters
Ends = tuple[int, int]


class Marked(NamedTuple):
    """The spans that somebody marked in a text."""

    at: Place
    text: Any  # the id of the text
    worker: str
    question: str | None  # None: of every question
    spans: list[Span]
    is_known: bool = False
    tags: list[str | None] | None = None  # where the file has tags, by token; None: no answer


Columns = dict[str, list[Any]]


class SpanAnswers:
    """Collects what annotators marked in texts."""

    def __init__(self) -> None:
        self.marked: list[Marked] = []
        self.texts: dict[Any, str] = {}
        self.tokens: dict[Any, list[Ends]] = {}  # where the file says them
        self.n_nested = 0
        self.n_lost = 0  # spans without a token of their own

    def add(self, marked: Marked, text: str, tokens: Sequence[Ends] | None = None) -> None:
        """Take what somebody marked in a text."""
        self.marked.append(marked)
        self.texts.setdefault(marked.text, text)
        if tokens is not None:
            self.tokens.setdefault(marked.text, list(tokens))

    def questions(self) -> list[str]:
        """Return the questions under which anything was marked."""
        return list(dict.fromkeys(m.question for m in self.marked if m.question is not None))

    def make_tokens(
        self, question: str | None, nested: str | None
    ) -> tuple[Columns, list[Place], Columns, dict[Hashable, Hashable]]:
        """Make one answer of each annotator on each token.

        Return the answers, their places, what follows what, and the labels that are known.
        """
        columns: Columns = {"task": [], "worker": [], "label": []}
        places: list[Place] = []
        gold: dict[Hashable, Hashable] = {}
        found = [m for m in self.marked if m.question in (None, question) or question is None]
        ends = {each.text: self._tokens_of(each.text) for each in found}
        for each in _one_of_each(found):
            tags: Sequence[str | None] | None = each.tags
            if tags is None:
                spans = self._apart(each, nested)
                tags = tags_of(ends[each.text], spans)
                self.n_lost += len(spans) - sum(tag[:2] == "B-" for tag in tags)
            for i, tag in enumerate(tags):
                if tag is None:
                    continue
                task = f"{each.text}:{i}"
                if each.is_known:
                    gold[task] = tag
                    continue
                for name, value in (("task", task), ("worker", each.worker), ("label", tag)):
                    columns[name].append(value)
                places.append(each.at)
        if self.n_nested:
            note("spans-nested", n=self.n_nested, nested=nested)
        if self.n_lost:
            note("spans-without-token", n=self.n_lost)
        names = ("task", "sequence", "position", "text", "begin", "end")
        rows = [
            (f"{name}:{i}", str(name), i, self.texts[name][a:b], a, b)
            for name, of_text in ends.items()
            for i, (a, b) in enumerate(of_text)
        ]
        table = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        return columns, places, table, gold

    def _tokens_of(self, text: Any) -> list[Ends]:
        return self.tokens.get(text) or tokenised(self.texts[text])

    def _apart(self, marked: Marked, nested: str | None) -> list[Span]:
        """Return spans in order, none of which overlaps another."""
        spans = sorted(set(marked.spans), key=lambda span: (span[0], -span[1]))
        if nested == LONGEST:
            spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        kept: list[Span] = []
        for span in spans:
            other = next((o for o in kept if o[0] < span[1] and span[0] < o[1]), None)
            if other is None:
                kept.append(span)
            elif nested is None:
                where = {"at": marked.at, "text": marked.text, "worker": marked.worker}
                raise InputError("spans-overlap", **where, one=other, other=span)
            else:
                self.n_nested += 1
        return sorted(kept)


def tokenised(text: str) -> list[Ends]:
    """Return where words and marks begin and end.

    >>> tokenised("Ada's 3.5")
    [(0, 3), (3, 4), (4, 5), (6, 7), (7, 8), (8, 9)]
    """
    return [found.span() for found in TOKEN.finditer(text)]


def tags_of(tokens: Sequence[Ends], spans: Sequence[Span]) -> list[str]:
    """Return the tag of each token; spans are in order and do not overlap.

    >>> tags_of([(0, 3), (4, 7), (8, 12), (13, 19)], [(0, 3, "PER"), (8, 19, "PER")])
    ['B-PER', 'O', 'B-PER', 'I-PER']
    """
    tags = [OUTSIDE] * len(tokens)
    first = 0
    for begin, end, label in spans:
        while first < len(tokens) and tokens[first][1] <= begin:
            first += 1
        letter = "B"
        while first < len(tokens) and tokens[first][0] < end:
            tags[first] = f"{letter}-{label}"
            letter = "I"
            first += 1
    return tags


def _one_of_each(found: list[Marked]) -> list[Marked]:
    """Join what one person marked in one text under no question and under some."""
    joined: dict[tuple[Any, str, bool], Marked] = {}
    for each in found:
        key = each.text, each.worker, each.is_known
        former = joined.get(key)
        is_same = former is not None and former.at == each.at
        joined[key] = each._replace(spans=former.spans + each.spans) if former and is_same else each
    return list(joined.values())


# -- CoNLL: a token a line, blank lines between sentences ------------------------------------------


def as_bio(tags: list[list[str]]) -> tuple[list[list[str]], str | None]:
    """Turn the tags of sentences into BIO; return also the scheme they were in, None for BIO.

    >>> as_bio([["I-X", "I-X", "I-Y", "O", "I-X"]])
    ([['B-X', 'I-X', 'B-Y', 'O', 'B-X']], 'IOB1')
    >>> as_bio([["S-X", "B-Y", "I-Y", "E-Y", "O"]])
    ([['B-X', 'B-Y', 'I-Y', 'I-Y', 'O']], 'BIOES')
    >>> as_bio([["B-X", "I-X", "O"]])[1]
    """
    letters = {tag[:2] for sentence in tags for tag in sentence}
    if letters & {"E-", "S-", "L-", "U-"}:
        other = {"E-": "I-", "L-": "I-", "S-": "B-", "U-": "B-"}
        made = [[other.get(tag[:2], tag[:2]) + tag[2:] for tag in each] for each in tags]
        return made, "BIOES"
    kinds = {tag[2:] for each in tags for tag in each if tag.startswith("I-")}
    if not kinds - {tag[2:] for each in tags for tag in each if tag.startswith("B-")}:
        return tags, None
    return [_of_iob1(each) for each in tags], "IOB1"


def _of_iob1(tags: list[str]) -> list[str]:
    before = [OUTSIDE, *tags]
    return [
        f"B-{tag[2:]}" if tag.startswith("I-") and last[2:] != tag[2:] else tag
        for last, tag in zip(before, tags, strict=False)
    ]


def aligned(words: list[str], others: list[str]) -> list[int | None]:
    """Return for each word the place of the same one among others; None: there is none.

    >>> aligned(["a", "b", "c"], ["a", "x", "c"])
    [0, None, 2]
    """
    if words == others:
        return list(range(len(words)))
    place: list[int | None] = [None] * len(words)
    for block in SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            place[block.a + i] = block.b + i
    return place
