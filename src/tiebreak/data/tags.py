"""Tags of spans: B-X begins a span of X, I-X goes on with it, all else is outside.

    tokens   Barack  Obama  visited  New    York   .
    tags     B-PER   I-PER  O        B-LOC  I-LOC  O        spans  PER 0–1, LOC 3–4

Other schemes are turned into this one where files are read (`tables/formats/spans.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.kernels.layout import Codes, Mask, Offsets

NONE, BIO = "none", "bio"
OUTSIDE = -1  # the kind of a class that is in no span


class Rules(NamedTuple):
    """What may follow what, (K, K), and what may come first, (K,)."""

    follows: Mask
    first: Mask


class Tags(NamedTuple):
    """What classes say of spans: which kind each is of, and whether it begins one."""

    kinds: Ids  # names of the kinds of spans
    kind: Codes  # (n_classes,) -1: outside
    begins: Mask  # (n_classes,)
    scheme: str = BIO

    @classmethod
    def of(cls, classes: Iterable[Hashable], scheme: str = "auto") -> Tags:
        """Read classes as tags; where they are none every class is a kind of its own.

        >>> Tags.of(["B-LOC", "I-LOC", "O"]).kind.tolist()
        [0, 0, -1]
        >>> Tags.of(["N1", "N2", "W"]).scheme
        'none'
        """
        names = list(classes)
        parts = [_parts(name) for name in names]
        if scheme == "auto":
            others = sum(letter not in ("B", "I") for letter, _ in parts)
            scheme = BIO if others <= 1 < len(names) else NONE
        if scheme == NONE:
            every = np.arange(len(names), dtype=np.int32)
            return cls(Ids(names), every, np.ones(len(names), dtype=bool), NONE)
        kinds = list(dict.fromkeys(kind for letter, kind in parts if letter in ("B", "I")))
        place = {kind: i for i, kind in enumerate(kinds)}
        kind = [place[kind] if letter in ("B", "I") else OUTSIDE for letter, kind in parts]
        begins = np.array([letter == "B" for letter, _ in parts], dtype=bool)
        return cls(Ids(kinds), np.array(kind, dtype=np.int32), begins, BIO)

    def without_beginning(self) -> list[Hashable]:
        """Return kinds of spans that no class begins: tags are of another scheme.

        >>> Tags.of(["I-X", "B-Y", "O"]).without_beginning()
        ['X']
        """
        begun = self.kind[self.begins]
        return [name for k, name in enumerate(self.kinds) if k not in begun]

    def rules(self) -> Rules:
        """Return what may follow what: I-X after B-X or I-X alone, and never first.

        >>> Tags.of(["B-X", "I-X", "O"]).rules().follows.tolist()
        [[True, True, True], [True, True, True], [True, False, True]]
        """
        n = len(self.kind)
        if self.scheme == NONE:
            return Rules(np.ones((n, n), dtype=bool), np.ones(n, dtype=bool))
        inside = (self.kind != OUTSIDE) & ~self.begins
        goes_on = self.kind[:, None] == self.kind
        return Rules(~inside | goes_on, ~inside)

    def inside(self) -> Codes:
        """Return for each class the one that goes on with its span; -1 where none does.

        >>> Tags.of(["B-X", "I-X", "O"]).inside().tolist()
        [1, 1, -1]
        """
        if self.scheme == NONE:
            return self.kind
        goes_on = np.flatnonzero((self.kind != OUTSIDE) & ~self.begins)
        of_kind = np.full(len(self.kinds) + 1, -1, dtype=np.int32)
        of_kind[self.kind[goes_on]] = goes_on
        of_kind[-1] = -1
        return of_kind[self.kind]

    def spans(self, label: Codes, start: Offsets) -> tuple[Offsets, Offsets, Codes]:
        """Return the first and the last place of each span, and its kind.

        Of labels that are impossible an I-X that follows no span of X is in none.

        >>> tags = Tags.of(["B-X", "I-X", "O"])
        >>> [each.tolist() for each in tags.spans(np.array([2, 0, 1, 0]), np.array([0, 4]))]
        [[1, 3], [2, 3], [0, 0]]
        """
        if not len(label):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
        kind = self.kind[label]
        is_first = np.zeros(len(label), dtype=bool)
        is_first[start[:-1]] = True
        goes_on = ~is_first
        if self.scheme == NONE:
            goes_on[1:] &= label[1:] == label[:-1]
        else:
            goes_on &= ~self.begins[label]
            goes_on[1:] &= kind[1:] == kind[:-1]
        begin = np.flatnonzero(self.begins[label] & ~goes_on)
        breaks = np.append(np.flatnonzero(~goes_on), len(label))
        last = breaks[np.searchsorted(breaks, begin, side="right")] - 1
        return begin, last, kind[begin]


def _parts(name: Hashable) -> tuple[str, str]:
    """Split a tag into its letter and its kind.

    >>> _parts("B-LOC"), _parts("I"), _parts("O")
    (('B', 'LOC'), ('I', ''), ('O', ''))
    """
    letter, _, kind = str(name).partition("-")
    return letter, kind
