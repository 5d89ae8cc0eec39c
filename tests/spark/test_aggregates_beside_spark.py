"""Aggregate functions in Spark's own SQL and in Tidegate, over the same rows, with NULL and NaN."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb.compare import Streamed, by_tidegate
from tidegate.schema import TIME, type_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400
PAIRS = ("x, y", "x, i", "i, n", "d, x", "t, i", "c, x", "w, y", "NULL, x")
"""Numbers of every kind, text that is read as numbers, a constant, NaN and infinity, NULL."""

FLOATS = [f"{f}({p})" for f in ("CORR", "COVAR_SAMP", "COVAR_POP") for p in PAIRS]
FLOATS += [f"{f}(x, y) FILTER (WHERE i > 0)" for f in ("CORR", "COVAR_SAMP", "COVAR_POP")]
FLOATS += ["CORR(x, i) FILTER (WHERE u > 397)", "COVAR_POP(x, y) FILTER (WHERE u > 999)"]
EXACT = [f"{f}({v}, u)" for f in ("MIN_BY", "MAX_BY") for v in ("s", "x", "i", "b", "d", "day")]
EXACT += ["MIN_BY(s, x * 0 + u)", "MAX_BY(u, w) FILTER (WHERE w IS NULL)", "MIN_BY(u, NULL)"]
EXACT += ["MIN_BY(i, u) FILTER (WHERE b)", "MAX_BY(1 / nullif(i, 0), u) FILTER (WHERE i <> 0)"]
EXACT += [f"{f}(b)" for f in ("BOOL_AND", "EVERY", "BOOL_OR", "SOME", "ANY", "COUNT_IF")]
EXACT += ["BOOL_AND(i > -50)", "ANY(x > y)", "BOOL_OR(f)", "COUNT_IF(f)", "COUNT_IF(NULL)"]
EXACT += ["BOOL_AND(NULL)", "EVERY(b) FILTER (WHERE i > 1000)", "SOME(DISTINCT b)"]
EXACT += ["COUNT_IF(i > 3) FILTER (WHERE b)", "APPROX_COUNT_DISTINCT(b)"]
EXACT += ["APPROX_COUNT_DISTINCT(NULL)", "APPROX_COUNT_DISTINCT(c, 0.01)"]
SHARES = ("0", "0.1", "0.25", "0.5", "0.9", "1")
FLOATS += [
    f"{f}({p}) WITHIN GROUP (ORDER BY {x}{way})"
    for f in ("PERCENTILE_CONT", "PERCENTILE_DISC")
    for p in SHARES
    for x in ("x", "i", "d")
    for way in ("", " DESC")
]
EXACT += [f"APPROX_PERCENTILE({x}, {p})" for p in SHARES for x in ("x", "i", "n", "d", "day")]
EXACT += [
    f"MODE() WITHIN GROUP (ORDER BY {x}{w})" for x in ("i", "s", "day") for w in ("", " DESC")
]
EXACT += [
    "LISTAGG(s, ',') WITHIN GROUP (ORDER BY u)",
    "STRING_AGG(s) WITHIN GROUP (ORDER BY u DESC)",
]
EXACT += ["LISTAGG(s, '') WITHIN GROUP (ORDER BY i NULLS LAST, u DESC) FILTER (WHERE b)"]
EXACT += [
    "LISTAGG(DISTINCT s, '+') WITHIN GROUP (ORDER BY s)",
    "STRING_AGG(s) FILTER (WHERE u > 999)",
]
EXACT += [
    f"{f}({x})" for f in ("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET") for x in ("i", "s", "n")
]
EXACT += ["ARRAY_AGG(i) FILTER (WHERE u > 999)", "PERCENTILE_APPROX(i, 0.5, 100000)"]


def table(seed: int) -> pa.Table:
    """A minute of each of three groups, the last with a single row; no two rows have one `u`."""
    chance = np.random.default_rng(seed)
    keys = np.append(np.sort(chance.integers(0, 2, ROWS - 1)), 2)
    unique = chance.permutation(ROWS)
    floats = chance.normal(size=(3, ROWS))
    floats[2, chance.integers(0, ROWS, 4)] = [math.nan, math.inf, -math.inf, -0.0]
    numbers = chance.integers(-9, 10, ROWS)
    columns: dict[str, tuple[Any, pa.DataType]] = {
        "x": (floats[0], pa.float64()),
        "y": (floats[0] * 2 + floats[1], pa.float64()),
        "w": (floats[2], pa.float64()),
        "i": (numbers, pa.int32()),
        "n": (chance.integers(-(2**40), 2**40, ROWS), pa.int64()),
        "d": ([f"{v}.25" for v in numbers], pa.decimal128(10, 2)),
        "t": ([f" {v}e1" for v in numbers], pa.string()),
        "f": (np.where(numbers > 0, "true", "no"), pa.string()),
        "c": (np.full(ROWS, 0.1), pa.float64()),
        "s": ([f"s{v}" for v in numbers], pa.string()),
        "b": (numbers > -5, pa.bool_()),
        "day": (numbers.astype(np.int32), pa.date32()),
    }
    made = {
        "ts": pa.array(keys * 60_000_000 + np.arange(ROWS) * 1000, pa.int64()).view(TIME),
        "k": pa.array(keys),
        "u": pa.array(unique),
    }
    for name, (values, type_) in columns.items():
        missing = chance.random(ROWS) < 0.15
        made[name] = pa.array(list(values), mask=missing).cast(type_)
    return pa.table(made)


def by_spark(spark: SparkSession, rows: pa.Table, calls: list[str], rest: str = "") -> list[Any]:
    """One list of results for each window, and the types."""
    spark.createDataFrame(rows).createOrReplaceTempView("beside")
    items = ", ".join(f"{c} AS a{n}" for n, c in enumerate(calls))
    found = spark.sql(
        f"SELECT window(ts, '60 seconds').start AS at, {items} FROM beside"
        f" GROUP BY window(ts, '60 seconds') {rest} ORDER BY at"
    )
    types = [t for _, t in found.dtypes[1:]]
    return [types, *([*row][1:] for row in found.collect())]


def by_us(rows: pa.Table, calls: list[str], rest: str = "", **options: Any) -> list[Any]:
    items = ", ".join(f"{c} AS a{n}" for n, c in enumerate(calls))
    text = f"SELECT {items} FROM s [RANGE 60 SECONDS] {rest}"
    found = by_tidegate(text, {"s": Streamed([rows])}, batch_rows=90, **options).rows
    types = [type_name(t) for t in found.schema.types[2:]]
    return [types, *([*row.values()][2:] for row in found.to_pylist())]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        return ours.astimezone(UTC) == theirs.astimezone(UTC)
    if isinstance(ours, list) and isinstance(theirs, list):  # Spark's are in any order
        return sorted(ours) == sorted(theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_types_and_values(spark: SparkSession, seed: int) -> None:
    rows, calls = table(seed), [*FLOATS, *EXACT]
    types, *wanted = by_spark(spark, rows, calls)
    for where in (None, spark):
        found, *windows = by_us(rows, calls, spark=where, instances=2)
        assert found == types
        assert len(windows) == len(wanted) == 3
        for ours, theirs in zip(windows, wanted, strict=True):
            different = [
                (call, a, b)
                for call, a, b in zip(calls, ours, theirs, strict=True)
                if not same(a, b)
            ]
            assert not different


def test_in_having_and_order_by(spark: SparkSession) -> None:
    rows = table(3)
    having = "HAVING COUNT_IF(b) > 1 AND MAX_BY(u, u) > 0 AND CORR(x, y) IS NOT NULL"
    wanted = by_spark(spark, rows, ["COUNT_IF(b)", "COVAR_POP(x, y)"], having)
    order = "ORDER BY MIN_BY(i, u), BOOL_OR(b)"
    found = by_us(rows, ["COUNT_IF(b)", "COVAR_POP(x, y)"], f"{having} {order}", spark=spark)
    assert len(found) == len(wanted) == 3
    for ours, theirs in zip(found, wanted, strict=True):
        assert all(map(same, ours, theirs))


def test_both_estimates_are_near_the_truth(spark: SparkSession) -> None:
    chance = np.random.default_rng(4)
    size = 20_000
    times = pa.array(np.arange(size) * 100, pa.int64()).view(TIME)
    rows = pa.table({"ts": times, "v": chance.integers(0, 6000, size)})
    truth = len(set(rows["v"].to_pylist()))
    calls = ["APPROX_COUNT_DISTINCT(v)", "APPROX_COUNT_DISTINCT(v, 0.01)", "COUNT(DISTINCT v)"]
    for _, (wide, narrow, exact) in (by_spark(spark, rows, calls), by_us(rows, calls)):
        assert exact == truth
        assert abs(wide - truth) <= 3 * 0.05 * truth
        assert abs(narrow - truth) <= 3 * 0.01 * truth


@pytest.mark.parametrize("window", ["ROWS 50", "ROWS 40 SLIDE 10", "ROWS 30 SLIDE 7"])
def test_windows_of_tuples_are_the_same_on_spark(spark: SparkSession, window: str) -> None:
    items = ", ".join(f"{c} AS a{n}" for n, c in enumerate([*FLOATS, *EXACT]))
    streams = {"s": Streamed([table(5)])}
    text = f"SELECT k, {items} FROM s [{window}] GROUP BY k"
    on_spark = by_tidegate(text, streams, spark=spark, batch_rows=90, instances=2).rows
    without = by_tidegate(text, streams, batch_rows=150).rows
    assert without.num_rows > 5
    assert repr(on_spark.to_pylist()) == repr(without.to_pylist())


@pytest.mark.parametrize(
    "call",
    [
        "CORR(b, x)",
        "COVAR_POP(x, day)",
        "BOOL_AND(i)",
        "COUNT_IF(x)",
        "APPROX_COUNT_DISTINCT(s, 0.5)",
        "APPROX_COUNT_DISTINCT(s, u)",
        "CORR(x)",
        "EVERY(b, b)",
    ],
)
def test_what_spark_refuses_is_refused(spark: SparkSession, call: str) -> None:
    from pyspark.errors import PySparkException

    from tidegate.errors import QueryError

    with pytest.raises(PySparkException):
        by_spark(spark, table(6), [call])
    with pytest.raises(QueryError):
        by_us(table(6), [call])
