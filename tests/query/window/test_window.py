"""Durations and windows: what may be written, and what is refused."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docs.block import ROOT
from tests.query.catalog import sql
from tests.query.test_stream import rides
from tidegate.calendar.duration import duration_text, duration_us
from tidegate.calendar.microsecond import DAY_US
from tidegate.errors import OptionError, QueryError
from tidegate.query.grammar import DurationValue, SyntaxPart
from tidegate.query.node.node import aggregate_of
from tidegate.query.window import (
    WINDOWS,
    CalendarWindow,
    Distance,
    SessionWindow,
    TimeWindow,
    TupleWindow,
    Use,
    Window,
    read_window,
)


@pytest.mark.parametrize(
    ("value", "us"),
    [
        ("15 minutes", 900_000_000),
        ("1 Minute", 60_000_000),
        ("0.5 SECONDS", 500_000),
        ("500ms", 500_000),
        ("7us", 7),
        ("2 h", 7_200_000_000),
        ("1 hour 30 min", 5_400_000_000),
        (" 1 week ", 604_800_000_000),
        ("-3 days", -259_200_000_000),
        (".25 milliseconds", 250),
        (timedelta(seconds=1, microseconds=5), 1_000_005),
        (2, 2_000_000),
        (0.1, 100_000),
        (0, 0),
    ],
)
def test_durations(value: str | timedelta | float, us: int) -> None:
    assert duration_us(value) == us


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "fifteen",
            "duration: a duration must be a number and a unit; got 'fifteen'. "
            'Write for example "15 minutes" or "500 ms".',
        ),
        (
            "15",
            "duration: a duration must be a number and a unit; got '15'. "
            'Write for example "15 minutes" or "500 ms".',
        ),
        (
            "15 minuets",
            "duration: a duration needs a unit of time; got minuets. Did you mean minutes? There "
            "are: microseconds, milliseconds, seconds, minutes, hours, days, weeks.",
        ),
        ("0.5 us", "duration: a duration must be a whole number of microseconds; got 0.5."),
        (True, "duration: a duration must be text, a timedelta or seconds; got True."),
        (None, "duration: a duration must be text, a timedelta or seconds; got None."),
        (float("nan"), "duration: a duration must be a whole number of microseconds; got NaN."),
    ],
)
def test_what_is_not_a_duration(value: object, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        duration_us(value)  # type: ignore[arg-type]
    assert str(caught.value) == message


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_the_text_of_a_duration_is_read_back(us: int) -> None:
    assert duration_us(duration_text(us)) == us


def test_windows_say_themselves() -> None:
    assert str(TimeWindow(900_000_000, 300_000_000)) == "RANGE 15 minutes SLIDE 5 minutes"
    assert str(TimeWindow(1_000_000, 1_000_000)) == "RANGE 1 second"
    assert str(TupleWindow(5, 5)) == "ROWS 5"
    assert str(TupleWindow(5, 2)) == "ROWS 5 SLIDE 2"
    assert str(TimeWindow(DAY_US, DAY_US, 1)) == "RANGE 1 day OFFSET 1 microsecond"
    assert str(CalendarWindow("month", 1, 1, 0, "UTC")) == "RANGE 1 month TIME ZONE 'UTC'"
    assert (
        str(CalendarWindow("day", 7, 1, 1_000_000, "UTC"))
        == "RANGE 7 days SLIDE 1 day OFFSET 1 second TIME ZONE 'UTC'"
    )
    assert str(SessionWindow(5)) == "SESSION GAP 5 microseconds"
    assert str(SessionWindow(60_000_000, 1)) == "SESSION GAP 1 minute MAX 1 microsecond"


def test_windows_a_program_asks_for() -> None:
    assert read_window("1 hour", None, None) == TimeWindow(3_600_000_000, 3_600_000_000)
    assert read_window(60, "1 s", None) == TimeWindow(60_000_000, 1_000_000)
    assert read_window(None, None, 5) == TupleWindow(5, 5)
    assert read_window(None, 2, 5) == TupleWindow(5, 2)
    assert read_window("1 day", offset="-1 hour") == TimeWindow(DAY_US, DAY_US, 23 * DAY_US // 24)
    zoned = {"time_zone": "Europe/Berlin"}
    assert read_window("1 day", **zoned) == CalendarWindow("day", 1, 1, 0, "Europe/Berlin")
    assert read_window("7 days", **zoned) == CalendarWindow("week", 1, 1, 0, "Europe/Berlin")
    assert read_window("7 days", "1 day", **zoned) == CalendarWindow(
        "day", 7, 1, 0, "Europe/Berlin"
    )
    assert read_window("2 months", offset="1 day", time_zone="UTC") == CalendarWindow(
        "month", 2, 2, DAY_US, "UTC"
    )
    assert read_window(session="1 hour") == SessionWindow(3_600_000_000)
    assert read_window(session=60, max="2 hours") == SessionWindow(60_000_000, 7_200_000_000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: read_window(None, None, None),
            "window: needs a length of time, a number of tuples, or the gap of a session; got none "
            'of them. Write for example window("15 minutes"), window(rows=100), or '
            'window(session="30 minutes").',
        ),
        (
            lambda: read_window("1 hour", None, 5),
            "window: needs a length of time, a number of tuples, or the gap of a session; got "
            'range and rows. Write for example window("15 minutes"), window(rows=100), or '
            'window(session="30 minutes").',
        ),
        (
            lambda: read_window(None, None, 2.5),  # type: ignore[arg-type]
            "window rows: needs a whole number of tuples; got 2.5.",
        ),
        (
            lambda: read_window(None, None, True),
            "window rows: needs a whole number of tuples; got True.",
        ),
        (
            lambda: read_window(None, "5 minutes", 5),
            "window slide: needs a whole number of tuples; got '5 minutes'.",
        ),
        (lambda: TimeWindow(0, 0), "window: RANGE must be longer than zero; got 0 seconds."),
        (lambda: TimeWindow(5, 0), "window: SLIDE must be longer than zero; got 0 seconds."),
        (
            lambda: TimeWindow(1_000_000, 2_000_000),
            "window: SLIDE must not be longer than RANGE; got RANGE 1 second SLIDE 2 seconds. "
            "Tuples between the windows would be lost; filter them with WHERE instead.",
        ),
        (lambda: TupleWindow(0, 0), "window: ROWS must be at least 1; got 0."),
        (
            lambda: TupleWindow(5, 6),
            "window: SLIDE must be at least 1 and at most ROWS; got ROWS 5 SLIDE 6.",
        ),
        (
            lambda: SessionWindow(0),
            "window: GAP of a session must be longer than zero; got 0 seconds.",
        ),
        (
            lambda: SessionWindow(1, -1_000_000),
            "window: MAX of a session must be longer than zero; got -1 seconds.",
        ),
        (
            lambda: read_window(session="1 hour", slide="1 minute"),
            "window slide: is not for windows by session; got '1 minute'. Leave it out; they may "
            "have max.",
        ),
        (
            lambda: read_window("1 hour", max="1 minute"),
            "window max: is not for windows by range; got '1 minute'. Leave it out; they may have "
            "slide, offset or time_zone.",
        ),
        (
            lambda: SessionWindow.side(1_000_000),
            "JOIN: the window of a join moves with every tuple, and a session does not; got "
            "[SESSION GAP 1 second]. Write how much earlier a partner may be: [RANGE 5 MINUTES].",
        ),
        (
            lambda: read_window("1 month"),
            "window: a month has the length that a calendar says, so it needs a TIME ZONE; got "
            "RANGE 1 month. Write [RANGE 1 MONTH TIME ZONE 'UTC'], or another zone.",
        ),
        (
            lambda: read_window("1 month", "1 day", time_zone="UTC"),
            "window: months follow each other, so they have no SLIDE; got RANGE 1 month SLIDE 1 "
            "day. Leave SLIDE out.",
        ),
        (
            lambda: read_window("0 months", time_zone="UTC"),
            "window: RANGE must be longer than zero; got 0 months.",
        ),
        (
            lambda: read_window("1 hour", time_zone="UTC"),
            "window: RANGE with a TIME ZONE must be whole days, weeks or months; got 1 hour. "
            "Write it in DAYS, or leave TIME ZONE out: an hour is the same in all zones.",
        ),
        (
            lambda: read_window("1 day", "2 days", time_zone="UTC"),
            "window: SLIDE must not be longer than RANGE; got RANGE 1 day SLIDE 2 days. Tuples "
            "between the windows would be lost; filter them with WHERE instead.",
        ),
        (
            lambda: TimeWindow.side(DAY_US, None, None, "UTC"),
            "JOIN: the window of a join moves with every tuple: it has a length, and no "
            "alignment; got [RANGE 1 day TIME ZONE 'UTC']. Leave OFFSET and TIME ZONE out, and "
            "write days for months.",
        ),
        (
            lambda: TupleWindow(5, 0),
            "window: SLIDE must be at least 1 and at most ROWS; got ROWS 5 SLIDE 0.",
        ),
    ],
)
def test_windows_that_cannot_be(make: object, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value) == message


@dataclass(frozen=True)
class Pause(Window):
    """Windows that end where a group pauses: of the query alone, nothing runs them."""

    word: ClassVar = "PAUSE"
    argument: ClassVar = "pause"
    parts: ClassVar = (SyntaxPart("of_us", DurationValue(), "OF", required=True),)
    refusals: ClassVar = {Use.BOUND: "has no length to sample"}
    of_us: int

    @classmethod
    def of(cls, size: Any, slide: Any = None) -> Pause:
        return cls(duration_us(size))

    @classmethod
    def written(cls, of_us: int) -> Pause:
        return cls(of_us)

    @classmethod
    def side(cls, of_us: int) -> Distance:
        return Distance(of_us)

    @property
    def reach_us(self) -> int:
        return 0

    def __str__(self) -> str:
        return f"PAUSE OF {duration_text(self.of_us)}"


def test_a_window_of_the_table_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WINDOWS, "PAUSE", Pause)
    counted = "SELECT COUNT(*) AS n FROM rides"
    node = sql(f"{counted} [PAUSE OF 5 MINUTES] WITH SHED 50 PERCENT")
    assert aggregate_of(node).window == Pause(300_000_000)
    assert "[PAUSE OF 5 minutes]" in node.summary
    assert rides.window(pause="5 minutes").over == Pause(300_000_000)
    side = "[PAUSE OF 5 MINUTES]"
    assert (
        "r [RANGE 5 minutes]"
        in sql(f"SELECT r.fare FROM rides r {side} JOIN calls c {side} USING (route)")
        .children[0]
        .summary
    )
    for text, message in {
        "[PAUSE 5 MINUTES]": "expected OF after PAUSE; got 5",
        "[PAUSE OF 5 MINUTES SLIDE 1 MINUTE]": "expected ]; got SLIDE",
        "[HOUR 5]": "expected RANGE, ROWS, SESSION or PAUSE after [; got HOUR",
        "[PAUSE OF 5 MINUTES] WITH ERROR 9 PERCENT": "has no length to sample; got [PAUSE OF 5 min",
    }.items():
        with pytest.raises(QueryError) as caught:
            sql(f"{counted} {text}")
        assert message in str(caught.value)
    with pytest.raises(
        OptionError, match=r"has no argument of this name; got paus\. Did you mean p"
    ):
        rides.window(paus="5 minutes")


def test_nobody_asks_which_kind_of_window_it_is() -> None:
    kinds, asked, read = (
        {"TimeWindow", "TupleWindow", "SessionWindow", "CalendarWindow", "Distance"},
        [],
        0,
    )
    for folder in ("query", "sql", "session"):
        for path in sorted((ROOT / "src/tidegate" / folder).rglob("*.py")):
            read += 1
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
                if call and kinds & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
                    asked.append(f"{path.name}:{node.lineno}")
    assert read > 80
    assert asked == []
