from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.types.interval import CalendarInterval, read_interval


def read(text: str) -> CalendarInterval:
    node = sqlglot.parse_one(text, read="spark")
    assert isinstance(node, exp.Interval)
    return read_interval(node, "test")


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("INTERVAL 5 MINUTES", CalendarInterval(0, 300_000_000)),
        ("INTERVAL '5' MINUTE", CalendarInterval(0, 300_000_000)),
        ("INTERVAL '5 minutes'", CalendarInterval(0, 300_000_000)),
        ("INTERVAL '-1.5' SECONDS", CalendarInterval(0, -1_500_000)),
        ("INTERVAL 2 WEEKS", CalendarInterval(0, 1_209_600_000_000, True)),
        ("INTERVAL 1 DAY", CalendarInterval(0, 86_400_000_000, True)),
        ("INTERVAL '1 day 2 hours'", CalendarInterval(0, 93_600_000_000)),
        ("INTERVAL 3 MONTHS", CalendarInterval(3, 0)),
        ("INTERVAL '1-2' YEAR TO MONTH", CalendarInterval(14, 0)),
        ("INTERVAL '1:30' MINUTE TO SECOND", CalendarInterval(0, 90_000_000)),
        ("INTERVAL '-1 02:03:04.5' DAY TO SECOND", CalendarInterval(0, -93_784_500_000)),
    ],
)
def test_intervals_are_read(text: str, interval: CalendarInterval) -> None:
    assert read(text) == interval


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL '1 month 2 days'",
        "INTERVAL 'soon'",
        "INTERVAL '5 parsecs'",
        "INTERVAL '1:2:3' MINUTE TO SECOND",
        "INTERVAL '0.0000001' SECOND",
    ],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="an interval"):
        read(text)
