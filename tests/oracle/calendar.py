"""Windows of local days, weeks and months of one instant, from the clocks of the zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from tidegate.operate.aggregate.pane.calendar_window import CalendarPanes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)


def calendar_windows_of(window: CalendarPanes, ts: int) -> Iterator[tuple[int, int]]:
    """Where the windows begin and end that an instant is in, the latest first."""
    periods = window.periods_of
    zone = ZoneInfo(periods.zone)
    local = (EPOCH + ts * US).astimezone(zone).replace(tzinfo=None)
    day = (local - periods.offset_us * US).date()
    number = {
        "day": (day - date(1970, 1, 1)).days,
        "week": (day - date(1970, 1, 5)).days // 7,
        "month": (day.year - 1970) * 12 + day.month - 1,
    }[periods.unit]
    k = number // window.slide + 1
    while k * window.slide + window.length > number - 1:
        start = begin(window, zone, k * window.slide)
        end = begin(window, zone, k * window.slide + window.length)
        if start <= ts < end:
            yield start, end
        k -= 1


def begin(window: CalendarPanes, zone: ZoneInfo, number: int) -> int:
    """When a period begins: for zones whose clocks never skip that time of the day."""
    periods = window.periods_of
    if periods.unit == "month":
        first = date(1970 + number // 12, number % 12 + 1, 1)
    elif periods.unit == "week":
        first = date(1970, 1, 5) + timedelta(days=7 * number)
    else:
        first = date(1970, 1, 1) + timedelta(days=number)
    local = datetime(first.year, first.month, first.day) + periods.offset_us * US
    return (local.replace(tzinfo=zone).astimezone(UTC) - EPOCH) // US
