"""Queries with EMIT EVERY, each with its plain meaning."""

from __future__ import annotations

from tests.oracle.emit import Emitted, EmittedSessions
from tests.oracle.query import Order, Windowed
from tests.property.queries import (
    CALLS,
    EXACT,
    FLOATS,
    Query,
    calendar_of,
    select,
    session_of,
    spec_of,
)
from tidegate.calendar.local_time import LocalPeriods

COUNTED = ["COUNT(*)", "SUM(i)"]

EMITTED = {
    "every function, sliding": Query(
        select(
            ["k"],
            list(CALLS),
            "RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS",
            "{group} EMIT EVERY 2 MICROSECONDS",
        ),
        Emitted(Windowed(spec_of(["k"], list(CALLS), 12, 4)), 2),
    ),
    "global, marks that do not divide the window": Query(
        select(
            [],
            EXACT,
            "RANGE 9 MICROSECONDS SLIDE 3 MICROSECONDS",
            "EMIT EVERY '5 microseconds'",
        ),
        Emitted(Windowed(spec_of([], EXACT, 9, 3)), 5),
    ),
    "tumbling, at every instant": Query(
        select(["f"], EXACT, "RANGE 10 MICROSECONDS", "{group} EMIT EVERY 1 MICROSECOND"),
        Emitted(Windowed(spec_of(["f"], EXACT, 10, 10)), 1),
    ),
    "many batches between marks": Query(
        select(
            ["k"],
            FLOATS,
            "RANGE 3 MILLISECONDS SLIDE 1500 MICROSECONDS",
            "{group} EMIT EVERY 200 MICROSECONDS",
        ),
        Emitted(Windowed(spec_of(["k"], FLOATS, 3000, 1500)), 200),
    ),
    "an offset": Query(
        select(
            ["k", "g"],
            FLOATS,
            "RANGE 10 MICROSECONDS SLIDE 4 MICROSECONDS OFFSET 7 MICROSECONDS",
            "{group} EMIT EVERY 4 MICROSECONDS",
        ),
        Emitted(Windowed(spec_of(["k", "g"], FLOATS, 10, 4, 3)), 4),
    ),
    "much overlap": Query(
        select(
            ["g"],
            EXACT,
            "RANGE 30 MICROSECONDS SLIDE 1 MICROSECOND",
            "WHERE i < 90 {group} EMIT EVERY 3 MICROSECONDS",
        ),
        Emitted(
            Windowed(
                spec_of(["g"], EXACT, 30, 1), where=lambda r: r["i"] is not None and r["i"] < 90
            ),
            3,
        ),
    ),
    "having": Query(
        select(
            ["k"],
            COUNTED,
            "RANGE 8 MICROSECONDS SLIDE 6 MICROSECONDS",
            "{group} HAVING COUNT(*) >= 2 EMIT EVERY 3 MICROSECONDS",
        ),
        Emitted(Windowed(spec_of(["k"], COUNTED, 8, 6), having=lambda r: r["a0"] >= 2), 3),
    ),
    "the first two of each window and mark": Query(
        select(
            ["g"],
            COUNTED,
            "RANGE 15 MICROSECONDS SLIDE 5 MICROSECONDS",
            "{group} ORDER BY a0 DESC LIMIT 2 EMIT EVERY 5 MICROSECONDS",
        ),
        Emitted(
            Windowed(
                spec_of(["g"], COUNTED, 15, 5),
                order=(Order(lambda r: r["a0"], True, False),),
                limit=2,
            ),
            5,
        ),
    ),
    "the first one of each window, mark and key": Query(
        select(
            ["g", "b"],
            COUNTED,
            "RANGE 15 MICROSECONDS SLIDE 5 MICROSECONDS",
            "{group} ORDER BY a1 DESC LIMIT 1 BY b EMIT EVERY 3 MICROSECONDS",
        ),
        Emitted(
            Windowed(
                spec_of(["g", "b"], COUNTED, 15, 5),
                order=(Order(lambda r: r["a1"], True, False),),
                limit=1,
                per=lambda r: r["b"],
            ),
            3,
        ),
    ),
}

