"""Durations: parsed from user input, and written in the largest unit that fits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from tidegate.calendar.microsecond import LONGEST_US, MICROSECOND, SECOND_US, UNITS_US
from tidegate.errors import QueryError, near

_SHORT = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_MONTHS = re.compile(r"\s*(\d+)\s*months?\s*", re.IGNORECASE)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*([A-Za-z]+)\s*")

Duration = str | timedelta | int | float
"""A duration from a user; a bare number is seconds."""


@dataclass(frozen=True)
class Months:
    """Whole months; only a calendar knows their length."""

    count: int

    def __str__(self) -> str:
        return f"{self.count} month{'' if self.count == 1 else 's'}"

    @staticmethod
    def read(text: str) -> Months | None:
        """`1 month`, `3 MONTHS`; None for another duration."""
        found = _MONTHS.fullmatch(text)
        return None if found is None else Months(int(found[1]))


def duration_text(us: int) -> str:
    """A duration for `explain` and SQL."""
    for name, size in reversed(UNITS_US.items()):
        if us and us % size == 0:
            count = us // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "0 seconds"


def window_text(range_us: int, slide_us: int, offset_us: int = 0) -> str:
    """A time window in SQL."""
    text = f"RANGE {duration_text(range_us)}"
    text += "" if slide_us == range_us else f" SLIDE {duration_text(slide_us)}"
    return f"{text} OFFSET {duration_text(offset_us)}" if offset_us else text


def session_text(gap_us: int, max_us: int | None) -> str:
    """A session window in SQL."""
    text = f"SESSION GAP {duration_text(gap_us)}"
    return text if max_us is None else f"{text} MAX {duration_text(max_us)}"


def rows_text(rows: int, slide: int) -> str:
    """A window of tuples in SQL."""
    return f"ROWS {rows}" if slide == rows else f"ROWS {rows} SLIDE {slide}"


def unit_us(unit: str, where: str) -> int:
    """Microseconds in a unit, by its full, plural or short name in any case."""
    name = unit.lower()
    for candidate in (name, name[:-1] if name.endswith("s") else name):
        full = _SHORT.get(candidate, candidate)
        if full in UNITS_US:
            return UNITS_US[full]
    raise QueryError(
        where, "a duration needs a unit of time", unit, near(name, [f"{u}s" for u in UNITS_US])
    )


def scaled_us(amount: Decimal, unit: int, where: str) -> int:
    """An amount of a unit in whole microseconds; raises for a fraction of a microsecond."""
    us = amount * unit
    if us.is_finite() and abs(us) > LONGEST_US:
        readable = abs(us) < 2**80
        got = duration_text(int(us)) if readable else f"{amount:.6g} times {duration_text(unit)}"
        raise _too_long(got, where)
    if not us.is_finite() or us != us.to_integral_value():
        raise QueryError(where, "a duration must be a whole number of microseconds", f"{us}")
    return int(us)


def _too_long(got: str, where: str) -> QueryError:
    return QueryError(where, "a duration must not exceed 10,000 years", got)


def duration_us(value: Duration, where: str = "duration") -> int:
    """Microseconds in "15 minutes", "1 hour 30 minutes", "500ms", a timedelta or seconds."""
    if isinstance(value, timedelta):
        return _bounded(value // MICROSECOND, where)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QueryError(where, "a duration must be text, a timedelta or seconds", repr(value))
    if not isinstance(value, str):
        return scaled_us(Decimal(str(value)), SECOND_US, where)
    total, at = 0, 0
    while part := _PART.match(value, at):
        total += scaled_us(Decimal(part.group(1)), unit_us(part.group(2), where), where)
        at = part.end()
    if at == 0 or at != len(value):
        raise QueryError(
            where,
            "a duration must be a number and a unit",
            repr(value),
            'Write for example "15 minutes" or "500 ms".',
        )
    return _bounded(total, where)


def _bounded(us: int, where: str) -> int:
    """Raises for durations so long that adding them to event times could overflow 64 bits."""
    if abs(us) > LONGEST_US:
        raise _too_long(duration_text(us), where)
    return us
