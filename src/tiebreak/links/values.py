"""Values of links: must or cannot, under the many names people give them, and weights."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tiebreak import ids
from tiebreak.errors import LinkError, note
from tiebreak.ids import MISSING, Column
from tiebreak.ids.numbers import as_numbers, offenders
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.source import NOWHERE, Source

MUST_WORDS = frozenset({"must", "mustlink", "same", "ml", "1", "+1", "1.0", "true"})
CANNOT_WORDS = frozenset({"cannot", "cannotlink", "different", "cl", "-1", "-1.0", "false"})
ALLOWED = (
    "Write must or cannot; must-link, same, ml, +1, true and cannot-link, different, cl, -1, "
    "false are understood too."
)


def as_must(column: Column, source: Source = NOWHERE) -> Mask:
    """Return True where a link says must, False where it says cannot.

    >>> as_must(["must", "Cannot", "must"]).tolist()
    [True, False, True]
    """
    column = _by_row(column)
    codes, words = ids.encode(column)
    meanings = [_meaning(word) for word in words]
    unknown = [code for code, is_must in enumerate(meanings) if is_must is None]
    rows = np.flatnonzero(np.isin(codes, [MISSING, *unknown]))
    if len(rows):
        raise LinkError(
            f"{len(rows):,} links are neither must nor cannot: "
            f"{offenders(rows, column, source)}.\n{ALLOWED}"
        )
    translated = [
        f"{word!r} as {'must' if is_must else 'cannot'}"
        for word, is_must in zip(words, meanings, strict=True)
        if str(word).strip().casefold() not in ("must", "cannot")
    ]
    if translated:
        note(f"{source.name or 'The table'}: read link {', '.join(translated)}.")
    return np.array(meanings, dtype=bool)[codes]


def as_weights(column: Column, source: Source = NOWHERE) -> Floats | None:
    """Return weights as numbers, NaN where none is given; None where no link has one.

    >>> as_weights(["2.5", None]).tolist()
    [2.5, nan]
    """
    if not isinstance(column, np.ndarray):
        column = _by_row(column)
    weights, is_given = as_numbers(column)
    rows = np.flatnonzero(is_given & ~((weights > 0) & np.isfinite(weights)))
    if len(rows):
        raise LinkError(
            f"{len(rows):,} weights are not finite numbers above 0: "
            f"{offenders(rows, column, source)}.\n"
            "A weight is the log-odds that the link is right; must or cannot gives its sign. "
            "Leave it empty for a link that holds for sure."
        )
    return None if np.isnan(weights).all() else weights


def is_boolean(column: Column) -> bool:
    """Tell whether a column holds nothing but True and False."""
    if ids.is_arrow(column) or hasattr(column, "__array__"):
        return bool(np.asarray(column).dtype == bool)
    return all(type(value) is bool for value in column)


def _by_row(column: Column) -> Column:
    """Return a column that can be looked up by row, and whose values can be compared."""
    if ids.is_arrow(column):
        return column
    return [value if isinstance(value, Hashable) else repr(value) for value in column]


def _meaning(word: object) -> bool | None:
    """Tell must (True) from cannot (False); None where the word is neither."""
    text = str(word).strip().casefold()
    if text.isascii() and text[:1].isalpha():  # must-link is mustlink; "- 1" is not -1
        text = "".join(c for c in text if c not in " \t_-")
    if text in MUST_WORDS:
        return True
    return False if text in CANNOT_WORDS else None
