"""Random expressions of all types by kernels and by Spark: type, value, and what fails."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.fuzz.scalar import draw_expression, draw_rows
from tests.seed import seeds
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(5_000 if LONG else 200)
EXPRESSIONS, ROWS = 6, 6

FAILS = "fails"
UNKNOWN = "Spark alone has it"
Answer = str | pa.ChunkedArray


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_expressions(first: int, spark: SparkSession) -> None:
    """Seeds that are neighbours have rows in common, so that Spark is asked for all at once.

    What fails is asked for alone.
    """
    rows = draw_rows(np.random.default_rng([11, first]), ROWS)
    seeds: dict[str, int] = {}
    for seed in range(first, first + TOGETHER):
        chance = np.random.default_rng([12, seed])
        seeds |= {draw_expression(chance): seed for _ in range(EXPRESSIONS)}
    ours = by_kernels(rows, list(seeds))
    theirs = by_spark(spark, rows, [t for t in seeds if not isinstance(ours[t], str)])
    for text in (t for t in seeds if ours[t] == FAILS):
        theirs |= by_spark(spark, rows, [text])
    for text in theirs:
        problem = difference(ours[text], theirs[text])
        assert problem is None, f"seed {seeds[text]}: {text}\n{problem}\n{rows.to_pylist()}"


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


def difference(ours: Answer, theirs: Answer) -> str | None:
    if isinstance(ours, str) or isinstance(theirs, str):
        return None if isinstance(ours, str) == isinstance(theirs, str) else f"{ours}, {theirs}"
    if ours.type != theirs.type and theirs.type != pa.null():
        return f"{ours.type} instead of {theirs.type}"
    for number, (mine, other) in enumerate(zip(plain(ours), plain(theirs), strict=True)):
        if not same(mine, other):
            return f"row {number} is {mine!r} instead of {other!r}"
    return None


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Times and dates as numbers, because Python has no year 10000."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return list(column.to_pylist())


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-13, abs_tol=1e-300)
    return bool(ours == theirs)
