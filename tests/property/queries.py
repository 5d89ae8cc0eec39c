"""The queries whose output must not depend on how they are run, each with its plain meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tests.oracle.asof import Nearest
from tests.oracle.join import Joined
from tests.oracle.query import Order, OverTuples, Stateless, Windowed
from tidegate.calendar.local_time import LocalPeriods
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.calendar_window import CalendarPanes
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.session.spec import SessionSpec
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.schema import TIME
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

SCHEMA = pa.schema(
    [
        ("ts", TIME),
        ("k", pa.string()),
        ("g", pa.int64()),
        ("f", pa.float64()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(12, 3)),
        ("day", pa.date32()),
    ]
)


@dataclass(frozen=True)
class Query:
    """A query over the streams `names`, in SQL and plainly."""

    sql: str
    plain: Stateless | Windowed | Joined | Nearest | OverTuples
    names: tuple[str, ...] = ("s",)

    def plan(
        self, sources: Sequence[int], disorder_us: int, choices: Choices | None = None
    ) -> Plan:
        """Its plan over streams of so many sources each."""
        streams = {
            name: StreamDef(name, uris_of(name, count), "ts", disorder_us, None, SCHEMA)
            for name, count in zip(self.names, sources, strict=True)
        }
        return lower(single(bind(read_script(self.sql), streams)), choices=choices)


def uris_of(stream: str, sources: int) -> tuple[str, ...]:
    return tuple(f"memory:{stream}/{place}" for place in range(sources))


Typed = tuple[tuple[str, pa.DataType], ...]
Call = tuple[str | float, ...]
"""The kind of a function, its columns and its parameters."""

CALLS: dict[str, Call] = {
    "COUNT(*)": ("count",),
    "COUNT(x)": ("count", "x"),
    "SUM(i)": ("sum", "i"),
    "SUM(x)": ("sum", "x"),
    "AVG(i)": ("mean", "i"),
    "AVG(x)": ("mean", "x"),
    "MIN(x)": ("min", "x"),
    "MAX(k)": ("max", "k"),
    "VAR(x)": ("var", "x"),
    "STDDEV(i)": ("stddev", "i"),
    "MEDIAN(x)": ("quantile", "x", 0.5),
    "QUANTILE(i, 0.9)": ("quantile", "i", 0.9),
    "COUNT(DISTINCT f)": ("distinct", "f"),
    "FIRST(i)": ("first", "i"),
    "LAST(k)": ("last", "k"),
    "MIN_BY(k, i)": ("min_by", "k", "i"),
    "MAX_BY(i, x)": ("max_by", "i", "x"),
    "CORR(i, g)": ("corr", "i", "g"),
    "COVAR_SAMP(x, i)": ("covar_samp", "x", "i"),
    "COVAR_POP(g, i)": ("covar_pop", "g", "i"),
    "BOOL_AND(b)": ("bool_and", "b"),
    "ANY(b)": ("bool_or", "b"),
    "COUNT_IF(b)": ("count_if", "b"),
    "APPROX_COUNT_DISTINCT(f)": ("approx_count_distinct", "f"),
}
OTHER_TYPES: dict[str, Call] = {
    "SUM(d)": ("sum", "d"),
    "AVG(d)": ("mean", "d"),
    "MAX(day)": ("max", "day"),
    "MIN(b)": ("min", "b"),
    "COUNT(DISTINCT d)": ("distinct", "d"),
    "LAST(day)": ("last", "day"),
    "MAX_BY(d, day)": ("max_by", "d", "day"),
    "APPROX_COUNT_DISTINCT(d, 0.01)": ("approx_count_distinct", "d", 0.01),
}
FLOATS = ("COUNT(*)", "SUM(x)", "AVG(x)", "VAR(x)", "STDDEV(i)")
EXACT = ("COUNT(*)", "SUM(i)", "FIRST(i)", "LAST(k)", "MEDIAN(x)")


def spec_of(
    keys: Sequence[str], calls: Sequence[str], range_us: int, slide_us: int, offset_us: int = 0
) -> AggregateSpec:
    return AggregateSpec(PaneWindow(range_us, slide_us, offset_us), *columns_of(keys, calls))


def calendar_of(
    keys: Sequence[str], calls: Sequence[str], window: tuple[int, int], periods: LocalPeriods
) -> AggregateSpec:
    return AggregateSpec(CalendarPanes(*window, periods, ""), *columns_of(keys, calls))


def session_of(
    keys: Sequence[str], calls: Sequence[str], gap_us: int, max_us: int | None = None
) -> SessionSpec:
    return SessionSpec(gap_us, max_us, *columns_of(keys, calls))


def columns_of(keys: Sequence[str], calls: Sequence[str]) -> tuple[Typed, tuple[Function, ...]]:
    """The types of keys, and the functions of calls."""
    functions = []
    for place, call in enumerate(calls):
        kind, *arguments = (CALLS | OTHER_TYPES)[call]
        columns = tuple(a for a in arguments if isinstance(a, str))
        types = tuple(SCHEMA.field(column).type for column in columns)
        parameters = tuple(a for a in arguments if isinstance(a, float))
        functions.append(Function(f"a{place}", kind, columns, types, parameters))
    return tuple((key, SCHEMA.field(key).type) for key in keys), tuple(functions)


def select(
    keys: Sequence[str], calls: Sequence[str], window: str, rest: str = "", of: str = "s"
) -> str:
    """A select list of the keys and of the calls as a0, a1, ...; `rest` follows the window."""
    columns = ", ".join([*keys, *(f"{call} AS a{place}" for place, call in enumerate(calls))])
    group = "" if not keys else f"GROUP BY {', '.join(keys)}"
    return f"SELECT {columns} FROM {of} [{window}] {rest.format(group=group) if rest else group}"


WINDOWED = {
    "every function, sliding": Query(
        select(["k"], list(CALLS), "RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS"),
        Windowed(spec_of(["k"], list(CALLS), 12, 4)),
    ),
    "every function, global": Query(
        select([], list(CALLS), "RANGE 9 MICROSECONDS SLIDE 3 MICROSECONDS"),
        Windowed(spec_of([], list(CALLS), 9, 3)),
    ),
    "two keys, a slide that does not divide": Query(
        select(["k", "g"], FLOATS, "RANGE 10 MICROSECONDS SLIDE 4 MICROSECONDS"),
        Windowed(spec_of(["k", "g"], FLOATS, 10, 4)),
    ),
    "panes that many batches add to": Query(
        select(["k"], FLOATS, "RANGE 3 MILLISECONDS SLIDE 1500 MICROSECONDS"),
        Windowed(spec_of(["k"], FLOATS, 3000, 1500)),
    ),
    "keys and values of other types": Query(
        select(["day", "b", "d"], list(OTHER_TYPES), "RANGE 40 MICROSECONDS SLIDE 16 MICROSECONDS"),
        Windowed(spec_of(["day", "b", "d"], list(OTHER_TYPES), 40, 16)),
    ),
    "a float key, tumbling": Query(
        select(["f"], EXACT, "RANGE 5 MICROSECONDS"), Windowed(spec_of(["f"], EXACT, 5, 5))
    ),
    "where, much overlap": Query(
        select(
            ["g"],
            EXACT,
            "RANGE 20 MICROSECONDS SLIDE 1 MICROSECOND",
            "WHERE i IS NULL OR i < 90 {group}",
        ),
        Windowed(spec_of(["g"], EXACT, 20, 1), where=lambda r: r["i"] is None or r["i"] < 90),
    ),
    "sliding, with an offset": Query(
        select(["k"], FLOATS, "RANGE 10 MICROSECONDS SLIDE 4 MICROSECONDS OFFSET 7 MICROSECONDS"),
        Windowed(spec_of(["k"], FLOATS, 10, 4, 3)),
    ),
    "having": Query(
        select(
            ["k"],
            ["COUNT(*)", "SUM(i)", "MIN(x)"],
            "RANGE 8 MICROSECONDS SLIDE 6 MICROSECONDS",
            "{group} HAVING COUNT(*) >= 2 AND SUM(i) < 150",
        ),
        Windowed(
            spec_of(["k"], ["COUNT(*)", "SUM(i)", "MIN(x)"], 8, 6),
            having=lambda r: r["a0"] >= 2 and r["a1"] is not None and r["a1"] < 150,
        ),
    ),
    "the first two of each window": Query(
        select(
            ["g"],
            ["SUM(i)", "COUNT(*)", "AVG(x)"],
            "RANGE 15 MICROSECONDS SLIDE 5 MICROSECONDS",
            "{group} ORDER BY a0 DESC, a1 LIMIT 2",
        ),
        Windowed(
            spec_of(["g"], ["SUM(i)", "COUNT(*)", "AVG(x)"], 15, 5),
            order=(Order(lambda r: r["a0"], True, False), Order(lambda r: r["a1"])),
            limit=2,
        ),
    ),
    "the first two of each window and key": Query(
        select(
            ["g", "b"],
            ["SUM(i)", "COUNT(*)"],
            "RANGE 15 MICROSECONDS SLIDE 5 MICROSECONDS",
            "{group} ORDER BY a0 DESC LIMIT 2 BY b",
        ),
        Windowed(
            spec_of(["g", "b"], ["SUM(i)", "COUNT(*)"], 15, 5),
            order=(Order(lambda r: r["a0"], True, False),),
            limit=2,
            per=lambda r: r["b"],
        ),
    ),
    "a union of two streams": Query(
        select(
            ["k"],
            ["COUNT(*)", "SUM(x)", "FIRST(i)", "LAST(k)", "COUNT(DISTINCT f)"],
            "RANGE 10 MICROSECONDS SLIDE 5 MICROSECONDS",
            of="(SELECT k, f, i, x FROM s UNION ALL SELECT k, f, i, x FROM r)",
        ),
        Windowed(
            spec_of(
                ["k"], ["COUNT(*)", "SUM(x)", "FIRST(i)", "LAST(k)", "COUNT(DISTINCT f)"], 10, 5
            ),
        ),
        ("s", "r"),
    ),
}

SESSIONS = {
    "every function, sessions": Query(
        select(["k"], list(CALLS), "SESSION GAP 5 MICROSECONDS"),
        Windowed(session_of(["k"], list(CALLS), 5)),
    ),
    "every function, sessions with a maximum": Query(
        select(["k"], list(CALLS), "SESSION GAP 4 MICROSECONDS MAX 9 MICROSECONDS"),
        Windowed(session_of(["k"], list(CALLS), 4, 9)),
    ),
    "global sessions": Query(
        select([], EXACT, "SESSION GAP 2 MICROSECONDS"), Windowed(session_of([], EXACT, 2))
    ),
    "sessions of a maximum below the gap": Query(
        select(["k"], EXACT, "SESSION GAP 2 MILLISECONDS MAX 3 MICROSECONDS"),
        Windowed(session_of(["k"], EXACT, 2000, 3)),
    ),
    "sessions that many batches add to": Query(
        select(["k"], FLOATS, "SESSION GAP 1 MILLISECOND"),
        Windowed(session_of(["k"], FLOATS, 1000)),
    ),
    "sessions by keys of other types, having": Query(
        select(
            ["day", "b", "f"],
            ["COUNT(*)", "SUM(d)"],
            "SESSION GAP 20 MICROSECONDS",
            "{group} HAVING COUNT(*) >= 2",
        ),
        Windowed(
            session_of(["day", "b", "f"], ["COUNT(*)", "SUM(d)"], 20),
            having=lambda r: r["a0"] >= 2,
        ),
    ),
    "sessions of a union of two streams": Query(
        select(
            ["k"],
            ["COUNT(*)", "SUM(x)", "FIRST(i)", "LAST(k)"],
            "SESSION GAP 6 MICROSECONDS",
            of="(SELECT k, f, i, x FROM s UNION ALL SELECT k, f, i, x FROM r)",
        ),
        Windowed(session_of(["k"], ["COUNT(*)", "SUM(x)", "FIRST(i)", "LAST(k)"], 6)),
        ("s", "r"),
    ),
}

CALENDAR = {
    "days of New York": Query(
        select(["k"], EXACT, "RANGE 1 DAY TIME ZONE 'America/New_York'"),
        Windowed(calendar_of(["k"], EXACT, (1, 1), LocalPeriods("day", "America/New_York"))),
    ),
    "three days of Berlin, every day": Query(
        select(["g"], FLOATS, "RANGE 3 DAYS SLIDE 1 DAY TIME ZONE 'Europe/Berlin'"),
        Windowed(calendar_of(["g"], FLOATS, (3, 1), LocalPeriods("day", "Europe/Berlin"))),
    ),
    "six days of Lord Howe, every fourth, from five in the morning": Query(
        select(
            [], EXACT, "RANGE 6 DAYS SLIDE 4 DAYS OFFSET 5 HOURS TIME ZONE 'Australia/Lord_Howe'"
        ),
        Windowed(
            calendar_of(
                [], EXACT, (6, 4), LocalPeriods("day", "Australia/Lord_Howe", 18_000_000_000)
            )
        ),
    ),
    "weeks of Kolkata": Query(
        select(["k"], FLOATS, "RANGE 1 WEEK TIME ZONE 'Asia/Kolkata'"),
        Windowed(calendar_of(["k"], FLOATS, (1, 1), LocalPeriods("week", "Asia/Kolkata"))),
    ),
    "two weeks of New York, every week": Query(
        select(["k"], EXACT, "RANGE 2 WEEKS SLIDE 1 WEEK TIME ZONE 'America/New_York'"),
        Windowed(calendar_of(["k"], EXACT, (2, 1), LocalPeriods("week", "America/New_York"))),
    ),
    "months of Tokyo": Query(
        select(["g"], EXACT, "RANGE 1 MONTH TIME ZONE 'Asia/Tokyo'", "{group} ORDER BY a0 LIMIT 2"),
        Windowed(
            calendar_of(["g"], EXACT, (1, 1), LocalPeriods("month", "Asia/Tokyo")),
            order=(Order(lambda r: r["a0"]),),
            limit=2,
        ),
    ),
    "quarters of UTC": Query(
        select(["k"], FLOATS, "RANGE 3 MONTHS TIME ZONE 'UTC'"),
        Windowed(calendar_of(["k"], FLOATS, (3, 3), LocalPeriods("month", "UTC"))),
    ),
}

STATELESS = {
    "projection and where": Query(
        "SELECT k, i + 1 AS j, x / 2 AS h, COALESCE(k, '-') AS c FROM s WHERE i <> 3",
        Stateless(
            lambda r: (
                r["k"],
                r["i"] + 1,
                None if r["x"] is None else r["x"] / 2,
                "-" if r["k"] is None else r["k"],
            ),
            lambda r: r["i"] is not None and r["i"] != 3,
        ),
    ),
    "every tuple": Query(
        "SELECT g, f, i FROM s",
        Stateless(lambda r: (r["g"], r["f"], r["i"])),
    ),
    "a union of two streams": Query(
        "SELECT k, i AS n FROM s UNION ALL SELECT k, g FROM r",
        Stateless(lambda r: (r["k"], r["g" if r["stream"] else "i"])),
        ("s", "r"),
    ),
}
