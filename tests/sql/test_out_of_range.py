"""Numbers that no type holds, wherever a query may have one: a message and no traceback."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from tests.query.catalog import RIDES, sql, stream
from tidegate.errors import OptionError, QueryError
from tidegate.expression.reading import read_integer
from tidegate.memory import bytes_of
from tidegate.plan.lowering.lower import lower
from tidegate.query.node.node import Input
from tidegate.sql.bind import read_script

HUGE = "9" * 20
LONG = "9" * 5_000
COUNTS = "SELECT route, COUNT(*) AS n FROM rides"

MISTAKES = {
    f"{COUNTS} [ROWS {HUGE}] GROUP BY route": (
        "window: ROWS must be at most 1,000,000,000,000; got 99,999,999,999,999,999,999."
    ),
    f"{COUNTS} [ROWS 1e400] GROUP BY route": "window: ROWS must be at most",
    f"SELECT l.tip FROM rides [ROWS {HUGE}] l JOIN rides [ROWS 5] r ON l.tip = r.tip": (
        "window: ROWS must be at most"
    ),
    f"{COUNTS} [RANGE {HUGE} DAYS] GROUP BY route": (
        "RANGE: a duration must not exceed 10,000 years; got 1.00000e+20 times 1 day."
    ),
    f"{COUNTS} [RANGE 1 DAY SLIDE 1e400 DAYS] GROUP BY route": (
        "SLIDE: a duration must not exceed"
    ),
    f"SELECT tip + {'9' * 39} AS x FROM rides": (
        f"SELECT: a number may have 38 digits; got {'9' * 39}. Write it as a double"
    ),
    "SELECT tip + 1e400 AS x FROM rides": (
        "SELECT: a number must be one that a double can hold; got 1e400."
    ),
    f"SELECT dropoff_time + INTERVAL {HUGE} DAYS AS x FROM rides": (
        "SELECT: an interval must fit 64 bits of microseconds, or 32 bits of months; "
        f"got {HUGE} DAYS."
    ),
    "SELECT dropoff_time + INTERVAL 999999999 YEARS AS x FROM rides": (
        "SELECT: an interval must fit 64 bits"
    ),
    "SELECT dropoff_time + INTERVAL 1e400 DAYS AS x FROM rides": (
        "SELECT: an interval must be a number; got '1E+400'."
    ),
    "SELECT CAST(tip AS DECIMAL(1e400, 2)) AS x FROM rides": (
        "SELECT: DECIMAL(p, s) must have s <= p <= 38; got DECIMAL(1e400, 2)."
    ),
    f"SELECT tip + {LONG} AS x FROM rides": (
        "SQL line 1, column 14: a number may have 400 digits; got 999"
    ),
    f"{COUNTS} [ROWS {LONG}] GROUP BY route": "a number may have 400 digits; got 999",
    f"{COUNTS} [RANGE 1 DAY] GROUP BY {LONG}": "a number may have 400 digits; got 999",
    f"{COUNTS} [RANGE 1 DAY] GROUP BY 1 ORDER BY n LIMIT {LONG}": "a number may have 400 digits",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_number_out_of_range_is_a_mistake_in_one_line(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        lower(sql(text))
    assert MISTAKES[text] in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("clause", ["DISORDER", "IDLE"])
def test_of_a_stream_too(clause: str) -> None:
    with pytest.raises(QueryError, match="a duration must not exceed 10,000 years; got"):
        read_script(f"CREATE STREAM s FROM 'a' {clause} {HUGE} SECONDS; SELECT x FROM s")


def test_in_python_too() -> None:
    rides = stream(Input(RIDES))
    for given in (timedelta.max, "200000000000 weeks", 1e300, "80000000 days 80000000 days"):
        with pytest.raises(QueryError, match="a duration must not exceed 10,000 years"):
            rides.window(given)
    with pytest.raises(QueryError, match="ROWS must be at most"):
        rides.window(rows=10**13)


def test_a_size_no_machine_has() -> None:
    with pytest.raises(OptionError, match="--memory-limit: must be less than 4194304 TB; got 999"):
        bytes_of(LONG, "--memory-limit")


def test_text_of_many_digits_is_no_integer() -> None:
    assert read_integer(LONG, pa.int64()) is None
    assert read_integer("-" + "0" * 5_000 + "7", pa.int64()) == -7
