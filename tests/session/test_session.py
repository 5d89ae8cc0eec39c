"""The Python surface end to end, in this process and without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import _MockFileSystem

import tidegate as tg
from tests.driver.scene import PASSED, SCHEMA, Row, csv, memory, rows_of, table
from tidegate import col, count, mean
from tidegate.errors import (
    CheckpointError,
    OptionError,
    QueryError,
    SourceError,
    TaskError,
)
from tidegate.plan.lowering.lower import lower

ROWS: list[Row] = [(1, "a", 1), (4, "b", 2), (11, "a", 3), (15, "a", 4), (21, "b", None)]


@pytest.fixture
def session() -> tg.Session:
    return tg.Session(master="none")


def ran(stream: tg.Stream, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of a query over input that ends."""
    sink = tg.sink.memory()
    summary = stream.start(sink=sink, **options).wait()
    assert summary.finished
    return rows_of(sink)


def given(session: tg.Session, *rows: Row, name: str = "s") -> tg.Stream:
    return session.stream(memory(*(rows or ROWS), end=True), time="ts", name=name)


def test_the_query_of_the_design(session: tg.Session, tmp_path: Path) -> None:
    times = [datetime(2024, 1, 1, 0, m, tzinfo=UTC) for m in (1, 2, 3, 8, 16)]
    rides = pa.table(
        {
            "dropoff_time": pa.array(times, tg_time()),
            "route": ["x", "x", "y", "y", "x"],
            "fare": [1.0, 3.0, 10.0, 0.0, 5.0],
        }
    )
    pq.write_table(rides, tmp_path / "rides.parquet")
    stream = session.stream(str(tmp_path / "rides.parquet"), time="dropoff_time")
    top = (
        stream.window("15 minutes", slide="5 minutes")
        .group_by("route")
        .agg(fare=mean("fare"), n=count())
        .top(1, by="fare")
    )
    query = top.start(
        sink=tg.sink.files(str(tmp_path / "out")), checkpoint=str(tmp_path / "ckpt"), instances=2
    )
    summary = query.wait()
    assert (summary.finished, query.status()["rows_out"]) == (True, 6)
    rows = [
        r
        for part in sorted((tmp_path / "out").glob("batch=*/*.parquet"))
        for r in pq.ParquetFile(part).read().to_pylist()
    ]
    assert [(r["route"], r["fare"], r["n"]) for r in rows] == [
        ("y", 10.0, 1),
        *[("y", 5.0, 2)] * 2,
        *[("x", 5.0, 1)] * 2,
        ("x", 5.0, 1),
    ]


def tg_time() -> pa.DataType:
    return pa.timestamp("us", tz="UTC")


def test_streams_from_files_and_memory(session: tg.Session, tmp_path: Path) -> None:
    path = csv(tmp_path / "s.csv", *ROWS)
    assert ran(session.stream(path, time="ts")) == ran(given(session))
    both = session.stream([path, memory((2, "z", 9), end=True)], time="ts", name="both")
    assert ran(both)[1] == (2.0, "z", 9)


def test_select_where_and_names(session: tg.Session) -> None:
    stream = given(session)
    chosen = stream.where(col("v") > 1).select("k", double=col("v") * 2)
    assert chosen.columns == ("ts", "k", "double")
    assert ran(chosen) == [(4.0, "b", 4), (11.0, "a", 6), (15.0, "a", 8)]


def test_a_split_gives_each_tuple_to_the_first_that_matches(session: tg.Session) -> None:
    high, low, rest = given(session).split(col("v") >= 3, col("v") >= 1)
    assert [r[2] for r in ran(high)] == [3, 4]
    assert [r[2] for r in ran(low)] == [1, 2]
    assert [r[2] for r in ran(rest)] == [None]


def test_the_branches_of_a_split_put_together_are_the_stream(session: tg.Session) -> None:
    parts = given(session).split(col("v") >= 3, col("v") >= 1)
    whole = parts[0].union(*parts[1:])
    assert sorted(ran(whole), key=lambda r: r[0]) == ran(given(session))


