"""Arguments of aggregates that no row reaches, without Spark; beside it in tests/spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import TaskError

ROWS = pa.table(
    {
        "ts": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "p": pa.array([True, None, False]),
        "x": pa.array([2.0, None, None]),
        "s": pa.array(["5", "bad", "bad"]),
    }
)


def result(aggregate: str) -> object:
    source = tg.MemorySource(ROWS, time="ts")
    source.end()
    session, sink = tg.Session(master="none"), tg.sink.memory()
    stream = session.stream(source, time="ts", name="s")
    text = f"SELECT {aggregate} AS r FROM s [RANGE 1 HOUR]"
    session.sql(text, s=stream).start(sink=sink).wait()
    return sink.table()["r"].to_pylist()


@pytest.mark.parametrize(
    ("aggregate", "wanted"),
    [
        ("SUM(CAST(s AS INT)) FILTER (WHERE p)", 5),
        ("COUNT(*) FILTER (WHERE p AND CAST(s AS INT) > 1)", 1),
        ("COUNT(*) FILTER (WHERE (p AND CAST(s AS INT) > 1) AND CAST(s AS INT) < 9)", 1),
        ("COVAR_POP(x, CAST(s AS DOUBLE))", 0.0),
        ("MAX_BY(CAST(s AS INT), x)", 5),
        ("SUM(nanvl(coalesce(x, 0.0), CAST(s AS DOUBLE)))", 2.0),
    ],
)
def test_an_argument_is_evaluated_where_it_counts(aggregate: str, wanted: object) -> None:
    assert result(aggregate) == [wanted]


@pytest.mark.parametrize(
    "aggregate",
    [
        "COUNT_IF(p AND CAST(s AS INT) > 1)",
        "COUNT(*) FILTER (WHERE CAST(s AS INT) > 1 AND p)",
        "COVAR_POP(CAST(s AS DOUBLE), x)",
        "MAX_BY(x, CAST(s AS INT))",
    ],
)
def test_an_argument_that_is_looked_at_first_fails(aggregate: str) -> None:
    with pytest.raises(TaskError, match="must be convertible"):
        result(aggregate)


def test_a_filter_of_a_thousand_conditions_is_not_nested() -> None:
    conditions = " AND ".join(f"x <> {number}.5" for number in range(1_000))
    assert result(f"COUNT(*) FILTER (WHERE {conditions})") == [1]
