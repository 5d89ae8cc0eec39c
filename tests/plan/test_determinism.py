"""Functions that would make a replay differ are refused wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.query.catalog import sql
from tidegate.errors import QueryError
from tidegate.plan.lowering.lower import lower


@pytest.mark.parametrize(
    "text",
    [
        "rand()",
        "randn(3)",
        "random()",
        "uuid()",
        "now()",
        "current_timestamp()",
        "current_date",
        "unix_timestamp()",
        "monotonically_increasing_id()",
        "shuffle(stops)",
        "fare + rand()",
        "regexp_extract(uuid(), 'a', 1)",
        "uniform(1, 10)",
        "uniform(1, 10, 5)",
        "randstr(5)",
        "reflect('java.util.UUID', 'randomUUID')",
        "try_reflect('java.util.UUID', 'randomUUID')",
        "java_method('java.lang.System', 'nanoTime')",
        "localtimestamp()",
        "current_time()",
        "curdate()",
        "current_user()",
        "session_user()",
        "user()",
        "current_catalog()",
        "current_database()",
        "current_schema()",
        "input_file_name()",
        "input_file_block_start()",
        "spark_partition_id()",
        "hex(aes_encrypt(route, '0000111122223333'))",
    ],
)
def test_chance_and_the_clock_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="SELECT: an expression must give the same value"):
        lower(sql(f"SELECT {text} AS x FROM rides"), lambda texts, _: [pa.string()] * len(texts))


def test_in_conditions_and_after_windows_too() -> None:
    with pytest.raises(QueryError) as caught:
        lower(sql("SELECT fare FROM rides WHERE rand() > 0.5"))
    assert str(caught.value) == (
        "WHERE: an expression must give the same value whenever a batch is replayed; got RAND(). "
        "Use the event time, or a column of the stream."
    )


@pytest.mark.parametrize(
    "text",
    [
        "year(dropoff_time)",
        "unix_timestamp(dropoff_time)",
        "version()",
        "hash(route)",
        "aes_encrypt(route, '0000111122223333', 'ECB')",
        "aes_encrypt(route, '0000111122223333', 'GCM', 'DEFAULT', unhex('00'))",
    ],
)
def test_what_the_tuple_decides_is_fine(text: str) -> None:
    typer = lambda texts, _: [pa.string()] * len(texts)  # noqa: E731
    plan = lower(sql(f"SELECT {text} AS x FROM rides"), typer)
    assert [name for name, _ in plan.subqueries[0].prefixes[0].outputs] == ["x"]
