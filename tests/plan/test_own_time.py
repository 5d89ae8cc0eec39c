"""Rows that were decided later than their own time: `ts` shows theirs, the event time is later."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tests.property.course import lines
from tests.property.steps import sql
from tidegate.errors import QueryError
from tidegate.operate.process.first_rows import FirstRows, one_key
from tidegate.query.name import column
from tidegate.query.node.limit import OWN_TIME, Limit
from tidegate.query.node.node import Project
from tidegate.schema import TIME

DELAY = 10
OUTPUT = (("v", pa.int64()), (OWN_TIME, TIME))


def streams() -> tuple[tg.Session, tg.Stream, tg.Stream]:
    """Tuples at 10, 20, ..., which say that they are of 0, 10, ...; and plain ones 5 later."""
    session = tg.Session(master="none")
    found = []
    for name, first in (("a", DELAY), ("b", DELAY + 5)):
        times = pa.array([first + DELAY * i for i in range(6)], pa.int64()).cast(TIME)
        table = pa.table({"ts": times, "v": pa.array(range(6), pa.int64())})
        source = tg.MemorySource(table, time="ts", id=name)
        source.end()
        found.append(session.stream(source, time="ts", name=name))
    return session, decided(found[0]), found[1]


def decided(stream: tg.Stream) -> tg.Stream:
    """All rows of a stream, as if each had been decided 10 microseconds after its own time."""
    own = sql(f"ts - INTERVAL '{DELAY}' MICROSECOND").node
    held = Project(stream.node, (("v", column("v")), (OWN_TIME, own)))
    rows = Limit(held, partial(FirstRows, 1000, OUTPUT), one_key, OUTPUT)
    return stream._with(Project(rows, (("v", column("v")),)))


def run(stream: tg.Stream, **options: Any) -> list[tuple[Any, ...]]:
    sink = tg.sink.memory()
    assert stream.start(sink=sink, batch_rows=3, **options).wait().finished
    return lines(sink.table())


OWN = [(DELAY * i, i) for i in range(6)]


@pytest.mark.parametrize("instances", [1, 3])
def test_ts_is_the_own_time_of_a_row_also_after_filters_and_a_limit(instances: int) -> None:
    _, a, _ = streams()
    assert run(a, instances=instances) == OWN
    assert run(a.where(sql("v > 1")).select("v"), instances=instances) == OWN[2:]
    assert run(a.limit(3), instances=instances) == OWN[:3]
    assert run(a.select(at=sql("ts"), v=sql("v")).where(sql("at > ts")), instances=instances) == []


def test_a_window_takes_rows_at_the_instant_of_their_decision() -> None:
    _, a, _ = streams()
    counted = a.window("20 us").agg(n=tg.count(), first=tg.min("ts"))
    assert run(counted) == [(0, 20, 1, 0), (20, 40, 2, 10), (40, 60, 2, 30), (60, 80, 1, 50)]


def test_a_union_is_in_the_order_of_decisions() -> None:
    _, a, b = streams()
    rows = [row for i in range(6) for row in ((DELAY * i, i), (DELAY * i + DELAY + 5, i))]
    assert run(a.union(b)) == rows
    assert run(a.union(b).limit(3), instances=2) == rows[:3]


def test_a_join_takes_rows_at_the_instant_of_their_decision() -> None:
    _, a, b = streams()
    pairs = a.join(b, on=sql("left.v = right.v"), within="5 us")
    found = pairs.select(mine=sql("left.ts"), theirs=sql("right.ts"))
    assert run(found) == [(15 + 10 * i, 10 * i, 15 + 10 * i) for i in range(6)]


def test_two_outputs_read_the_same_rows() -> None:
    session, a, b = streams()
    sinks = {"plain": tg.sink.memory(), "both": tg.sink.memory()}
    session.start({"plain": a, "both": a.union(b)}, sinks=sinks, batch_rows=2).wait()
    assert lines(sinks["plain"].table()) == OWN
    assert lines(sinks["both"].table())[:2] == [(0, 0), (15, 0)]


def test_order_by_the_own_time_is_refused() -> None:
    _, a, _ = streams()
    with pytest.raises(QueryError, match="in the order in which they are decided"):
        a.order_by("ts")
