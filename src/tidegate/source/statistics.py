"""Least event times of row groups, between the footer of a Parquet file and the gate."""

from __future__ import annotations

import json
from functools import lru_cache

import pyarrow.parquet as pq

from tidegate.batch import MIN_US
from tidegate.microsecond import DAY_US, FIRST_US, LAST_US

_UNITS_US = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
"""Microseconds in units of Parquet's times, as a fraction."""


def least_times(metadata: pq.FileMetaData, time: str | None) -> list[int]:
    """By row group, a time that no row of it is below; MIN_US where the statistics do not say so.

    They do where there are any and no row is without an event time, be it NULL or out of range:
    such a row counts by what came before it, which may be nothing.
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
