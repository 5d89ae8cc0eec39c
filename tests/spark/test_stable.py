"""What Spark tells of expressions when a query is planned, beside their types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate.errors import QueryError
from tidegate.execute.spark.session.sql_session import types_by_spark

SCHEMA = pa.schema([("route", pa.string()), ("tip", pa.int64())])
UNSTABLE = {
    "rand()": "rand()",
    "1 + uniform(1, 10)": "uniform()",
    "concat(route, randstr(5, 1))": "randstr()",
    "reflect('java.util.UUID', 'randomUUID')": "reflect()",
    "java_method('java.lang.System', 'nanoTime')": "java_method()",
    "monotonically_increasing_id()": "monotonically_increasing_id()",
    "input_file_name()": "input_file_name()",
    "date_add(current_date(), 1)": "current_date()",
    "unix_timestamp()": "current_timestamp()",
    "upper(session_user())": "session_user()",
}


def test_what_may_differ_from_run_to_run_and_what_spark_cannot_parse_is_refused(
    spark: SparkSession,
) -> None:
    types = types_by_spark(spark)
    for text, function in UNSTABLE.items():
        with pytest.raises(QueryError) as caught:
            types(["upper(route)", text], SCHEMA)
        assert str(caught.value) == (
            "query: an expression must give the same value whenever a batch is replayed; "
            f"got {function}. Use the event time, or a column of the stream."
        )
    for text in ("+ tip " * 3000, "hex(" * 3000 + "tip" + ")" * 3000):
        with pytest.raises(QueryError, match="Spark must be able to parse all expressions"):
            types([f"tip {text}" if text[0] == "+" else text], SCHEMA)
    assert types(["hash(route)", "version()", "tip + 1"], SCHEMA) == [
        pa.int32(),
        pa.string(),
        pa.int64(),
    ]
