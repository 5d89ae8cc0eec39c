"""When days, weeks and months begin in a time zone.

A local day has 23 or 25 hours when clocks change. A period begins at the first instant whose local
time has reached the period's first: if clocks skip midnight, after the gap; if they show it twice,
at the first time. So periods follow each other without gaps, whatever a zone has done to its
clocks. A period that was skipped entirely is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt

from tidegate.calendar.microsecond import DAY_US, FIRST_US, LAST_US, MICROSECOND
from tidegate.errors import QueryError, likely

Ints = npt.NDArray[np.int64]

_BLOCK = 256
"""Periods computed and cached together; a block of days takes a millisecond."""

_SEARCHED = 16 * _BLOCK
"""Up to this many periods, all their beginnings are computed and searched."""

_EPOCH = datetime(1970, 1, 1)
_MONDAY = 4
"""The first Monday, in days since 1970-01-01."""


@dataclass(frozen=True)
class CalendarUnit:
    """A calendar period: local beginning by number, and number by local time.

    `most_us` is the longest length, `usual_us` the usual one.
    """

    begin: Callable[[Ints], Ints]
    number: Callable[[Ints], Ints]
    most_us: int
    usual_us: int


def _month_begin(number: Ints) -> Ints:
    return number.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)


def _month_number(local: Ints) -> Ints:
    return local.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


UNITS = {
    "day": CalendarUnit(lambda n: n * DAY_US, lambda t: t // DAY_US, DAY_US, DAY_US),
    "week": CalendarUnit(
        lambda n: (7 * n + _MONDAY) * DAY_US,
        lambda t: (t // DAY_US - _MONDAY) // 7,
        7 * DAY_US,
        7 * DAY_US,
    ),
    "month": CalendarUnit(_month_begin, _month_number, 31 * DAY_US, 30 * DAY_US),
}
"""Days are numbered from 1970-01-01, weeks from the Monday after it, months from January 1970."""


@dataclass(frozen=True)
class LocalPeriods:
    """The days, weeks or months of a time zone, beginning `offset_us` after local midnight."""

    unit: str
    zone: str
    offset_us: int = 0

    def begins(self, numbers: Ints) -> Ints:
        """When periods begin, in microseconds UTC; cheap for periods close to each other."""
        if not len(numbers):
            return numbers
        blocks = numbers // _BLOCK
        low, high = int(blocks.min()), int(blocks.max())
        if high - low < _BLOCK:
            table = [self._block(block) for block in range(low, high + 1)]
            near: Ints = np.concatenate(table)[numbers - low * _BLOCK]
            return near
        used, place = np.unique(blocks, return_inverse=True)
        table = [self._block(block) for block in used.tolist()]
        far: Ints = np.concatenate(table)[place * _BLOCK + numbers % _BLOCK]
        return far

    def numbers(self, times: Ints) -> Ints:
        """The periods that contain these instants."""
        if not len(times):
            return times
        low, high = self.number(int(times.min())), self.number(int(times.max()))
        if high - low < _SEARCHED:
            found: Ints = np.searchsorted(self.begins(np.arange(low + 1, high + 1)), times, "right")
            return found + low
        return self._guessed(times)

    def _guessed(self, times: Ints) -> Ints:
        """As `numbers`, for instants far apart: local time is less than a day from UTC, so only
        three periods are candidates.
        """
        guess = UNITS[self.unit].number(times - self.offset_us)
        before, after = times < self.begins(guess), times >= self.begins(guess + 1)
        return guess - before + after

    def number(self, time_us: int) -> int:
        return int(self._guessed(np.array([time_us]))[0])

    def begin(self, number: int) -> int:
        return int(self.begins(np.array([number]))[0])

    def _block(self, block: int) -> Ints:
        return _block(self.unit, self.zone, self.offset_us, block)


@lru_cache(maxsize=1024)
def _block(unit: str, zone: str, offset_us: int, block: int) -> Ints:
    numbers = np.arange(block * _BLOCK, (block + 1) * _BLOCK)
    local = UNITS[unit].begin(numbers) + offset_us
    rules = ZoneInfo(zone)
    return np.array([_first_instant(rules, us) for us in local.tolist()], np.int64)


def _first_instant(rules: ZoneInfo, local_us: int) -> int:
    """The first instant, in microseconds UTC, whose local time is at least this."""
    # Beyond the years that Python has, clocks are as in the last of them.
    local = _EPOCH + min(max(local_us, FIRST_US), LAST_US) * MICROSECOND
    low, high = (local_us - _offset_us(rules, local.replace(fold=fold)) for fold in (1, 0))
    if low >= high:  # it is there once, or else twice, and `high` is the first
        return high
    while high - low > 1:  # clocks skip it: somewhere between both they change
        middle = (low + high) // 2
        shown = (_EPOCH + middle * MICROSECOND).replace(tzinfo=rules)
        if middle + _offset_us(rules, rules.fromutc(shown)) >= local_us:
            high = middle
        else:
            low = middle
    return high


def _offset_us(rules: ZoneInfo, local: datetime) -> int:
    offset = local.replace(tzinfo=rules).utcoffset()
    return (offset or timedelta()) // MICROSECOND


def check_zone(zone: object, where: str) -> str:
    """The name of a time zone; raises for an unknown one."""
    remedy = "Write a name of the IANA database, such as 'Europe/Berlin' or 'UTC'."
    if not isinstance(zone, str):
        raise QueryError(where, "must be the name of a time zone", repr(zone), remedy)
    try:
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = likely(zone, sorted(available_timezones()))
        raise QueryError(
            where, "must be the name of a time zone", repr(zone), near or remedy
        ) from None
