"""Times outside the years 1 to 9999, computed and written as in Spark, whose answers are here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import QueryError, TaskError
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.binder import bind
from tidegate.schema import TIME
from tidegate.sql.dialect import Tidegate

ENDS = (2**63 - 1, -(2**63))
FAR = (*ENDS, 253_402_300_800_000_000, -62_135_596_800_000_001, 1_039_386_168_000_000_000)

SPARK: dict[str, list[object]] = {
    "CAST(t AS STRING)": [
        "+294247-01-10 04:00:54.775807",
        "-290308-12-21 19:59:05.224192",
        "+10000-01-01 00:00:00",
        "0000-12-31 23:59:59.999999",
        "+34906-11-02 12:00:00",
    ],
    "CAST(CAST(t AS DATE) AS STRING)": [
        *("+294247-01-10", "-290308-12-21", "+10000-01-01", "0000-12-31", "+34906-11-02")
    ],
    "year(t)": [294247, -290308, 10000, 0, 34906],
    "year(CAST(t AS DATE))": [294247, -290308, 10000, 0, 34906],
    "quarter(t)": [1, 4, 1, 4, 4],
    "month(t)": [1, 12, 1, 12, 11],
    "weekofyear(t)": [1, 51, 52, 52, 44],
    "day(t)": [10, 21, 1, 31, 2],
    "dayofyear(t)": [10, 356, 1, 366, 306],
    "dayofweek(t)": [1, 1, 7, 1, 3],
    "weekday(t)": [6, 6, 5, 6, 1],
    "hour(t)": [4, 19, 0, 23, 12],
    "extract(SECOND FROM t)": [
        Decimal(s) for s in ("54.775807", "5.224192", "0.000000", "59.999999", "0.000000")
    ],
    "unix_micros(date_trunc('year', t))": [
        *(9223371244800000000, "fails", 253402300800000000),
        *(-62167219200000000, 1039359772800000000),
    ],
    "unix_micros(date_trunc('week', t))": [
        *(9223371504000000000, "fails", 253401868800000000),
        *(-62136201600000000, 1039386038400000000),
    ],
    "unix_micros(date_trunc('hour', t))": [
        *(9223372036800000000, "fails", 253402300800000000),
        *(-62135600400000000, 1039386168000000000),
    ],
    "unix_millis(t)": [
        *(9223372036854775, -9223372036854776, 253402300800000),
        *(-62135596800001, 1039386168000000),
    ],
    "CAST(t AS DECIMAL(20,6))": [
        *(Decimal("9223372036854.775807"), Decimal("-9223372036854.775808")),
        *(Decimal("253402300800.000000"), Decimal("-62135596800.000001")),
        Decimal("1039386168000.000000"),
    ],
    "unix_micros(t + INTERVAL 1 MONTH)": [
        *("fails", -9223369358454775808, 253404979200000000),
        *(-62132918400000001, 1039388760000000000),
    ],
    "unix_micros(t - INTERVAL 1 MONTH)": [
        *(9223369358454775807, "fails", 253399622400000000),
        *(-62138275200000001, 1039383489600000000),
    ],
    "unix_micros(t - INTERVAL 1 DAY)": [
        *(9223371950454775807, "fails", 253402214400000000),
        *(-62135683200000001, 1039386081600000000),
    ],
    "unix_micros(CAST(CAST(t AS DATE) AS TIMESTAMP))": [
        *(9223372022400000000, "fails", 253402300800000000),
        *(-62135683200000000, 1039386124800000000),
    ],
    "CAST(trunc(CAST(t AS DATE), 'year') AS STRING)": [
        *("+294247-01-01", "-290308-01-01", "+10000-01-01", "0000-01-01", "+34906-01-01")
    ],
    "datediff(CAST(t AS DATE), DATE'2000-01-01')": [
        *(106741034, -106762949, 2921940, -730120, 12018975)
    ],
}


def value(text: str, micros: int = 0) -> Any:
    """What an expression over the timestamp `t` gives; "fails" where there is no value."""
    times = pa.table({"t": pa.array([micros], pa.int64()).cast(TIME)})
    try:
        bound = bind(sqlglot.parse_one(text, dialect=Tidegate), {"t": TIME}, "SELECT")
        return evaluate(bound, times)[0].as_py()
    except TaskError:
        return "fails"


@pytest.mark.parametrize("text", SPARK)
def test_far_times_are_what_spark_says(text: str) -> None:
    assert [value(text, micros) for micros in FAR] == SPARK[text]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=4))
def test_a_year_has_the_days_that_lie_in_it(micros: list[int | None]) -> None:
    """The date as text, counted from the first of January by the rule of leap years."""
    times = pa.table({"t": pa.array(micros, pa.int64()).cast(TIME)})
    columns = [
        evaluate(bind(sqlglot.parse_one(e, dialect=Tidegate), {"t": TIME}, "x"), times).to_pylist()
        for e in ("year(t)", "dayofyear(t)", "CAST(t AS STRING)")
    ]
    for given_us, year, day, text in zip(micros, *columns, strict=True):
        if given_us is None:
            assert (year, day, text) == (None, None, None)
            continue
        before = year - 1  # the days of the years 1 to `before`, also where that is negative
        days = before * 365 + before // 4 - before // 100 + before // 400 - 719_162 + day - 1
        assert days == given_us // 86_400_000_000
        sign = "+" if year > 9999 else "-" if year < 0 else ""
        assert text.startswith(f"{sign}{abs(year):04d}-")


def test_an_overflow_names_the_expression_and_the_time() -> None:
    times = pa.table({"t": pa.array([2**63 - 1], pa.int64()).cast(TIME)})
    bound = bind(sqlglot.parse_one("t + INTERVAL 1 DAY", dialect=Tidegate), {"t": TIME}, "x")
    wanted = r"expression t \+ .*: the result must fit its type; got \+294247-01-10 04:00:54.775807"
    with pytest.raises(TaskError, match=wanted):
        evaluate(bound, times)


SECONDS = {
    "timestamp_seconds(CAST('NaN' AS DOUBLE))": None,
    "timestamp_seconds(CAST('NaN' AS FLOAT))": None,
    "timestamp_seconds(CAST('-Infinity' AS DOUBLE))": None,
    "CAST(timestamp_seconds(1e30D) AS STRING)": "+294247-01-10 04:00:54.775807",
    "CAST(timestamp_seconds(-1e30D) AS STRING)": "-290308-12-21 19:59:05.224192",
    "CAST(timestamp_seconds(-1.5D) AS STRING)": "1969-12-31 23:59:58.5",
    "CAST(timestamp_seconds(1.23456789D) AS STRING)": "1970-01-01 00:00:01.234567",
    "timestamp_seconds(CAST(1.2345678 AS DECIMAL(10,7)))": "fails",
    "CAST(timestamp_seconds(CAST(1.2345670 AS DECIMAL(10,7))) AS STRING)": (
        "1970-01-01 00:00:01.234567"
    ),
    "timestamp_seconds(CAST(9223372036855 AS DECIMAL(13,0)))": "fails",
    "CAST(CAST('NaN' AS DOUBLE) AS TIMESTAMP)": "fails",
}


@pytest.mark.parametrize("text", SECONDS)
def test_seconds_of_any_kind(text: str) -> None:
    assert value(text) == SECONDS[text]


@pytest.mark.parametrize("span", ["9999999999 YEARS", "178956971 YEARS", f"{2**63} MICROSECONDS"])
def test_an_interval_that_no_column_holds_is_refused(span: str) -> None:
    wanted = "an interval must fit 64 bits of microseconds, or 32 bits of months"
    with pytest.raises(QueryError, match=wanted):
        value(f"t + INTERVAL {span}")


def test_months_beyond_the_last_date_fail() -> None:
    assert value("add_months(DATE'2000-01-01', 2147483647)") == "fails"
    assert value("t + INTERVAL 178956970 YEARS") == "fails"
