"""Ids: ids in a fixed order, so that arrays can speak in codes.

Ids are whatever the caller uses: text, numbers, tuples. Columns of a typed table stay Arrow
arrays, everything else stays Python objects; both come back as they went in.
"""

from tiebreak.data.ids.encoding import Coder, coder_for, encode
from tiebreak.data.ids.table import (
    MISSING,
    SEPARATOR,
    Column,
    Ids,
    as_list,
    composed,
    concatenate,
    difference,
    fold,
    is_arrow,
    is_missing,
    is_text,
    merge,
    number_twins,
    sort,
    span,
    variants,
)
from tiebreak.kernels.layout import Codes

__all__ = [
    "MISSING",
    "SEPARATOR",
    "Coder",
    "Codes",
    "Column",
    "Ids",
    "as_list",
    "coder_for",
    "composed",
    "concatenate",
    "difference",
    "encode",
    "fold",
    "is_arrow",
    "is_missing",
    "is_text",
    "merge",
    "number_twins",
    "sort",
    "span",
    "variants",
]
