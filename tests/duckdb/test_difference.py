"""Where DuckDB and Spark mean different things, what Spark documents is asserted by itself."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.duckdb.compare import Streamed, by_duckdb, by_tidegate, check
from tidegate.errors import TidegateError

NAN, INF = float("nan"), float("inf")


def values(*numbers: float | None) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(range(len(numbers)), pa.timestamp("us")),
            "x": pa.array(numbers, pa.float64(), from_pandas=False),
        }
    )


def both(call: str, rows: pa.Table) -> tuple[object, object]:
    """The one value in Tidegate and in DuckDB."""
    text = f"SELECT {call} AS r FROM s [RANGE 1 SECOND]"
    streams = {"s": Streamed([rows])}
    ours = by_tidegate(text, streams, batch_rows=2).rows
    theirs = by_duckdb(text, streams)
    return ours.column("r").to_pylist()[0], theirs.column("r").to_pylist()[0]


@pytest.mark.parametrize(
    "rows",
    [
        values(1.0, NAN, 2.0),
        values(NAN, NAN),
        values(1.0, INF, 2.0),
        values(-INF, INF),
        values(NAN),
        values(None, NAN, None),
        values(None, None),
        values(-0.0, 0.0),
    ],
    ids=["nan", "two nans", "inf", "both infs", "one nan", "nan and nulls", "nulls", "zeros"],
)
def test_nan_and_infinity_mean_the_same_in_both(rows: pa.Table) -> None:
    names = "SUM AVG VAR STDDEV MAX MIN COUNT FIRST LAST".split()
    items = ", ".join(f"{n}(x) AS {n.lower()}_x" for n in names)
    text = f"SELECT {items}, COUNT(DISTINCT x) AS u FROM s [RANGE 1 SECOND]"
    check(text, {"s": rows}, batch_rows=2)


@pytest.mark.parametrize(
    ("call", "rows", "spark"),
    [
        ("MEDIAN(x)", values(1.0, NAN, 2.0), 2.0),
        ("MEDIAN(x)", values(1.0, NAN), NAN),
        ("QUANTILE(x, 1)", values(1.0, NAN), NAN),
        ("QUANTILE(x, 0)", values(1.0, NAN), 1.0),
        ("MEDIAN(x)", values(INF, INF), INF),
        ("MEDIAN(x)", values(-INF, -INF, 1.0, INF), -INF),
        ("MEDIAN(x)", values(-INF, INF), NAN),
        ("MEDIAN(x)", values(INF, INF, 1.0), INF),
    ],
)
def test_quantiles_over_nan_and_infinity_are_those_of_percentile(
    call: str, rows: pa.Table, spark: float
) -> None:
    """Spark's `percentile`: equal neighbours are not interpolated, NaN is the greatest."""
    ours, _ = both(call, rows)
    assert ours == spark or (math.isnan(spark) and math.isnan(ours))


def test_a_sum_of_bigints_that_overflows_fails() -> None:
    """DuckDB goes on with HUGEINT; Spark's ANSI mode fails, and says why."""
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "x": [2**63 - 1, 1]})
    text = "SELECT SUM(x) AS r FROM s [RANGE 1 SECOND]"
    assert by_duckdb(text, {"s": Streamed([rows])}).column("r").to_pylist() == [2**63]
    with pytest.raises(TidegateError, match=r"SUM|sum|overflow"):
        by_tidegate(text, {"s": Streamed([rows])})


def test_a_division_by_zero_fails() -> None:
    """DuckDB gives NULL; Spark's ANSI mode fails."""
    rows = values(1.0, 0.0)
    assert by_duckdb("SELECT 1 / x AS r FROM s", {"s": Streamed([rows])}).num_rows == 2
    with pytest.raises(TidegateError, match="zero"):
        by_tidegate("SELECT 1 / x AS r FROM s", {"s": Streamed([rows])})


def test_a_cast_to_an_integer_cuts() -> None:
    """DuckDB rounds 2.5 to the even 2 and 3.5 to 4; Spark cuts towards zero."""
    rows = values(2.5, 3.5, -3.5)
    got = by_tidegate("SELECT CAST(x AS BIGINT) AS r FROM s", {"s": Streamed([rows])}).rows
    assert got.column("r").to_pylist() == [2, 3, -3]


def test_the_mean_of_decimals_is_a_decimal() -> None:
    rows = pa.table(
        {
            "ts": pa.array([1, 2, 3], pa.timestamp("us")),
            "x": pa.array([Decimal("0.01"), Decimal("0.01"), Decimal("0.00")], pa.decimal128(5, 2)),
        }
    )
    got = by_tidegate("SELECT AVG(x) AS r FROM s [RANGE 1 SECOND]", {"s": Streamed([rows])}).rows
    assert got.column("r").to_pylist() == [Decimal("0.006667")]
    assert got.schema.field("r").type == pa.decimal128(9, 6)


def test_the_median_of_decimals_is_a_double() -> None:
    rows = pa.table(
        {
            "ts": pa.array([1, 2], pa.timestamp("us")),
            "x": pa.array([Decimal("0.01"), Decimal("0.02")], pa.decimal128(5, 2)),
        }
    )
    got = by_tidegate("SELECT MEDIAN(x) AS r FROM s [RANGE 1 SECOND]", {"s": Streamed([rows])}).rows
    assert got.schema.field("r").type == pa.float64()
    assert math.isclose(got.column("r").to_pylist()[0], 0.015)
