"""Calendar functions for dates and timestamps of any year that 64 bits of microseconds hold.

Python's times cover the years 1 to 9999 and Arrow's calendar goes up to 32767, but 64 bits of
microseconds reach beyond the year 290,000. The calendar repeats every 400 years (an era), which are
always the same number of days and whole weeks. So a time is moved by whole eras to where Arrow's
calendar works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar.microsecond import DAY_US, FIRST_US, LAST_US

ERA_YEARS = 400
ERA_DAYS = 146_097
_NEAR_DAYS = pa.scalar(FIRST_US // DAY_US, pa.int32()), pa.scalar(LAST_US // DAY_US, pa.int32())
_NEAR_US = pa.scalar(FIRST_US, pa.int64()), pa.scalar(LAST_US, pa.int64())


def era_length(type_: pa.DataType) -> int:
    """The length of an era, in days for date32 and in microseconds for timestamps."""
    return ERA_DAYS if pa.types.is_date(type_) else ERA_DAYS * DAY_US


def is_far(times: Any) -> bool:
    """Whether any of the times lies outside the years 1 to 9999; one pass."""
    if pa.types.is_date64(times.type):
        return False  # which only sinks meet, as it came
    low, high = _NEAR_DAYS if pa.types.is_date32(times.type) else _NEAR_US
    span = pc.min_max(_counts(times))
    # None, where there is no time, is false.
    return bool(pc.or_(pc.less(span["min"], low), pc.greater(span["max"], high)).as_py())


def first_far(times: Any) -> str:
    """The first time outside the years 1 to 9999, as text; there must be one."""
    low, high = _NEAR_DAYS if pa.types.is_date32(times.type) else _NEAR_US
    counts = _counts(times)
    far = pc.or_(pc.less(counts, low), pc.greater(counts, high))
    return str(texts(lambda some: some.cast(pa.string()), times.filter(far)[:1])[0])


def near(times: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """The times moved into the years 1970 to 2369, and by how many eras each was moved."""
    counts = _counts(times)
    eras, inside = np.divmod(
        counts.fill_null(0).to_numpy(zero_copy_only=False), era_length(times.type)
    )
    mask = times.is_null().to_numpy(zero_copy_only=False) if times.null_count else None
    return pa.array(inside, counts.type, mask=mask).view(times.type), eras


def year(times: Any) -> Any:
    """The years, as int64."""
    if not is_far(times):
        return pc.year(times)
    moved, eras = near(times)
    return pc.add(pc.year(moved), pa.array(eras.astype(np.int64) * ERA_YEARS))


def in_era(function: Callable[[Any], Any], times: Any) -> Any:
    """Applies a calendar function that is the same in every era: the month, not the year."""
    return function(near(times)[0] if is_far(times) else times)


def texts(write: Callable[[Any], Any], times: Any) -> Any:
    """Writes times with a function whose texts begin with a year of four digits.

    Years above 9999 get a plus sign and all their digits, years before 0 a minus sign, as in ISO
    8601 and Spark: +10000-01-01, -0044-03-15.
    """
    if not is_far(times):
        return write(times)
    years = year(times)
    sign = pc.if_else(pc.greater(years, 9999), "+", pc.if_else(pc.less(years, 0), "-", ""))
    digits = pc.utf8_lpad(pc.abs(years).cast(pa.string()), 4, "0")
    rest = pc.utf8_slice_codeunits(write(near(times)[0]), 4)
    return pc.binary_join_element_wise(sign, digits, rest, "")


def _counts(times: Any) -> Any:
    return times.cast(pa.int32() if pa.types.is_date32(times.type) else pa.int64())
