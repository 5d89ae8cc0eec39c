"""Takes tuples that are appended to a gate one at a time, and makes one table of many.

A table of one row costs far more than the row. So a row of plain values that certainly fits the
columns and comes in order is kept as it is until a reader wants it. All other rows go through
tables (`admission`), which gives the same tuples and refuses what does not fit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.calendar.microsecond import MICROSECOND
from tidegate.gate.merge import SortedRun

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Values = tuple[Any, ...]
Fits = Callable[[Any], bool]


def _whole(bits: int) -> Fits:
    low, high = -(1 << bits - 1), 1 << bits - 1
    return lambda value: type(value) is int and low <= value < high


_FITS: dict[pa.DataType, Fits] = {
    pa.int64(): _whole(64),
    pa.int32(): _whole(32),
    pa.float64(): lambda value: type(value) is float,
    pa.bool_(): lambda value: type(value) is bool,
    pa.string(): lambda value: type(value) is str and value.isascii(),
    pa.timestamp("us", "UTC"): lambda value: type(value) is datetime and value.tzinfo is UTC,
}
"""By type of a column: whether a value certainly fits it. False sends the row through a table."""


class RowFitter:
    """Says whether a mapping certainly is a row of the columns, in a few steps."""

    def __init__(self, schema: pa.Schema, time: str) -> None:
        self.schema = schema
        self._width = len(schema)
        self._place = schema.names.index(time)
        fits = [_FITS.get(one.type) for one in schema]
        zoned = schema.field(time).type == pa.timestamp("us", "UTC")
        self._fits = [f for f in fits if f is not None] if zoned and all(fits) else []
        self._values: Callable[[Mapping[str, Any]], Any] = itemgetter(*schema.names)

    def fit(self, rows: object) -> tuple[int, Values] | None:
        """The event time and the values of a single row; None if it must go through a table."""
        if type(rows) is not list or len(rows) != 1 or not self._fits:
            return None
        row = rows[0]
        if type(row) is not dict or len(row) != self._width:
            return None
        try:
            values = self._values(row)
        except KeyError:
            return None
        if self._width == 1:
            values = (values,)
        for fits, value in zip(self._fits, values, strict=True):
            if not fits(value):
                return None
        return (values[self._place] - _EPOCH) // MICROSECOND, values


class LooseRows:
    """Rows as tuples of values, which become one table when a reader wants them."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows: list[Values] = []
        self._schema = schema
        self._making = threading.Lock()
        self._table: pa.Table | None = None

    def slice(self, start: int, rows: int) -> pa.Table:
        """Some of the rows. The first call makes the table; no row may be added after it."""
        with self._making:
            if self._table is None:
                columns = zip(self._schema, zip(*self.rows, strict=True), strict=True)
                arrays = [pa.array(values, one.type) for one, values in columns]
                self._table = pa.Table.from_arrays(arrays, schema=self._schema)
                self.rows = []
        return self._table.slice(start, rows)


class LooseRun:
    """Rows of a source that came one by one and in order; change it under the gate's lock only."""

    def __init__(self, schema: pa.Schema, bound_us: int) -> None:
        self.bound_us = bound_us
        self._times: list[int] = []
        self._rows = LooseRows(schema)

    def add(self, time_us: int, values: Values) -> None:
        self._times.append(time_us)
        self._rows.rows.append(values)

    @property
    def rows(self) -> int:
        return len(self._times)

    @property
    def newest_us(self) -> int:
        return self._times[-1]

    def split(self, frontier_us: int) -> tuple[SortedRun | None, SortedRun | None]:
        """Split it as a sorted run; nothing is added any more."""
        return SortedRun.of(np.array(self._times, np.int64), self._rows, self.bound_us).split(
            frontier_us
        )