def test_a_union_of_streams_is_in_the_total_order(session: tg.Session) -> None:
    one = given(session, (1, "a", 1), (3, "a", 3), name="one")
    two = given(session, (1, "b", 2), (2, "b", 4), name="two")
    assert ran(one.union(two)) == [(1.0, "a", 1), (1.0, "b", 2), (2.0, "b", 4), (3.0, "a", 3)]


def test_a_union_of_a_stream_with_itself_counts_twice(session: tg.Session) -> None:
    stream = given(session)
    twice = stream.union(stream).window(100).agg(n=count(), v=tg.sum("v"))
    assert ran(twice) == [(0.0, 100.0, 10, 20)]


def test_two_streams_of_one_name_are_refused(session: tg.Session) -> None:
    other = session.stream(memory((1, "c", 1), end=True), time="ts", name="s")
    with pytest.raises(QueryError, match="stream s: a name must stand for one stream"):
        given(session).union(other).start(sink=tg.sink.memory())


def test_a_stream_of_another_session_is_refused(session: tg.Session) -> None:
    other = given(tg.Session(master="none"), name="other")
    with pytest.raises(OptionError, match="stream other: must be of the session that runs"):
        given(session).union(other).start(sink=tg.sink.memory())


def test_having_and_top(session: tg.Session) -> None:
    counted = given(session).window("10 seconds").group_by("k").agg(n=count(), v=tg.sum("v"))
    assert ran(counted.having(col("n") > 1)) == [(10.0, 20.0, "a", 2, 7)]
    assert ran(counted.top(1, by="v")) == [
        (0.0, 10.0, "b", 1, 2),
        (10.0, 20.0, "a", 2, 7),
        (20.0, 30.0, "b", 1, None),
    ]
    assert ran(counted.top(1, by="v", descending=False))[0] == (0.0, 10.0, "a", 1, 1)
    assert ran(counted.order_by("v", descending=True))[:2] == [
        (0.0, 10.0, "b", 1, 2),
        (0.0, 10.0, "a", 1, 1),
    ]


def test_all_aggregates(session: tg.Session) -> None:
    made = (
        given(session)
        .window(timedelta(seconds=100))
        .agg(
            n=count(),
            some=count("v"),
            total=tg.sum("v"),
            low=tg.min("v"),
            high=tg.max("v"),
            middle=tg.median("v"),
            quarter=tg.quantile("v", 0.25),
            spread=tg.var("v"),
            deviation=tg.stddev("v"),
            keys=tg.count_distinct("k"),
            one=tg.first("v"),
            end=tg.last("v"),
        )
    )
    (row,) = ran(made)
    assert row[2:10] == (5, 4, 10, 1, 4, 2.5, 1.75, pytest.approx(5 / 3))
    assert row[10:] == (pytest.approx((5 / 3) ** 0.5), 2, 1, None)


class Product(tg.Aggregator):
    """The product of the values that are not NULL, times a factor."""

    state: ClassVar = {"product": pa.float64()}
    result: ClassVar = pa.float64()

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def init(self, n: int) -> dict[str, Any]:
        return {"product": np.ones(n)}

    def fold(self, state: dict[str, Any], groups: Any, *columns: pa.Array) -> dict[str, Any]:
        values = columns[0].fill_null(1).to_numpy(zero_copy_only=False)
        np.multiply.at(state["product"], groups, values)
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        np.multiply.at(state["product"], groups, other["product"])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(state["product"] * self.factor)


