"""Every kernel expression against Spark itself: the type, the value, and whether a row fails."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot
from pyspark.errors import PySparkException
from sqlglot import exp

from tests.spark.expression_cases import EXPRESSIONS, ROWS, SPARK_ONLY, TYPES
from tidegate.errors import QueryError, TaskError
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.binder import UnknownKernel, bind
from tidegate.schema import TIME
from tidegate.sql.dialect import Tidegate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


class Spark:
    """What Spark says to many expressions, asked together where none is expected to fail."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        for number in range(len(ROWS)):
            frame = session.createDataFrame(TABLE.slice(number, 1))
            frame.createOrReplaceTempView(f"row{number}")

    def _select(self, texts: list[str], view: str) -> DataFrame:
        items = ", ".join(f"{text} AS r{number}" for number, text in enumerate(texts))
        return self.session.sql(f"SELECT {items} FROM {view}")

    def types(self, texts: list[str]) -> list[Any]:
        """The types, or the error of the analysis."""
        try:
            return [arrow_type(field.dataType) for field in self._select(texts, "row0").schema]
        except PySparkException as error:
            return [error] if len(texts) == 1 else [self.types([text])[0] for text in texts]

    def values(self, texts: list[str], row: int) -> list[object]:
        """The values on a row, or the word "fails"."""
        try:
            return list(self._select(texts, f"row{row}").collect()[0])
        except PySparkException:
            if len(texts) == 1:
                return ["fails"]
            return [value for text in texts for value in self.values([text], row)]


def arrow_type(spark_type: Any) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    text = spark_type.simpleString()
    if text.startswith("interval"):
        return pa.duration("us")
    return pa.string() if text == "void" else to_arrow_type(spark_type, timezone="UTC")


def parse(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read=Tidegate)


def kernel_answer(text: str) -> tuple[Any, list[object]]:
    """The type and the values by kernels, or the mistake they find."""
    try:
        expr = bind(parse(text), TYPES, "test")
    except QueryError as error:
        return error, []
    values: list[object] = []
    for number in range(len(ROWS)):
        try:
            result = evaluate(expr, TABLE.slice(number, 1))
        except TaskError:
            values.append("fails")
            continue
        assert result.type == expr.type
        values += plain(result)
    if "fails" in values:
        with pytest.raises(TaskError):
            evaluate(expr, TABLE)
    else:
        assert same_rows(plain(evaluate(expr, TABLE)), values), "rows together differ from single"
    return expr.type, values


def plain(array: pa.Array) -> list[object]:
    """Times and dates as numbers, because Python has no year 10000."""
    if pa.types.is_temporal(array.type) and not pa.types.is_duration(array.type):
        array = array.cast(pa.int32() if array.type == pa.date32() else pa.int64())
    return list(array.to_pylist())


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=1e-14, abs_tol=1e-300)
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def same_rows(left: list[object], right: list[object]) -> bool:
    return all(same(a, b) for a, b in zip(left, right, strict=True))


@pytest.fixture(scope="module")
def kernels() -> dict[str, tuple[Any, list[object]]]:
    return {text: kernel_answer(text) for text in EXPRESSIONS}


@pytest.fixture(scope="module")
def sparks(
    spark: SparkSession, kernels: dict[str, tuple[Any, list[object]]]
) -> dict[str, tuple[Any, list[object]]]:
    """Spark's answers in the same shape. The kernels' answers only say what to ask together."""
    spark.sparkContext.setLogLevel("OFF")
    asked = Spark(spark)
    types: dict[str, Any] = {}
    for known in (True, False):
        some = [t for t in EXPRESSIONS if isinstance(kernels[t][0], pa.DataType) == known]
        for part in batched(some, 50 if known else 1):
            types |= zip(part, asked.types(list(part)), strict=True)
    valid = [t for t in EXPRESSIONS if isinstance(types[t], pa.DataType)]
    outer = {TIME: "unix_micros({})", pa.date32(): "unix_date({})"}
    shown = {t: outer.get(types[t], "{}").format(t) for t in valid}
    answers: dict[str, list[object]] = {t: [] for t in EXPRESSIONS}
    for row in range(len(ROWS)):
        calm = [t for t in valid if kernels[t][1] and kernels[t][1][row] != "fails"]
        wild = sorted(set(valid) - set(calm))
        for part in (*batched(calm, 50), *([t] for t in wild)):
            found = asked.values([shown[t] for t in part], row)
            for text, value in zip(part, found, strict=True):
                answers[text].append(value)
    return {t: (types[t], answers[t]) for t in EXPRESSIONS}


def batched(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_kernel_gives_what_spark_gives(
    sparks: dict[str, Any], kernels: dict[str, Any], text: str
) -> None:
    (wanted_type, wanted), (got_type, got) = sparks[text], kernels[text]
    if isinstance(got_type, Exception):
        assert not isinstance(got_type, UnknownKernel), got_type
        assert isinstance(wanted_type, Exception) or set(wanted) <= {"fails", None}, got_type
        return
    assert got_type == wanted_type
    differences = [
        (dict(zip(TYPES, ROWS[i], strict=True)), f"spark {w!r}", f"kernel {g!r}")
        for i, (w, g) in enumerate(zip(wanted, got, strict=True))
        if not same(w, g)
    ]
    assert not differences


@pytest.mark.parametrize("text", SPARK_ONLY)
def test_what_needs_spark_says_so(sparks: dict[str, Any], spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {text} AS r FROM row0").schema
    with pytest.raises(UnknownKernel):
        bind(parse(text), TYPES, "test")
