"""What a session of Spark has, in queries on it: functions, views and tables, and ours beside."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import tidegate as tg
from tidegate.execute.spark.feature import ARROW_FUNCTIONS, has
from tidegate.sink.memory import MemorySink

VIEW = (
    "SELECT timestamp_micros(id * 1000000) AS at, concat('r', id % 2) AS route, "
    "double(id) AS fare FROM range(0, 6, 1, 3)"
)


@tg.function(returns="DOUBLE")
def spark_toll(fare: pa.Array) -> pa.Array:
    if pc.any(pc.greater(fare, 100)).as_py():
        raise ValueError("too far")
    return pc.add(fare, 1.0)


@pytest.fixture
def session(spark: SparkSession) -> tg.Session:
    """A session with a view, functions in Python and SQL, and settings that must not count."""
    own = spark.newSession()
    own.sql(VIEW).createOrReplaceTempView("trips")
    own.udf.register("twice", lambda x: x * 2, "double")
    own.udf.register("dice", udf(lambda x: x, "double").asNondeterministic())
    own.sql("CREATE TEMPORARY FUNCTION half(x DOUBLE) RETURNS DOUBLE RETURN x / 2")
    own.conf.set("spark.sql.ansi.enabled", "false")
    return tg.Session(own)


def rows(stream: tg.Stream) -> list[tuple[Any, ...]]:
    sink = MemorySink()
    stream.start(sink=sink, instances=1).wait()
    times = ("ts", "window_start", "window_end")
    return [tuple(v for n, v in r.items() if n not in times) for r in sink.table().to_pylist()]


def test_functions_and_views_of_the_session(session: tg.Session) -> None:
    query = session.sql(
        "CREATE STREAM t FROM TABLE trips TIME at; "
        "SELECT route, SUM(twice(fare)) AS two, MAX(half(fare)) AS m "
        "FROM t [RANGE 10 SECONDS] WHERE twice(fare) > 2 GROUP BY route"
    )
    assert rows(query) == [("r0", 12.0, 2.0), ("r1", 16.0, 2.5)]
    assert "prefix: Spark SQL in the JVM (TWICE needs Spark" in query.explain()
    assert query.schema.field("two").type == pa.float64()


def test_a_table_by_name_and_ours_after_a_window_and_on_pairs(session: tg.Session) -> None:
    trips = session.table("trips", time="at")
    query = session.sql(
        "SELECT l.fare AS x, r.fare AS y FROM trips l [RANGE 1 MINUTE] JOIN trips r "
        "[RANGE 1 MINUTE] ON spark_toll(l.fare) = r.fare WHERE l.fare < 2",
        trips=trips,
    )
    assert rows(query) == [(0.0, 1.0), (1.0, 2.0)]
    counts = session.sql(
        "SELECT spark_toll(COUNT(*)) AS n FROM trips [RANGE 10 SECONDS]", trips=trips
    )
    assert rows(counts) == [(7.0,)]


def test_a_view_that_is_read_by_its_name(spark: SparkSession, session: tg.Session) -> None:
    with pytest.raises(tg.TidegateError, match=r"stream trips.*time"):
        session.sql("SELECT fare FROM trips")
    own = session._place.session
    assert own is not None
    own.sql(VIEW.replace("AS at", "AS ts")).createOrReplaceTempView("runs")
    assert rows(session.sql("SELECT fare FROM runs WHERE fare > 3")) == [(4.0,), (5.0,)]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT dice(fare) AS f FROM trips", "must give the same value whenever a batch is repl"),
        ("SELECT thrice(fare) AS f FROM trips", "no function of Spark has this name; got THRICE"),
        (
            "SELECT twice(COUNT(*)) AS f FROM trips [RANGE 10 SECONDS]",
            "After a window there is no Spark SQL: compute it before the aggregate",
        ),
        (
            "SELECT l.fare FROM trips l [RANGE 1 MINUTE] JOIN trips r [RANGE 1 MINUTE] "
            "ON twice(l.fare + r.fare) > 1",
            "On pairs there is no Spark SQL: compute it from one side",
        ),
    ],
)
def test_what_cannot_be(session: tg.Session, query: str, told: str) -> None:
    with pytest.raises(tg.QueryError) as refused:
        rows(session.sql(query, trips=session.table("trips", time="at")))
    assert told in str(refused.value)


def test_a_name_that_is_not_there(session: tg.Session) -> None:
    with pytest.raises(tg.OptionError, match="no table or view of Spark has this name; got trip"):
        session.table("trip", time="at")
    with pytest.raises(tg.OptionError, match="a table of Spark needs Spark; got trips"):
        tg.Session(master="none").table("trips", time="at")


def test_ours_in_spark_sql(spark: SparkSession, session: tg.Session) -> None:
    query = session.sql(
        "SELECT spark_toll(twice(fare)) AS f FROM trips", trips=session.table("trips", time="at")
    )
    if has(spark, ARROW_FUNCTIONS):
        assert rows(query) == [(2.0 * fare + 1,) for fare in range(6)]
    else:
        with pytest.raises(tg.QueryError, match="calls Python functions of Tidegate from Spark 4"):
            rows(query)


def test_ours_fails_in_spark_with_its_cause_in_a_line(
    spark: SparkSession, session: tg.Session
) -> None:
    query = session.sql(
        "SELECT spark_toll(twice(fare) * 25) AS f FROM trips",
        trips=session.table("trips", time="at"),
    )
    with pytest.raises(tg.TidegateError) as failed:
        rows(query)
    if has(spark, ARROW_FUNCTIONS):
        assert "the function spark_toll" in str(failed.value)
        assert "ValueError: too far, for " in str(failed.value), "of the partition that was first"
    assert "\n" not in str(failed.value)