EMITTED_SESSIONS = {
    "every function, sessions": Query(
        select(
            ["k"], list(CALLS), "SESSION GAP 5 MICROSECONDS", "{group} EMIT EVERY 3 MICROSECONDS"
        ),
        EmittedSessions(Windowed(session_of(["k"], list(CALLS), 5)), 3),
    ),
    "sessions with a maximum": Query(
        select(
            ["k"],
            EXACT,
            "SESSION GAP 6 MICROSECONDS MAX 9 MICROSECONDS",
            "{group} EMIT EVERY 2 MICROSECONDS",
        ),
        EmittedSessions(Windowed(session_of(["k"], EXACT, 6, 9)), 2),
    ),
    "marks further apart than the gap": Query(
        select([], EXACT, "SESSION GAP 2 MICROSECONDS", "EMIT EVERY 7 MICROSECONDS"),
        EmittedSessions(Windowed(session_of([], EXACT, 2)), 7),
    ),
    "sessions of many batches and marks": Query(
        select(["k"], FLOATS, "SESSION GAP 1 MILLISECOND", "{group} EMIT EVERY 40 MICROSECONDS"),
        EmittedSessions(Windowed(session_of(["k"], FLOATS, 1000)), 40),
    ),
    "sessions, having": Query(
        select(
            ["g"],
            COUNTED,
            "SESSION GAP 200 MICROSECONDS",
            "{group} HAVING COUNT(*) >= 2 EMIT EVERY 11 MICROSECONDS",
        ),
        EmittedSessions(
            Windowed(session_of(["g"], COUNTED, 200), having=lambda r: r["a0"] >= 2), 11
        ),
    ),
}

HOURS_US = 3_600_000_000

EMITTED_CALENDAR = {
    "days of New York, every hour": Query(
        select(
            ["k"], EXACT, "RANGE 1 DAY TIME ZONE 'America/New_York'", "{group} EMIT EVERY 1 HOUR"
        ),
        Emitted(
            Windowed(calendar_of(["k"], EXACT, (1, 1), LocalPeriods("day", "America/New_York"))),
            HOURS_US,
        ),
    ),
    "three days of Berlin, marks that are not of midnight": Query(
        select(
            ["g"],
            FLOATS,
            "RANGE 3 DAYS SLIDE 1 DAY TIME ZONE 'Europe/Berlin'",
            "{group} EMIT EVERY 7 HOURS",
        ),
        Emitted(
            Windowed(calendar_of(["g"], FLOATS, (3, 1), LocalPeriods("day", "Europe/Berlin"))),
            7 * HOURS_US,
        ),
    ),
    "six days of Lord Howe, every fourth, marks further apart than a day": Query(
        select(
            [],
            EXACT,
            "RANGE 6 DAYS SLIDE 4 DAYS OFFSET 5 HOURS TIME ZONE 'Australia/Lord_Howe'",
            "EMIT EVERY 30 HOURS",
        ),
        Emitted(
            Windowed(
                calendar_of(
                    [], EXACT, (6, 4), LocalPeriods("day", "Australia/Lord_Howe", 5 * HOURS_US)
                )
            ),
            30 * HOURS_US,
        ),
    ),
    "months of Tokyo, the first two of each mark": Query(
        select(
            ["g"],
            EXACT,
            "RANGE 1 MONTH TIME ZONE 'Asia/Tokyo'",
            "{group} ORDER BY a0 LIMIT 2 EMIT EVERY 2 DAYS",
        ),
        Emitted(
            Windowed(
                calendar_of(["g"], EXACT, (1, 1), LocalPeriods("month", "Asia/Tokyo")),
                order=(Order(lambda r: r["a0"]),),
                limit=2,
            ),
            48 * HOURS_US,
        ),
    ),
}
