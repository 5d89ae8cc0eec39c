"""Time in microseconds since 1970, UTC: between how people write it and how it is counted."""

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
"""The units of time that have one length, from the shortest on."""

SECOND_US, DAY_US = UNITS_US["second"], UNITS_US["day"]
MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // MICROSECOND
LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // MICROSECOND
"""The first and the last event time: the years 1 to 9999. Far from the ends of 64 bits, so that no
sum of an event time and durations of at most LONGEST_US leaves them."""

LONGEST_US = 3_652_425 * DAY_US
"""The longest duration: 10,000 years, longer than all event times are apart."""


def time_us(time: datetime | int) -> int:
    """A time as microseconds; without a zone it is in UTC, an integer counts them already."""
    if isinstance(time, datetime):
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // MICROSECOND
    if isinstance(time, bool) or not isinstance(time, int):
        raise TypeError(f"a time is a datetime or whole microseconds, not {time!r}")
    return time


def read_us(text: str) -> int:
    """ISO 8601 as microseconds; ValueError where it cannot be read."""
    return time_us(datetime.fromisoformat(text))


def moment(us: int) -> datetime:
    """Microseconds as a time in UTC; OverflowError outside the years 1 to 9999."""
    if not FIRST_US <= us <= LAST_US:
        raise OverflowError(f"{us} us is outside the years 1 to 9999, which Python's times have")
    return _EPOCH + us * MICROSECOND


def time_text(us: int) -> str:
    """A time for messages: ISO 8601 in UTC where it can be written so."""
    try:
        return moment(us).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{us} us"