class Broken(Product):
    """Fails where it is told to."""

    def __init__(self, method: str) -> None:
        super().__init__(1.0)
        self.method = method

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        if self.method == "merge":
            raise ValueError("odd moon")
        return super().merge(state, groups, other)

    def fold(self, state: dict[str, Any], groups: Any, *columns: pa.Array) -> dict[str, Any]:
        if self.method == "fold":
            raise ValueError("odd moon")
        return super().fold(state, groups, *columns)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_an_aggregate_of_the_users_own(session: tg.Session, batch_rows: int) -> None:
    made = (
        given(session)
        .window("20 seconds", slide="10 seconds")
        .group_by("k")
        .agg(p=tg.aggregate(Product(2.0), "v"))
    )
    assert ran(made, batch_rows=batch_rows, instances=3) == [
        (-10.0, 10.0, "a", 2.0),
        (-10.0, 10.0, "b", 4.0),
        (0.0, 20.0, "a", 24.0),
        (0.0, 20.0, "b", 4.0),
        (10.0, 30.0, "a", 24.0),
        (10.0, 30.0, "b", 2.0),
        (20.0, 40.0, "b", 2.0),
    ]


@pytest.mark.parametrize("method", ["fold", "merge"])
def test_an_aggregate_that_raises_names_itself_and_commits_nothing(
    session: tg.Session, tmp_path: Path, method: str
) -> None:
    made = given(session).window("10 seconds").agg(p=tg.aggregate(Broken(method), "v"))
    query = made.start(sink=tg.sink.memory(), checkpoint=str(tmp_path))
    with pytest.raises(TaskError, match=rf"Broken\.{method}: .*got ValueError: odd moon"):
        query.wait()
    assert list((tmp_path / "manifest").iterdir()) == []
    assert "odd moon" in query.status()["failure"]
    assert not query.status()["running"]


SAME = [
    (
        "SELECT k, SUM(v) AS v FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] WHERE v > 1 AND k <> 'z' "
        "GROUP BY k HAVING SUM(v) > 2 ORDER BY v DESC LIMIT 3",
        lambda s: (
            s.where((col("v") > 1) & (col("k") != "z"))
            .window("10 seconds", slide="5 seconds")
            .group_by("k")
            .agg(v=tg.sum("v"))
            .having(col("v") > 2)
            .top(3, by="v")
        ),
    ),
    (
        "SELECT upper(k) AS u, v * 2 + 1 AS w FROM s WHERE v IS NOT NULL",
        lambda s: s.where(~col("v").is_null()).select(u=tg.call("upper", "k"), w=col("v") * 2 + 1),
    ),
    (
        "SELECT COUNT(*) AS n, MEDIAN(v) AS m FROM s [RANGE 1 MINUTE]",
        lambda s: s.window("1 minute").agg(n=count(), m=tg.median("v")),
    ),
    (
        "SELECT k, v FROM s UNION ALL SELECT k, v FROM s",
        lambda s: s.select("k", "v").union(s.select("k", "v")),
    ),
]


@pytest.mark.parametrize(("sql", "python"), SAME)
def test_sql_and_python_are_the_same_query(session: tg.Session, sql: str, python: Any) -> None:
    stream = given(session)
    one, two = session.sql(sql, s=stream), python(stream)
    assert lower(one.node).fingerprint == lower(two.node).fingerprint
    assert ran(one) == ran(two)


def test_sql_over_streams_it_creates(session: tg.Session, tmp_path: Path) -> None:
    path = csv(tmp_path / "s.csv", *ROWS)
    made = session.sql(f"CREATE STREAM s FROM '{path}' TIME ts; {PASSED}")
    assert ran(made) == ran(given(session))


def test_explain_says_where_it_runs(session: tg.Session) -> None:
    said = given(session).window("10 seconds").group_by("k").agg(n=count()).explain()
    assert "stream s" in said
    assert "one task per instance" in said


