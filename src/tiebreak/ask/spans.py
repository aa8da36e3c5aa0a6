"""Spans as tasks: what is asked about where tokens are in sequences.

Each span that somebody marked is a task, and whoever answered its sequence has said of it which
kind it is, or none: questions, votes and fits are then as for any other job. A question shows the
text with the span marked, and is answered by a kind or by none. Answers become labels of tokens:

    Ada met Alan Turing .      ann marks Ada and Alan Turing, bob Ada and Turing

    task         text                       ann   bob     said    tokens that are known
    0:0          ⟦Ada⟧ met Alan Turing .    PER   PER
    0:2..0:3     Ada met ⟦Alan Turing⟧ .    PER   O       PER     0:2 B-PER, 0:3 I-PER
    0:3          Ada met Alan ⟦Turing⟧ .    O     PER     O       (within a span that may be one)
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from tiebreak.data import Gold, Ids, Responses, Sequences
from tiebreak.data.tags import OUTSIDE, Tags
from tiebreak.errors import InputError, note
from tiebreak.judges.spans import marked_spans
from tiebreak.kernels.layout import Offsets

AROUND = 20  # tokens shown on each side of a span
OPENS, CLOSES = "⟦", "⟧"
NONE = "O"  # in no span: what a person says, and the tag of tokens where responses have no other


class SpanTasks(NamedTuple):
    """The spans that were marked, in the order of their places, and what was said of each."""

    tokens: Responses
    sequences: Sequences
    tags: Tags
    first: Offsets
    last: Offsets
    responses: Responses  # of spans
    texts: dict[Hashable, str]

    @classmethod
    def of(cls, tokens: Responses, sequences: Sequences) -> SpanTasks:
        """Return the spans that workers marked as tasks that they answered."""
        marked = marked_spans(tokens, sequences)
        if not len(marked.first):
            raise InputError("no-span-marked")
        n_places = np.int64(len(sequences.tasks))
        key, of_mark = np.unique(marked.first * n_places + marked.last, return_inverse=True)
        first, last = np.divmod(key, n_places)
        sequence = sequences.sequence_of_each()
        at, worker, _ = marked.answers
        seen = np.unique(np.stack([sequence[at].astype(np.int64), worker]), axis=1)
        low, high = (
            np.searchsorted(seen[0], sequence[first], side=side) for side in ("left", "right")
        )
        n_each = high - low
        task = np.repeat(np.arange(len(key), dtype=np.int32), n_each)
        who = seen[1][np.arange(len(task)) + np.repeat(low - (np.cumsum(n_each) - n_each), n_each)]
        said = task.astype(np.int64) * tokens.n_workers + who
        label = np.full(len(task), len(marked.tags.kinds), dtype=np.int32)
        label[np.searchsorted(said, of_mark * tokens.n_workers + marked.worker)] = marked.kind
        ends = list(zip(first.tolist(), last.tolist(), strict=True))
        names = [_name(sequences, a, b) for a, b in ends]
        classes = Ids([*map(str, marked.tags.kinds), NONE])
        given = task, who.astype(np.int32), label, Ids(names), tokens.workers, classes
        texts = {name: _shown(sequences, *each) for name, each in zip(names, ends, strict=True)}
        responses = Responses.from_codes(*given)
        return cls(tokens, sequences, marked.tags, first, last, responses, texts)

    @property
    def _outside(self) -> str:
        """The tag of tokens that are in no span."""
        names = self.tokens.classes.take(np.flatnonzero(self.tags.kind == OUTSIDE))
        return next(map(str, names), NONE)

    def known(self, gold: Gold) -> Gold:
        """Return what known labels of tokens say of the spans all of whose tokens are known."""
        who = ["gold"] * len(gold)
        label = gold.classes.take(gold.label)
        said = Responses.from_columns(gold.tasks.values, who, label.values)
        marked = marked_spans(said.with_classes(self.tokens.classes), self.sequences)
        ends = zip(marked.first.tolist(), marked.last.tolist(), strict=True)
        kind_of = dict(zip(ends, marked.tags.kinds.take(marked.kind), strict=True))
        is_known = np.zeros(len(self.sequences.tasks), dtype=bool)
        is_known[marked.answers[0]] = True
        found = {
            self.responses.tasks[i]: str(kind_of.get(span, NONE))
            for i, span in enumerate(zip(self.first.tolist(), self.last.tolist(), strict=True))
            if is_known[span[0] : span[1] + 1].all()
        }
        return Gold.from_dict(found)

    def labels_of_tokens(self, gold: Gold) -> Gold:
        """Return what known spans say of tokens.

        Of a span that is none its tokens are outside, but for those of a span that may be one. Of
        spans that overlap and were both said to be one, none is used.
        """
        code = self.responses.tasks.codes(gold.tasks)
        said = {int(i): str(gold.classes[int(k)]) for i, k in zip(code, gold.label, strict=True)}
        n_open = np.zeros(len(self.sequences.tasks), dtype=np.int64)  # spans that may be one
        n_yes = n_open.copy()
        for i, (a, b) in enumerate(zip(self.first.tolist(), self.last.tolist(), strict=True)):
            n_open[a : b + 1] += said.get(i) != NONE
            n_yes[a : b + 1] += said.get(i, NONE) != NONE
        found: dict[Hashable, str] = {}
        n_overlapping = 0
        for i, kind in said.items():
            tokens = range(int(self.first[i]), int(self.last[i]) + 1)
            if kind != NONE and (n_yes[tokens] > 1).any():
                n_overlapping += 1
                continue
            for token in tokens:
                if kind != NONE:
                    letter = "B" if token == tokens[0] else "I"
                    found[self.sequences.tasks[token]] = f"{letter}-{kind}"
                elif not n_open[token]:
                    found[self.sequences.tasks[token]] = self._outside
        if n_overlapping:
            note("answered-spans-overlap", n=n_overlapping)
        return Gold.from_dict(found)


def _name(sequences: Sequences, first: int, last: int) -> Hashable:
    """Return what a span is called: by its token, or by its first and last."""
    ends = sequences.tasks[first], sequences.tasks[last]
    return str(ends[0]) if first == last else f"{ends[0]}..{ends[1]}"


def _shown(sequences: Sequences, first: int, last: int) -> str:
    """Return the text around a span, with the span marked."""
    here = int(np.searchsorted(sequences.start, first, side="right")) - 1
    ends = int(sequences.start[here]), int(sequences.start[here + 1]) - 1
    low, high = max(ends[0], first - AROUND), min(ends[1], last + AROUND)
    parts = [
        text if name is None else f"{OPENS}{text}{CLOSES}"
        for text, name in sequences.pieces(low, high, [(first, last, True)])
    ]
    return "".join(["… " if low > ends[0] else "", *parts, " …" if high < ends[1] else ""])
