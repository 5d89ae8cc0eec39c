"""The tuples told of a row make that row again, and for aggregates they are all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.oracle.why import tuples_of_group
from tidegate.session.why.span import TupleSpan

SECOND = 1_000_000


def started(query: str, *tables: pa.Table) -> tuple[tg.RunningQuery, pa.Table]:
    """A query over streams s and t, run to its end."""
    session, sink = tg.Session(master="none"), tg.sink.memory()
    streams = {}
    for name, table in zip("st", tables, strict=False):
        source = tg.MemorySource(table, time="ts", id=name)
        source.end()
        streams[name] = session.stream(source, time="ts", name=name)
    running = session.sql(query, **streams).start(sink=sink)
    running.wait()
    return running, sink.table()


def rows(*cells: tuple[int, Any, int]) -> pa.Table:
    """Tuples (seconds, k, x)."""
    times = pa.array([int(ts * SECOND) for ts, _, _ in cells], pa.int64())
    return pa.table(
        {
            "ts": times.cast(pa.timestamp("us", "UTC")),
            "k": pa.array([k for _, k, _ in cells], pa.string()),
            "x": pa.array([x for _, _, x in cells], pa.int64()),
        }
    )


def positions(facts: Mapping[str, Any], stream: str = "s") -> list[int]:
    return [each["position"] for each in facts["tuples"] if each["stream"] == stream]


TUPLE = st.tuples(st.integers(0, 20), st.sampled_from(["a", "b", None]), st.integers(-2, 5))


@settings(max_examples=6, deadline=None)
@given(st.lists(TUPLE, min_size=1, max_size=25), st.data())
def test_an_aggregate_is_made_of_the_tuples_of_its_group(
    cells: list[tuple[int, Any, int]], data: st.DataObject
) -> None:
    table = rows(*sorted(cells, key=lambda cell: cell[0]))
    running, result = started(
        "SELECT k, SUM(x) AS y, MAX(x) AS z FROM s [RANGE 6 SECONDS SLIDE 3 SECONDS] "
        "WHERE x >= 0 GROUP BY k",
        table,
    )
    if not result.num_rows:
        return
    number = data.draw(st.integers(0, result.num_rows - 1))
    facts = running.why(number)
    row = result.slice(number, 1)
    ends = [row.column(n).cast(pa.int64())[0].as_py() for n in ("window_start", "window_end")]
    plain = table.set_column(0, "ts", table.column("ts").cast(pa.int64())).to_pylist()
    assert positions(facts) == tuples_of_group(
        plain,
        window_us=(ends[0], ends[1]),
        keys={"k": row.column("k")[0].as_py()},
        passes=lambda each: each["x"] >= 0,
    )
    assert facts["again"] == {
        "equal": True,
        "tuples": len(facts["tuples"]),
        "rows": facts["again"]["rows"],
    }


LEFT = rows((0, "a", 1), (1, "b", 2), (2, "a", 3), (9, "c", 4), (10, "a", 0), (11, "a", 6))
RIGHT = rows((1, "a", 10), (2, "a", 20), (3, "b", 30), (30, "a", 40))
RANGES = "FROM s [RANGE 5 SECONDS] {} JOIN t [RANGE 5 SECONDS] ON s.k = t.k"
KINDS = {
    "filter": ("SELECT k, x FROM s WHERE x > 2", 1, [3], []),
    "join": (f"SELECT s.x, t.x AS y {RANGES.format('')}", 2, [0], [1]),
    "outer pair": (f"SELECT s.x, t.x AS y {RANGES.format('LEFT')}", 0, [0], [0]),
    "outer alone": (f"SELECT s.x, t.x AS y {RANGES.format('LEFT')}", 5, [3], []),
    "semi": (f"SELECT s.x {RANGES.format('LEFT SEMI')}", 0, [0], [0]),
    "semi of a group": (
        f"SELECT k, COUNT(*) AS n FROM (SELECT s.k {RANGES.format('LEFT SEMI')}) "
        "[RANGE 20 SECONDS] GROUP BY k",
        0,
        [0, 2],
        [0],
    ),
    "semi with itself": (
        "SELECT s.x FROM s [RANGE 5 SECONDS] SEMI JOIN s AS o [RANGE 5 SECONDS] "
        "ON s.k = o.k AND s.x < o.x",
        1,
        [4, 5],
        [],
    ),
    "anti": (f"SELECT s.x {RANGES.format('LEFT ANTI')}", 0, [3], []),
    "as-of": (
        "SELECT s.x, t.x AS y FROM s ASOF JOIN t MATCH_CONDITION (s.ts >= t.ts) ON s.k = t.k",
        0,
        [2],
        [1],
    ),
    "tuples": ("SELECT COUNT(*) AS n, k FROM s [ROWS 2 SLIDE 1] GROUP BY k", 1, [2, 4], []),
    "sessions": (
        "SELECT COUNT(*) AS n, k FROM s [SESSION GAP 3 SECONDS] GROUP BY k",
        3,
        [4, 5],
        [],
    ),
    "rows": (
        "SELECT SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) AS y FROM s",
        5,
        [4, 5],
        [],
    ),
    "number": (
        "SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM s",
        4,
        [0, 2, 4],
        [],
    ),
    "lag": ("SELECT LAG(x, 2) OVER (PARTITION BY k ORDER BY ts) AS y FROM s", 4, [0, 2, 4], []),
    "lead": ("SELECT x, LEAD(x) OVER (PARTITION BY k ORDER BY ts) AS y FROM s", 0, [0, 2], []),
    "first": ("SELECT DISTINCT ON (k) k, x FROM s KEEP FIRST WITHIN 5 SECONDS", 3, [4], []),
    "union": ("SELECT x FROM s UNION ALL SELECT x FROM t", 1, [1], []),
    "nested": (
        "SELECT SUM(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY k) "
        "[RANGE 6 SECONDS] WHERE n > 1",
        0,
        [0, 2],
        [],
    ),
    "sets": ("SELECT k, SUM(x) AS y FROM s [RANGE 20 SECONDS] GROUP BY ROLLUP (k)", 3, [3], []),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tuples_of_a_row(kind: str) -> None:
    query, number, of_s, of_t = KINDS[kind]
    running, result = started(query, LEFT, RIGHT)
    facts = running.why(number)
    assert facts["row"] == number, result
    assert (positions(facts), positions(facts, "t")) == (of_s, of_t), result.to_pylist()
    assert facts["again"]["tuples"] == len(facts["tuples"])
    assert not facts["notes"]


def test_a_limit_is_left_out_of_the_run_again() -> None:
    query = "SELECT k, SUM(x) AS y FROM s [RANGE 20 SECONDS] GROUP BY k ORDER BY y DESC LIMIT 2"
    facts = started(query, LEFT)[0].why("k = 'c'")
    assert (facts["row"], positions(facts)) == (1, [3])
    assert "LIMIT" in facts["notes"][0]


def test_a_row_is_found_by_a_condition() -> None:
    running, _ = started("SELECT k, x FROM s", LEFT)
    assert running.why("x > 2 AND k = 'a'")["row"] == 2
    with pytest.raises(tg.TidegateError, match="must be true of a row; got none of 6 rows"):
        running.why("x > 99")
    with pytest.raises(tg.TidegateError, match="must be the number of a row; got 6, of 6 rows"):
        running.why(6)
    with pytest.raises(tg.TidegateError, match=r"an output of the query; got nope\. Leave it out"):
        running.why(0, output="nope")


class EverySecond(tg.Process):
    """Gives the sum of two tuples of a key."""

    output: ClassVar = {"k": "string", "y": "bigint"}

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    def on_tuple(self, tuple: Any, keys: Any) -> Iterator[dict[str, Any]]:
        for key in keys:
            if key in self.held:
                yield {"k": key, "y": self.held.pop(key) + tuple["x"]}
            else:
                self.held[key] = tuple["x"]


def test_what_a_process_needs_is_found_by_trial() -> None:
    session, sink = tg.Session(master="none"), tg.sink.memory()
    source = tg.MemorySource(LEFT, time="ts", id="s")
    source.end()
    stream = session.stream(source, time="ts", name="s").process(EverySecond, keys="k")
    running = stream.start(sink=sink)
    running.wait()
    facts = running.why(0)
    assert positions(facts) == [0, 2]
    assert facts["notes"][0].startswith("found by trial")


MANY = rows(*((at / 10, "ab"[at % 2], at % 7) for at in range(100)))  # type: ignore[misc]


def test_of_a_row_that_shed_the_tuples_that_were_used_are_told() -> None:
    query = "SELECT k, COUNT(*) AS n FROM s [RANGE 20 SECONDS] GROUP BY k WITH SHED 80 PERCENT"
    uniform = started(f"{query} BY UNIFORM", MANY)[0].why(0)
    assert 0 < len(uniform["tuples"]) < 50
    assert uniform["again"]["tuples"] == len(uniform["tuples"])
    (note,) = uniform["notes"]
    assert note.startswith("shed: which tuples were used follows from their positions")
    concept = started(f"{query} BY CONCEPT", MANY)[0].why(0)
    assert 0 < len(concept["tuples"]) < 50
    assert concept["again"]["tuples"] == 100
    (note,) = concept["notes"]
    assert note.startswith("shed: these")


def test_an_answer_within_an_error_is_made_of_its_group() -> None:
    query = "SELECT k, MEDIAN(x) AS m FROM s [RANGE 20 SECONDS] GROUP BY k WITH ERROR 20 PERCENT"
    facts = started(f"{query} CONFIDENCE 80 PERCENT", MANY)[0].why(1)
    assert positions(facts) == list(range(1, 100, 2))


def zones(*cells: tuple[str, str]) -> pa.Table:
    """Rows (k, zone) of a table."""
    return pa.table({"k": [k for k, _ in cells], "zone": [zone for _, zone in cells]})


TABLE = zones(("b", "south"), ("a", "north"), ("a", "east"), ("z", "none"))
JOINED = {
    "each": ("SELECT s.x, t.zone FROM s JOIN t ON s.k = t.k", 1, [0], [2]),
    "outer": ("SELECT s.x, t.zone FROM s LEFT JOIN t ON s.k = t.k", 5, [3], []),
    "filter": ("SELECT s.x FROM s LEFT SEMI JOIN t ON s.k = t.k", 1, [1], []),
    "group": (
        "SELECT t.zone, SUM(s.x) AS y FROM s [RANGE 20 SECONDS] JOIN t ON s.k = t.k "
        "GROUP BY t.zone",
        0,
        [0, 2, 4, 5],
        [2],
    ),
    "twice": (
        "SELECT p.zone, q.zone AS other FROM s JOIN t AS p ON s.k = p.k "
        "JOIN t AS q ON s.k = q.k AND p.zone < q.zone",
        0,
        [0],
        [1, 2],
    ),
}


@pytest.mark.parametrize("kind", JOINED)
def test_the_rows_of_tables_are_listed(kind: str) -> None:
    query, number, of_s, of_t = JOINED[kind]
    session, sink = tg.Session(master="none"), tg.sink.memory()
    source = tg.MemorySource(LEFT, time="ts", id="s")
    source.end()
    stream, table = session.stream(source, time="ts", name="s"), session.table(TABLE, name="t")
    running = session.sql(query, s=stream, t=table).start(sink=sink)
    running.wait()
    facts = running.why(number)
    assert positions(facts) == of_s, sink.table().to_pylist()
    assert [each["row"] for each in facts["table_rows"]] == of_t
    for each in facts["table_rows"]:
        assert each["values"] == TABLE.slice(each["row"], 1).to_pylist()[0]
    assert facts["again"]["tuples"] == len(of_s)


@pytest.mark.parametrize("row", [-1, True, 1.5])
def test_what_is_no_row_is_refused(row: Any) -> None:
    running, _ = started("SELECT k, x FROM s", LEFT)
    with pytest.raises(tg.TidegateError, match="takes the number of a row, from 0 on"):
        running.why(row)


@pytest.mark.parametrize(
    ("query", "number", "of_s", "span"),
    [
        ("SELECT k, MIN(ts) AS ts FROM s [RANGE 6 SECONDS] GROUP BY k", 0, [0, 2], (0, 12)),
        (
            "SELECT k, MIN(ts) AS ts, MAX(x) AS y FROM s [RANGE 6 SECONDS] GROUP BY k",
            1,
            [1],
            (0, 12),
        ),
        ("SELECT x, k AS window_end FROM s", 3, [3], (9, 9)),
    ],
)
def test_columns_called_as_ours_are_no_times(
    query: str, number: int, of_s: list[int], span: tuple[int, int]
) -> None:
    """Tuples are looked for around the time of the row, which no column of the query hides."""
    running, result = started(query, LEFT)
    assert positions(running.why(number)) == of_s
    node = running._outputs[0].node
    expected = TupleSpan(*(seconds * SECOND for seconds in span))
    assert TupleSpan.of_row(node, result.slice(number, 1)) == expected
