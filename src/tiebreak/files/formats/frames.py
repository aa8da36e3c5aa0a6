"""Frames with lists in them, and datasets of Hugging Face, as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tiebreak.errors import InputError
from tiebreak.files.formats.containers import class_name

if TYPE_CHECKING:
    import pyarrow as pa


def decoded_table(source: Any) -> Any:
    """Return a dataset of Hugging Face as an Arrow table with names of classes.

    A stream of Arrow becomes a table, as it can be read only once; all else stays as it is.
    """
    kind = type(source).__module__.partition(".")[0]
    if kind not in ("datasets", "pandas", "polars") and hasattr(source, "__arrow_c_stream__"):
        return _arrow_table(source)
    if kind != "datasets":
        return source
    if hasattr(source, "keys"):
        splits = ", ".join(map(repr, source.keys()))
        raise InputError(f"This dataset has several splits: {splits}. Pass one of them.")
    if not hasattr(source, "with_format") or not hasattr(source, "__len__"):
        raise InputError("This dataset is read as a stream. Load it whole, or write it to Parquet.")
    table = source.with_format("arrow")[:]
    return _named_classes(table, feature_names(source))


def feature_names(source: Any) -> dict[str, list[str]]:
    """Return the names of classes by column of a dataset of Hugging Face; none of all else."""
    if type(source).__module__.partition(".")[0] != "datasets":
        return {}
    features = getattr(source, "features", None) or {}
    found = {column: _class_names(feature) for column, feature in features.items()}
    return {column: names for column, names in found.items() if names}


def _class_names(feature: Any) -> list[str]:
    """Return the names of a ClassLabel, or of the ClassLabels in a list."""
    return list(getattr(getattr(feature, "feature", feature), "names", None) or ())


def list_table(source: Any) -> pa.Table | None:
    """Return a frame as an Arrow table where a column holds lists; None where none does."""
    kind = type(source).__module__.partition(".")[0]
    import pyarrow as pa

    if kind == "pandas" and hasattr(source, "columns"):
        first = source.iloc[0].tolist() if len(source) else []
        if not any(isinstance(value, list | tuple) or _is_array(value) for value in first):
            return None
        return pa.Table.from_pandas(source, preserve_index=False)
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    if kind == "polars" and not any(str(one).startswith("List") for one in source.dtypes):
        return None  # before anything is converted
    table = _arrow_table(source)
    if not isinstance(table, pa.Table):
        return None
    return table if any(_is_list(field.type) for field in table.schema) else None


def _arrow_table(source: Any) -> Any:
    """Return a table; what is none stays, and the reader of plain tables says what is wrong."""
    import pyarrow as pa

    if type(source).__module__.partition(".")[0] == "polars":
        import polars as pl

        return source.to_arrow(compat_level=pl.CompatLevel.oldest())  # see `table.clean`
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        return source


def _is_array(value: Any) -> bool:
    return hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _named_classes(table: pa.Table, names: Mapping[str, list[str]]) -> pa.Table:
    """Replace the numbers of classes by their names, also inside lists; -1 is no label.

    A column of them becomes an ordered dictionary, which keeps the order and unused classes.
    """
    import pyarrow as pa

    for i, column in enumerate(table.column_names):
        if column not in names:
            continue
        values = table.column(i).to_pylist()
        if any(isinstance(value, list) for value in values):
            named = pa.array([class_name(value, names[column]) for value in values])
        else:
            codes = pa.array([None if v is None or v < 0 else v for v in values], pa.int32())
            texts = pa.array(names[column], pa.string())
            named = pa.DictionaryArray.from_arrays(codes, texts, ordered=True)
        table = table.set_column(i, column, named)
    return table
