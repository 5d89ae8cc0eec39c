"""Sessions as programs ask for them: processes, aggregates of one's own, several outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import table
from tests.operate.aggregate.mean import Mean
from tidegate.errors import OptionError, QueryError

ROWS = [(0, "a", 5), (1, "b", 1), (2, "a", 7), (2.5, "a", 6), (10, "b", 4), (11, "b", 9)]


class Largest(tg.Process):
    """The two largest values of a session, with how many tuples it has."""

    mergeable = True
    output = {"v": pa.int64(), "of": pa.int64()}  # noqa: RUF012

    def __init__(self) -> None:
        self.values: list[int] = []

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None:
        self.values.append(tuple.v)

    def merge(self, other: Largest) -> None:
        self.values += other.values

    def finish(self) -> Iterable[dict[str, int]]:
        for value in sorted(self.values, reverse=True)[:2]:
            yield {"v": value, "of": len(self.values)}

    def snapshot(self) -> dict[str, Any]:
        return {"values": self.values}

    def restore(self, state: dict[str, Any]) -> None:
        self.values = state["values"]


def stream(session: tg.Session) -> Any:
    source = tg.MemorySource(table(*ROWS), time="ts", id="s")
    source.end()
    return session.stream([source], time="ts", name="s")


def answer(asked: Any, **options: Any) -> list[tuple[Any, ...]]:
    sink = tg.sink.memory()
    asked.start(sink=sink, batch_rows=1, instances=2, **options).wait()
    rows = sink.table()
    seconds = [rows.column(i).cast(pa.int64()).to_pylist() for i in (0, 1)]
    times = [[us / 1e6 for us in column] for column in seconds]
    return list(zip(*times, *(c.to_pylist() for c in rows.columns[2:]), strict=True))


def test_a_mergeable_process_gives_rows_of_sessions() -> None:
    visits = stream(tg.Session(master="none")).window(session="3 seconds").group_by("k")
    assert answer(visits.process(Largest)) == [
        (1.0, 4.0, "b", 1, 1),
        (0.0, 5.5, "a", 7, 3),
        (0.0, 5.5, "a", 6, 3),
        (10.0, 14.0, "b", 9, 2),
        (10.0, 14.0, "b", 4, 2),
    ]


def test_an_aggregate_of_ones_own_over_sessions() -> None:
    visits = stream(tg.Session(master="none")).window(session="3 seconds", max="2 seconds")
    found = answer(visits.group_by("k").agg(v=tg.aggregate(Mean(), "v")))
    assert found == [
        (1.0, 4.0, "b", 1.0),
        (0.0, 5.0, "a", 6.0),
        (2.5, 5.5, "a", 6.0),
        (10.0, 14.0, "b", 6.5),
    ]


def test_sessions_are_streams_for_several_outputs() -> None:
    """A window takes a session in by its end; what is over it is emitted in that order."""
    session = tg.Session(master="none")
    outputs = session.queries(
        "CREATE STREAM visits AS SELECT k, COUNT(*) AS n FROM s [SESSION GAP 3 SECONDS] GROUP BY k;"
        "INSERT INTO each SELECT k, n FROM visits;"
        "INSERT INTO total SELECT COUNT(*) AS visits, SUM(n) AS n FROM visits [RANGE 5 SECONDS]",
        s=stream(session),
    )
    sinks = {name: tg.sink.memory() for name in ("each", "total")}
    session.start(outputs, sinks=sinks, batch_rows=2, instances=2).wait()
    assert sinks["each"].table().column("n").to_pylist() == [1, 3, 2]
    ends = [v.second for v in sinks["total"].table().column("window_end").to_pylist()]
    assert ends == [5, 10, 15]
    assert sinks["total"].table().column("n").to_pylist() == [1, 3, 2]


def test_what_is_refused_over_sessions() -> None:
    visits = stream(tg.Session(master="none")).window(session="3 seconds", max="9 seconds")
    counted = visits.group_by("k").agg(n=tg.count())
    for wrong, message in (
        (lambda: counted.top(3, by="n"), "each session ends at a time of its own"),
        (lambda: counted.shed(0.5), "a session would fall apart where tuples are shed"),
        (lambda: counted.within(error=0.1), "how long a session is depends on all its tuples"),
        (
            lambda: visits.group_by("k").partition("pk").agg(n=tg.count()).explain(),
            "may split the tuples of a key only over windows of time",
        ),
        (
            lambda: counted.explain(partial="map"),
            "map tasks cannot tell where a session with a MAX begins",
        ),
        (
            lambda: counted.start(sink=tg.sink.memory(), handover="window"),
            "its sessions last as long as tuples keep coming. Use --handover auto",
        ),
    ):
        with pytest.raises((QueryError, OptionError), match=message):
            wrong()


def test_explain_says_how_sessions_are_made() -> None:
    visits = stream(tg.Session(master="none")).window(session="3 seconds")
    text = str(visits.group_by("k").agg(n=tg.count()).explain())
    assert "aggregate over [SESSION GAP 3 seconds] by k" in text
    assert "sessions folded on the map side, the open ones kept" in text
