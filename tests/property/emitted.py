"""Queries with EMIT EVERY, each with its plain meaning."""

from __future__ import annotations

from tests.oracle.emit import Emitted
from tests.oracle.query import Order, Windowed
from tests.property.queries import CALLS, EXACT, FLOATS, Query, select, spec_of

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
