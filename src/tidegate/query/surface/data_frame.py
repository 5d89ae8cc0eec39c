"""Converts results to pandas and polars."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidegate.errors import MemoryExceededError, UnavailableError
from tidegate.memory_limit import LIMIT

_NULLABLE = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.bool_(): "boolean",
}
"""pandas types with NULLs. By default pandas turns integers with NULLs into floats, which lose
digits.
"""


def as_pandas(table: pa.Table) -> Any:
    """The rows as a pandas DataFrame; integers and booleans with NULLs get nullable types."""
    import pandas as pd

    try:
        LIMIT.check(table.nbytes)
        frame = table.to_pandas()
    except MemoryError as error:
        raise too_large("to_pandas", str(error)) from error
    for field, column in zip(table.schema, table.columns):
        if column.null_count and field.type in _NULLABLE:
            made = pd.array(column.to_pylist(), dtype=_NULLABLE[field.type])
            frame[field.name] = pd.Series(made, index=frame.index)
    return frame


def too_large(where: str, got: str | None) -> MemoryExceededError:
    """The error for a result that does not fit into memory."""
    return MemoryExceededError(
        where,
        "the result must fit into memory",
        got,
        'Write .start(sink="out") for rows in files, .preview(1000) for the first ones, or give a '
        'larger memory_limit, as "8GB".',
    )


def as_polars(table: pa.Table) -> Any:
    """The rows as a polars DataFrame; most types are not copied."""
    try:
        import polars
    except ImportError:
        raise UnavailableError(
            "to_polars", "needs polars", "none", "Run pip install 'tidegate[polars]'."
        ) from None
    return polars.from_arrow(table)
