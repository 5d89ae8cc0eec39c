from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.expression.temporal import OPS
from tidegate.schema import TIME

MOMENTS = st.datetimes(datetime(1, 1, 9), datetime(9990, 1, 1), timezones=st.just(UTC))


def start_of(moment: datetime, unit: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "microsecond": moment,
        "millisecond": moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "second": moment.replace(microsecond=0),
        "minute": moment.replace(second=0, microsecond=0),
        "hour": moment.replace(minute=0, second=0, microsecond=0),
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "quarter": day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "year": day.replace(month=1, day=1),
    }[unit]


UNITS = "microsecond millisecond second minute hour day week month quarter year".split()


@pytest.mark.parametrize("unit", UNITS)
@given(moment=MOMENTS)
def test_truncation_finds_the_start_of_the_unit(unit: str, moment: datetime) -> None:
    got = OPS["date_trunc"](TIME, pa.array([moment, None], TIME), pa.scalar(unit))
    assert got.to_pylist() == [start_of(moment, unit), None]


@given(MOMENTS)
def test_fields_are_those_of_the_calendar(moment: datetime) -> None:
    values = pa.array([moment, None], TIME)
    wanted = {
        "year": moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "week": moment.isocalendar().week,
        "day": moment.day,
        "day_of_year": moment.timetuple().tm_yday,
        "day_of_week": moment.isoweekday() % 7 + 1,
        "weekday": moment.weekday(),
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
    }
    got = {name: OPS[name](pa.int32(), values).to_pylist() for name in wanted}
    assert got == {name: [value, None] for name, value in wanted.items()}


@given(st.dates(date(1000, 1, 1), date(3000, 1, 1)), st.integers(-5000, 5000))
def test_months_are_added_up_to_the_last_day(day: date, months: int) -> None:
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    wanted = date(year, month + 1, min(day.day, last))
    count = pa.scalar(months, pa.int32())
    assert OPS["add_months"](pa.date32(), pa.array([day]), count).to_pylist() == [wanted]
    noon = datetime(day.year, day.month, day.day, 12, 0, 0, 1, tzinfo=UTC)
    moved = OPS["add_months"](TIME, pa.array([noon], TIME), count).to_pylist()
    assert moved == [noon.replace(year=wanted.year, month=wanted.month, day=wanted.day)]


def test_unix_times_go_down_before_the_epoch() -> None:
    values = pa.array([-1, 1_500_000, None], TIME)
    assert OPS["unix_seconds"](pa.int64(), values).to_pylist() == [-1, 1, None]
    assert OPS["unix_millis"](pa.int64(), values).to_pylist() == [-1, 1500, None]
    assert OPS["unix_micros"](pa.int64(), values).to_pylist() == [-1, 1_500_000, None]
