"""Local days, weeks and months: where they begin, beside DuckDB's, and where clocks are odd."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pytest

from tidegate.calendar.local_time import UNITS, LocalPeriods, check_zone
from tidegate.calendar.microsecond import DAY_US, FIRST_US, LAST_US
from tidegate.errors import QueryError

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Dublin")
HOUR_US = DAY_US // 24


def day(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", ZONES)
def test_periods_are_those_of_duckdb(unit: str, zone: str) -> None:
    draw = np.random.default_rng(len(unit + zone))
    low, high = (int(datetime(y, 1, 1, tzinfo=UTC).timestamp() * 1e6) for y in (1975, 2035))
    times = np.sort(draw.integers(low, high, 3000))
    periods = LocalPeriods(unit, zone)
    numbers = periods.numbers(times)
    found = periods.begins(numbers)
    assert ((found <= times) & (times < periods.begins(numbers + 1))).all()
    begins = duckdb.sql(f"""
        SELECT epoch_us(timezone('{zone}', date_trunc('{unit}',
            timezone('{zone}', make_timestamptz(t))))) AS begin
        FROM (SELECT unnest({times.tolist()}) AS t)
    """).fetchnumpy()["begin"]
    assert (begins == found).all()


@pytest.mark.parametrize(
    ("zone", "text", "hours"),
    [
        ("America/New_York", "2024-03-10", 23),
        ("America/New_York", "2024-11-03", 25),
        ("Australia/Lord_Howe", "2024-04-07", 24.5),
        ("America/Sao_Paulo", "2018-11-04", 23),  # clocks skip midnight
        ("America/Havana", "2023-11-05", 25),  # clocks show midnight twice
        ("Pacific/Apia", "2011-12-29", 24),
        ("Pacific/Apia", "2011-12-30", 0),  # the day that Samoa left out
        ("Pacific/Apia", "2011-12-31", 24),
    ],
)
def test_days_are_as_long_as_clocks_say(zone: str, text: str, hours: float) -> None:
    days, number = LocalPeriods("day", zone), day(text)
    begin, end = days.begin(number), days.begin(number + 1)
    assert (end - begin) / HOUR_US == hours
    for us in {begin, end - 1} if hours else set():
        assert days.number(us) == number
    shown = datetime.fromtimestamp(begin / 1e6, ZoneInfo(zone))
    assert shown.date() >= date.fromisoformat(text)


def test_where_clocks_show_midnight_twice_a_day_begins_with_the_first() -> None:
    days = LocalPeriods("day", "America/Havana")
    begin = datetime.fromtimestamp(days.begin(day("2023-11-05")) / 1e6, ZoneInfo("America/Havana"))
    assert (begin.hour, begin.fold, begin.utcoffset()) == (0, 0, timedelta(hours=-4))


def test_an_offset_is_on_the_clocks_of_the_zone() -> None:
    days = LocalPeriods("day", "America/New_York", 5 * HOUR_US)
    for text in ("2024-03-09", "2024-03-10", "2024-11-03", "2024-11-04"):
        begin = datetime.fromtimestamp(days.begin(day(text)) / 1e6, ZoneInfo("America/New_York"))
        assert begin.isoformat().startswith(f"{text}T05:00:00")


def test_weeks_begin_on_monday() -> None:
    weeks = LocalPeriods("week", "Europe/Berlin")
    for number in (-1000, -1, 0, 1, 2830):
        begin = datetime.fromtimestamp(weeks.begin(number) / 1e6, ZoneInfo("Europe/Berlin"))
        assert (begin.weekday(), begin.hour) == (0, 0)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_all_event_times_have_a_period(unit: str, zone: str) -> None:
    times = np.array([FIRST_US, FIRST_US + 1, 0, LAST_US - 1, LAST_US])
    periods = LocalPeriods(unit, zone)
    numbers = periods.numbers(times)
    assert (np.diff(numbers) >= 0).all()
    assert (periods.begins(numbers) <= times).all()
    assert (times < periods.begins(numbers + 1)).all()


def test_a_zone_that_is_not_known_is_refused() -> None:
    assert check_zone("Europe/Berlin", "TIME ZONE") == "Europe/Berlin"
    for wrong, told in (
        ("Europe/Berln", "got 'Europe/Berln'. Did you mean Europe/Berlin"),
        ("/etc/passwd", "must be the name of a time zone"),
        ("", "must be the name of a time zone"),
        (3, "got 3. Write a name of the IANA database"),
    ):
        with pytest.raises(QueryError) as caught:
            check_zone(wrong, "TIME ZONE")
        assert told in str(caught.value)
