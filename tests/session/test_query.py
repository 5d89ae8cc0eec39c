"""A running query: what can be asked of it and told to it while its thread goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tidegate as tg
from tests.driver.scene import SCHEMA, csv, memory, rows_of, table
from tidegate.errors import GateError, OptionError, RunError


@pytest.fixture
def session() -> tg.Session:
    return tg.Session(master="none")


def until(condition: Callable[[], bool], query: tg.RunningQuery) -> None:
    """Wait for the thread to get there; a failure of the query is raised."""
    for _ in range(12_000):
        if condition():
            return
        query.wait(0.01)
    raise AssertionError(f"never came: {query.status()}")


def test_status_switches_and_stop(session: tg.Session, tmp_path: Path) -> None:
    source, sink = memory((1, "a", 1), (12, "a", 2)), tg.sink.memory()
    counted = session.stream(source, time="ts", name="s").window(10).agg(n=tg.count())
    query = counted.start(sink=sink, checkpoint=str(tmp_path), instances=1, buckets=8)
    until(lambda: query.status()["batch"] == 0, query)
    status = query.status()
    assert (status["running"], status["failure"], status["instances"]) == (True, None, 1)
    assert status["frontier_us"] == 12_000_000
    assert [s["id"] for s in status["sources"]] == ["memory"]
    query.scale(4)
    source.append(table((25, "a", 3)))
    until(lambda: query.status()["batch"] == 1, query)
    assert (query.status()["instances"], query.status()["epoch"]) == (4, 1)
    assert query.status()["subqueries"] == {"aggregate": {"epoch": 1, "instances": 4}}
    until(lambda: len(query.status()["load"]["aggregate"]["utilisation"]) == 4, query)
    with pytest.raises(OptionError, match="8 buckets"):
        query.scale(9)
    query.move("0-1", 3, why="a trial")
    query.rebalance()
    query.switch([0, 1] * 4, "aggregate")
    [pending] = query.status()["pending"]
    assert (pending["subquery"], pending["request"]) == ("aggregate", "switch to 2 instances")
    with pytest.raises(OptionError, match="scale: must be a whole number; got 'two'"):
        query.scale("two")  # type: ignore[arg-type]
    source.append(table((26, "a", 3)))
    until(lambda: len(query.status()["epochs"]) == 3, query)
    status = query.status()
    assert (status["batch"], status["instances"], status["pending"]) == (2, 2, [])
    assert [e.get("by") for e in status["epochs"]] == [None, "user", "user"]
    summary = query.stop()
    with pytest.raises(OptionError, match="needs a query that runs; got one that has ended"):
        query.scale(2)
    assert not summary.finished
    assert not query.status()["running"]
    assert rows_of(sink) == [(0.0, 10.0, 1), (10.0, 20.0, 1)]


def test_a_failure_is_raised_by_wait_and_by_stop(session: tg.Session) -> None:
    def refuse(rows: object, batch: int) -> None:
        raise OSError("no route")

    stream = session.stream(memory((1, "a", 1), end=True), time="ts")
    query = stream.start(sink=tg.sink.call(refuse))
    with pytest.raises(RunError, match="no route"):
        query.wait()
    with pytest.raises(RunError, match="no route"):
        query.stop()


def test_sources_join_and_leave(session: tg.Session, tmp_path: Path) -> None:
    first, second = memory((1, "a", 1), (12, "a", 2), id="one"), memory(id="two")
    sink = tg.sink.memory()
    stream = session.stream(first, time="ts", name="s")
    query = stream.start(sink=sink, follow=True)
    until(lambda: query.status()["frontier_us"] == 12_000_000, query)
    query.announce("s", second, promise=datetime(1970, 1, 1, 0, 0, 20, tzinfo=UTC))
    query.announce("s", csv(tmp_path / "b.csv", (21, "b", 1)), promise="1970-01-01T00:00:20Z")
    first.append(table((40, "a", 3)))
    until(lambda: query.status()["frontier_us"] == 20_000_000, query)
    query.remove("two")
    until(lambda: query.status()["frontier_us"] == 21_000_000, query)
    query.remove(str(tmp_path / "b.csv"))
    until(lambda: query.status()["frontier_us"] == 40_000_000, query)
    query.stop()
    assert rows_of(sink) == [(1.0, "a", 1), (12.0, "a", 2), (21.0, "b", 1)]


def test_a_source_joins_a_stream_at_all_its_places(session: tg.Session) -> None:
    first = memory((1, "a", 1))
    sink = tg.sink.memory()
    stream = session.stream(first, time="ts", name="s")
    query = stream.union(stream).start(sink=sink)
    query.announce("s", memory((2, "b", 2), id="two", end=True), promise=1_500_000)
    first.end()
    assert query.wait().finished
    assert rows_of(sink) == [(1.0, "a", 1)] * 2 + [(2.0, "b", 2)] * 2


def test_a_mistake_in_an_announcement_does_not_end_the_query(
    session: tg.Session, tmp_path: Path
) -> None:
    source = memory((1, "a", 1), (12, "a", 2))
    query = session.stream(source, time="ts", name="s").start(sink=tg.sink.memory())
    until(lambda: query.status()["frontier_us"] == 12_000_000, query)
    with pytest.raises(OptionError, match=r"needs a stream of the query; got t\. There are: s"):
        query.announce("t", memory(id="two"))
    with pytest.raises(GateError, match="must promise event times from 12000000 us on"):
        query.announce("s", memory(id="two"), promise=5)
    with pytest.raises(OptionError, match=r"needs a time, or microseconds.*'soon'"):
        query.announce("s", memory(id="two"), promise="soon")
    other = SCHEMA.append(SCHEMA.field("v").with_name("w"))
    more = tg.MemorySource(time="ts", schema=other, id="two")
    with pytest.raises(OptionError, match=r"must have its columns \(ts timestamp, k string, v big"):
        query.announce("s", more)
    with pytest.raises(OptionError, match="a source must be a path, a URI or a memory source"):
        query.announce("s", 42)  # type: ignore[arg-type]
    with pytest.raises(GateError, match="source nobody: must be known"):
        query.remove("nobody")
    source.append(table((30, "a", 3)))
    source.end()
    assert query.wait().finished
    with pytest.raises(OptionError, match="needs a query that runs"):
        query.announce("s", memory(id="two"))
