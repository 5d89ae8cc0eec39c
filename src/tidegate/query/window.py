"""Windows and the durations they are written in, between what a user says and the panes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from tidegate.duration import duration_text, rows_text, window_text
from tidegate.errors import QueryError, near
from tidegate.microsecond import LONGEST_US, MICROSECOND, SECOND_US, UNITS_US

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
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*([A-Za-z]+)\s*")

MOST_ROWS = 10**12
"""Tuples in a window: more than any machine holds, and few enough to count with."""

Duration = str | timedelta | int | float
"""What a user may give for a length of time; a bare number is seconds."""


def unit_us(unit: str, where: str) -> int:
    """Microseconds in a unit named in full, in the plural or in short, in any case."""
    name = unit.lower()
    for candidate in (name, name[:-1] if name.endswith("s") else name):
        full = _SHORT.get(candidate, candidate)
        if full in UNITS_US:
            return UNITS_US[full]
    raise QueryError(
        where, "a duration needs a unit of time", unit, near(name, [f"{u}s" for u in UNITS_US])
    )


def scaled_us(amount: Decimal, unit: int, where: str) -> int:
    """An amount of a unit as whole microseconds; a fraction of a microsecond is refused."""
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
    """Refuse what is so long that event times and durations could not be added in 64 bits."""
    if abs(us) > LONGEST_US:
        raise _too_long(duration_text(us), where)
    return us


@dataclass(frozen=True)
class TimeWindow:
    """Windows [k*slide, k*slide + range) for every whole k, aligned at the Unix epoch."""

    range_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if self.range_us <= 0:
            raise QueryError(
                "window", "RANGE must be longer than zero", duration_text(self.range_us)
            )
        if self.slide_us <= 0:
            raise QueryError(
                "window", "SLIDE must be longer than zero", duration_text(self.slide_us)
            )
        if self.slide_us > self.range_us:
            raise QueryError(
                "window",
                "SLIDE must not be longer than RANGE",
                f"RANGE {duration_text(self.range_us)} SLIDE {duration_text(self.slide_us)}",
                "Tuples between the windows would be lost; filter them with WHERE instead.",
            )

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us)


@dataclass(frozen=True)
class TupleWindow:
    """The last `rows` tuples of a group, emitted when held, then the `slide` oldest dropped."""

    rows: int
    slide: int

    def __post_init__(self) -> None:
        if self.rows <= 0:
            raise QueryError("window", "ROWS must be at least 1", str(self.rows))
        if self.rows > MOST_ROWS:
            raise QueryError("window", f"ROWS must be at most {MOST_ROWS:,}", f"{self.rows:,}")
        if not 0 < self.slide <= self.rows:
            raise QueryError(
                "window",
                "SLIDE must be at least 1 and at most ROWS",
                f"ROWS {self.rows} SLIDE {self.slide}",
            )

    def __str__(self) -> str:
        return rows_text(self.rows, self.slide)


@dataclass(frozen=True)
class Distance:
    """How much earlier a tuple of a join may be than its partner; zero is the same instant."""

    range_us: int

    def __post_init__(self) -> None:
        if self.range_us < 0:
            raise QueryError("window", "RANGE must not be negative", duration_text(self.range_us))

    def __str__(self) -> str:
        return f"RANGE {duration_text(self.range_us)}"


Window = TimeWindow | TupleWindow


def read_window(range: Duration | None, slide: Duration | None, rows: int | None) -> Window:
    """The window a program asks for: a length of time, or a number of tuples; it tumbles unless
    `slide` says otherwise."""
    if (range is None) == (rows is None):
        raise QueryError(
            "window",
            "needs a length of time, or a number of tuples",
            "neither" if range is None else "both",
            'Write for example window("15 minutes"), or window(rows=100).',
        )
    if range is None:
        count = whole_rows(rows, "window rows")
        return TupleWindow(count, count if slide is None else whole_rows(slide, "window slide"))
    range_us = duration_us(range, "window range")
    return TimeWindow(range_us, range_us if slide is None else duration_us(slide, "window slide"))


def whole_rows(value: object, where: str) -> int:
    """A number of tuples; anything but an int is refused."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(where, "needs a whole number of tuples", repr(value))
    return value


JoinWindow = Distance | TupleWindow
"""The window of one side of a join: it moves with every tuple."""
