"""Checks the rows of a table of initial state when they are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar.era import is_far
from tidegate.errors import SourceError
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import flat


@dataclass(frozen=True)
class CheckState:
    """Checks that each key has one row, and that Python can represent all times."""

    keys: tuple[str, ...]
    time: str | None

    def __call__(self, rows: pa.Table, where: str) -> None:
        """Raise SourceError, which names the first wrong key."""
        columns = [flat(rows.column(name)) for name in self.keys]
        codes = KeyCodes.of(columns, rows.num_rows).codes
        first = np.unique(codes, return_index=True)[1]
        if len(first) < rows.num_rows:
            row = int(np.setdiff1d(np.arange(rows.num_rows), first)[0])
            self._refuse(where, "each key must have one row", "several of", rows, row)
        for name, column in zip(self.keys, columns, strict=True):
            if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
                raise SourceError(where, f"the key {name} must be equal to itself", "NaN")
        if self.time is not None and rows.column(self.time).null_count:
            row = pc.index(pc.is_null(rows.column(self.time)), True).as_py()
            self._refuse(where, f"{self.time} must say when a row was set", "NULL for", rows, row)
        for name in rows.column_names:
            timed = pa.types.is_timestamp(rows.column(name).type)
            if (timed or pa.types.is_date32(rows.column(name).type)) and is_far(rows.column(name)):
                requirement = f"the times in {name} must be those of the years 1 to 9999"
                raise SourceError(where, requirement, "others", "Leave them out.")

    def _refuse(self, where: str, requirement: str, got: str, rows: pa.Table, row: int) -> None:
        key = ", ".join(f"{name} {rows.column(name)[row].as_py()!r}" for name in self.keys)
        raise SourceError(where, requirement, f"{got} {key}", "Change these rows.")
