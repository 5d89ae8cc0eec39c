"""Converts between times as people write them and microseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The units of fixed length, the shortest first."""

SECOND_US, DAY_US = UNITS_US["second"], UNITS_US["day"]
MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // MICROSECOND
LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // MICROSECOND
"""The first and the last event time: the years 1 to 9999. They are far enough from the ends of 64
bits that adding durations of at most LONGEST_US to an event time cannot overflow."""

LONGEST_US = 3_652_425 * DAY_US
"""The longest duration: 10,000 years, more than the span of all event times."""


def time_us(time: datetime | int) -> int:
    """A time in microseconds; UTC if it has no zone. An integer is in microseconds already."""
    if isinstance(time, datetime):
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // MICROSECOND
    if isinstance(time, bool) or not isinstance(time, int):
        raise TypeError(f"a time is a datetime or whole microseconds, not {time!r}")
    return time


def read_us(text: str) -> int:
    """ISO 8601 in microseconds; ValueError if it cannot be parsed."""
    return time_us(datetime.fromisoformat(text))


def moment(us: int) -> datetime:
    """Microseconds as a UTC time; OverflowError outside the years 1 to 9999."""
    if not FIRST_US <= us <= LAST_US:
        raise OverflowError(f"{us} us is outside the years 1 to 9999, which Python's times have")
    return _EPOCH + us * MICROSECOND


def time_text(us: int) -> str:
    """A time for messages: ISO 8601 in UTC if it can be written so."""
    try:
        return moment(us).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{us} us"
