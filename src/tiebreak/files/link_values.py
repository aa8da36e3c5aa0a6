"""Link words: must or cannot, under the many names people give them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak import ids
from tiebreak.errors import LinkError, note
from tiebreak.files.columns import squashed
from tiebreak.files.numbers import Floats, as_numbers, offenders
from tiebreak.ids import MISSING, Column
from tiebreak.source import NOWHERE, Source

MUST_WORDS = frozenset({"must", "mustlink", "same", "ml", "1", "+1", "1.0", "true"})
CANNOT_WORDS = frozenset({"cannot", "cannotlink", "different", "cl", "-1", "-1.0", "false"})
ALLOWED = (
    "Write must or cannot; must-link, same, ml, +1, true and cannot-link, different, cl, -1, "
    "false are understood too."
)


def as_must(column: Column, source: Source = NOWHERE) -> npt.NDArray[np.bool_]:
    """Return True where a link says must, False where it says cannot.

    >>> as_must(["must", "Cannot", "must"]).tolist()
    [True, False, True]
    """
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


def as_weights(column: Column, source: Source = NOWHERE) -> Floats:
    """Return weights as numbers, NaN where none is given.

    >>> as_weights(["2.5", None]).tolist()
    [2.5, nan]
    """
    weights, is_given = as_numbers(column)
    rows = np.flatnonzero(is_given & ~((weights > 0) & np.isfinite(weights)))
    if len(rows):
        raise LinkError(
            f"{len(rows):,} weights are not finite numbers above 0: "
            f"{offenders(rows, column, source)}.\n"
            "A weight is the log-odds that the link is right; must or cannot gives its sign."
        )
    return weights


def _meaning(word: object) -> bool | None:
    """Tell must (True) from cannot (False); None where the word is neither."""
    text = str(word).strip().casefold()
    for candidate in (text, squashed(text) if text.isascii() and text[:1].isalpha() else text):
        if candidate in MUST_WORDS:
            return True
        if candidate in CANNOT_WORDS:
            return False
    return None
