"""Columns of links: ids into codes, must and cannot by their many names, weights; and back.

The words also say how links came about, as answers about pairs or as duplicates. Pairs that were
drawn or asked are outcomes: "same" is one answer of two, and each task has a class of its own draw.
Duplicates are copies of one task: the group is one draw of the class. A must-link says the same in
both cases, but what a group of m tasks says about how common its class is differs by a factor of m:
[eq:sampling].
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import numpy as np
import numpy.typing as npt

from tiebreak.data import ids
from tiebreak.data.ids import MISSING, Column, Ids
from tiebreak.data.ids.numbers import as_numbers, offenders
from tiebreak.errors import LinkError, note
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.options import require_word
from tiebreak.wording import NOWHERE, Source, agreeing, counted

DUPLICATE_WORDS = frozenset({"duplicate", "duplicates", "copy"})
PAIR_WORDS = frozenset({"same", "different"})  # answers about a pair
MUST_WORDS = DUPLICATE_WORDS | {"must", "mustlink", "same", "ml", "1", "+1", "1.0", "true"}
CANNOT_WORDS = frozenset({"cannot", "cannotlink", "different", "cl", "-1", "-1.0", "false"})
ALLOWED = (
    "Write must, cannot or duplicate; must-link, same, ml, +1, true and cannot-link, different, "
    "cl, "
    "-1, false are understood too."
)


Sampling = Literal["pairs", "duplicates"]
SAMPLINGS: tuple[Sampling, ...] = ("pairs", "duplicates")

PAIR = 0
DUPLICATE = 1
UNSAID = -1  # the table does not say

Said = npt.NDArray[np.int8]


def check_lengths(**columns: Column | None) -> None:
    """Refuse columns that are not equally long."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        raise LinkError(f"The columns of links must be equally long; got {lengths}.")


def encode_ends(left: Column, right: Column, source: Source) -> tuple[Codes, Codes, Ids]:
    """Turn both columns of ids into codes of one list of tasks, in order of first appearance."""
    try:
        left_code, tasks = ids.encode(left)
        right_code, others = ids.encode(right)
        _refuse_missing_ids("left", left_code, source)
        _refuse_missing_ids("right", right_code, source)
        tasks = ids.merge(tasks, others)
    except (TypeError, ValueError) as error:
        if isinstance(error, LinkError):
            raise
        raise LinkError(f"The ids of left and right cannot be used together: {error}.") from None
    ends = np.column_stack([left_code, tasks.codes(others)[right_code]]).ravel()
    found, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    order = np.argsort(first)
    new = np.empty(len(found), dtype=np.int32)
    new[order] = np.arange(len(found), dtype=np.int32)
    code = new[inverse].reshape(-1, 2)
    return code[:, 0].copy(), code[:, 1].copy(), Ids(tasks.take(found[order]))


def encode_sources(who: Column) -> tuple[Codes | None, Ids | None]:
    """Turn the column that says where links come from into codes, -1 where it is empty."""
    try:
        codes, sources = ids.encode(who)
    except TypeError as error:
        raise LinkError(f"A value of who cannot be used as a name: {error}.") from None
    return (codes, sources) if len(sources) else (None, None)


def recode_sources(who: Codes | None, old: Ids | None, new: Ids, n_links: int) -> Codes:
    """Translate codes of one list of sources into those of another."""
    if who is None or old is None:
        return np.full(n_links, MISSING, dtype=np.int32)
    return np.where(who == MISSING, MISSING, new.codes(old)[who]).astype(np.int32)


def show_weights(weight: Floats) -> Column:
    """Return weights as a column, empty where none is given."""
    if not np.isnan(weight).any():
        return weight
    return [None if value != value else value for value in weight.tolist()]


def show_sources(sources: Ids, who: Codes) -> Column:
    """Return sources as a column, empty where none is given."""
    if (who != MISSING).all():
        return sources.take(who)
    return [None if code == MISSING else sources[code] for code in who.tolist()]


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
            f"{counted(len(rows), 'link')} {agreeing(len(rows), 'are')} neither must nor cannot: "
            f"{offenders(rows, column, source)}.\n{ALLOWED}"
        )
    translated = [
        f"{word!r} as {'must' if is_must else 'cannot'}"
        for word, is_must in zip(words, meanings, strict=True)
        if str(word).strip().casefold() not in ("must", "cannot", "duplicate")
    ]
    if translated:
        note(f"{source.name or 'The table'}: read link {', '.join(translated)}.")
    return np.array(meanings, dtype=bool)[codes]