def test_a_tuple_may_be_in_so_many_windows_as_asked_for(session: tg.Session) -> None:
    counted = given(session, (1, "a", 1)).window(1, slide="1 ms").agg(n=count())
    assert len(ran(counted, max_windows_per_tuple=1000)) == 1000
    for refused in (counted.explain, lambda **options: ran(counted, **options)):
        with pytest.raises(QueryError, match="must be in at most 999 windows; got 1,000"):
            refused(max_windows_per_tuple=999)
    with pytest.raises(OptionError, match="--max-windows-per-tuple: must be at least 1; got 0"):
        counted.explain(max_windows_per_tuple=0)


def test_a_checkpoint_on_any_file_system(session: tg.Session) -> None:
    counted = given(session).window("10 seconds").agg(n=count())
    place = (_MockFileSystem(), "a/checkpoint")
    assert ran(counted, checkpoint=place) == [(0.0, 10.0, 2), (10.0, 20.0, 2), (20.0, 30.0, 1)]


def test_a_query_goes_on_from_its_checkpoint(session: tg.Session, tmp_path: Path) -> None:
    source = memory(*ROWS[:3])
    stream = session.stream(source, time="ts", name="s")
    counted = stream.window("10 seconds").agg(n=count())
    sink = tg.sink.memory()
    first = counted.start(sink=sink, checkpoint=str(tmp_path))
    while first.status()["rows_in"] < 3:
        first.wait(0.01)
    first.stop()
    source.append(table(*ROWS[3:]))
    source.end()
    assert counted.start(sink=sink, checkpoint=str(tmp_path)).wait().finished
    assert rows_of(sink) == [(0.0, 10.0, 2), (10.0, 20.0, 2), (20.0, 30.0, 1)]
    other = stream.window("11 seconds").agg(n=count())
    with pytest.raises(CheckpointError, match="must be the checkpoint of this query"):
        other.start(sink=sink, checkpoint=str(tmp_path))


def test_a_query_given_to_sql_is_taken_from_where_it_ends(session: tg.Session) -> None:
    stream = given(session)
    kept = session.sql(PASSED, s=stream.where(col("v") > 2))
    assert ran(kept) == [(11.0, "a", 3), (15.0, "a", 4)]
    counted = stream.window("10 seconds").group_by("k").agg(n=count())
    most = session.sql("SELECT MAX(n) AS most FROM c [RANGE 20 SECONDS]", c=counted)
    assert ran(most) == [(0.0, 20.0, 2), (20.0, 40.0, 1)]


def several(session: tg.Session) -> dict[str, tg.Stream]:
    """Two outputs that share an aggregate, and one of the stream itself."""
    stream = given(session)
    counted = stream.window("10 seconds").group_by("k").agg(n=count())
    most = counted.window("20 seconds").agg(most=tg.max("n"))
    return {"counted": counted, "most": most, "high": stream.where(col("v") > 2)}


@pytest.mark.parametrize("strategy", ["operator-set", "query-cloud", "operator-cloud"])
def test_several_outputs_are_one_query(session: tg.Session, strategy: str) -> None:
    outputs = several(session)
    sinks = {name: tg.sink.memory() for name in outputs}
    query = session.start(outputs, sinks=sinks, strategy=strategy, batch_rows=2, instances=2)
    summary = query.wait()
    assert summary.counters["rows_in"] == len(ROWS)
    for name, stream in outputs.items():
        assert rows_of(sinks[name]) == ran(stream)
        assert set(sinks[name].batches) <= set(range(summary.counters["batches"]))
        assert all(output.rows.num_rows for output in sinks[name].batches.values())
    assert summary.counters["rows_out"] == sum(len(rows_of(s)) for s in sinks.values())


def test_the_outputs_of_a_script_by_name(session: tg.Session) -> None:
    script = f"INSERT INTO a {PASSED} WHERE v > 2; INSERT INTO b SELECT v FROM s WHERE v < 2"
    outputs = session.queries(script, s=given(session))
    assert list(outputs) == ["a", "b"]
    assert ran(outputs["a"]) == [(11.0, "a", 3), (15.0, "a", 4)]
    assert ran(outputs["b"]) == [(1.0, 1)]


