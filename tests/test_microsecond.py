from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.calendar.microsecond import UNITS_US, moment, read_us, time_text, time_us

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
NOON_US = 1_706_702_400_000_000


def test_a_time_counts_from_1970_and_is_utc_without_a_zone() -> None:
    assert time_us(NOON) == NOON_US
    assert time_us(NOON.replace(tzinfo=None)) == NOON_US
    assert time_us(NOON.astimezone(timezone(timedelta(hours=-3)))) == NOON_US
    assert time_us(datetime(1969, 12, 31, 23, 59, 59, 999_999)) == -1
    assert time_us(7) == 7


@pytest.mark.parametrize("time", [True, 1.5, "2024-01-31", date(2024, 1, 31), None])
def test_what_is_not_a_time_is_refused(time: object) -> None:
    with pytest.raises(TypeError, match="a time is a datetime or whole microseconds, not"):
        time_us(time)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["2024-01-31T12:00:00Z", "2024-01-31 12:00", "2024-01-31T09:00:00-03:00"]
)
def test_text_is_iso_8601(text: str) -> None:
    assert read_us(text) == NOON_US
    with pytest.raises(ValueError, match="yesterday"):
        read_us("yesterday")


@given(st.datetimes())
def test_a_moment_is_the_time_that_was_counted(time: datetime) -> None:
    assert moment(time_us(time)) == time.replace(tzinfo=UTC)


def test_texts_are_for_all_times() -> None:
    assert time_text(NOON_US) == "2024-01-31T12:00:00Z"
    assert time_text(2**63 - 1) == "9223372036854775807 us"
    with pytest.raises(OverflowError):
        moment(2**63 - 1)


def test_units_come_from_the_shortest_on() -> None:
    assert list(UNITS_US.values()) == sorted(UNITS_US.values())
