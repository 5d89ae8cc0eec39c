"""The engine's one order of values, as sorted row indices.

NULL comes first unless told otherwise. NaN is greater than any number. Strings compare by their
UTF-8 bytes. False comes before true.
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
    """How one column is sorted."""

    descending: bool = False
    nulls_first: bool = True


ASCENDING = Direction()


def sort_indices(
    columns: Sequence[pa.Array], directions: Sequence[Direction] | None = None
) -> pa.Array:
    """The row indices in sorted order (uint64); stable, the first column counts most."""
    how = directions or [ASCENDING] * len(columns)
    keys: list[tuple[str, str]] = []
    parts: dict[str, pa.Array] = {}
    for place, (column, direction) in enumerate(zip(columns, how, strict=True)):
        way = "descending" if direction.descending else "ascending"
        # Arrow's sort puts NULL and NaN last in either direction. A key of flags before the values
        # puts them where our order has them.
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
    """For each row, whether it equals the row before it in all columns; false for the first row."""
    same = np.ones(rows, np.bool_)
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), np.nan, pc.add(column, 0.0)).cast(column.type)
        # Codes are compared, not values: as values NULL and NaN equal nothing, not even themselves.
        # Codes are by bits, so -0.0 has become 0.0 and every NaN has the same bits.
        numbers = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        same[1:] &= numbers[1:] == numbers[:-1]
    same[:1] = False
    return same
