"""Expressions over a table as the kernels answer them and as Spark does, for tests beside Spark.

Spark has two ways to answer. Rows that are in the plan it computes while it optimises, expression
by expression. All others it computes by compiled code, after the optimiser has left out what it can
do without. The two do not always evaluate the same arguments, so that a row may fail in one of them
alone; an answer is right if one of them gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tidegate as tg
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILS = "fails"
UNKNOWN = "Spark alone has it"
Answer = str | pa.ChunkedArray

_RULES = "spark.sql.optimizer.excludedRules"
_AT_ONCE = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
_REMAINDER = re.compile(r"%|mod\(")
_ROUNDED = re.compile(r"\b(exp|ln|log10|sin|atan|cbrt|power|hypot|degrees)\(")


def problem(
    spark: SparkSession, rows: pa.Table, text: str, ours: Answer, theirs: Answer
) -> str | None:
    """How an answer differs from both of Spark's; None where it is right."""
    found = difference(text, ours, theirs)
    if found is None:
        return None
    with compiled(spark):
        return difference(text, ours, by_spark(spark, rows, [text])[text]) and found


@contextmanager
def compiled(spark: SparkSession) -> Iterator[None]:
    """Spark answers by compiled code."""
    spark.conf.set(_RULES, _AT_ONCE)
    try:
        yield
    finally:
        spark.conf.unset(_RULES)


def by_kernels(rows: pa.Table, texts: list[str]) -> dict[str, Answer]:
    try:
        return dict(zip(texts, run(rows, texts), strict=True))
    except TidegateError as error:
        if len(texts) > 1:
            half = len(texts) // 2
            return by_kernels(rows, texts[:half]) | by_kernels(rows, texts[half:])
        return {texts[0]: UNKNOWN if "Spark" in str(error) else FAILS}


def run(rows: pa.Table, texts: list[str]) -> list[pa.ChunkedArray]:
    session = tg.Session(master="none")
    source = tg.MemorySource(rows, time="ts")
    source.end()
    items = ", ".join(f"{text} AS r{number}" for number, text in enumerate(texts))
    sink = tg.sink.memory()
    stream = session.stream(source, time="ts", name="given")
    session.sql(f"SELECT {items} FROM given", given=stream).start(sink=sink).wait()
    return list(sink.table().columns[1:])


def by_spark(spark: SparkSession, rows: pa.Table, texts: list[str]) -> dict[str, Answer]:
    from pyspark.errors import PySparkException

    frame = spark.createDataFrame(rows)  # small enough to be computed without a job
    try:
        items = [f"{text} AS r{number}" for number, text in enumerate(texts)]
        table = frame.selectExpr(*items).toArrow()
        return dict(zip(texts, table.columns, strict=True))
    except PySparkException:
        if len(texts) > 1:
            half = len(texts) // 2
            return by_spark(spark, rows, texts[:half]) | by_spark(spark, rows, texts[half:])
        return {texts[0]: FAILS}


def difference(text: str, ours: Answer, theirs: Answer) -> str | None:
    if isinstance(ours, str) or isinstance(theirs, str):
        return None if isinstance(ours, str) == isinstance(theirs, str) else f"{ours}, {theirs}"
    if ours.type != theirs.type and theirs.type != pa.null():
        return f"{ours.type} instead of {theirs.type}"
    # A last digit that Java rounds otherwise is multiplied by the quotient of a remainder.
    close = 1e-4 if _REMAINDER.search(text) and _ROUNDED.search(text) else 1e-13
    for number, (mine, other) in enumerate(zip(plain(ours), plain(theirs), strict=True)):
        if not same(mine, other, close):
            return f"row {number} is {mine!r} instead of {other!r}"
    return None


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Times and dates as numbers, because Python has no year 10000."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return list(column.to_pylist())


def same(ours: Any, theirs: Any, close: float) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=close, abs_tol=1e-300)
    return bool(ours == theirs)
