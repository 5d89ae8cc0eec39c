"""Functions that would make a replay differ are refused wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.query.catalog import sql
from tidegate.errors import QueryError
from tidegate.plan.lower import lower


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


def test_time_taken_from_the_tuple_is_fine() -> None:
    lower(sql("SELECT year(dropoff_time) AS y FROM rides"))