def as_said(column: Column) -> Said:
    """Return how each link says that it came about: PAIR, DUPLICATE or UNSAID.

    >>> as_said(["must", "Duplicate", "same"]).tolist()
    [-1, 1, 0]
    """
    codes, words = ids.encode(_by_row(column))
    says = np.full(len(words), UNSAID, dtype=np.int8)
    for code, word in enumerate(words):
        if _squashed(word) in DUPLICATE_WORDS:
            says[code] = DUPLICATE
        elif _squashed(word) in PAIR_WORDS:
            says[code] = PAIR
    return says[codes]


def duplicates(
    must: Mask, who: Codes | None, said: Said | None, sampling: Sampling | None
) -> Mask | None:
    """Return which links join duplicates; None where none does.

    Parameters
    ----------
    said
        (n_links,) PAIR, DUPLICATE or UNSAID, as the words of the table say; None: all UNSAID.
    sampling
        What holds for links of which the table does not say it. None: must-links of a source that
        gives no cannot-link are duplicates, since answers would be of both kinds; that is reported.
    """
    if sampling is not None:
        require_word("sampling", sampling, SAMPLINGS)
    if said is None:
        said = np.full(len(must), UNSAID, dtype=np.int8)
    found = said == DUPLICATE
    if sampling == "duplicates":
        found |= must & (said == UNSAID)
    elif sampling is None:
        guessed = guess(must, who) & (said == UNSAID)
        n_guessed = int(np.count_nonzero(guessed))
        if n_guessed:
            note(
                f"{counted(n_guessed, 'must-link')} {agreeing(n_guessed, 'come')} from a source "
                "without cannot-links: such links count as duplicates, one draw of the class per "
                'group. sampling="pairs" (--link-sampling pairs) says that they answer questions.'
            )
        found |= guessed
    return found if found.any() else None


def guess(must: Mask, who: Codes | None) -> Mask:
    """Return the must-links of sources that give no cannot-link."""
    source = np.zeros(len(must), dtype=np.int64) if who is None else who
    return np.asarray(must & ~np.isin(source, source[~must]))


def as_weights(column: Column, source: Source = NOWHERE) -> Floats | None:
    """Return weights as numbers, NaN where none is given; None where no link has one.

    >>> as_weights(["2.5", None]).tolist()
    [2.5, nan]
    """
    if not isinstance(column, np.ndarray):
        column = _by_row(column)
    weights, is_given = as_numbers(column)
    rows = np.flatnonzero(is_given & ~((weights > 0) & np.isfinite(weights)))
    n = len(rows)
    if n:
        raise LinkError(
            f"{counted(n, 'weight')} {agreeing(n, 'are')} not a finite number above 0: "
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


def _refuse_missing_ids(side: str, codes: Codes, source: Source) -> None:
    missing = np.flatnonzero(codes == MISSING)
    if len(missing):
        places = "; ".join(source.where(int(row)) for row in missing[:3])
        n = len(missing)
        raise LinkError(
            f"{counted(n, 'link')} {agreeing(n, 'have')} no task id on the {side} ({places}). "
            "Fill in the task or remove the row."
        )


def _by_row(column: Column) -> Column:
    """Return a column that can be looked up by row, and whose values can be compared."""
    if ids.is_arrow(column):
        return column
    return [value if isinstance(value, Hashable) else repr(value) for value in column]


def _meaning(word: object) -> bool | None:
    """Tell must (True) from cannot (False); None where the word is neither."""
    text = _squashed(word)
    if text in MUST_WORDS:
        return True
    return False if text in CANNOT_WORDS else None


def _squashed(word: object) -> str:
    """Return a word in small letters without blanks and dashes: must-link is mustlink."""
    text = str(word).strip().casefold()
    if text.isascii() and text[:1].isalpha():  # but "- 1" is not -1
        text = "".join(c for c in text if c not in " \t_-")
    return text
