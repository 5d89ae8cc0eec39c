"""Reads Parquet files: the footer with statistics, and row groups one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.batch import MIN_US
from tidegate.calendar.microsecond import DAY_US, FIRST_US, LAST_US
from tidegate.source.columnar import ColumnarFormat, Footer
from tidegate.source.mark import EDGE_BYTES
from tidegate.storage import disk

_MAGIC = b"PAR1"
_UNITS_US = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
"""The microseconds in each unit of Parquet's times, as a fraction."""


class ParquetFormat(ColumnarFormat):
    """Parquet; the least event times come from its statistics."""

    name, title = "parquet", "Parquet"

    def read_footer(self, path: str, size: int, time: str | None) -> Footer:
        end = disk.read(path, max(size - EDGE_BYTES, 0))
        # A file ends with the length of its footer in four bytes, then the magic number.
        needed = int.from_bytes(end[-8:-4], "little") + 8 if end.endswith(_MAGIC) else 0
        if needed > len(end):
            end = disk.read(path, max(size - needed, 0))
        with pq.ParquetFile(pa.BufferReader(end)) as file:
            metadata = file.metadata
            rows = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            return Footer(end, file.schema_arrow, rows, least_times(metadata, time))

    def read_group(
        self, path: str, number: int, choose: Callable[[Sequence[str]], list[str]]
    ) -> pa.Table:
        with disk.at(path).open_arrow(path) as raw:
            # On another file system the ranges of all columns are requested side by side.
            ahead = disk.is_remote(path)
            file = pq.ParquetFile(raw, coerce_int96_timestamp_unit="us", pre_buffer=ahead)
            names = choose(file.schema_arrow.names)
            return file.read_row_group(number, columns=names, use_threads=False)


def least_times(metadata: pq.FileMetaData, time: str | None) -> list[int]:
    """For each row group a time that no row is below; MIN_US where the statistics give none.

    They give one only where every row has an event time. A row without one, NULL or out of range,
    is placed by the rows before it, and there may be none.
    """
    groups = range(metadata.num_row_groups)
    found = _column(metadata, time)
    if found is None:
        return [MIN_US for _ in groups]
    place, (factor, divisor) = found
    lows = []
    for group in groups:
        statistics = metadata.row_group(group).column(place).statistics
        lows.append(MIN_US if statistics is None else _least(statistics, factor, divisor))
    return lows


def _least(statistics: pq.Statistics, factor: int, divisor: int) -> int:
    complete = statistics.has_null_count and statistics.null_count == 0
    if not (complete and statistics.has_min_max):
        return MIN_US
    low, high = (raw * factor // divisor for raw in (statistics.min_raw, statistics.max_raw))
    return low if FIRST_US <= low <= high <= LAST_US else MIN_US


def _column(metadata: pq.FileMetaData, time: str | None) -> tuple[int, tuple[int, int]] | None:
    """Where the time column stands among the leaves of the schema, and its unit."""
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.path == time:
            unit = _unit(column.logical_type.to_json())
            return None if unit is None else (place, unit)
    return None


@lru_cache
def _unit(logical_type: str) -> tuple[int, int] | None:
    described = json.loads(logical_type)
    if described["Type"] == "Date":
        return DAY_US, 1
    return _UNITS_US.get(described["timeUnit"]) if described["Type"] == "Timestamp" else None
