"""Every kernel expression against Spark itself: the type, the value, and whether a row fails."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot

from tests.spark.expression_cases import EXPRESSIONS, ROWS, SPARK_ONLY, TYPES
from tidegate.errors import QueryError, TaskError
from tidegate.operate.kernels.expression import evaluate
from tidegate.query.typing import UnknownKernel, bind
from tidegate.schema import TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def arrow_value(text: str | None, type_: pa.DataType) -> object:
    if text is None:
        return None
    if pa.types.is_integer(type_):
        return int(text)
    if pa.types.is_floating(type_):
        return float(text)
    if pa.types.is_decimal(type_):
        return Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), context=Context(prec=60))
    if pa.types.is_boolean(type_):
        return text == "true"
    if pa.types.is_date(type_):
        return date.fromisoformat(text)
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if type_ == TIME else text


TABLE = pa.table(
    {
        name: pa.array([arrow_value(row[i], type_) for row in ROWS], type_)
        for i, (name, type_) in enumerate(TYPES.items())
    }
)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> SparkSession:
    """The session, with every row as a view of its own: a row that fails hides no other."""
    views = {f"row{number}": TABLE.slice(number, 1) for number in range(len(ROWS))}
    for name, table in (views | {"every_row": TABLE}).items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def arrow_type(spark_type: Any) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    text = spark_type.simpleString()
    if text.startswith("interval"):
        return pa.duration("us")
    return pa.string() if text == "void" else to_arrow_type(spark_type, timezone="UTC")


def spark_rows(spark: SparkSession, text: str) -> tuple[pa.DataType, list[object]]:
    """The type and, per row, the value or the word "fails"."""
    type_ = arrow_type(spark.sql(f"SELECT {text} AS r FROM row0").schema[0].dataType)
    outer = {TIME: "unix_micros(r)", pa.date32(): "unix_date(r)"}.get(type_, "r")

    def run(view: str) -> list[object]:
        try:
            frame = spark.sql(f"SELECT {outer} AS r FROM (SELECT {text} AS r FROM {view})")
            return [row[0] for row in frame.collect()]
        except Exception as error:
            assert "[" in str(error), error
            return ["fails"]

    together = run("every_row")
    if together == ["fails"]:
        together = [value for number in range(len(ROWS)) for value in run(f"row{number}")]
    return type_, together


def plain(array: pa.Array) -> list[object]:
    """Times and dates as numbers, because Python has no year 10000."""
    if pa.types.is_temporal(array.type) and not pa.types.is_duration(array.type):
        array = array.cast(pa.int32() if array.type == pa.date32() else pa.int64())
    return list(array.to_pylist())


def kernel_rows(text: str) -> tuple[pa.DataType, list[object]]:
    expr = bind(sqlglot.parse_one(text, read="spark"), TYPES, "test")
    values: list[object] = []
    for number in range(len(ROWS)):
        try:
            result = evaluate(expr, TABLE.slice(number, 1))
        except TaskError:
            values.append("fails")
            continue
        assert result.type == expr.type
        values += plain(result)
    if "fails" not in values:
        whole = plain(evaluate(expr, TABLE))
        assert same_rows(whole, values), "rows together differ from rows one by one"
    else:
        with pytest.raises(TaskError):
            evaluate(expr, TABLE)
    return expr.type, values


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=1e-14, abs_tol=1e-300)
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def same_rows(left: list[object], right: list[object]) -> bool:
    return all(same(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_kernel_gives_what_spark_gives(rows: SparkSession, text: str) -> None:
    try:
        wanted_type, wanted = spark_rows(rows, text)
    except Exception as error:
        assert "[" in str(error) or "ParseException" in repr(error), error
        with pytest.raises(QueryError):
            bind(sqlglot.parse_one(text, read="spark"), TYPES, "test")
        return
    try:
        got_type, got = kernel_rows(text)
    except QueryError as error:
        assert not isinstance(error, UnknownKernel), error
        assert set(wanted) <= {"fails", None}, (error, wanted)
        return
    differences = [
        (dict(zip(TYPES, ROWS[i], strict=True)), f"spark {w!r}", f"kernel {g!r}")
        for i, (w, g) in enumerate(zip(wanted, got, strict=True))
        if not same(w, g)
    ]
    assert not differences
    assert got_type == wanted_type


@pytest.mark.parametrize("text", SPARK_ONLY)
def test_what_needs_spark_says_so(rows: SparkSession, text: str) -> None:
    assert rows.sql(f"SELECT {text} AS r FROM row0").schema
    with pytest.raises(UnknownKernel):
        bind(sqlglot.parse_one(text, read="spark"), TYPES, "test")