def test_instances_and_switches_by_subquery(session: tg.Session) -> None:
    outputs = several(session)
    sinks = {name: tg.sink.memory() for name in outputs}
    switches = {1: 4, "aggregate2": {np.int64(1): np.int64(5)}}
    query = session.start(
        outputs, sinks=sinks, batch_rows=1, instances={"counted": 3}, switches=switches
    )
    epochs = query.wait().epochs
    told = {(e["subquery"], e["batch"]): e["instances"] for e in epochs}
    assert told == {
        ("counted", 0): 3,
        ("most", 0): 1,
        ("high", 0): 1,
        ("counted", 1): 4,
        ("most", 1): 5,
        ("high", 1): 4,
    }


@pytest.mark.parametrize(
    ("switches", "got"), [({"a": 3}, "{'a': 3}"), ({1: {2: 3}}, r"{1: {2: 3}}")]
)
def test_switches_of_another_shape(session: tg.Session, switches: Any, got: str) -> None:
    with pytest.raises(OptionError) as caught:
        given(session).start(sink=tg.sink.memory(), switches=switches)
    assert str(caught.value) == (
        "switches: must be {batch: instances}, or {subquery: {batch: instances}}; got " + got + "."
    )


def test_mistakes_with_several_outputs(session: tg.Session) -> None:
    outputs = several(session)
    with pytest.raises(OptionError) as caught:
        session.start(outputs, sinks={"most": tg.sink.memory()})
    assert str(caught.value) == (
        "start: needs a sink for each of its outputs, and no others; got most. "
        "The outputs are counted, most, high."
    )
    with pytest.raises(QueryError, match="output: a query needs at least one; got none"):
        session.start({}, sinks={})
    script = f"INSERT INTO a {PASSED}; INSERT INTO b {PASSED}"
    with pytest.raises(QueryError, match="output: one result is possible here; got 2: a, b"):
        session.sql(script, s=given(session))


def test_mistakes_are_refused_before_anything_starts(session: tg.Session, tmp_path: Path) -> None:
    stream = given(session)
    with pytest.raises(OptionError, match="stream: needs at least one source; got none"):
        session.stream([], time="ts")
    with pytest.raises(OptionError, match="a source must be a path, a URI, a memory source, a"):
        session.stream(42, time="ts")
    with pytest.raises(SourceError, match=r"nothing\.csv"):
        session.stream(str(tmp_path / "nothing.csv"), time="ts")
    with pytest.raises(SourceError, match="the time column must be there; got column when"):
        session.stream(csv(tmp_path / "s.csv", *ROWS), time="when")
    with pytest.raises(OptionError, match="the memory source has its time in ts; got k"):
        session.stream(memory(), time="k")
    bare = tg.MemorySource([{"ts": datetime(2024, 1, 1), "other": 1}], time="ts")
    with pytest.raises(OptionError, match="all sources must have the schema of memory:"):
        session.stream([memory(), bare], time="ts")
    with pytest.raises(OptionError, match="policy auto: cost must be at least 1 instance; got 0"):
        stream.start(sink=tg.sink.memory(), policy="auto?cost=0")
    with pytest.raises(OptionError, match="policy: the query has its own, WITH LATENCY; got fixed"):
        stream.latency("2 seconds").start(sink=tg.sink.memory(), policy="fixed")
    with pytest.raises(OptionError, match="--instances: must be at least 1; got 0"):
        stream.start(sink=tg.sink.memory(), instances=0)
    with pytest.raises(OptionError, match="--master: must be none"):
        tg.Session(master="lokal")
    with pytest.raises(OptionError, match="start: has no argument of this name; got colour"):
        stream.start(sink=tg.sink.memory(), colour="red")


def test_a_stream_of_nothing_has_its_schema(session: tg.Session) -> None:
    source = tg.MemorySource(time="ts", schema=SCHEMA)
    source.end()
    assert ran(session.stream(source, time="ts")) == []
