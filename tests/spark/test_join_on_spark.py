"""Joins on Spark over shared runs and over a shuffled grid, against DuckDB."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tidegate as tg
from tests.driver.scene import memory, rows_of
from tests.duckdb import predicate
from tests.duckdb.compare import by_duckdb, by_tidegate, differences
from tests.duckdb.test_join import query, sides
from tests.duckdb.test_outer_join import query as outer_query
from tidegate.errors import TaskError
from tidegate.execute.spark import task_exchange as spark_shared
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
HOUR, ROWS = "[RANGE 1 HOUR]", "[ROWS 20]"
QUERIES = {
    "equality": query(predicate.EQUALITIES["text"]),
    "two bands": query(predicate.SEVERAL["two bands"], HOUR),
    "any predicate": query(predicate.CONDITIONS["case"], "[RANGE 2 SECONDS]", "[RANGE 9 SECONDS]"),
    "a part in Spark SQL": query("regexp_extract(l.s, '^([a-z])', 1) = r.s"),
    "the last tuples": query(predicate.EQUALITIES["one key"], ROWS, "[RANGE 1 SECOND]"),
}
WAYS: dict[str, dict[str, Any]] = {
    "a grid of four": {"exchange": "shuffle", "instances": 4},
    "shared, dealt and switched": {
        "exchange": "shared",
        "instances": 4,
        "routing": "round-robin",
        "switches": {1: 2, 2: 3},
    },
}
MORE: dict[str, dict[str, Any]] = {
    "shared": {"exchange": "shared", "instances": 3},
    "a grid, scanned and switched": {
        "exchange": "shuffle",
        "instances": 2,
        "method": "scan",
        "switches": {1: 6, 2: 3},
    },
    "shared, by key": {"exchange": "shared", "routing": "key", "instances": 3},
    "shuffled by key": {"exchange": "shuffle", "routing": "key", "instances": 3},
}
WAYS |= MORE if LONG else {}
RUNS = [
    (name, way)
    for name in QUERIES
    for way, options in WAYS.items()
    if options.get("routing") != "key" or name in ("equality", "the last tuples")
    if options["exchange"] != "shared" or name != "a part in Spark SQL"
]
"""Only an equality can be routed by key, and only prefixes in Arrow kernels are shared."""


@pytest.mark.parametrize(("name", "way"), RUNS)
def test_both_exchanges_give_the_pairs_of_duckdb(
    spark: SparkSession, name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_shared, "SMALL_ROWS", 0)
    streams = sides(47, 240, 2)
    wanted = by_duckdb(QUERIES[name], streams)
    got = by_tidegate(QUERIES[name], streams, spark=spark, batch_rows=170, **WAYS[way])
    assert wanted.num_rows > 100
    assert not differences(got.rows, wanted)


OUTER = {
    "left by ranges": ("LEFT", predicate.SEVERAL["two bands"], "a grid of four"),
    "right by any predicate": ("RIGHT", predicate.CONDITIONS["case"], "a grid of four"),
    "full by key": ("FULL", predicate.EQUALITIES["text"], "a grid of four"),
    "anti, dealt and switched": ("ANTI", "l.k = r.k", "shared, dealt and switched"),
    "semi, dealt and switched": ("SEMI", "l.k = r.k", "shared, dealt and switched"),
}


@pytest.mark.parametrize("name", OUTER)
def test_outer_joins_give_the_rows_of_duckdb(
    spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_shared, "SMALL_ROWS", 0)
    kind, on, way = OUTER[name]
    text, streams = (
        outer_query(kind, on, "[RANGE 2 SECONDS]", "[RANGE 1 SECOND]"),
        sides(48, 240, 2),
    )
    wanted = by_duckdb(text, streams)
    got = by_tidegate(text, streams, spark=spark, batch_rows=170, **WAYS[way])
    assert wanted.num_rows > 20
    assert not differences(got.rows, wanted)


def pairs(spark: SparkSession, on: Any, **options: Any) -> MemorySink:
    session = tg.Session(spark)
    left = session.stream(memory((1, "a", 1), (2, "b", 5), end=True), time="ts", name="l")
    right = session.stream(memory((1, "a", 2), (3, "b", 9), id="r", end=True), time="ts", name="r")
    sink = MemorySink()
    joined = left.join(right, within="2 seconds", on=on).select(a=tg.left.v, b=tg.right.v)
    joined.start(sink=sink, instances=2, **options).wait()
    return sink


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_a_function_is_the_predicate(spark: SparkSession, exchange: str) -> None:
    """It reaches the tasks by value: neither its module nor what it closes over is there."""
    least = pa.scalar(3)

    def more(left: pa.Table, right: pa.Table) -> pa.Array:
        return pc.greater_equal(pc.subtract(right["v"], left["v"]), least)

    assert rows_of(pairs(spark, more, exchange=exchange)) == [(3.0, 1, 9), (3.0, 5, 9)]


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_a_function_that_fails_is_named_with_its_line(spark: SparkSession, exchange: str) -> None:
    def fails(left: pa.Table, right: pa.Table) -> pa.Array:
        raise LookupError("no such thing")

    line = fails.__code__.co_firstlineno
    with pytest.raises(TaskError, match=r"must not raise; got LookupError: no such") as caught:
        pairs(spark, fails, exchange=exchange)
    assert f"fails ({__file__}:{line})" in str(caught.value)
