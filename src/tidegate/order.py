"""The order of values that the whole engine follows, as places of rows.

NULL comes first unless told otherwise, NaN is greater than any number, strings compare by their
UTF-8 bytes, false comes before true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Direction:
    """How one column counts in an order."""

    descending: bool = False
    nulls_first: bool = True


ASCENDING = Direction()


def sort_indices(
    columns: Sequence[pa.Array], directions: Sequence[Direction] | None = None
) -> pa.Array:
    """The rows' places in order, as a uint64 array; stable, the first column counts most."""
    how = directions or [ASCENDING] * len(columns)
    keys: list[tuple[str, str]] = []
    parts: dict[str, pa.Array] = {}
    for place, (column, direction) in enumerate(zip(columns, how, strict=True)):
        way = "descending" if direction.descending else "ascending"
        if column.null_count:
            parts[f"{place}.null"] = column.is_null()
            keys.append((f"{place}.null", "descending" if direction.nulls_first else "ascending"))
        if pa.types.is_floating(column.type):
            is_nan = pc.is_nan(column)
            if pc.any(is_nan).as_py():
                parts[f"{place}.nan"] = pc.fill_null(is_nan, False)
                keys.append((f"{place}.nan", way))
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        parts[f"{place}.value"] = column
        keys.append((f"{place}.value", way))
    return pc.sort_indices(pa.table(parts), sort_keys=keys)


def alike(columns: Sequence[pa.Array], rows: int) -> Flags:
    """Whether a row is equal to the one before it in all columns; the first is not."""
    same = np.ones(rows, np.bool_)
    for column in columns:
        numbers = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        same[1:] &= numbers[1:] == numbers[:-1]
    same[:1] = False
    return same
